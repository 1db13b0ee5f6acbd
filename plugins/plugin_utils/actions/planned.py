# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan prints, and what of it the next tasks need. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lines(plan: Mapping[str, Any], *, every: bool) -> list[str]:
    """A driver's plan as text. every: all of it, otherwise a line for the driver and one for each warning."""
    if every:
        return [f"  {line}" for line in plan["summary"]]
    count = len(plan["nodes"])
    headline = f"  {plan['title']} {plan['version']}, mode {plan['mode']}, namespace {plan['namespace']}, "
    headline += f"{count} Windows {'node' if count == 1 else 'nodes'}"
    return [headline, *(f"  {one['severity']} {one['id']} {one['object']}: {one['message']}" for one in warnings(plan))]


def warnings(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Warnings of a plan. The end of the run repeats them."""
    return [one for one in plan["findings"] if one["severity"] == "warning"]


def entry(plan: Mapping[str, Any], definition: str) -> dict[str, Any]:
    """One driver of RV(planned)."""
    change = plan["switch"] or {}
    counter = {
        "driver": plan["title"],
        "path": change.get("counters"),
        "from": change.get("from"),
        "to": change.get("to"),
    }
    needed = change.get("drain") and change.get("counters")
    return {
        "driver": plan["driver"],
        "definition": definition,
        "counter": counter if needed else None,
        "warnings": warnings(plan),
        "uses_csi_proxy": bool(plan["pipes"]),
        "unselected_nodes": plan["unselected_nodes"],
    }
