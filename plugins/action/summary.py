# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase

from ..modules.summary import DOCUMENTATION
from ..plugin_utils.actions.commands import Invocation, lacks_extra_variables, render_command, repeat_invocation
from ..plugin_utils.actions.host_results import describe_left_cordons, describe_removal, read_facts
from ..plugin_utils.actions.summary import (
    RunFacts,
    describe_failure,
    describe_unread_hosts,
    has_remaining_work,
    render_ending,
    render_summary,
    summarize,
)
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
        work: Mapping[str, Any] = options["result"] or {}
        if options["removed"]:
            work = describe_removal(variables, check=self._task.check_mode, failed=options["rescue"])
        failure, place = str(work.get("msg") or ""), str(work.get("failure_place") or "")
        if options["rescue"]:
            failure, place, commands_of_tasks = _describe_failed_tasks(variables)
            removal = work if options["removed"] else {}
            work = {
                "lines": removal.get("lines") or (), "changed": removal.get("changed", True), "next": commands_of_tasks,
            }  # fmt: skip
            # Behind the state of every node, the message of the task is far above.
            place = "" if options["nodes"] else place
            if options["outcome"] == "refused" or not work["changed"]:
                # The run has not changed a Node since it read them.
                nodes = (variables.get("kubewin_nodes") or {}).get("nodes") or {}
                failure = "\n".join(dict.fromkeys([*failure.split("\n"), *describe_left_cordons(nodes)]))
        if refusal := refuse_unchecked_inputs(self._task, variables):
            failure, place = refusal, ""
        facts = read_facts(variables) if options["nodes"] else RunFacts()
        # Other playbooks refuse that before their first change.
        unread = describe_unread_hosts(facts) if options["accept_unproven"] and not failure else ""
        failure = repeat_invocation(failure or unread, run)
        inputs: Mapping[str, Any] = variables.get(INPUTS) or {}
        next_playbooks = [inputs["playbook"]] if failure and "playbook" in inputs else options["next"]
        following, summary = work.get("next") or next_playbooks, {}
        if options["nodes"]:
            summary = summarize(facts, failure)
            if unread:
                following = ["diagnose"]
            elif failure or has_remaining_work(facts, options["accept_unproven"], check=self._task.check_mode):
                # It names what to fix first, which is not always work of enable_csi.
                following = ["diagnose" if inputs.get("playbook") == "status" else "enable_csi"]
            elif inputs.get("playbook") == "status" and (
                summary["verdict"] == "not checked" or any(host["left_out"] for host in facts.hosts)
            ):
                following = ["diagnose"]
        else:
            summary = {"lines": list(work.get("lines") or ()), "failure": failure}
        if work.get("without_limit"):
            run = replace(run, limit="")
        # A failed dry run found out nothing yet, so its next command is a dry run too.
        commands = [render_command(run, playbook, keep_dry_run=bool(failure)) for playbook in following]
        if commands and not run.awx and lacks_extra_variables(run.extra):
            commands.append("(with the other -e options of this run)")
        is_own = bool(following) and following[0].split()[0] == inputs.get("playbook")
        # A task that failed may name another form of the command, which helps.
        ended = render_ending(failure, commands, place, repeats=is_own and not (options["rescue"] and work.get("next")))
        if options["nodes"] and inputs.get("playbook") == "status":
            left = describe_left_cordons((variables.get("kubewin_nodes") or {}).get("nodes") or {})
            ended = ["", *left, *ended] if left else ended
        text = render_summary(summary, ended, check=self._task.check_mode) if options["nodes"] else ""
        text = repeat_invocation(text or "\n".join([*summary["lines"], *ended]), run)
        outcome = options["outcome"] or work.get("outcome")
        if failure and (self._task.check_mode or not (outcome or work.get("changed", True))):
            # A dry run changes nothing, so it can only be refused.
            outcome = "refused"
        summary.update(next=commands, outcome=outcome or ("failed" if failure else "done"))
        if text:
            display_line(self._display.display, f"\n{text.lstrip()}")
        result.update(changed=False, summary=summary, path=None)
        if refusal and (options["nodes"] or options["removed"]) and not options["rescue"]:
            # No task behind it fails, and a run of this task alone has nothing to report.
            result.update(failed=True, msg="The run failed, for the reason printed above.")
        result["ansible_stats"] = {"data": {"kubewin_summary": summary}, "per_host": False, "aggregate": False}
        folder = inputs.get("output_dir")
        if folder and options["output_file"] and not self._task.check_mode:
            listed = {key: work[key] for key in _LISTED if key in work}
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


def _describe_failed_tasks(task_vars: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    """Why the task before a rescue failed, where its message is, which Ansible printed, and what it says to run next.

    It may have failed on other hosts alone.
    """
    variables = {host: task_vars["hostvars"][host] for host in task_vars["ansible_play_hosts_all"]}
    failed = {
        host: host_variables for host, host_variables in variables.items() if "ansible_failed_result" in host_variables
    }
    if "ansible_failed_result" in task_vars:
        failed = {"": task_vars}
    texts = [
        (f"{host}: " if host else "")
        + describe_failure(host_variables["ansible_failed_result"], host_variables["ansible_failed_task"]["name"])
        for host, host_variables in failed.items()
    ]
    tasks = dict.fromkeys(str(host_variables["ansible_failed_task"]["name"]) for host_variables in failed.values())
    following = [
        name for host_variables in failed.values() for name in host_variables["ansible_failed_result"].get("next") or ()
    ]
    return (
        "\n".join(texts),
        f"see the message of the task {' and '.join(map(repr, tasks))} above.",
        list(dict.fromkeys(following)),
    )
