# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order nodes get a changed plugin, and how many may be away."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import (
    count_allowed_unavailable,
    count_share,
    find_wrong_sizes,
    split_batches,
)


@pytest.mark.parametrize(
    ("count", "sizes", "expected"),
    [
        pytest.param(7, ("1", "2"), (1, 2, 2, 2), id="the last size repeats"),
        pytest.param(9, ("1", "25%"), (1, 2, 2, 2, 2), id="a percentage of them all, rounded down"),
        pytest.param(3, ("1", "25%"), (1, 1, 1), id="a percentage below one node is one"),
        pytest.param(4, ("100%",), (1, 3), id="the canary is a batch of its own"),
        pytest.param(3, (), (1, 2), id="no sizes"),
        pytest.param(0, ("1",), (), id="no nodes"),
    ],
)
def test_nodes_follow_in_batches_after_a_canary(count: int, sizes: tuple[str, ...], expected: tuple[int, ...]) -> None:
    nodes = [f"win-{number}" for number in range(count)]
    found = split_batches(nodes, sizes)
    assert tuple(len(batch) for batch in found) == expected
    assert [name for batch in found for name in batch] == nodes


def test_a_wrong_batch_size_is_named() -> None:
    assert find_wrong_sizes(("1", "25%", "0", "x", "", "-1", "%", "1.5")) == ("0", "x", "", "-1", "%", "1.5")


def test_batches_are_rounded_as_in_ansible_and_max_unavailable_as_in_kubernetes() -> None:
    assert (count_share("10%", 19), count_share("3", 19), count_share("1%", 19)) == (1, 3, 1)
    assert (
        count_allowed_unavailable("10%", 19),
        count_allowed_unavailable(3, 19),
        count_allowed_unavailable("0", 19),
    ) == (2, 3, 1)
