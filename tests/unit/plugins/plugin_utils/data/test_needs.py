# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rules that are asked for are those of the shipped role, no more and no less."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.needs import needs

NAMES = ("kubewin-csi-data", "kubewin-csi-data-pods", "kubewin-csi-records")
RULES = Path(__file__).parents[5] / "roles" / "csi_driver" / "files" / "kubewin-rbac.yaml"


def test_the_shipped_roles_have_exactly_the_needed_rules() -> None:
    items = yaml.safe_load(RULES.read_text(encoding="utf-8"))["items"]
    roles = [item for item in items if item["metadata"]["name"] in NAMES]
    held = {
        (verb, group, resource)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    required = {(need.verb, need.group, need.resource) for need in needs(["shop"], "kubewin")}
    assert held == required
