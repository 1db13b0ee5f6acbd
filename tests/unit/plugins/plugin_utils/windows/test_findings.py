# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: what volumes trip over, each from the value that means it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import findings, model, parse
from unit.plugins.plugin_utils.windows.test_plan import CONVERGED, OLDER, WANTED, installed, with_service

HEALTHY = model.StorageState(
    san_policy=1,
    defragsvc_start=3,
    afunix_start=1,
    compartment_namespace=1,
)


def ids(snapshot: model.HostSnapshot) -> list[str]:
    return [found.id for found in findings.list_findings(snapshot)]


def with_trouble(**changes: object) -> model.HostSnapshot:
    return replace(CONVERGED, storage=replace(HEALTHY, **changes))  # type: ignore[arg-type]  # fields by name


def test_a_healthy_node_has_none() -> None:
    assert ids(with_trouble()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"san_policy": 3}, "CSI-N10"),
        ({"defragsvc_start": 4}, "CSI-N11"),
        ({"afunix_start": 4}, "CSI-N12"),
        ({"afunix_start": None}, "CSI-N12"),
        ({"compartment_namespace": None, "uses_smb": True}, "CSI-N13"),
        ({"stale_mounts": (r"C:\x\globalmount",)}, "CSI-N15"),
        ({"free_bytes": (("C:", 0),)}, "CSI-N23"),
        ({"free_bytes": (("C:", 1 << 30), ("D:", 0))}, "CSI-N23"),
    ],
)
def test_each_trouble_is_found(changes: dict[str, object], expected: str) -> None:
    assert ids(with_trouble(**changes)) == [expected]


@pytest.mark.parametrize(
    "changes",
    [
        {"compartment_namespace": None},
        {"free_bytes": (("C:", 1 << 30), ("D:", 1 << 30))},
    ],
)
def test_harmless_settings_make_no_finding(changes: dict[str, object]) -> None:
    assert ids(with_trouble(**changes)) == []


def test_releases_and_rivals() -> None:
    older = replace(installed(OLDER), storage=HEALTHY)
    assert ids(older) == ["CSI-N02"]
    rival = replace(
        with_trouble(),
        other_services=(("csiproxy", "x"),),
        processes=(*CONVERGED.processes, parse.Process("csi-proxy.exe", 9)),
    )
    assert ids(rival) == ["CSI-N03", "CSI-N04"]


def running(**changes: Any) -> model.HostSnapshot:
    """A healthy node whose release was proven, with changes of its service."""
    record = model.Record(
        WANTED.version, WANTED.sha256, 100, command_line_sha256=model.digest_text(WANTED.command_line)
    )
    return with_service(with_trouble(), record=record, **changes)


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (running(), []),
        (replace(running(), executable_sha256=None, executable_code=0x80070002), [("CSI-N06", "blocker")]),
        (replace(running(state=1), executable_sha256=None, executable_code=0x80070002), [("CSI-N06", "blocker")]),
        (replace(running(state=1), executable_sha256=None, executable_code=0x80070020), []),
        (replace(running(), executable_sha256=None, executable_code=0x80070020), [("CSI-N09", "warning")]),
        (replace(running(), executable_sha256=None, executable_code=None), [("CSI-N09", "warning")]),
        (replace(running(), executable_sha256="c" * 64), [("CSI-N07", "blocker")]),
        (running(command_line=rf"{WANTED.executable} -windows-service"), [("CSI-N07", "blocker")]),
        (running(start=4), [("CSI-N18", "blocker")]),
        (running(start=3), [("CSI-N18", "blocker")]),
        (running(start=None), [("CSI-N18", "blocker")]),
        (replace(running(start=3), dependents=("kubelet",)), [("CSI-N18", "warning")]),
        (replace(running(start=4), dependents=("kubelet",)), [("CSI-N18", "blocker")]),
        (running(start=2, delayed=True), []),
        # What does not run is found missing by the gate, and is not expected to start.
        (running(start=4, state=model.STOPPED, pid=0), []),
        # The daemon of OpenShift starts the service itself.
        (running(start=3, description="OpenShift managed csi-proxy"), []),
        (replace(running(), host=model.HostIdentity("win-1")), [("CSI-N17", "warning")]),
        (replace(running(), services_read=False), [("CSI-N08", "note")]),
    ],
)
def test_a_fault_at_the_next_reboot_is_a_finding(snapshot: model.HostSnapshot, expected: list[tuple[str, str]]) -> None:
    found = [one for one in findings.list_findings(snapshot) if one.id != "CSI-N02"]
    assert [(one.id, one.severity) for one in found] == expected
    assert all(one.remedy.endswith((".", "kubewin.csi.enable_csi")) or "sc.exe" in one.remedy for one in found)


def test_every_finding_has_a_remedy() -> None:
    everything = with_trouble(
        san_policy=3,
        defragsvc_start=4,
        afunix_start=4,
        compartment_namespace=0,
        uses_smb=True,
        stale_mounts=("m",),
    )
    for found in findings.list_findings(everything):
        assert found.severity in ("blocker", "warning", "note")
        assert found.object
        assert found.message.endswith((".", "."))
        assert found.remedy
