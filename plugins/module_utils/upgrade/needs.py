# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to carry out an upgrade, beyond the gate and the proof. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import Hook, Target


def needs(namespace: str, operator: str, hook: Hook, target: Target) -> Iterator[Need]:
    """Everything that is asked of the API. namespace: of journal and lease; operator: of WMCO."""
    for name in (namespace, "kube-system"):
        yield Need("get", "", "namespaces", name=name)
    for verb in ("get", "list", "patch"):
        yield Need(verb, "", "nodes")
    for resource in ("pods", "persistentvolumeclaims", "persistentvolumes"):
        yield Need("list", "", resource)
    if hook != "wmco":
        # WMCO empties nodes itself.
        yield Need("create", "", "pods/eviction")
    for resource in ("deployments", "statefulsets"):
        yield Need("get", "apps", resource)
    yield Need("list", "apps", "daemonsets")
    for verb in ("get", "list", "create", "patch", "delete"):
        yield Need(verb, "", "configmaps", namespace)
    for verb in ("get", "create", "patch", "delete"):
        yield Need(verb, "coordination.k8s.io", "leases", namespace)
    if hook == "wmco":
        for resource in ("clusterserviceversions", "installplans"):
            yield Need("list", "operators.coreos.com", resource, operator)
    if hook == "wmco" or target.openshift:
        yield Need("get", "config.openshift.io", "clusterversions")
