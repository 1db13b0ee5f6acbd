# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rules that are asked for are those of the shipped role, no more and no less."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.needs import needs

RULES = Path(__file__).parents[5] / "roles" / "csi_driver" / "files" / "kubewin-rbac.yaml"
# Rules for the first reads; without them the request itself is refused by name.
READS = {
    ("get", "", "nodes"), ("list", "", "nodes"), ("get", "storage.k8s.io", "csinodes"), ("list", "storage.k8s.io", "csinodes"),
    ("get", "storage.k8s.io", "csidrivers"), ("list", "storage.k8s.io", "storageclasses"),
}  # fmt: skip


def test_the_shipped_roles_hold_exactly_what_a_run_needs() -> None:
    items = yaml.safe_load(RULES.read_text(encoding="utf-8"))["items"]
    names = ("kubewin-csi-verify", "kubewin-csi-verify-pods", "kubewin-csi-verify-namespace")
    held = {
        (verb, group, resource)
        for role in items
        if role["metadata"]["name"] in names
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    asked = {(need.verb, need.group, need.resource) for need in needs("", owns_namespace=True, attaches=True)}
    assert held == asked | READS


def test_in_a_namespace_that_is_given_less_is_needed_and_only_there() -> None:
    asked = needs("given", owns_namespace=False, attaches=False)
    assert {need.namespace for need in asked if need.resource != "persistentvolumes"} == {"given"}
    assert not {"namespaces", "volumeattachments"} & {need.resource for need in asked}
