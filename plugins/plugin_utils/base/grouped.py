# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values by their key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def group_values(
    pairs: Iterable[tuple[_Key, _Value]], order: Callable[[_Value], Any] | None = None
) -> dict[_Key, list[_Value]]:
    """The values of each key, as they come or in an order; of a key without any an empty list."""
    groups: dict[_Key, list[_Value]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    if order is not None:
        for values in groups.values():
            values.sort(key=order)
    return groups
