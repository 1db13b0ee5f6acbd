# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of an upgrade's play: each observes and continues the journal, with the features that come before, between and after the nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..base.errors import TaskError
from ..base.findings import Finding
from ..base.screen import Screen
from ..base.waiting import Waits
from ..catalog.registry import DRIVERS, refuse_unknown_driver
from ..catalog.versions import parse
from ..kube.client import Client
from ..kube.lease import bind_client
from ..kube.permissions import require_roles
from . import wmco
from .apply import UpgradeExecutor, UpgradeObserver
from .begin import (
    UpgradeRequest,
    begin,
    check_batch,
    check_same_request,
    plan_batches,
    record_delegation,
    record_results,
    resume,
)
from .decide import (
    ChangeObject,
    Decision,
    DelegatedStep,
    DelegateStep,
    EndRun,
    ObserveAgain,
    UpgradeRules,
    decide,
    find_left_cordoned,
    record_external_changes,
)
from .explain import describe, describe_changes, describe_plan, describe_unfinished
from .journal import Journal, NodeEntry, UpgradeTarget, format_time
from .journal_store import NAMES, JournalStore
from .lease import upgrade_lease
from .maintenance_windows import parse_window
from .observation import UpgradeObservation
from .snapshot import compare_volumes

_LOOK = 1.0
_LOST = (
    "its tasks did not end: the host became unreachable, or they ended the play (ansible.builtin.meta with end_host, "
    "end_batch or end_play)"
)


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


