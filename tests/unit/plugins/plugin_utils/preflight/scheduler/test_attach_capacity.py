# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Volumes of several workloads on nodes that take so many: the maximum flow against trying every group of workloads."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.attach_capacity import (
    find_overfull_groups,
)


def _room(rooms: dict[tuple[int, ...], int], groups: tuple[int, ...]) -> int:
    return sum(room for place, room in rooms.items() if set(place) & set(groups))


@pytest.mark.parametrize("seed", range(300))
def test_it_finds_too_many_exactly_where_there_are_too_many(seed: int) -> None:
    luck = random.Random(seed)
    count = luck.randint(1, 5)
    every = [place for size in range(1, count + 1) for place in combinations(range(count), size)]
    rooms = {place: luck.randint(0, 4) for place in luck.sample(every, luck.randint(1, min(6, len(every))))}
    needed = [luck.randint(0, 5) for dummy in range(count)]
    # Hall: all units find room when no set of groups needs more than the places that take any of them have.
    fits = all(sum(needed[one] for one in some) <= _room(rooms, some) for some in every)
    found = list(find_overfull_groups(needed, rooms))
    assert bool(found) != fits
    for groups, room in found:
        assert room == _room(rooms, groups)
        assert sum(needed[one] for one in groups) > room
