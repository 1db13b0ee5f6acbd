# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of an upgrade's play. The gate, the verification and the baselines are run from here, in the same process."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from ansible import constants

from ..modules.upgrade import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction, TaskError
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.findings import Finding
from ..plugin_utils.base.stored import serialize
from ..plugin_utils.drivers.installed import find_node_plugins
from ..plugin_utils.kube.connect import CLUSTER_ARG_SPEC
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.kube.holder import identify_run
from ..plugin_utils.kube.lease import read_uptime
from ..plugin_utils.upgrade.begin import UpgradeRefusedError, plan_batches
from ..plugin_utils.upgrade.decide import Decision, DelegatedStep
from ..plugin_utils.upgrade.explain import describe
from ..plugin_utils.upgrade.journal import Journal
from ..plugin_utils.upgrade.lease_keeper import release_keeper, start_keeper
from ..plugin_utils.upgrade.observation import TAINT
from ..plugin_utils.upgrade.run import Upgrade, name_outcome
from . import gate, preflight_info, verify, volume_data

# What a failed task returns of what is long, by the fields of its entries; the journal has the rest.
_BRIEF = {"journal": ("node", "step", "failed", "why"), "findings": ("id", "object")}
# A volume is verified while its node is cordoned and tainted.
_TOLERATIONS = [
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"key": TAINT, "operator": "Exists"},
]


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = read_argument_spec(DOCUMENTATION)
    remainder = "Run again to resume from the journal"

    def read_run(self) -> dict[str, Any]:
        """What the step needs of the hosts of the run: their Nodes, the results of your tasks, and why the play ended early."""
        step, hostvars = self._task.args["step"], self.task_vars["hostvars"]
        host_variables = [hostvars[host] for host in self.inputs["windows"]]
        matched: Mapping[str, str] = next(
            (variables["kubewin_nodes"]["matched"] for variables in host_variables if "kubewin_nodes" in variables), {}
        )
        batch = self.task_vars["ansible_play_batch"]
        if step == "prepare":
            named = ".".join(f"{key}-{release}" for key, release in self.inputs["upgrade_target"].items())
            return {"hosts": matched, "name": self.inputs["upgrade_name"] or named or "nodes"}
        if step == "begin":
            return {"batch": [matched[host] for host in batch]}
        if step == "finish":
            lacking = "it has no result"
            return {"results": {matched[host]: hostvars[host].get("kubewin_upgrade_result", lacking) for host in batch}}
        steps = ("kubewin_upgrade_begun", "kubewin_upgrade_finished")
        messages = [(variables.get(name) or {}).get("msg") for name in steps for variables in host_variables]
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

    def work(self, options: Mapping[str, Any]) -> None:
        """Perform the step; failed unless the play may go on to its next task."""
        step = options["step"]
        if options["plan"]:
            step_options = {
                name: options[name] for name in (*CLUSTER_ARG_SPEC, "step", "plan", "batch", "results", "failures")
            }
            options = {**options, **options["plan"]["options"], **step_options}
        self._options, self._client = options, self.connect(options)
        self._over, holder = step == "end", identify_run()
        try:
            upgrade = self._upgrade = Upgrade(self._client, options, holder, self.show, self._check_nodes)
            if step == "prepare" or self.check_mode:
                self._plan()
            if not self.check_mode:
                with self._hold_lease(holder):
                    {"prepare": self._prepare, "begin": self._begin, "finish": self._finish, "end": self._end}[step]()
        except UpgradeRefusedError as error:
            self.result = shorten(self.result)
            raise TaskError(str(error), "refused") from None
        except (ClusterError, TaskError) as error:
            self.result = shorten(self.result)
            if isinstance(error, ClusterError) and self._upgrade.journal_store.written:
                text = f"{error} The state of each node is in {self._upgrade.journal_store.location}. Run again to continue."
                raise TaskError(text, error.reason) from None
            raise
        for text in upgrade.journal_store.warnings:
            self.warn(text)
        self.result["changed"] = self.result["changed"] or upgrade.journal_store.written
        self.result["proceed"] = True

    @contextlib.contextmanager
    def _hold_lease(self, holder: str) -> Iterator[None]:
        """Hold the run's Lease. Between its steps a program beside the run renews it; step end gives it back.

        After an error it is given back too, unless a write may still arrive: then it expires, so that the write meets it.
        """
        # Ansible makes this folder for each run, and removes it at its end.
        lease, path = self._upgrade.lease, os.path.join(vars(constants)["DEFAULT_LOCAL_TMP"], "kubewin-lease")
        release_keeper(path)
        self._upgrade.take_lease()
        try:
            yield
        except BaseException:
            lease.end(unanswered=self._upgrade.has_unanswered_writes)
            raise
        if self._over:
            lease.end()
            return
        began = read_uptime()
        lease.leave()
        access = {name: self._options[name] for name in CLUSTER_ARG_SPEC}
        start_keeper(path, began, holder, self._options["namespace"], access)
        self.result["held"] = f"{path}.held"

    # The steps

    def _plan(self) -> None:
        """Plan the nodes; in check mode this is all, with the readiness report."""
        options, upgrade = self._options, self._upgrade
        upgrade.refuse()
        journal, lines = upgrade.plan()
        self._describe(journal)
        self.result.update(outcome="planned", batches=[], hosts=[], nodes=[], lines=lines)
        self.result["next"] = [] if journal.ended else ["upgrade"]
        self.result["options"] = {name: options[name] for name in self.argument_spec}
        if options["step"] == "prepare":
            self.show(*lines)
        by_node = {node: host for host, node in options["hosts"].items()}
        if options["hook"] == "tasks" and (by_node or not self.check_mode) and journal.state != "finished":
            batches = plan_batches(journal, by_node)
            for entry in journal.nodes:
                if entry.step == "waiting" and entry.node not in by_node:
                    self.show(f"{entry.node}: no host in this run; it is not upgraded now")
            if not self.check_mode:
                self.result["hosts"] = [by_node[node] for batch in batches for node in batch]
                self.result["batches"] = [len(batch) for batch in batches]
        if self.check_mode:
            locked = upgrade.lease.find_other_run()
            self.result["changed"] = any(entry.step != "done" for entry in journal.nodes)
            if locked:
                self.warn(locked)
            if self._is_new(journal) and self._options["step"] == "prepare":
                self._report_readiness()

    def _is_new(self, journal: Journal) -> bool:
        """Whether no node started, and the drivers can be verified before the first."""
        return all(entry.step == "waiting" or entry.by_itself for entry in journal.nodes) and not journal.ended

    def _prepare(self) -> None:
        """Check readiness, verify every node and save baselines before the first node."""
        # Another run may have written the journal before this one held the Lease.
        journal, _lines = self._upgrade.plan()
        self._describe(journal)
        if not self._is_new(journal):
            return
        if not self._options["unproven_canary"]:
            self._report_readiness()
            for driver in self._drivers():
                self._gate(driver, [])
            self._verify([entry.node for entry in journal.nodes])
        if self._options["data"] and journal.before.volumes:
            self._read_data(journal, compare=False)

    def _begin(self) -> None:
        decision = self._upgrade.begin(self._options["batch"])
        self._describe(decision.journal)
        self.result["outcome"] = name_outcome(decision)
        self._raise_stop(decision)
        if self.result["outcome"] == "paused":
            raise TaskError(decision.journal.why, "paused")
        self.result.update(nodes=list(decision.journal.due), at=time.time())

    def _finish(self) -> None:
        decision = self._upgrade.finish(self._options["results"])
        self._describe(decision.journal)
        self.result["outcome"] = name_outcome(decision)
        self._raise_stop(decision)
        # Step end of the playbook, which follows, takes the Lease again.
        self._over = self.result["outcome"] == "finished"

    def _end(self) -> None:
        """Upgrade what is left, or settle what the play left, then verify, compare and report."""
        upgrade = self._upgrade
        decision = self._settle() if self._options["hook"] == "tasks" else upgrade.follow()
        journal, outcome = decision.journal, name_outcome(decision)
        if outcome == "settled":
            # Nodes are left whose hosts were outside of --limit or of the inventory.
            self.result["without_limit"] = journal.state != "paused"
            journal, outcome = upgrade.leave(journal) if self.result["without_limit"] else journal, "paused"
        self._describe(journal)
        self.result.update(outcome=outcome, lines=self._state_lines(journal), next=self._next(journal))
        self._raise_stop(decision)
        if outcome == "tasks":
            waiting = [entry.node for entry in journal.nodes if entry.step == "hook"]
            raise TaskError(f"Node {', '.join(waiting)}: its tasks did not run. Run again.", "stopped")
        if outcome == "finished":
            self._conclude(journal)

    def _settle(self) -> Decision:
        """Of the user's play. TaskError if it ended early for another reason than a node or a pause."""
        journal, failures = self._upgrade.open(), self._options["failures"]
        if failures and not journal.due and journal.state not in ("paused", "stopped"):
            self._describe(journal)
            self.result.update(outcome="stopped", lines=self._state_lines(journal), next=self._next(journal))
            raise TaskError("\n".join(failures), "stopped")
        return self._upgrade.settle()

    def _conclude(self, journal: Journal) -> None:
        """Verify and compare after the last node, once an upgrade."""
        upgrade, lost = self._upgrade, list[str]()
        uncompared = "kubewin_upgrade_data is false"
        if self._options["data"]:
            uncompared = "an earlier run ended the upgrade" if journal.ended else "no Windows workload has a volume"
        messages = [f"data: not compared, because {uncompared}"]
        if not journal.ended:
            self._verify([entry.node for entry in journal.nodes], move=True)
            compared: list[str] = []
            if self._options["data"] and journal.before.volumes:
                data = self._read_data(journal, compare=True)
                messages, lost = data["report"].splitlines(), data["lost"]
                # Keep baselines that could not be compared yet, and those of data that is lost.
                compared = [] if lost else [volume["claim"] for volume in data["volumes"] if "noted" not in volume]
            journal = upgrade.record_end(journal, compared)
        report, findings = upgrade.compare(journal)
        self._describe(journal, findings)
        self.result.update(report=report, data=messages, next=[])
        self.result["lines"] = [
            describe(journal).splitlines()[0],
            *report,
            *messages,
            f"the journal: {upgrade.journal_store.location}",
        ]
        if lost:
            raise TaskError(
                "Every node is upgraded, but files of the baseline are missing, truncated or changed on these volumes:\n"
                + "\n".join(lost)
                + "\nIf the workload changed them itself, nothing is lost. Otherwise stop it before it writes more, and find "
                "the cause.",
                "data_differs",
            )
        # A run after one that was killed here does this too.
        if journal.compared:
            self._call_data(claims=list(journal.compared), forget=True)
        blockers = [
            f"{finding.id} {finding.object}: {finding.message} -> {finding.remedy}"
            for finding in findings
            if finding.severity == "blocker"
        ]
        if blockers:
            raise TaskError("\n".join(blockers), "volumes_changed")

    # The result

    def _describe(self, journal: Journal, findings: Sequence[Finding] = ()) -> None:
        self.result.update(
            journal=[asdict(entry) for entry in journal.nodes],
            place=self._upgrade.journal_store.location,
            findings=[serialize(finding) for finding in findings],
        )

    def _state_lines(self, journal: Journal) -> list[str]:
        text = describe(journal).splitlines()
        return [*text[: text.index("What happened:")], f"the journal: {self._upgrade.journal_store.location}"]

    def _next(self, journal: Journal) -> list[str]:
        return ["upgrade" + (f" -e kubewin_upgrade_confirmed={journal.approval}" if journal.approval else "")]

    def _raise_stop(self, decision: Decision) -> None:
        stopping = decision.journal.stopping
        if decision.journal.state == "stopped" and stopping is not None:
            raise TaskError(
                f"{stopping.id} {stopping.object}: {stopping.message} -> {stopping.remedy}. The journal: "
                f"{self._upgrade.journal_store.location}",
                "stopped",
            )

    # Other features

    def _check_nodes(self, kind: DelegatedStep, nodes: Sequence[str]) -> Mapping[str, str]:
        """Run the gate or the verification on each node; by node why it failed, empty if it passed."""
        results = {}
        for node in nodes:
            try:
                if kind == "gate":
                    for driver in self._drivers():
                        self._gate(driver, [node])
                else:
                    self._verify([node])
            except (ClusterError, TaskError) as error:
                results[node] = str(error)
            else:
                results[node] = ""
        return results

    def _drivers(self) -> list[str]:
        """The drivers that you name, else the installed ones."""
        return list(self._options["drivers"] or find_node_plugins(self._client))

    def _gate(self, driver: str, nodes: Sequence[str]) -> None:
        # A driver that you do not name need not serve every node. The verification proves more than a read of the host.
        optional = {} if self._options["drivers"] else {"allow_zero_nodes": True}
        timeout = self._options["gate_timeout"]
        self.call(
            gate.ActionModule,
            driver=driver,
            nodes=list(nodes),
            timeout=timeout,
            accept_unproven=True,
            **optional,
        )

    def _verify(self, nodes: Sequence[str], *, move: bool = False) -> None:
        verify_options = self._options["verify"]
        tolerations = [*verify_options.get("tolerations", ()), *_TOLERATIONS]
        self.call(
            verify.ActionModule,
            **{
                **verify_options,
                "drivers": self._drivers(),
                "nodes": list(nodes),
                "move": move,
                "tolerations": tolerations,
            },
        )

    def _report_readiness(self) -> None:
        target = self._options["target"]
        for before in (True, False) if target else (False,):
            self.call(
                preflight_info.ActionModule, **self._options["readiness"], target=target, before=before, details=False
            )

    def _read_data(self, journal: Journal, *, compare: bool) -> dict[str, Any]:
        """List each volume through the pod that uses it. One that cannot be read is reported; the others are processed."""
        names = {"tolerations": "tolerations", "image": "image", "timeout": "step_timeout"}
        verify = self._options["verify"]
        pod_options = {option: verify[name] for name, option in names.items() if name in verify}
        # Baselines from before the first node belong to an earlier attempt.
        data = self._call_data(
            claims=list(journal.before.volumes), keep_going=True, compare=compare, renew=not compare,
            append_only=self._options["append_only"], **pod_options,
        )  # fmt: skip
        self.show(*data["report"].splitlines())
        return data

    def _call_data(self, **arguments: Any) -> dict[str, Any]:
        options = {"name": self._options["name"], "record_namespace": self._options["namespace"], **arguments}
        return self.call(volume_data.ActionModule, **options)


def shorten(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a failed task returns, since the callback prints all of it: why it failed, and where each node stands."""
    part = {key: value for key, value in result.items() if key != "options"}
    for name in _BRIEF.keys() & part.keys():
        part[name] = [{key: row[key] for key in _BRIEF[name] if row.get(key)} for row in part[name]]
    return part
