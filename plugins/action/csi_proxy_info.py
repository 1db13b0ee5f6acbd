# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action csi_proxy_info: read csi-proxy on a Windows node, and change nothing. Documented in plugins/modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.host_results import read_plans
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.summary import brief
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.start import INPUTS
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model, observe, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.action import WindowsAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.desired import (
    INFO,
    build_desired_for_info,
    check_path,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import WindowsHost

# Ansible's name for the play of an ad hoc command.
_AD_HOC = "Ansible Ad-Hoc"


class ActionModule(WindowsAction):
    argument_spec = INFO

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what is on the node; an ad hoc command, whose result is printed and never registered, gets a few lines."""
        self._task_vars = task_vars or {}
        if self._task.args.get("refuse_mode_change") and (self._is_left_out() or not self._read_counters()):
            return {"changed": False, "skipped": True}
        result = super().run(tmp, task_vars)
        ad_hoc = (task_vars or {}).get("ansible_play_name") == _AD_HOC
        if ad_hoc and not boolean(self._task.args.get("details", False), strict=False) and "csi_proxy" in result:
            result["summary"] = brief(result.pop("csi_proxy"))
        return result

    def _is_left_out(self) -> bool:
        """Whether the run continues without this host."""
        reason = (self._task_vars.get("csi_proxy_plan") or {}).get("reason")
        return bool(reason == "connection_lost" and self._task_vars[INPUTS].get("skip_unreachable"))

    def _read_counters(self) -> list[Mapping[str, Any]]:
        """Where the planned drivers that change their mode count the volumes in use. Shares have no VolumeAttachment."""
        return [plan["counter"] for plan in read_plans(self._task_vars) if plan["counter"]]

    def _refuse_mode_change(self, node: WindowsHost) -> None:
        """NodeError if a planned change of mode would lose volumes."""
        host, problems = self._task_vars["inventory_hostname"], []
        for counter in self._read_counters():
            path = counter["path"]
            references = list(observe.list_references(node, check_path(path, "reference_counters")))
            if references:
                problems.append(
                    f"{host}: {counter['driver']} has {len(references)} volumes in use, by its files below {path} "
                    f"({references[0]}), expected none before it changes from {counter['from']} to {counter['to']}."
                )
        if problems:
            raise NodeError(
                "in_use",
                " ".join(problems),
                remedy="Drain the node (kubectl drain), wait until the files are deleted, and run again. If no pod on the node "
                "uses a share, the files are stale: delete them.",
            )

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        return build_desired_for_info(options)

    def work(self, node: WindowsHost, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        if options["refuse_mode_change"]:
            self._refuse_mode_change(node)
            return {"changed": False}
        snapshot = observe.observe(node, desired, with_mounts=True)
        mapped: dict[str, Any] = {}
        if options["smb_mappings"]:
            names = ("local", "remote", "status")
            found = observe.list_smb_mappings(node)
            mapped = {
                "smb_used": snapshot.trouble.uses_smb,
                "smb_mappings": None if found is None else [dict(zip(names, one, strict=True)) for one in found],
            }
        return {"changed": False, "csi_proxy": {**prove.describe_state(desired, snapshot), **mapped}}
