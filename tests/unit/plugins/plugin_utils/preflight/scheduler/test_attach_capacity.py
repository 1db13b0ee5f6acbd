# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Volumes of several workloads on nodes that take so many: none is missed that trying every group of workloads finds."""

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
def test_it_finds_too_many_wherever_there_are_too_many(seed: int) -> None:
    luck = random.Random(seed)
    count = luck.randint(1, 5)
    every = [place for size in range(1, count + 1) for place in combinations(range(count), size)]
    rooms = {place: luck.randint(0, 4) for place in luck.sample(every, luck.randint(1, min(6, len(every))))}
    needed = [luck.randint(0, 5) for dummy in range(count)]
    # Hall: all units find room when no set of groups needs more than the places that take any of them have.
    overfull = [some for some in every if sum(needed[one] for one in some) > _room(rooms, some)]
    found = list(find_overfull_groups(needed, rooms))
    contended = {group for groups, _room in found for group in groups}
    smallest = [some for some in overfull if not any(set(other) < set(some) for other in overfull)]
    assert contended.issuperset(group for some in smallest for group in some)
    for groups, room in found:
        assert room == _room(rooms, groups)


def test_groups_of_which_each_has_its_own_room_are_not_reported() -> None:
    assert list(find_overfull_groups([2, 3], {(0,): 2, (0, 1): 3})) == []
    assert list(find_overfull_groups([2, 1], {(0,): 1, (1,): 1})) == [((0,), 1)]
