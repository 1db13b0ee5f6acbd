# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people make of stored JSON with an editor."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

_INSTEAD: tuple[Any, ...] = (None, "", "x", 5, True, [], {}, ["x"], {"x": 1})


def spoiled_by_hand(whole: Any) -> Iterator[Any]:
    """One value after the other replaced by something else, and left out, at every depth."""
    inner = (
        list(whole.items()) if isinstance(whole, dict) else list(enumerate(whole)) if isinstance(whole, list) else []
    )
    for key, value in inner:
        for other in (*_INSTEAD, *spoiled_by_hand(value)):
            changed = copy.copy(whole)
            changed[key] = other
            yield changed
        without = copy.copy(whole)
        del without[key]
        yield without
