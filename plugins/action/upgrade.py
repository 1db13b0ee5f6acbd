# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of an upgrade's play. The gate, the verification and the baselines are run from here, in the same process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from ansible import constants

from ..modules import preflight_info, volume_data
from ..modules import upgrade as module
from ..modules import verify as verification
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.conclusion import describe_failure
from ..plugin_utils.actions.host_results import describe_unusable, read_inventory
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.base.interruption import Interrupted
from ..plugin_utils.base.stored import serialize_known
from ..plugin_utils.data.run import DataRun, check_options
from ..plugin_utils.drivers.installed import find_node_plugins
from ..plugin_utils.drivers.rollout.evaluate import GateRules
from ..plugin_utils.drivers.rollout.gate import Gate, GateOptions
from ..plugin_utils.kube.connect import CLUSTER_ARG_SPEC, find_driver
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.kube.holder import identify_run
from ..plugin_utils.kube.lease import read_uptime
from ..plugin_utils.preflight.report import ReadinessOptions, report_readiness
from ..plugin_utils.upgrade.lease_keeper import release_keeper, start_keeper
from ..plugin_utils.upgrade.observation import TAINT
from ..plugin_utils.upgrade.run import DataComparison, Upgrade
from ..plugin_utils.verify.plan import parse_request
from ..plugin_utils.verify.run import Verification

