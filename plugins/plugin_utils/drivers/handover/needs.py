# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to hand over, beyond enable_csi and remove. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.decide import Direction
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.model import name_record
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_needs

ROLES = "kubewin-csi-handover kubewin-csi"


def list_handover_needs(
    driver: Driver, direction: Direction, namespace: str, other: str, *, restarts: bool
) -> Iterator[Need]:
    """Every write to the two node plugins. namespace: of this collection's plugin. other: the other DaemonSet as "namespace/name",
    empty if it is deleted already. restarts: whether its pods are deleted."""
    elsewhere, dummy, name = other.partition("/")
    yield from list_needs("get patch", "", "nodes")
    yield from list_needs("get create patch delete", "coordination.k8s.io", "leases", namespace)
    if direction == "to_platform":
        yield from list_needs("get patch delete", "apps", "daemonsets", namespace, driver.daemonset)
        if restarts:
            yield from list_needs("delete", "", "pods", elsewhere)
        return
    yield from list_needs("get create patch", "", "configmaps", namespace, name_record(driver))
    yield from list_needs("patch delete", "", "pods", namespace)
    if other:
        yield from list_needs("get delete", "apps", "daemonsets", elsewhere, name)
