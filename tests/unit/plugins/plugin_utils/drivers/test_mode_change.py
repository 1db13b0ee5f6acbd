# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node plugin that would change its mode: what the plan reports, and what it refuses."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.model import DriverSnapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import (
    ModeChange,
    check_mode_change,
    find_mode_change,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from unit.plugins.plugin_utils.drivers.worlds import snapshot

SMB, DISK = DRIVERS["smb"], DRIVERS["azure_disk"]


def running(driver: Driver, mode: str, managed_by: str = "kubewin.csi", **spoilt: Any) -> DriverSnapshot:
    observed = ObservedDaemonSet(driver.namespace, driver.daemonset, managed_by, {}, (), "", mode=mode)
    return snapshot(daemon_sets=(observed,), **spoilt)


def change(driver: Driver, observed: DriverSnapshot, mode: str) -> ModeChange | None:
    return find_mode_change(
        driver, next(rule for rule in driver.modes if rule.mode == mode), observed, driver.namespace
    )


def found(driver: Driver, left: str, mode: str, *in_use: tuple[str, str]) -> list[Finding]:
    observed = running(driver, left, in_use=in_use)
    return list(check_mode_change(driver, change(driver, observed, mode), observed))


def test_the_same_mode_a_first_installation_and_another_owners_plugin_are_no_change() -> None:
    assert change(DISK, running(DISK, "csi_proxy"), "csi_proxy") is None
    assert change(DISK, snapshot(), "csi_proxy") is None
    assert change(DISK, running(DISK, "csi_proxy", managed_by="Helm"), "host_process") is None
    assert change(DISK, running(DISK, ""), "host_process") is None
    assert find_mode_change(DISK, None, running(DISK, "csi_proxy"), DISK.namespace) is None


def test_a_mode_that_takes_volumes_along_changes_under_them() -> None:
    (reported,) = found(DISK, "csi_proxy", "host_process", ("win-1", "pod shop/db-0 (claim data)"))
    assert (reported.id, reported.severity) == ("CSI-D71", "note")
    assert "csi-proxy stays" in reported.message
    (reported,) = found(DISK, "host_process", "csi_proxy")
    assert "only where csi-proxy serves" in reported.message


def test_smb_does_not_return_to_csi_proxy_on_a_node_that_uses_a_share() -> None:
    uses = [("win-2", f"pod shop/db-{number}") for number in range(12)]
    blocker, note = found(SMB, "host_process", "csi_proxy", *uses)
    assert (blocker.id, blocker.severity, blocker.object) == ("CSI-D70", "blocker", "Node win-2")
    assert "and 2 more" in blocker.message
    assert "kubectl drain win-2" in blocker.remedy
    assert note.id == "CSI-D71"
    assert [one.id for one in found(SMB, "csi_proxy", "host_process", *uses)] == ["CSI-D71"]


def test_only_a_change_that_would_lose_volumes_reads_them_from_the_hosts() -> None:
    back = change(SMB, running(SMB, "host_process"), "csi_proxy")
    assert back is not None
    assert back.as_dict() == {"from": "host_process", "to": "csi_proxy", "drain": True, "counters": SMB.counters}
    there = change(SMB, running(SMB, "csi_proxy"), "host_process")
    assert there is not None
    assert (there.drain, there.counters) == (False, "")
