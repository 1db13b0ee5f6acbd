# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to gather, and which shipped roles a diagnosis compares it with. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_needs

ROLE = "kubewin-csi-gather"


def needs() -> Iterator[Need]:
    """Everything that gather reads in addition to the readiness report."""
    yield from list_needs("list", "", "events nodes pods")
    yield from list_needs("get", "", "pods/log")
    yield from list_needs("list", "storage.k8s.io", "csinodes csidrivers volumeattachments storageclasses")
    yield from list_needs("list", "apps", "daemonsets")


def needs_of_playbooks(roles: Mapping[str, Mapping[str, Any]], drivers: Iterable[Driver]) -> Iterator[tuple[str, Need]]:
    """What the playbooks for these drivers need, each with the name of its role. roles: the shipped ClusterRoles by name."""
    bound: dict[str, str | None] = {"kubewin-preflight": None, "kubewin-csi": None}
    for driver in drivers:
        bound[f"kubewin-csi-{driver.key.replace('_', '-')}"] = None
        bound["kubewin-csi-deploy"] = driver.namespace
    for name, namespace in bound.items():
        yield from ((name, need) for need in needs_of_role(roles.get(name, {}), namespace))


def needs_of_role(role: Mapping[str, Any], namespace: str | None = None) -> Iterator[Need]:
    """What a ClusterRole allows, as needs. namespace: where it is bound, None for everywhere."""
    for rule in role.get("rules") or ():
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    for verb in rule.get("verbs") or ():
                        yield Need(verb, group, resource, namespace, name)
