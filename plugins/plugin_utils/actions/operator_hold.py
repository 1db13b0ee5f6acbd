# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The override by which a report keeps Operator Lifecycle Manager from upgrading the Windows operator.

Source: https://olm.operatorframework.io/docs/advanced-tasks/communicating-operator-conditions-to-olm/ (overriding conditions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.wmco import OPERATOR_NAMESPACE
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import OPERATOR

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


def hold_operator(client: Client, message: str | None, *, dry_run: bool) -> list[Planned]:
    """Set or remove the override in the operator's OperatorConditions; what was done, or would be. message: as of `plan`."""
    try:
        conditions = client.list(kinds.OPERATOR_CONDITION, OPERATOR_NAMESPACE).items
    except ClusterError as error:
        if error.status == 404:
            return []
        raise
    names = [str(condition["metadata"]["name"]) for condition in conditions]
    # The operator has one for each of its installed versions.
    return [_write_override(client, name, message, dry_run=dry_run) for name in names if name.startswith(OPERATOR)]


def may_exist(client: Client) -> bool:
    """Whether the operator's namespace exists, or may exist."""
    try:
        return client.get(kinds.NAMESPACE, OPERATOR_NAMESPACE) is not None
    except ClusterError:
        return True


def _write_override(client: Client, name: str, message: str | None, *, dry_run: bool) -> Planned:
    """Change a condition; planned anew when another write came between."""
    planned = Planned(name, "none")

    def patch(condition: dict[str, Any]) -> dict[str, Any]:
        nonlocal planned
        planned = plan(condition, message)
        return {} if dry_run or planned.action in ("none", "keep") else planned.patch()

    written = modify(client, kinds.OPERATOR_CONDITION, name, OPERATOR_NAMESPACE, patch)
    return planned if written or dry_run or planned.action == "keep" else Planned(name, "none")
