# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to carry out an upgrade, beyond the gate and the proof. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Hook, UpgradeTarget


def needs(namespace: str, operator: str, hook: Hook, target: UpgradeTarget) -> Iterator[Need]:
    """Return the permissions of an upgrade. namespace: of journal and lease; operator: of WMCO."""
    yield from list_needs("get", "", "namespaces", name=namespace)
    yield from list_needs("get list patch", "", "nodes")
    yield from list_needs("list", "", "pods persistentvolumeclaims persistentvolumes")
    if hook != "wmco":
        # WMCO empties nodes itself.
        yield from list_needs("create", "", "pods/eviction")
        # Whether the run of a helper pod ended.
        yield from list_needs("list", "coordination.k8s.io", "leases")
    yield from list_needs("get", "apps", "deployments statefulsets")
    yield from list_needs("list", "apps", "daemonsets")
    yield from list_needs("get list create patch delete", "", "configmaps", namespace)
    yield from list_needs("get create patch delete", "coordination.k8s.io", "leases", namespace)
    if hook == "wmco":
        yield from list_needs("list", "operators.coreos.com", "clusterserviceversions installplans", operator)
    if hook == "wmco" or target.openshift:
        yield from list_needs("get", "config.openshift.io", "clusterversions")