# What a failed task returns of what is long, by the fields of its entries; the journal has the rest.
_BRIEF = {"journal": ("node", "step", "failed", "why"), "findings": ("id", "object")}
# A volume is verified while its node is cordoned and tainted.
_TOLERATIONS = [
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"key": TAINT, "operator": "Exists"},
]


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = read_argument_spec(module.DOCUMENTATION)
    remainder = "Run again to resume from the journal"

    def read_run(self) -> dict[str, Any]:
        """What the step needs of the hosts of the run: their Nodes, the results of your tasks, and why the play ended early."""
        step, hostvars = self._task.args["step"], self.task_vars["hostvars"]
        hosts, batch = read_inventory(self.task_vars), self.task_vars["ansible_play_batch"]
        matched = {host.name: host.node for host in hosts if host.is_matched}
        if step == "prepare":
            self.show(*describe_unusable(hosts))
            named = ".".join(f"{key}-{release}" for key, release in self.inputs["upgrade_target"].items())
            return {"hosts": matched, "name": self.inputs["upgrade_name"] or named or "nodes"}
        if step == "begin":
            return {"batch": [matched[host] for host in batch]}
        if step == "finish":
            return {"results": {matched[host]: describe_result(hostvars[host]) for host in batch}}
        if step == "follow":
            return {}
        steps = ("kubewin_upgrade_begun", "kubewin_upgrade_finished", "kubewin_upgrade_followed")
        scopes = [*(hostvars[host.name] for host in hosts), self.task_vars]
        messages = [(variables.get(name) or {}).get("msg") for name in steps for variables in scopes]
        return {"failures": list(dict.fromkeys(filter(None, messages)))}

    def sum_up(self) -> None:
        failed, step = bool(self.result.get("failed")), self._task.args["step"]
        self.result.setdefault("lines", [])
        ending = self.result.get("outcome")
        if step == "prepare":
            refused = self.check_mode or self.result.get("reason") in ("refused", "locked")
            self.result["outcome"] = "refused" if refused and failed else "failed" if failed else ending
        elif step == "end":
            kept = ("outcome", "journal", "report", "findings", "place")
            state = {name: self.result[name] for name in kept if name in self.result}
            name = self._task.args["plan"]["options"]["name"]
            self.set_statistic("kubewin_upgrade", {"name": name, "data": self.result.get("data") or [], **state})
            self.result["outcome"] = "failed" if failed else "paused" if ending == "paused" else "done"
            if ending == "paused":
                self.result["lines"] = [*self.result["lines"], *describe_unusable(read_inventory(self.task_vars))]

    def work(self, options: Mapping[str, Any]) -> None:
        """Perform the step; failed unless the play may go on to its next task."""
        step = options["step"]
        if options["plan"]:
            step_options = {
                name: options[name] for name in (*CLUSTER_ARG_SPEC, "step", "plan", "batch", "results", "failures")
            }
            options = {**options, **options["plan"]["options"], **step_options}
        self._options, self._client = options, self.connect(options)
        holder = identify_run()
        upgrade = Upgrade(self._client, options, holder, self)
        try:
            if step == "prepare" or self.check_mode:
                upgrade.plan(check_mode=self.check_mode)
            if not self.check_mode:
                with self._hold_lease(holder, upgrade):
                    getattr(upgrade, step)()
        except (TaskError, Interrupted) as error:
            self.result |= shorten(serialize_known(upgrade.result))
            if isinstance(error, ClusterError) and upgrade.journal_store.written:
                text = f"{error} The state of each node is in {upgrade.journal_store.location}. Run again to continue."
                raise TaskError(text, error.reason) from None
            raise
        self.result |= serialize_known(upgrade.result)
        if step == "prepare" or self.check_mode:
            self.result["options"] = {name: options[name] for name in self.argument_spec}
        for text in upgrade.journal_store.warnings:
            self.warn(text)
        self.result["changed"] = self.result["changed"] or upgrade.journal_store.written
        self.result["proceed"] = True

    @contextlib.contextmanager
    def _hold_lease(self, holder: str, upgrade: Upgrade) -> Iterator[None]:
        """Hold the run's Lease. Between its steps a program beside the run renews it; the last one gives it back.

        After an error it is given back too, unless a write may still arrive: then it expires, so that the write meets it.
        """
        # Ansible makes this folder for each run, and removes it at its end.
        lease, path = upgrade.lease, os.path.join(vars(constants)["DEFAULT_LOCAL_TMP"], "kubewin-lease")
        release_keeper(path)
        upgrade.take_lease()
        try:
            yield
        except BaseException:
            lease.end(unanswered=upgrade.has_unanswered_writes)
            raise
        if upgrade.over:
            lease.end()
            return
        began = read_uptime()
        lease.leave()
        access = {name: self._options[name] for name in CLUSTER_ARG_SPEC}
        start_keeper(path, began, holder, self._options["namespace"], access)
        self.result["held"] = f"{path}.held"

    # The features that the steps call

    def report_readiness(self) -> None:
        target = self._options["target"]
        for before in (True, False) if target else (False,):
            arguments = {**self._options["readiness"], "target": target}
            options = self.read_options("preflight_info", read_argument_spec(preflight_info.DOCUMENTATION), arguments)
            request = replace(ReadinessOptions.from_options(options), before=before)
            if self.check_mode:
                request = replace(request, output_dir="")
            readiness = report_readiness(partial(self.connect, options), request, self)
            self.display(*readiness.render(brief=before and not readiness.failure))
            if readiness.failure:
                blockers = readiness.as_dict(details=False)["blockers"]
                raise TaskError(readiness.failure, readiness.reason, blockers=blockers)

    def wait_for_drivers(self, nodes: Collection[str] = ()) -> None:
        for name in self._list_drivers():
            driver = find_driver(name)
            namespace = self.read_driver_variables("gate", name).get("namespace") or ""
            # A driver that you do not name need not serve every node. The verification proves more than a read of the host.
            rules = GateRules(only=frozenset(nodes), allow_zero_nodes=not self._options["drivers"])
            timeout = self._options["gate_timeout"]
            request = GateOptions(driver, namespace, rules=rules, timeout=timeout, accept_unproven=True)
            result = Gate(partial(self.connect, self._options), request, self).run()
            if result.reason:
                raise TaskError(result.message, result.reason)

    def verify(self, nodes: Sequence[str], *, move: bool = False) -> None:
        tolerations = [*self._options["verify"].get("tolerations", ()), *_TOLERATIONS]
        arguments = {**self._options["verify"], "drivers": self._list_drivers(), "nodes": list(nodes)}
        arguments["tolerations"] = tolerations
        options = self.read_options("verify", read_argument_spec(verification.DOCUMENTATION), arguments)
        request = replace(parse_request(options), verify_reattach=move)
        Verification(self.connect(options), request, self).run(check_mode=self.check_mode)

    def read_data(self, claims: Collection[str], *, compare: bool) -> DataComparison:
        """List each volume through the pod that uses it. One that cannot be read is reported; the others are processed."""
        names = {"tolerations": "tolerations", "image": "image", "timeout": "step_timeout"}
        verify = self._options["verify"]
        pod_options = {option: verify[name] for name, option in names.items() if name in verify}
        run = self._prepare_data(
            claims=list(claims), keep_going=True, compare=compare, append_only=self._options["append_only"], **pod_options,
        )  # fmt: skip
        run.refuse()
        if self.check_mode:
            return DataComparison()
        if not compare:
            # Baselines from before the first node belong to an earlier attempt.
            run.forget(dry_run=False)
        run.run()
        lines = [line for result in run.results for line in result.report.splitlines()]
        self.show(*lines)
        return DataComparison(
            lines,
            [line for result in run.results for line in result.lost],
            [result.volume["claim"] for result in run.results if "noted" not in result.volume],
        )

    def forget_data(self, claims: Collection[str]) -> None:
        self._prepare_data(claims=list(claims), forget=True).forget(dry_run=False)

    def _prepare_data(self, **arguments: Any) -> DataRun:
        arguments |= {"name": self._options["name"], "record_namespace": self._options["namespace"]}
        options = self.read_options("volume_data", read_argument_spec(volume_data.DOCUMENTATION), arguments)
        return DataRun(self.connect(options), options, check_options(options), self.show)

    def _list_drivers(self) -> list[str]:
        """The drivers that you name, else the installed ones."""
        return list(self._options["drivers"] or find_node_plugins(self._client))


def describe_result(variables: Mapping[str, Any]) -> str:
    """Why a task of the user failed on a host, empty if all succeeded. variables: of the host, with what the play stored after the tasks."""
    stored = variables.get("kubewin_upgrade_result", "it has no result")
    if not isinstance(stored, Mapping):
        return str(stored)
    result = variables["ansible_failed_result"]
    hidden = {"censored": stored["hidden"] or result.get("censored")}
    return f"task {stored['task']}: {describe_failure({**result, **hidden}, 'it')}"


def shorten(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a failed task returns, since the callback prints all of it: why it failed, and where each node stands."""
    return {
        name: [{key: row[key] for key in _BRIEF[name] if row.get(key)} for row in value] if name in _BRIEF else value
        for name, value in result.items()
    }
