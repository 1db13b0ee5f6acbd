# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds upgrades of the Windows operator, or releases them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.modules.operator_override import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction, TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import read_argument_spec
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.wmco import OPERATOR_NAMESPACE
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import OPERATOR
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.override import Planned, plan
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import number


class ActionModule(ClusterAction):
    """Sets or removes the override in the operator's OperatorConditions."""

    argument_spec = read_argument_spec(DOCUMENTATION)

    def work(self, options: Mapping[str, Any]) -> None:
        """Return what was done with each OperatorCondition, or would be."""
        report = options["readiness"]
        if report is not None:
            blockers = [str(blocker["id"]) for blocker in report.get("blockers") or ()]
            if not report.get("verdict") or (report.get("unread") and not blockers):
                # An incomplete report may hide a blocker.
                return
            explanation = (
                f"preflight of kubewin.csi found {number(len(blockers), 'blocker')}: {', '.join(sorted(set(blockers)))}"
            )
            options = {**options, "state": "present" if blockers else "absent", "explanation": explanation}
        message: str | None = options["explanation"] if options["state"] == "present" else None
        if message == "":
            raise TaskError("explanation: empty, expected the reason of the hold. Set it, or set state to absent.")
        client = self.connect(options)
        try:
            conditions = list_conditions(client)
        except ClusterError as error:
            if error.status != 403 or not options["allow_forbidden"]:
                raise
            if may_exist(client):
                self.warn(f"Whether an override of this collection holds the Windows operator is unknown. {error}")
            conditions = []
        planned = [write_override(client, one["metadata"]["name"], message, self.check_mode) for one in conditions]
        for condition in planned:
            if condition.action == "keep":
                self.warn(f"OperatorCondition {condition.name}: {condition.message}")
        self.result.update(
            changed=any(condition.action in ("set", "remove") for condition in planned),
            conditions=[
                {"name": condition.name, "action": condition.action, "message": condition.message}
                for condition in planned
            ],
        )


def list_conditions(client: Client) -> list[dict[str, Any]]:
    """The OperatorConditions of the operator, one for each of its versions that is installed."""
    try:
        items = client.list(kinds.OPERATOR_CONDITION, OPERATOR_NAMESPACE).items
    except ClusterError as error:
        if error.status == 404:
            return []
        raise
    return [dict(item) for item in items if str(item["metadata"]["name"]).startswith(OPERATOR)]


def may_exist(client: Client) -> bool:
    """Whether the operator's namespace exists, or may exist."""
    try:
        return client.get(kinds.NAMESPACE, OPERATOR_NAMESPACE) is not None
    except ClusterError:
        return True


def write_override(client: Client, name: str, message: str | None, check_mode: bool) -> Planned:
    """Change a condition; planned anew when another write came between. Returns what was done, or would be."""
    planned = Planned(name, "none")

    def patch(condition: dict[str, Any]) -> dict[str, Any]:
        nonlocal planned
        planned = plan(condition, message)
        return {} if check_mode or planned.action in ("none", "keep") else planned.patch()

    written = modify(client, kinds.OPERATOR_CONDITION, name, OPERATOR_NAMESPACE, patch)
    return planned if written or check_mode or planned.action == "keep" else Planned(name, "none")
