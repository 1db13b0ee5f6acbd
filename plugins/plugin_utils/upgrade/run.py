# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that upgrades nodes: checks its options, observes, and continues the journal, one step of the play after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..base.errors import TaskError
from ..base.findings import Finding
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
from .explain import describe_changes, describe_plan, describe_unfinished
from .journal import Journal, UpgradeTarget, format_time
from .journal_store import NAMES, JournalStore
from .lease import upgrade_lease
from .maintenance_windows import parse_window
from .observation import UpgradeObservation
from .snapshot import compare_volumes

# Runs the gate or the verification on nodes; by node why it failed, empty if it passed.
Check = Callable[[DelegatedStep, Sequence[str]], Mapping[str, str]]

_LOOK = 1.0
_LOST = (
    "its tasks did not end: the host became unreachable, or they ended the play (ansible.builtin.meta with end_host, "
    "end_batch or end_play)"
)


class Upgrade:
    """Runs one step of the play. options: of the module. holder: of the run, for its Lease. notify: progress callback."""

    def __init__(
        self, client: Client, options: Mapping[str, Any], holder: str, notify: Callable[[str], None], check: Check
    ) -> None:
        self._options, self._holder, self._notify, self._check = options, holder, notify, check
        self.desired, self.rules = parse_request(options), parse_rules(options)
        self.lease = upgrade_lease(client, options["namespace"], holder, notify)
        self._leased = False
        self._client = client = bind_client(client, self._confirm)
        self.journal_store = JournalStore(client, options["namespace"], options["name"])
        self.observer = UpgradeObserver(client, self._check_lease)
        self.executor = UpgradeExecutor(client, self.observer, notify)

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

    def refuse(self) -> None:
        """Refuse what would fail half way: missing permissions and the journal's namespace."""
        bindings = (("kubewin-csi-upgrade", None), ("kubewin-csi-records", self._options["namespace"]))
        require_roles(self._client, bindings, "an upgrade")

    def _start(self, stored: Journal | None, observed: UpgradeObservation) -> Journal:
        """Return the journal that this run continues; does not store it."""
        confirmed = self._options["confirmed"]
        if stored is not None:
            journal = resume(stored, self.desired, observed, confirmed)
        else:
            self.journal_store.warnings += [
                describe_unfinished(journal) for journal in self.journal_store.find_unfinished()
            ]
            journal = replace(
                begin(self.desired, observed, confirmed), before=self.observer.read_volumes(observed.nodes)
            )
        return replace(journal, run=self._holder)

    def _is_over(self, stored: Journal | None) -> bool:
        """Whether the upgrade is finished and none of its nodes carries our cordon."""
        if stored is None or stored.state != "finished":
            return False
        check_same_request(stored, self.desired)
        return not find_left_cordoned(stored, self.observer.read_nodes())

    def plan(self) -> tuple[Journal, list[str]]:
        """Return the journal that the run would continue, and its plan as text. Writes nothing."""
        observed = self.observer.observe_all(self.desired.target)
        stored = self.journal_store.read()
        over = self._is_over(stored)
        if stored is not None and stored.ended and over:
            self.journal_store.warnings.append(
                f"upgrade {stored.name} finished at {stored.ended}; nothing was done. To upgrade nodes again, set "
                "another name (kubewin_upgrade_name)"
            )
        journal = (
            stored if stored is not None and over else record_external_changes(self._start(stored, observed), observed)
        )
        return journal, describe_plan(journal)

    def open(self) -> Journal:
        """Return the journal that this run continues, stored. Requires the Lease."""
        stored = self.journal_store.read()
        if stored is not None and (
            self._is_over(stored) or (stored.state != "finished" and stored.run == self._holder)
        ):
            return stored
        observed = self.observer.observe_all(self.desired.target)
        if self.desired.hook == "wmco":
            repelled = self.observer.find_repelled_plugins(self._options["drivers"], self.desired.name)
            if repelled:
                raise TaskError("\n".join(wmco.report_repelled_plugin(name).line() for name in repelled), "refused")
        return self.journal_store.keep(self._start(stored, observed))

    def begin(self, batch: Collection[str]) -> Decision:
        """Cordon and drain these nodes, all of one batch. The tasks of the nodes in `Journal.due` may run then."""
        journal = self.open()
        if all(entry.step == "done" for entry in journal.nodes if entry.node in batch):
            return EndRun(journal)
        check_batch(
            record_external_changes(journal, UpgradeObservation(self._client.now(), self.observer.read_nodes())), batch
        )
        decision = self._follow(journal, frozenset(batch))
        if isinstance(decision, DelegateStep):
            return replace(decision, journal=self.journal_store.keep(replace(decision.journal, due=decision.nodes)))
        return decision

    def finish(self, results: Mapping[str, str]) -> Decision:
        """Record the results of the user's tasks, by node why they failed, and finish those nodes; none other starts.

        A node whose tasks began and that has no result fails. Another run may have finished the upgrade before this one began a node.
        """
        journal = self.journal_store.read()
        if journal is None or (journal.run != self._holder and journal.state != "finished"):
            raise TaskError(
                f"upgrade {self.desired.name}: this run did not begin a node, expected step begin before step finish. "
                "Run the play from its beginning.",
                "refused",
            )
        return self._record(journal, results) if journal.due else EndRun(journal)

    def settle(self) -> Decision:
        """Finish what the user's play left: a node whose tasks did not end fails, and none other starts."""
        return self._record(self.open(), {})

    def _record(self, journal: Journal, results: Mapping[str, str]) -> Decision:
        if journal.due:
            results_by_node = {node: results.get(node, _LOST) for node in journal.due}
            journal = self.journal_store.keep(
                replace(record_results(journal, "hook", results_by_node, self._client.now()), due=())
            )
        return self._follow(journal, frozenset())

    def follow(self) -> Decision:
        """Upgrade all remaining nodes, with hook none or wmco."""
        return self._follow(self.open(), None)

    def _follow(self, journal: Journal, only: frozenset[str] | None) -> Decision:
        """Advance until the user's tasks are due or no node is in progress. only: nodes that may start, None for all."""
        rules = replace(self.rules, only=only)
        while True:
            decision = advance(
                journal,
                self.journal_store.keep,
                self.observer.observe,
                self.executor.execute,
                rules,
                self._notify,
            )
            if not isinstance(decision, DelegateStep) or decision.kind == "hook":
                return decision
            results = self._check(decision.kind, decision.nodes)
            journal = self.journal_store.keep(
                record_results(decision.journal, decision.kind, results, self._client.now())
            )

    def leave(self, journal: Journal) -> Journal:
        """Record that nodes without a host wait for another run."""
        waiting = [entry.node for entry in journal.nodes if entry.step == "waiting"]
        why = f"{', '.join(waiting)}: no host that this run could read. Repair or add the hosts, then run again"
        return self.journal_store.keep(replace(journal, state="paused", why=why))

    def record_end(self, journal: Journal, compared: Collection[str]) -> Journal:
        """Record that the last verification and comparison are done. compared: claims whose baselines are needed no more."""
        return self.journal_store.keep(
            replace(journal, ended=format_time(self._client.now()), compared=tuple(compared))
        )

    def compare(self, journal: Journal) -> tuple[list[str], list[Finding]]:
        """Compare nodes and volumes with those before the upgrade; return a text and findings."""
        nodes = self.observer.read_nodes()
        findings = list(compare_volumes(journal.before, self.observer.read_volumes(nodes, journal.before)))
        return describe_changes(journal, nodes, findings), findings


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
