# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the work of a function grows with its input, counted and not measured in seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

FEW, MANY = 50, 200


def count_operations(function: Callable[[], object]) -> int:
    """How many operations of Python's interpreter a call takes."""
    count, before = 0, sys.gettrace()

    def trace(frame: Any, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def is_linear(function: Callable[[int], object]) -> bool:
    """Whether a call with four times as many things takes about four times as many operations. function: takes FEW, then MANY."""
    few, many = count_operations(lambda: function(FEW)), count_operations(lambda: function(MANY))
    return many < 1.1 * few * MANY / FEW
