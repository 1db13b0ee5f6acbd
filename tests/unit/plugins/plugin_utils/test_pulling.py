# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of pulling images, and when it fails."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.pulling import ended, progress

SEEN: dict[str, Any] = {
    "pulled": ["win-1"],
    "waiting": ["win-2", "win-3"],
    "why": {"win-2": "driver:2: ErrImagePull"},
    "failures": {},
}


def test_progress_counts_nodes_and_names_those_in_trouble() -> None:
    assert list(progress(SEEN, 40, 1800)) == [
        "  40 s of 30 min: 1 of 3 nodes have the images",
        "    win-2: driver:2: ErrImagePull",
    ]


def test_it_continues_while_there_is_time_and_succeeds_with_the_last_node() -> None:
    assert ended(SEEN, 5.0) == {}
    assert ended({**SEEN, "waiting": [], "why": {}}, -1.0) == {}


def test_when_time_is_up_every_node_that_waits_is_named() -> None:
    result = ended(SEEN, 0.0)
    assert (result["failed"], result["reason"]) == (True, "timeout")
    assert "win-2: driver:2: ErrImagePull; win-3: not pulled yet" in result["msg"]
    assert "No plugin pod was replaced" in result["msg"]


def test_what_cannot_be_pulled_ends_it_at_once() -> None:
    result = ended({**SEEN, "failures": SEEN["why"]}, 5.0)
    assert result["reason"] == "pull_failed"
    assert "win-2: driver:2: ErrImagePull" in result["msg"]
