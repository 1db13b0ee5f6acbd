# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible prints all that a failed task returns, so that is the cause, the remedy and what later tasks need."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.action.upgrade import shorten as of_upgrade
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.host_results import build_result
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.results import NodeMatch
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.prove import shorten_failed_result as of_host
from unit.plugins.hostvars import match

STATE: dict[str, Any] = {
    "observed_at": "2026-11-22T13:00:00Z",
    "host": {"name": "WIN-1", "dns_name": "", "addresses": ["10.0.0.1"], "boot_time": None},
    "managed_by": "kubewin",
    "service": {"name": "csi-proxy", "state": "STOPPED", "pid": None, "command_line": "x" * 900, "recovery": ["y"] * 90},
    "executable": {"path": "C:\\csi-proxy\\1.3.0\\csi-proxy.exe", "sha256": "0" * 64, "release": "1.3.0"},
    "pipes": [],
    "serving": False,
    "missing_pipes": ["csi-proxy-disk-v1"],
    "drift": [],
    "findings": [{"id": one, "severity": severity, "object": "h", "message": "m", "remedy": "r"} for one, severity in (("N1", "note"), ("N2", "warning"))],
}  # fmt: skip


def test_of_a_host_stays_what_later_tasks_evaluate() -> None:
    reported = {"msg": "it was not started", "reason": "start_failed", "failed": True}
    part = of_host({**reported, "csi_proxy": STATE, "plan": [{"step": "start", "description": "start it"}]})
    assert {key: part[key] for key in reported} == reported
    assert part["csi_proxy"]["service"] == {"name": "csi-proxy", "state": "STOPPED", "pid": None}
    assert [one["id"] for one in part["csi_proxy"]["findings"]] == ["N2"]
    assert len(str(part)) < 1000
    nodes = NodeMatch.from_result(match("win-1", matched={"win-1": "win-1"}))
    before, after = (
        build_result("win-1", {"csi_proxy_result": {**reported, "csi_proxy": one}}, nodes)
        for one in (STATE, part["csi_proxy"])
    )
    facts = [host.describe_csi_proxy() for host in (before, after)]
    # A note is left out: the callback prints all that a failed task returns.
    assert [fact.pop("findings") for fact in facts] == [STATE["findings"], STATE["findings"][1:]]
    assert facts[0] == facts[1]
    assert after.left_out == before.left_out
    assert of_host(reported) == reported


def test_an_upgrades_result_keeps_the_state_of_each_node() -> None:
    entry = {
        "node": "win-1",
        "batch": 0,
        "step": "gate",
        "since": "2026",
        "failed": True,
        "why": "not green",
        "tries": 2,
    }
    reported = {"msg": "CSI-U07", "outcome": "stopped", "place": "ConfigMap kubewin/x", "failed": True}
    finding = {"id": "CSI-U07", "object": "Node win-1", "message": "m" * 500, "remedy": "r"}
    part = of_upgrade({**reported, "journal": [entry], "findings": [finding]})
    stands = {"node": "win-1", "step": "gate", "failed": True, "why": "not green"}
    assert part == {**reported, "journal": [stands], "findings": [{"id": "CSI-U07", "object": "Node win-1"}]}
    assert of_upgrade({"msg": "refused", "failed": True}) == {"msg": "refused", "failed": True}
