# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action csi_proxy_info: read csi-proxy on a Windows node, and change nothing. Documented in plugins/modules."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils.actions.summary import brief
from ..plugin_utils.windows import model, observe, prove
from ..plugin_utils.windows.action import WindowsAction
from ..plugin_utils.windows.desired import INFO, build_desired_for_info
from ..plugin_utils.windows.node import WindowsHost

# Ansible's name for the play of an ad hoc command.
_AD_HOC = "Ansible Ad-Hoc"


class ActionModule(WindowsAction):
    argument_spec = INFO

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what is on the node; an ad hoc command, whose result is printed and never registered, gets a few lines."""
        result = super().run(tmp, task_vars)
        ad_hoc = (task_vars or {}).get("ansible_play_name") == _AD_HOC
        if ad_hoc and not boolean(self._task.args.get("details", False), strict=False) and "csi_proxy" in result:
            result["summary"] = brief(result.pop("csi_proxy"))
        return result

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        return build_desired_for_info(options)

    def work(self, node: WindowsHost, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        snapshot = observe.observe(node, desired, with_mounts=True)
        mapped: dict[str, Any] = {}
        if options["smb_mappings"]:
            names = ("local", "remote", "status")
            mappings = observe.list_smb_mappings(node, uses_smb=snapshot.trouble.uses_smb)
            mapped = {
                "smb_used": snapshot.trouble.uses_smb,
                "smb_mappings": None
                if mappings is None
                else [dict(zip(names, mapping, strict=True)) for mapping in mappings],
            }
        return {"changed": False, "csi_proxy": {**prove.describe_state(desired, snapshot), **mapped}}
