# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action csi_proxy_info: read csi-proxy on a Windows node, and change nothing. Documented in plugins/modules."""

from __future__ import annotations

import json
from typing import Any

from ..plugin_utils.actions.secrets import collect_secrets
from ..plugin_utils.actions.summary import brief
from ..plugin_utils.base.files import write_whole
from ..plugin_utils.base.redaction.redactor import Redactor
from ..plugin_utils.support.archive import Part, cut, gather_folder, name_host_folder
from ..plugin_utils.windows import evidence, model, observe, prove
from ..plugin_utils.windows.action import WindowsAction
from ..plugin_utils.windows.desired import INFO, build_desired_for_info
from ..plugin_utils.windows.errors import ChannelError
from ..plugin_utils.windows.node import WindowsHost

# Ansible's name for the play of an ad hoc command.
_AD_HOC = "Ansible Ad-Hoc"
# Bytes of the end of each log.
_LOG_BYTES = 1024 * 1024


class ActionModule(WindowsAction):
    argument_spec = INFO

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what is on the node; an ad hoc command, whose result is printed and never registered, gets a few lines."""
        self._variables = task_vars or {}
        result = super().run(tmp, task_vars)
        if self._variables.get("ansible_play_name") == _AD_HOC and "csi_proxy" in result:
            result["summary"] = brief(model.CsiProxyState.from_result(result.pop("csi_proxy")))
        return result

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        return build_desired_for_info(options)

    def work(self, node: WindowsHost, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        snapshot = observe.observe(node, desired, with_mounts=True)
        result: dict[str, Any] = {"changed": False, "csi_proxy": prove.describe_state(desired, snapshot)}
        if options["smb_mappings"]:
            names = ("local", "remote", "status")
            mappings = observe.list_smb_mappings(node, uses_smb=snapshot.storage.uses_smb)
            result["csi_proxy"] |= {
                "smb_used": snapshot.storage.uses_smb,
                "smb_mappings": None
                if mappings is None
                else [dict(zip(names, mapping, strict=True)) for mapping in mappings],
            }
        if options["evidence"]:
            result["evidence"] = self._store_evidence(node, desired, snapshot)
        return result

    def _store_evidence(
        self, node: WindowsHost, desired: model.Desired, snapshot: model.HostSnapshot
    ) -> dict[str, Any]:
        """Write the files of the host without secrets; return their names and what is missing, never their content."""
        host = str(self._variables.get("inventory_hostname", ""))
        redactor = Redactor(collect_secrets(self._variables, self._templar, self._connection))
        redactor.learn([host, *((self._variables.get("groups") or {}).get("all") or ())])
        state = redactor.redact_structure(prove.describe_state(desired, snapshot))
        parts = [Part("csi-proxy.json", json.dumps(state, indent=1, sort_keys=True))]
        problem = ""
        self.show_progress("reading logs, events and settings")
        try:
            for file in evidence.collect(node, desired, snapshot, _LOG_BYTES):
                text = redactor.redact_log(file.raw)
                parts.append(cut(Part(file.name, text, redactor.redact_message(file.problem))))
        except ChannelError as error:
            # What was read before is worth keeping.
            problem = redactor.redact_message(str(error))
        if not self._task.check_mode:
            folder = str(gather_folder() / name_host_folder(host))
            for part in parts:
                write_whole(folder, part.path, part.text.encode("utf-8", "replace"))
        return {"parts": [part.as_dict() for part in parts], "problem": problem}
