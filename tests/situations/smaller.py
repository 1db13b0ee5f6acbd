# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Random clusters made smaller, as long as they show the same."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

C = TypeVar("C")
# A thing of a cluster, or a field of it: the cluster's part, its number or name there, and the path to the field.
Cut = tuple[str, Any, tuple[Any, ...]]


def smallest(
    cluster: C,
    same: Callable[[Sequence[C]], Sequence[bool]],
    list_cuts: Callable[[C], Iterable[Cut]],
    tries: int = 12,
) -> C:
    """A cluster with less in it that is the same in what is asked of many at a time."""
    for _try in range(tries):
        alone = list(list_cuts(cluster))
        free = [
            cut for cut, is_same in zip(alone, same([without(cluster, [one]) for one in alone]), strict=True) if is_same
        ]
        if not free:
            return cluster
        # What can be left out by itself can often be left out together.
        size, together = len(free), [free]
        while size > 1:
            size = (size + 1) // 2
            together += [free[start : start + size] for start in range(0, len(free), size)]
        kept = zip(together, same([without(cluster, some) for some in together]), strict=True)
        most = max((some for some, is_same in kept if is_same), key=len, default=free[:1])
        cluster = without(cluster, most)
    return cluster


def without(cluster: C, cuts: Iterable[Cut]) -> C:
    """A cluster with things or fields left out."""
    smaller = copy.deepcopy(cluster)
    # Fields before the things that have them, and the last of a list first, so that numbers stay right.
    for part, place, path in sorted(cuts, key=_order, reverse=True):
        at: Any = getattr(smaller, part)
        for key in (place, *path)[:-1]:
            at = at[key]
        del at[(place, *path)[-1]]
    return smaller


def _order(cut: Cut) -> tuple[bool, list[str]]:
    _part, place, path = cut
    return bool(path), [f"{key:>9}" for key in (place, *path)]