class Upgrade:
    """Performs a step. options: of the module. holder: of the run, for its Lease.

    result: of the step, also if it fails. over: whether the step gives the Lease back.
    """

    def __init__(self, client: Client, options: Mapping[str, Any], holder: str, features: Features) -> None:
        self._options, self._holder, self._features = options, holder, features
        self._request, self._rules = parse_request(options), parse_rules(options)
        self.lease = upgrade_lease(client, options["namespace"], holder, features.show)
        self._leased = False
        self._client = client = bind_client(client, self._confirm)
        self.journal_store = JournalStore(client, options["namespace"], options["name"])
        self._observer = UpgradeObserver(client, self._check_lease)
        self.executor = UpgradeExecutor(client, self._observer, features.show)
        self.result, self.over = UpgradeStepResult(), False

    def _check_lease(self) -> None:
        if self._leased:
            self.lease.check()

    def _confirm(self) -> None:
        if not self._leased:
            raise TypeError("a write of an upgrade that does not hold the lease")
        self.lease.confirm()

    @property
    def has_unanswered_writes(self) -> bool:
        """Whether a write of this run may still arrive at the API server."""
        return self._client.has_unanswered_writes

    def take_lease(self) -> None:
        """Take the Lease. ClusterError locked if another run does."""
        self.lease.take()
        self._leased = True

    # The steps

    def plan(self, *, check_mode: bool) -> None:
        """Plan the nodes; in check mode this is all, with the readiness report. Writes nothing."""
        options = self._options
        bindings = (("kubewin-csi-upgrade", None), ("kubewin-csi-records", options["namespace"]))
        require_roles(self._client, bindings, "an upgrade")
        journal = self._plan_journal()
        lines, next_playbooks = describe_plan(journal), [] if journal.ended else ["upgrade"]
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
            locked = self.lease.find_other_run()
            self._note(changed=any(entry.step != "done" for entry in journal.nodes))
            if locked:
                self._features.warn(locked)
            if options["step"] == "prepare":
                self._check_before_first_node(journal, check_mode=True)

    def prepare(self) -> None:
        """Check readiness, verify every node and save baselines before the first node."""
        # Another run may have written the journal before this one held the Lease.
        journal = self._plan_journal()
        self._describe(journal)
        self._check_before_first_node(journal, check_mode=False)

    def _check_before_first_node(self, journal: Journal, *, check_mode: bool) -> None:
        """Check readiness, verify every node and save baselines; in check mode, find out what of this is refused."""
        if journal.ended or any(entry.step != "waiting" and not entry.by_itself for entry in journal.nodes):
            return
        if not self._options["unproven_canary"]:
            self._features.report_readiness()
            if not check_mode:
                self._features.wait_for_drivers()
            self._features.verify([entry.node for entry in journal.nodes])
        if self._options["data"] and journal.before:
            self._features.read_data(journal.before, compare=False)

    def begin(self) -> None:
        """Cordon and drain the nodes of a batch. The tasks of the nodes in `Journal.due` may run then."""
        journal, batch = self._open(), frozenset(self._options["batch"])
        decision: Decision = EndRun(journal)
        if not all(entry.step == "done" for entry in journal.nodes if entry.node in batch):
            observed = UpgradeObservation(self._client.now(), self._observer.read_nodes())
            check_batch(record_external_changes(journal, observed), batch)
            decision = self._follow(journal, batch)
        if isinstance(decision, DelegateStep):
            decision = replace(decision, journal=self.journal_store.keep(replace(decision.journal, due=decision.nodes)))
        self._record(decision)
        if self.result.outcome == "paused":
            raise TaskError(decision.journal.why, "paused")
        self._note(nodes=decision.journal.due, deadline=time.time() + self._options["node_timeout"])

    def finish(self) -> None:
        """Record the results of the user's tasks, and finish those nodes; none other starts.

        Another run may have finished the upgrade before this one began a node. Step end of the playbook takes the Lease again.
        """
        journal = self.journal_store.read()
        if journal is None or (journal.run != self._holder and journal.state != "finished"):
            raise TaskError(
                f"upgrade {self._request.name}: this run did not begin a node, expected step begin before step finish. "
                "Run the play from its beginning.",
                "refused",
            )
        self._record(self._settle(journal, self._options["results"]) if journal.due else EndRun(journal))
        self.over = self.result.outcome == "finished"

    def follow(self) -> None:
        """Upgrade the nodes that are left, with the hooks none and wmco."""
        self._record(self._follow(self._open(), None))

    def end(self) -> None:
        """Settle what the play left, then verify, compare and report."""
        self.over = True
        journal, failures = self._open(), self._options["failures"]
        if failures and not journal.due and journal.state not in ("paused", "stopped"):
            # The play ended early for another reason than a node or a pause.
            self._summarize(journal, "stopped")
            raise TaskError("\n".join(failures), "stopped")
        decision = self._settle(journal, {})
        journal, outcome = decision.journal, name_outcome(decision)
        if outcome == "settled":
            # Nodes are left whose hosts were outside of --limit or of the inventory.
            outcome, without_limit = "paused", journal.state != "paused"
            self._note(without_limit=without_limit)
            if without_limit:
                waiting = [entry.node for entry in journal.nodes if entry.step == "waiting"]
                why = f"{', '.join(waiting)}: no host that this run could read. Repair or add the hosts, then run again"
                journal = self.journal_store.keep(replace(journal, state="paused", why=why))
        self._summarize(journal, outcome)
        self._raise_stop(journal)
        if outcome == "tasks":
            waiting = [entry.node for entry in journal.nodes if entry.step == "hook"]
            raise TaskError(f"Node {', '.join(waiting)}: its tasks did not run. Run again.", "stopped")
        if outcome == "finished":
            self._conclude(journal)

    def _conclude(self, journal: Journal) -> None:
        """Verify and compare after the last node, once an upgrade."""
        uncompared = "kubewin_upgrade_data is false"
        if self._options["data"]:
            uncompared = "an earlier run ended the upgrade" if journal.ended else "no Windows workload has a volume"
        data = DataComparison([f"data: not compared, because {uncompared}"])
        if not journal.ended:
            self._features.verify([entry.node for entry in journal.nodes], move=True)
            if self._options["data"] and journal.before:
                data = self._features.read_data(journal.before, compare=True)
            # Keep baselines of data that is lost.
            compared = () if data.lost else tuple(data.claims)
            journal = self.journal_store.keep(
                replace(journal, ended=format_time(self._client.now()), compared=compared)
            )
        nodes = self._observer.read_nodes()
        findings = list(compare_volumes(journal.before, self._observer.read_volumes(nodes, journal.before)))
        report = describe_changes(journal, nodes, findings)
        lines = [describe(journal).splitlines()[0], *report, *data.lines, f"the journal: {self.journal_store.location}"]
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

    # The journal

    def _start(self, stored: Journal | None, observed: UpgradeObservation) -> Journal:
        """Return the journal that this run continues; does not store it."""
        confirmed = self._options["confirmed"]
        if stored is not None:
            journal = resume(stored, self._request, observed, confirmed)
        else:
            self.journal_store.warnings += [
                describe_unfinished(journal) for journal in self.journal_store.find_unfinished()
            ]
            journal = replace(
                begin(self._request, observed, confirmed), before=self._observer.read_volumes(observed.nodes)
            )
        return replace(journal, run=self._holder)

    def _is_over(self, stored: Journal | None) -> bool:
        """Whether the upgrade is finished and none of its nodes carries our cordon."""
        if stored is None or stored.state != "finished":
            return False
        check_same_request(stored, self._request)
        return not find_left_cordoned(stored, self._observer.read_nodes())

    def _plan_journal(self) -> Journal:
        """Return the journal that the run would continue. Writes nothing."""
        observed = self._observer.observe_all(self._request.target)
        stored = self.journal_store.read()
        if stored is None or not self._is_over(stored):
            return record_external_changes(self._start(stored, observed), observed)
        if stored.ended:
            self.journal_store.warnings.append(
                f"upgrade {stored.name} finished at {stored.ended}; nothing was done. To upgrade nodes again, set "
                "another name (kubewin_upgrade_name)"
            )
        return stored

    def _open(self) -> Journal:
        """Return the journal that this run continues, stored. Requires the Lease."""
        stored = self.journal_store.read()
        if stored is not None and (
            self._is_over(stored) or (stored.state != "finished" and stored.run == self._holder)
        ):
            return stored
        observed = self._observer.observe_all(self._request.target)
        if self._request.hook == "wmco":
            repelled = self._observer.find_repelled_plugins(self._options["drivers"], self._request.name)
            if repelled:
                raise TaskError("\n".join(wmco.report_repelled_plugin(name).line() for name in repelled), "refused")
        return self.journal_store.keep(self._start(stored, observed))

    def _settle(self, journal: Journal, results: Mapping[str, str]) -> Decision:
        """Record the results of the user's tasks, by node why they failed, and finish what is in progress; no node starts.

        A node whose tasks began and that has no result fails.
        """
        if journal.due:
            results_by_node = {node: results.get(node, _LOST) for node in journal.due}
            journal = self.journal_store.keep(
                replace(record_results(journal, "hook", results_by_node, self._client.now()), due=())
            )
        return self._follow(journal, frozenset())

    def _follow(self, journal: Journal, only: frozenset[str] | None) -> Decision:
        """Advance until the user's tasks are due or no node is in progress. only: nodes that may start, None for all."""
        rules = replace(self._rules, only=only)
        while True:
            decision = advance(
                journal,
                self.journal_store.keep,
                self._observer.observe,
                self.executor.execute,
                rules,
                self._features.show,
            )
            if not isinstance(decision, DelegateStep) or decision.kind == "hook":
                return decision
            results = {node: self._check_node(decision.kind, node) for node in decision.nodes}
            journal = self.journal_store.keep(
                record_results(decision.journal, decision.kind, results, self._client.now())
            )

    def _check_node(self, kind: DelegatedStep, node: str) -> str:
        """Run the gate or the verification on a node; return why it failed, empty if it passed."""
        try:
            if kind == "gate":
                self._features.wait_for_drivers([node])
            else:
                self._features.verify([node])
        except TaskError as error:
            return str(error)
        return ""

    # The result

    def _record(self, decision: Decision) -> None:
        """The result of a decision. TaskError if the upgrade stopped."""
        self._describe(decision.journal, outcome=name_outcome(decision))
        self._raise_stop(decision.journal)

    def _describe(self, journal: Journal, findings: Sequence[Finding] = (), **fields: Any) -> None:
        place = self.journal_store.location
        self._note(journal=journal.nodes, place=place, findings=findings, **fields)

    def _note(self, **fields: Any) -> None:
        self.result = replace(self.result, **fields)

    def _summarize(self, journal: Journal, outcome: str) -> None:
        text, place = describe(journal).splitlines(), self.journal_store.location
        approval = f" -e kubewin_upgrade_confirmed={journal.approval}" if journal.approval else ""
        lines = [*text[: text.index("What happened:")], f"the journal: {place}"]
        self._describe(journal, outcome=outcome, lines=lines, next=[f"upgrade{approval}"])

    def _raise_stop(self, journal: Journal) -> None:
        if journal.state == "stopped" and journal.stopping is not None:
            place = self.journal_store.location
            raise TaskError(f"{_describe_finding(journal.stopping)}. The journal: {place}", "stopped")


