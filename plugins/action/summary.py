# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from typing import Any

from ansible import context
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.kubewin.csi.plugins.module_utils.files import write_whole
from ansible_collections.kubewin.csi.plugins.plugin_utils.commands import Invocation, command, left_out
from ansible_collections.kubewin.csi.plugins.plugin_utils.summary import ending, render_summary, summarize

display = Display()

NAME = "enable-csi.json"

ARGUMENT_SPEC: dict[str, Any] = {
    "hosts": {"type": "list", "elements": "dict", "default": []},
    "rollouts": {"type": "dict", "default": {}},
    "nodes_without_host": {"type": "list", "elements": "str", "default": []},
    "readiness": {"type": "dict"},
    "applied": {"type": "list", "elements": "dict", "default": []},
    "failure": {"type": "str", "default": ""},
    "warnings": {"type": "list", "elements": "dict", "default": []},
    "next": {"type": "list", "elements": "str", "default": []},
    "lines": {"type": "list", "elements": "str"},
    "output_dir": {"type": "path"},
}


class ActionModule(ActionBase):
    """Runs on the controller alone: it needs no connection and changes nothing."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        run = Invocation.of(
            context.CLIARGS, os.getcwd(), awx=bool({"awx_job_id", "tower_job_id"} & set(task_vars or {}))
        )
        following = [command(run, one) for one in options["next"]]
        if following and not run.awx and left_out(run.extra):
            following.append("(with the other -e options of this run)")
        if options["lines"] is not None:
            display.display("\n".join(["", *options["lines"], *ending(options["failure"], following)]))
            result.update(changed=False, failed=bool(options["failure"]))
            result.update({"msg": options["failure"]} if options["failure"] else {})
            return dict(result)
        summary = summarize(
            options["hosts"],
            options["rollouts"],
            options["nodes_without_host"],
            options["readiness"],
            options["applied"],
            options["failure"],
            options["warnings"],
        )
        display.display("")
        display.display(render_summary(summary, check=self._task.check_mode, following=following))
        result.update(changed=False, summary=summary, path=None)
        if options["output_dir"] and not self._task.check_mode:
            result["path"] = _write(options["output_dir"], summary)
            display.display(f"written to {result['path']}")
        else:
            # No durable place: the calling job's statistics carry it (AWX shows them as artifacts).
            result["ansible_stats"] = {"data": {"kubewin_summary": summary}, "per_host": False, "aggregate": False}
        return dict(result)


def _write(folder: str, summary: dict[str, Any]) -> str:
    try:
        return write_whole(folder, NAME, json.dumps(summary, indent=2, sort_keys=True).encode())
    except OSError as error:
        raise AnsibleActionFail(
            f"cannot write the summary to {os.path.join(folder, NAME)}: {error.strerror}. "
            "Set kubewin_output_dir to a folder that can be written, or leave it unset."
        ) from error
