# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the conversion of volumes prints. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def lines(results: Sequence[Mapping[str, Any]], *, check: bool) -> Iterator[str]:
    """Each claim with its state, and below it what would be done and has to be known, or what was done."""
    for one in results:
        volume = f" (volume {one['volume']}, {one['handle']})" if one.get("volume") and not check else ""
        state = one["status"].replace("_", " ")
        yield f"{one['claim']}: {state}" + (f", {one['msg']}" if one.get("msg") else "") + volume
        if check:
            yield from (f"  note: {found['message']}" for found in one.get("findings") or ())
            yield from (f"  {step['description']}" for step in one.get("plan") or ())
        else:
            yield from (f"  {action}" for action in one.get("actions") or ())


def failed_part(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a failed task returns of each claim; the rest is on the screen."""
    return [{"claim": one["claim"], "status": one["status"]} for one in results]