def advance(
    journal: Journal, keep: Callable[[Journal], Journal], observe: Callable[[Journal, frozenset[str] | None], UpgradeObservation],
    execute: Callable[[ChangeObject], None], rules: UpgradeRules, notify: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Decision:  # fmt: skip
    """Advance until the upgrade needs an external action. The journal of the returned decision is stored.

    keep: stores a journal and returns it as it was written. execute: makes one change; each is safe to repeat.
    """
    waits = Waits(lambda line: notify(f"waiting: {line}"))
    while True:
        observed = observe(journal, rules.only)
        decision = decide(journal, observed, rules)
        following = decision.journal
        if isinstance(decision, DelegateStep):
            following = record_delegation(following, decision.kind, decision.nodes, observed.current_time)
        awaited = decision.conditions if isinstance(decision, ObserveAgain) else ()
        for event in following.happened:
            text = event.partition(" ")[2]
            # What the run waits for is reported below, with its time.
            if event not in journal.happened and text not in [condition.text for condition in awaited]:
                notify(text)
        if following != journal:
            journal = keep(following)
        if isinstance(decision, ChangeObject):
            execute(decision)
        elif isinstance(decision, ObserveAgain):
            waits.report(*awaited)
            sleep(_LOOK)
        else:
            return replace(decision, journal=journal)


def name_outcome(decision: Decision) -> str:
    if isinstance(decision, DelegateStep):
        return "tasks"
    return "settled" if decision.journal.state == "open" else decision.journal.state


def parse_request(params: Mapping[str, Any]) -> UpgradeRequest:
    """Check the options, as far as that needs no cluster."""
    if NAMES.match(params["name"] or "") is None:
        raise TaskError(
            f"name is {params['name']!r}, expected at most 62 lower-case letters, digits, - and '.'.", "refused"
        )
    for name in params["drivers"]:
        if name not in DRIVERS:
            raise TaskError(refuse_unknown_driver(name), "refused")
    for name, minimum in (("node_timeout", 1), ("wait_timeout", 0)):
        if params[name] < minimum:
            raise TaskError(f"{name} is {params[name]}, expected at least {minimum}.", "refused")
    releases = params["target"] or {}
    target = {key: str(releases[key]) for key in ("kubelet", "openshift", "wmco") if releases.get(key)}
    for component, release in target.items():
        try:
            parse(release)
        except ValueError as error:
            raise TaskError(f"target {component}: {error}.", "refused") from error
    return UpgradeRequest(
        name=params["name"],
        hook=params["hook"],
        target=UpgradeTarget(**target),
        nodes=tuple(dict.fromkeys(params["nodes"])),
        canary=params["canary"],
        batches=tuple(params["batches"]),
        unproven_canary=params["unproven_canary"],
        pause=tuple(params["pause"]),
    )


def parse_rules(params: Mapping[str, Any]) -> UpgradeRules:
    try:
        windows = tuple(parse_window(text, params["time_zone"]) for text in params["windows"])
    except ValueError as error:
        raise TaskError(str(error), "refused") from error
    return UpgradeRules(
        budget=float(params["node_timeout"]),
        wait_timeout=float(params["wait_timeout"]),
        pause=tuple(params["pause"]),
        windows=windows,
        stop_on=frozenset(params["stop_on"]),
    )


def _describe_finding(finding: Finding) -> str:
    return f"{finding.id} {finding.object}: {finding.message} -> {finding.remedy}"
