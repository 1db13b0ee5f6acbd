# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The override by which a report keeps Operator Lifecycle Manager from upgrading the Windows operator. Pure.

Source: https://olm.operatorframework.io/docs/advanced-tasks/communicating-operator-conditions-to-olm/ (overriding conditions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

TYPE, REASON = "Upgradeable", "KubewinCsiBlockers"

Action = Literal["none", "set", "remove", "keep"]


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be done with an OperatorCondition. overrides: what its spec is to have afterwards.

    action: keep leaves the override of another user in place, and with it what that says.
    """

    name: str
    action: Action
    overrides: tuple[Mapping[str, Any], ...] = ()
    message: str = ""

    def patch(self) -> dict[str, Any]:
        """The merge patch."""
        return {"spec": {"overrides": [dict(one) for one in self.overrides]}}


def plan(condition: Mapping[str, Any], message: str | None) -> Planned:
    """Plan for an operators.coreos.com/v2 OperatorCondition. message: why upgrades are held, None where they are not."""
    name = str(condition["metadata"]["name"])
    found: list[Mapping[str, Any]] = list((condition.get("spec") or {}).get("overrides") or ())
    of_type = [one for one in found if one.get("type") == TYPE]
    ours = [one for one in of_type if one.get("reason") == REASON]
    others = [one for one in found if one not in ours]
    if message is None:
        return Planned(name, "remove", tuple(others)) if ours else Planned(name, "none")
    theirs = next((one for one in of_type if one not in ours), None)
    if theirs is not None:
        text = f"{theirs.get('status', '')}, {theirs.get('reason', '')}"
        return Planned(name, "keep", message=f"another user set the override {TYPE} ({text}), which is kept")
    desired = {"type": TYPE, "status": "False", "reason": REASON, "message": message}
    if len(ours) == 1 and all(ours[0].get(key) == value for key, value in desired.items()):
        return Planned(name, "none")
    return Planned(name, "set", (*others, desired), message)
