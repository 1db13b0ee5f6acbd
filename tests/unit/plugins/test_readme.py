# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The screen that README promises is the one that a run prints; tests/integration/test_enable_csi.py sees the same one on the lab."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.commands import Invocation, command
from ansible_collections.kubewin.csi.plugins.plugin_utils.rollout import progress
from ansible_collections.kubewin.csi.plugins.plugin_utils.summary import render_summary, summarize

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
NODES = ("win-1", "win-2", "win-3")
DEFENDER = (
    r"Real-time protection is on and no policy excludes C:\csi-proxy; it may delay or remove a new csi-proxy.exe."
)


def screen() -> str:
    """The block of README that shows the end of a run."""
    found = re.search(r"What you will see at the end of either:\n\n```console\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_end_of_a_run_is_shown_as_it_is_printed() -> None:
    state = {
        "managed_by": "kubewin",
        "service": {"state": "RUNNING"},
        "executable": {"release": "1.3.0"},
        "serving": True,
        "findings": [{"id": "CSI-N20", "severity": "note", "message": DEFENDER, "remedy": "exclude it"}],
    }
    hosts: list[dict[str, Any]] = [{"name": name, "node": name, "csi_proxy": state} for name in NODES]
    nodes = [{"node": name, "verdict": "green", "lacks": [], "notes": [], "fingerprint": name} for name in NODES]
    rollout = {"nodes": nodes, "others": []}
    judged = {
        "verdict": "ready",
        "counts": {},
        "taken_at": "",
        "unread": [],
        "table": ["no workload with volumes may run on Windows"],
    }
    run = Invocation(playbook="kubewin.csi.enable_csi", inventories=("inventory.yml",))
    summary = summarize(hosts, {"vsphere": rollout}, [], judged)
    shown = screen()
    assert render_summary(summary, following=[command(run, "verify")]) in shown
    (line,) = progress(rollout, {}, 4, 600)
    assert line in shown.splitlines()


def test_your_cluster_is_five_steps_with_a_command_each() -> None:
    (steps,) = re.findall(r"## For your cluster\n(.*?)\n## ", README, re.DOTALL)
    numbered = re.split(r"^(\d)\. ", steps, flags=re.MULTILINE)[1:]
    assert numbered[::2] == ["1", "2", "3", "4", "5"]
    assert all("```console\n   $ " in text for text in numbered[1::2])
