# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action host_evidence: store what support asks for of a Windows host, without secrets. Documented in plugins/modules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ansible import constants

from ..plugin_utils.actions.secrets import collect_secrets
from ..plugin_utils.base.files import write_whole
from ..plugin_utils.base.redaction.redactor import Redactor
from ..plugin_utils.support.parts import Part, cut
from ..plugin_utils.windows import evidence, model, observe, prove
from ..plugin_utils.windows.action import WindowsAction
from ..plugin_utils.windows.desired import LOOK, build_desired_for_info
from ..plugin_utils.windows.errors import ChannelError
from ..plugin_utils.windows.node import WindowsHost

# What is read of the end of each log.
_LOG_BYTES = 1024 * 1024


class ActionModule(WindowsAction):
    argument_spec = LOOK
    _doing = "reading logs, events and settings"

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the files and what is missing, never their content."""
        variables = task_vars or {}
        self._host = str(variables.get("inventory_hostname", ""))
        self._redactor = Redactor(collect_secrets(variables, self._templar, self._connection))
        self._redactor.learn([self._host, *((variables.get("groups") or {}).get("all") or ())])
        result = super().run(tmp, task_vars)
        if "msg" in result:
            result["msg"] = self._redactor.redact_message(str(result["msg"]))
        return result

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        return build_desired_for_info(options)

    def work(self, node: WindowsHost, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        parts: list[Part] = []
        lost = ""
        try:
            snapshot = observe.observe(node, desired, with_mounts=True)
            state = self._redactor.redact_structure(prove.describe_state(desired, snapshot))
            parts.append(Part("csi-proxy.json", json.dumps(state, indent=1, sort_keys=True)))
            for file in evidence.collect(node, desired, snapshot, _LOG_BYTES):
                text = self._redactor.redact_log(file.raw)
                parts.append(cut(Part(file.name, text, self._redactor.redact_message(file.problem))))
        except ChannelError as error:
            # What was read before is worth keeping.
            if not parts:
                raise
            lost = self._redactor.redact_message(str(error))
        if not self._task.check_mode:
            folder = str(gather_folder() / "hosts" / re.sub(r"[^\w.-]", "_", self._host))
            for part in parts:
                write_whole(folder, part.path, part.text.encode("utf-8", "replace"))
        return {"changed": False, "parts": [part.as_dict() for part in parts], "problem": lost}


def gather_folder() -> Path:
    """Where a run keeps the files for its archive: in the directory that Ansible makes for each run, and removes at its end."""
    return Path(vars(constants)["DEFAULT_LOCAL_TMP"]) / "kubewin-gather"
