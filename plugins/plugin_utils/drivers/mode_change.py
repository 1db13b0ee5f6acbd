# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node plugin that changes its mode: what that means, and when it must wait. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding, blocker, note
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.model import DriverSnapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGER

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class ModeChange:
    """From which mode to which. drain: only without volumes of the driver on a node. counters: the files with which its hosts count them."""

    left: str
    mode: str
    drain: bool
    counters: str

    def as_dict(self) -> dict[str, Any]:
        """For a module's result."""
        return {"from": self.left, "to": self.mode, "drain": self.drain, "counters": self.counters}


def find_mode_change(
    driver: Driver, rule: ModeRule | None, snapshot: DriverSnapshot, namespace: str
) -> ModeChange | None:
    """The change of mode that a plan means for the DaemonSet of ours that runs, None when there is none."""
    if rule is None:
        return None
    for observed in snapshot.daemon_sets:
        ours = observed.managed_by == MANAGER and (observed.namespace, observed.name) == (namespace, driver.daemonset)
        if ours and observed.mode and observed.mode != rule.mode:
            drain = rule.mode in driver.drain_to
            return ModeChange(observed.mode, rule.mode, drain, driver.counters if drain else "")
    return None


def check_mode_change(driver: Driver, change: ModeChange | None, snapshot: DriverSnapshot) -> Iterator[Finding]:
    """What has to be known, or done, before a mode changes."""
    if change is None:
        return
    subject = f"{driver.title} node plugin"
    if change.drain:
        for node, signs in sorted(group_values(snapshot.in_use).items()):
            more = f" and {len(signs) - _SHOWN} more" if len(signs) > _SHOWN else ""
            message = (
                f"it cannot change from {change.left} to {change.mode} there while volumes of {driver.name} are in "
                f"use, because the mode {change.mode} does not see the mounts and reference counts of the other: "
                f"{', '.join(signs[:_SHOWN])}{more}"
            )
            remedy = f"move or scale down these workloads (kubectl drain {node}), wait until the volumes are unmounted, and run again"
            yield blocker("CSI-D70", f"Node {node}", message, remedy)
    if change.left == "csi_proxy":
        message = f"changes from {change.left} to {change.mode}, node by node; csi-proxy stays on the hosts"
        remedy = "once nothing mounts its pipes, remove it: remove.yml with kubewin_remove_csi_proxy=true"
    else:
        message = f"changes from {change.left} to {change.mode}, node by node, and only where csi-proxy serves"
        remedy = "none; a node where csi-proxy does not serve blocks the change"
    yield note("CSI-D71", subject, message, remedy)
