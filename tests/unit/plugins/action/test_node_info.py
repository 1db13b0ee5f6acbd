# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.action import node_info


def test_a_refusal_names_the_nodes_that_a_cancelled_run_left_cordoned_and_unlabelled() -> None:
    ours = {"cordoned_for": "csi-proxy is being replaced", "unschedulable": True}
    lines = node_info.describe_left_cordons(
        {
            "win-1": {**ours, "labels": {}},
            "win-2": {**ours, "labels": {"kubewin.io/csi-proxy": "serving"}},
            "win-3": {"cordoned_for": "", "unschedulable": True, "labels": {}},
        }
    )
    assert lines == [
        "Node win-1 is cordoned (csi-proxy is being replaced) and lacks the label kubewin.io/csi-proxy, because a run was "
        "interrupted. The next run that succeeds restores it.",
        "Node win-2 is cordoned (csi-proxy is being replaced), because a run was interrupted. The next run that succeeds "
        "restores it.",
    ]
