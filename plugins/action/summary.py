# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase

from ..modules.summary import DOCUMENTATION
from ..plugin_utils.actions.commands import Invocation
from ..plugin_utils.actions.conclusion import conclude, read_work
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.files import write_whole
from ..plugin_utils.base.screen import display_line
from ..plugin_utils.base.start import INPUTS, refuse_unchecked_inputs

# What the results of diagnose and verify list; the file has it, and the statistic does not.
_LISTED = ("diagnosis", "left_out", "proofs", "proven")
ARGUMENT_SPEC = read_argument_spec(DOCUMENTATION)


class ActionModule(ActionBase):
    """Runs on the controller alone: it needs no connection and changes nothing."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the summary; failed only if the inputs were not checked, since Ansible drops the statistics of a failed task."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        variables: Mapping[str, Any] = task_vars or {}
        run = Invocation.of(context.CLIARGS, os.getcwd(), awx=bool({"awx_job_id", "tower_job_id"} & set(variables)))
        check, refusal = bool(self._task.check_mode), refuse_unchecked_inputs(self._task, variables)
        work = read_work(options, variables, check=check, refusal=refusal)
        summary, text = conclude(options, variables, work, run, check=check)
        if text:
            display_line(self._display.display, f"\n{text.lstrip()}")
        result.update(changed=False, summary=summary, path=None)
        if refusal and (options["nodes"] or options["removed"]) and not options["rescue"]:
            # No task behind it fails, and a run of this task alone has nothing to report.
            result.update(failed=True, msg="The run failed, for the reason printed above.")
        result["ansible_stats"] = {"data": {"kubewin_summary": summary}, "per_host": False, "aggregate": False}
        folder = (variables.get(INPUTS) or {}).get("output_dir")
        if folder and options["output_file"] and not check:
            listed = {key: value for key, value in (options["result"] or {}).items() if key in _LISTED}
            self._write(result, {**summary, **listed}, folder, options["output_file"])
        return result

    def _write(self, result: dict[str, Any], summary: Mapping[str, Any], folder: str, name: str) -> None:
        try:
            content = json.dumps(summary, indent=2, sort_keys=True).encode()
            result["path"] = write_whole(folder, name, content)
            display_line(self._display.display, f"written to {result['path']}")
        except OSError as error:
            result["warnings"] = [
                f"{os.path.join(folder, name)} cannot be written: {error.strerror}. The statistic kubewin_summary holds the summary. "
                "Set kubewin_output_dir to a directory that this account can write to."
            ]
