# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a volume on every Windows node and reads it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..modules.verify import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.host_results import HostResult, read_hosts
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.base.stored import serialize_known
from ..plugin_utils.verify.plan import parse_request
from ..plugin_utils.verify.run import Verification


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)
    remainder = "Its objects were deleted, except those reported as left"
    _hosts: Sequence[HostResult] = ()

    def read_run(self) -> dict[str, Any]:
        """The Nodes of the play's hosts. TaskError unless they are known."""
        self._hosts = read_hosts(self.task_vars)
        unread = list_unread(self._hosts)
        self.show(*unread)
        if unread and len(unread) == len(self._hosts):
            raise TaskError("\n".join(unread), "host_unusable")
        if errors := [host.unmatched for host in self._hosts if host.unmatched]:
            raise TaskError("\n".join(dict.fromkeys(errors)), "host_unmatched")
        return {"nodes": [host.node for host in self._hosts if host.is_matched]}

    def sum_up(self) -> None:
        """The drivers with their proven Nodes. The gate of a later run counts these; in an AWX workflow it gets the statistic."""
        proven, failed_before = self.result.get("proven") or {}, bool(self.result.get("failed"))
        if proven:
            self.set_statistic("kubewin_proven", proven)
        unread = list_unread(self._hosts)
        if unread and not failed_before and not self.inputs["skip_unreachable"]:
            text = "Their Nodes are unknown and were not proven. Repair these hosts, leave them out with --limit, or set kubewin_skip_unreachable."
            self.result.update(failed=True, reason="host_unusable", msg="\n".join([*unread, text]))
        lines = [f"{driver} proven on {', '.join(nodes)}" for driver, nodes in proven.items()]
        failed_now, began = bool(self.result.get("failed")), "proofs" in self.result
        self.result["lines"] = [*lines, *(doubt for host in self._hosts for doubt in list_doubts(host))]
        if self.check_mode or (failed_now and began):
            self.result["next"] = ["verify" if self.check_mode else "diagnose"]
        self.result["outcome"] = ("failed" if began else "refused") if failed_now else "done"

    def work(self, options: Mapping[str, Any]) -> None:
        """Return each proof and what could not be deleted; failed if a volume lost its data or objects are left."""
        request = parse_request(options)
        verification = Verification(self.connect(options), request, self)
        try:
            verification.run(check_mode=self.check_mode)
        finally:
            self.result.update(serialize_known(verification.result))


def list_unread(hosts: Sequence[HostResult]) -> list[str]:
    """Why hosts were not read, a line a host."""
    return [f"{host.name}: {host.unread}" for host in hosts if host.unread]


def list_doubts(host: HostResult) -> list[str]:
    """Why the next volume will not be mounted on a host, although some are proven now."""
    state, doubts = host.state, list[str]()
    if state is None:
        return []
    if state.service and not state.serving:
        doubts.append(
            f"csi-proxy is {state.service.state} and does not serve. The next mount of a volume fails there, whatever this "
            "run proved. Run enable_csi."
        )
    doubts += [finding.message for finding in state.findings if finding.severity == "blocker"]
    return [f"{host.name}: {doubt}" for doubt in doubts]
