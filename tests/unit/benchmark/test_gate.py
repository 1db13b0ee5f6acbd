# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark of the gate lets the last pod start once both gates report that they wait, so that no machine is too busy for it."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.gate_report import describe_progress
from benchmark.gate import _WAITING
from unit.plugins.plugin_utils.drivers.rollout.test_gate_report import node, rollout


def test_both_gates_report_waiting_in_text_that_the_benchmark_knows() -> None:
    observed = rollout(node("win-1", "green"), node("win-2", "waiting", "no pod"))
    known = {one.node: one.fingerprint for one in observed.nodes}
    for before, waited in (({}, 1), (known, 80)):
        first, *nodes = describe_progress(observed, before, waited, 600)
        assert _WAITING.search(first), first
        assert not any(_WAITING.search(line) for line in nodes)
    # ansible/plugins/callback/default.py, v2_runner_retry
    assert _WAITING.search("FAILED - RETRYING: [localhost]: Wait for each node (120 retries left).")
    assert not _WAITING.search("TASK [Wait for each node] ***")
