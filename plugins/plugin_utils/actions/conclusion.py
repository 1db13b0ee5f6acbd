# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run of a playbook ends: its outcome, why it failed, and what to run next. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..base.start import INPUTS
from .commands import Invocation, lacks_extra_variables, render_command, repeat_invocation
from .host_results import describe_left_cordons, describe_removal
from .results import NodeMatch, RunWork
from .summary import (
    RunFacts,
    describe_unread_hosts,
    has_remaining_work,
    read_facts,
    render_ending,
    render_summary,
    summarize,
)


def read_work(options: Mapping[str, Any], variables: Mapping[str, Any], *, check: bool, refusal: str) -> RunWork:
    """What the run did. options: of the module summary. variables: of its task. refusal: why the run may not go on, or empty."""
    work = RunWork.from_result(options["result"] or {})
    if options["removed"]:
        work = describe_removal(variables, check=check, failed=options["rescue"])
    if options["rescue"]:
        failed = _describe_failed_tasks(variables)
        work = replace(failed, lines=work.lines, changed=work.changed) if options["removed"] else failed
        if options["outcome"] == "refused" or not work.changed:
            # The run has not changed a Node since it read them.
            left_cordons = describe_left_cordons(_read_nodes(variables))
            work = replace(work, message="\n".join(dict.fromkeys([*work.message.split("\n"), *left_cordons])))
    if refusal or (options["rescue"] and options["nodes"]):
        # Behind the state of every node, the message of the task is far above.
        work = replace(work, failure_place="")
    return replace(work, message=refusal or work.message)


def conclude(
    options: Mapping[str, Any], variables: Mapping[str, Any], work: RunWork, run: Invocation, *, check: bool
) -> tuple[dict[str, Any], str]:
    """The summary of the run, and its text to print, empty if there is nothing to print. work: of read_work."""
    inputs: Mapping[str, Any] = variables.get(INPUTS) or {}
    is_status = inputs.get("playbook") == "status"
    facts = read_facts(variables) if options["nodes"] else RunFacts()
    # Other playbooks refuse that before their first change.
    unread = describe_unread_hosts(facts) if options["accept_unproven"] and not work.message else ""
    failure = repeat_invocation(work.message or unread, run)
    summary = summarize(facts, failure)
    following = work.next or ([inputs["playbook"]] if failure and "playbook" in inputs else options["next"])
    if options["nodes"]:
        is_incomplete = summary.verdict == "not checked" or any(host.left_out for host in facts.hosts)
        if failure or has_remaining_work(facts, options["accept_unproven"], check=check):
            # Diagnose names what to fix first, which is not always work of enable_csi.
            following = ["diagnose" if is_status or unread else "enable_csi"]
        elif is_status and is_incomplete:
            following = ["diagnose"]
    commands = _render_commands(
        replace(run, limit="") if work.without_limit else run, following, keep_dry_run=bool(failure)
    )
    repeats_itself = bool(following) and following[0].split()[0] == inputs.get("playbook")
    # A task that failed may name another form of the command, which helps.
    repeats = repeats_itself and not (options["rescue"] and work.next)
    ending = render_ending(failure, commands, work.failure_place, repeats=repeats)
    if options["nodes"]:
        left_cordons = describe_left_cordons(_read_nodes(variables)) if is_status else []
        text = render_summary(summary, ["", *left_cordons, *ending] if left_cordons else ending, check=check)
        data = summary.as_dict()
    else:
        text = "\n".join([*work.lines, *ending])
        data = {"lines": list(work.lines), "failure": failure}
    outcome = options["outcome"] or work.outcome
    if failure and (check or not (outcome or work.changed)):
        # A dry run changes nothing, so it can only be refused.
        outcome = "refused"
    data.update(next=commands, outcome=outcome or ("failed" if failure else "done"))
    return data, repeat_invocation(text, run)


def _render_commands(run: Invocation, following: Sequence[str], *, keep_dry_run: bool) -> list[str]:
    """keep_dry_run: a failed dry run found out nothing yet, so its next command is a dry run too."""
    commands = [render_command(run, playbook, keep_dry_run=keep_dry_run) for playbook in following]
    if commands and not run.awx and lacks_extra_variables(run.extra):
        commands.append("(with the other -e options of this run)")
    return commands


def _read_nodes(variables: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The Nodes that the run read, by name."""
    return NodeMatch.from_result(variables.get("kubewin_nodes")).nodes


def _describe_failed_tasks(variables: Mapping[str, Any]) -> RunWork:
    """Why the task before a rescue failed, which Ansible printed, and what it says to run next. It may have failed on other hosts alone."""
    hosts = {host: variables["hostvars"][host] for host in variables["ansible_play_hosts_all"]}
    failed = {
        host: host_variables for host, host_variables in hosts.items() if "ansible_failed_result" in host_variables
    }
    if "ansible_failed_result" in variables:
        failed = {"": variables}
    texts, tasks, following = list[str](), list[str](), list[str]()
    for host, host_variables in failed.items():
        result, task = host_variables["ansible_failed_result"], str(host_variables["ansible_failed_task"]["name"])
        texts.append((f"{host}: " if host else "") + describe_failure(result, task))
        tasks.append(repr(task))
        following += result.get("next") or ()
    return RunWork(
        message="\n".join(texts),
        failure_place=f"see the message of the task {' and '.join(dict.fromkeys(tasks))} above.",
        next=list(dict.fromkeys(following)),
    )


def describe_failure(result: Mapping[str, Any], task: str) -> str:
    """Why a task failed: each message once, one a line. result: of one task, or of a loop with its results."""
    if result.get("_ansible_no_log") or result.get("censored"):
        return f"{task} failed; no_log hides why"
    # A module may return results of its own, which are no items of a loop.
    items = [item for item in result.get("results") or [] if isinstance(item, Mapping) and item.get("failed")]
    messages = [str(item["msg"]) for item in items or [result] if item.get("msg")]
    return "\n".join(dict.fromkeys(messages)) or f"{task} failed without a message"
