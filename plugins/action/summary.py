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
from ansible_collections.kubewin.csi.plugins.modules.summary import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.commands import (
    Invocation,
    command,
    left_out,
    repeat_invocation,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.summary import (
    describe_failure,
    ending,
    render_summary,
    summarize,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import read_argument_spec
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.files import write_whole

ARGUMENT_SPEC = read_argument_spec(DOCUMENTATION)


class ActionModule(ActionBase):
    """Runs on the controller alone: it needs no connection and changes nothing."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        run = Invocation.of(
            context.CLIARGS, os.getcwd(), awx=bool({"awx_job_id", "tower_job_id"} & set(task_vars or {}))
        )
        if options["rescue"]:
            options["failure"] = _describe_failed_tasks(task_vars or {})
        options["failure"] = repeat_invocation(options["failure"], run)
        # A failed dry run found out nothing yet, so its next command is a dry run too.
        following = [command(run, one, again=bool(options["failure"])) for one in options["next"]]
        if following and not run.awx and left_out(run.extra):
            following.append("(with the other -e options of this run)")
        summary: dict[str, Any]
        if options["lines"] is not None:
            summary = {"lines": options["lines"], "failure": options["failure"]}
            text = "\n".join([*options["lines"], *ending(options["failure"], following)])
        else:
            summary = summarize(
                options["hosts"],
                options["rollouts"],
                options["nodes_without_host"],
                options["readiness"],
                options["applied"],
                options["failure"],
                options["warnings"],
            )
            text = render_summary(summary, check=self._task.check_mode, following=following)
        text = repeat_invocation(text, run)
        summary["next"] = following
        # A dry run changes nothing, so it can only be refused.
        failed = "refused" if self._task.check_mode else options["outcome"] or "failed"
        summary["outcome"] = failed if options["failure"] else options["outcome"] or "done"
        if text:
            self._display.display(f"\n{text.lstrip()}")
        # Ansible drops the statistics of a task that fails, so this one never does.
        result.update(changed=False, summary=summary, path=None)
        result["ansible_stats"] = {"data": {"kubewin_summary": summary}, "per_host": False, "aggregate": False}
        if options["output_dir"] and not self._task.check_mode:
            try:
                result["path"] = write_whole(
                    options["output_dir"],
                    options["output_file"],
                    json.dumps(summary, indent=2, sort_keys=True).encode(),
                )
                self._display.display(f"written to {result['path']}")
            except OSError as error:
                result["warnings"] = [
                    f"{os.path.join(options['output_dir'], options['output_file'])} cannot be written: {error.strerror}. The statistic "
                    "kubewin_summary holds the summary. Set kubewin_output_dir to a directory that this account can "
                    "write to."
                ]
        return dict(result)


def _describe_failed_tasks(task_vars: Mapping[str, Any]) -> str:
    """Why the task before a rescue failed. Ansible keeps its result for each host on which it failed, which may not be this one."""
    if "ansible_failed_result" in task_vars:
        return describe_failure(task_vars["ansible_failed_result"], task_vars["ansible_failed_task"]["name"])
    variables = {host: task_vars["hostvars"][host] for host in task_vars["ansible_play_hosts_all"]}
    return "\n".join(
        f"{host}: {describe_failure(found['ansible_failed_result'], found['ansible_failed_task']['name'])}"
        for host, found in variables.items()
        if "ansible_failed_result" in found
    )
