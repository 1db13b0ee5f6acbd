# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of an upgrade's play, with the features that come before the first node and after the last one."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..base.errors import TaskError
from ..base.findings import Finding
from ..base.screen import Screen
from .begin import plan_batches
from .decide import Decision
from .explain import describe
from .journal import Journal, NodeEntry
from .run import Upgrade, name_outcome


@dataclass(frozen=True, slots=True)
class DataComparison:
    """The data of volumes, compared with baselines. lost: a line a file. claims: without those whose baselines could not be compared yet."""

    lines: Sequence[str] = ()
    lost: Sequence[str] = ()
    claims: Sequence[str] = ()


class Features(Screen, Protocol):
    """The task, and the other features that an upgrade calls. Each raises an error if it fails, in check mode if it would be refused."""

    def report_readiness(self) -> None: ...

    def wait_for_drivers(self, nodes: Collection[str] = ()) -> None: ...

    def verify(self, nodes: Sequence[str], *, move: bool = False) -> None: ...

    def read_data(self, claims: Collection[str], *, compare: bool) -> DataComparison:
        """Save the baselines of volumes, or compare with them."""

    def forget_data(self, claims: Collection[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class UpgradeStepResult:
    """What a step returns, by key; None for what it did not reach or has not."""

    journal: Sequence[NodeEntry] | None = None
    place: str | None = None
    findings: Sequence[Finding] | None = None
    outcome: str | None = None
    lines: Sequence[str] | None = None
    next: Sequence[str] | None = None
    hosts: Sequence[str] | None = None
    batches: Sequence[int] | None = None
    nodes: Sequence[str] | None = None
    deadline: float | None = None
    without_limit: bool | None = None
    report: Sequence[str] | None = None
    data: Sequence[str] | None = None
    changed: bool = False


class UpgradeSteps:
    """Performs a step. options: of the module. result: of the step, also if it fails. over: whether the step gives the Lease back."""

    def __init__(self, upgrade: Upgrade, features: Features, options: Mapping[str, Any]) -> None:
        self._upgrade, self._features, self._options = upgrade, features, options
        self.result, self.over = UpgradeStepResult(), False

    def plan(self, *, check_mode: bool) -> None:
        """Plan the nodes; in check mode this is all, with the readiness report."""
        options, upgrade = self._options, self._upgrade
        upgrade.refuse()
        journal, lines = upgrade.plan()
        next_playbooks = [] if journal.ended else ["upgrade"]
        self._describe(journal, outcome="planned", batches=[], hosts=[], nodes=[], lines=lines, next=next_playbooks)
        if options["step"] == "prepare":
            self._features.show(*lines)
        by_node = {node: host for host, node in options["hosts"].items()}
        if options["hook"] == "tasks" and (by_node or not check_mode) and journal.state != "finished":
            batches = plan_batches(journal, by_node)
            for entry in journal.nodes:
                if entry.step == "waiting" and entry.node not in by_node:
                    self._features.show(f"{entry.node}: no host that this run could read; it is not upgraded now")
            if not check_mode:
                hosts = [by_node[node] for batch in batches for node in batch]
                self._note(hosts=hosts, batches=[len(batch) for batch in batches])
        if check_mode:
            locked = upgrade.lease.find_other_run()
            self._note(changed=any(entry.step != "done" for entry in journal.nodes))
            if locked:
                self._features.warn(locked)
            if _is_new(journal) and options["step"] == "prepare":
                if not options["unproven_canary"]:
                    self._features.report_readiness()
                self._verify_and_save(journal)

    def prepare(self) -> None:
        """Check readiness, verify every node and save baselines before the first node."""
        # Another run may have written the journal before this one held the Lease.
        journal, _lines = self._upgrade.plan()
        self._describe(journal)
        if not _is_new(journal):
            return
        if not self._options["unproven_canary"]:
            self._features.report_readiness()
            self._features.wait_for_drivers()
        self._verify_and_save(journal)

    def _verify_and_save(self, journal: Journal) -> None:
        """Verify every node and save baselines, as far as the mode allows: check mode only finds out what is refused."""
        if not self._options["unproven_canary"]:
            self._features.verify([entry.node for entry in journal.nodes])
        if self._options["data"] and journal.before:
            self._features.read_data(journal.before, compare=False)

    def begin(self) -> None:
        """Cordon and drain the nodes of a batch."""
        decision = self._upgrade.begin(self._options["batch"])
        self._record(decision)
        if self.result.outcome == "paused":
            raise TaskError(decision.journal.why, "paused")
        self._note(nodes=decision.journal.due, deadline=time.time() + self._options["node_timeout"])

    def finish(self) -> None:
        """Finish the nodes whose tasks ran. Step end of the playbook takes the Lease again after the last node."""
        self._record(self._upgrade.finish(self._options["results"]))
        self.over = self.result.outcome == "finished"

    def follow(self) -> None:
        """Upgrade the nodes that are left, with the hooks none and wmco."""
        self._record(self._upgrade.follow())

    def end(self) -> None:
        """Settle what the play left, then verify, compare and report."""
        self.over = True
        journal, failures = self._upgrade.open(), self._options["failures"]
        if failures and not journal.due and journal.state not in ("paused", "stopped"):
            # The play ended early for another reason than a node or a pause.
            self._summarize(journal, "stopped")
            raise TaskError("\n".join(failures), "stopped")
        decision = self._upgrade.settle()
        journal, outcome = decision.journal, name_outcome(decision)
        if outcome == "settled":
            # Nodes are left whose hosts were outside of --limit or of the inventory.
            outcome, without_limit = "paused", journal.state != "paused"
            self._note(without_limit=without_limit)
            journal = self._upgrade.leave(journal) if without_limit else journal
        self._summarize(journal, outcome)
        self._raise_stop(journal)
        if outcome == "tasks":
            waiting = [entry.node for entry in journal.nodes if entry.step == "hook"]
            raise TaskError(f"Node {', '.join(waiting)}: its tasks did not run. Run again.", "stopped")
        if outcome == "finished":
            self._conclude(journal)

    def _conclude(self, journal: Journal) -> None:
        """Verify and compare after the last node, once an upgrade."""
        upgrade, uncompared = self._upgrade, "kubewin_upgrade_data is false"
        if self._options["data"]:
            uncompared = "an earlier run ended the upgrade" if journal.ended else "no Windows workload has a volume"
        data = DataComparison([f"data: not compared, because {uncompared}"])
        if not journal.ended:
            self._features.verify([entry.node for entry in journal.nodes], move=True)
            if self._options["data"] and journal.before:
                data = self._features.read_data(journal.before, compare=True)
            # Keep baselines of data that is lost.
            journal = upgrade.record_end(journal, () if data.lost else data.claims)
        report, findings = upgrade.compare(journal)
        place = upgrade.journal_store.location
        lines = [describe(journal).splitlines()[0], *report, *data.lines, f"the journal: {place}"]
        self._describe(journal, findings, report=report, data=data.lines, next=[], lines=lines)
        if data.lost:
            raise TaskError(
                "Every node is upgraded, but files of the baseline are missing, truncated or changed on these volumes:\n"
                + "\n".join(data.lost)
                + "\nIf the workload changed them itself, nothing is lost. Otherwise stop it before it writes more, and find "
                "the cause.",
                "data_differs",
            )
        # A run after one that was killed here does this too.
        if journal.compared:
            self._features.forget_data(journal.compared)
        if blockers := [_describe_finding(finding) for finding in findings if finding.severity == "blocker"]:
            raise TaskError("\n".join(blockers), "volumes_changed")

    # The result

    def _record(self, decision: Decision) -> None:
        """The result of a decision. TaskError if the upgrade stopped."""
        self._describe(decision.journal, outcome=name_outcome(decision))
        self._raise_stop(decision.journal)

    def _describe(self, journal: Journal, findings: Sequence[Finding] = (), **fields: Any) -> None:
        place = self._upgrade.journal_store.location
        self._note(journal=journal.nodes, place=place, findings=findings, **fields)

    def _note(self, **fields: Any) -> None:
        self.result = replace(self.result, **fields)

    def _summarize(self, journal: Journal, outcome: str) -> None:
        text, place = describe(journal).splitlines(), self._upgrade.journal_store.location
        approval = f" -e kubewin_upgrade_confirmed={journal.approval}" if journal.approval else ""
        lines = [*text[: text.index("What happened:")], f"the journal: {place}"]
        self._describe(journal, outcome=outcome, lines=lines, next=[f"upgrade{approval}"])

    def _raise_stop(self, journal: Journal) -> None:
        if journal.state == "stopped" and journal.stopping is not None:
            place = self._upgrade.journal_store.location
            raise TaskError(f"{_describe_finding(journal.stopping)}. The journal: {place}", "stopped")


def _is_new(journal: Journal) -> bool:
    """Whether no node started, and the drivers can be verified before the first."""
    return all(entry.step == "waiting" or entry.by_itself for entry in journal.nodes) and not journal.ended


def _describe_finding(finding: Finding) -> str:
    return f"{finding.id} {finding.object}: {finding.message} -> {finding.remedy}"
