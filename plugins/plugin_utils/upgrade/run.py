# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that upgrades nodes: checks its options, observes, and continues the journal, one step of the play after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import Waits
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS, refuse_unknown_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import bind_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.namespaces import check_namespace, read_cluster_uid
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import require
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade import picture, wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.apply import Watcher, Worker
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import (
    RefusedError,
    Request,
    begin,
    check_batch,
    delegated_to,
    returned,
    same,
    take_up,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import (
    Decision,
    Delegate,
    Delegated,
    Do,
    Done,
    Rules,
    Settled,
    Wait,
    decide,
    left_cordoned,
    notice,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.drain import drain
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.explain import describe, plan_of, unfinished
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.facts import Observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.hours import read as read_hours
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, Target, stamp
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease import upgrade_lease
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.needs import needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.records import NAMES, Pages

# Runs the gate or the verification on nodes; by node why it failed, empty if it passed.
Check = Callable[[Delegated, Sequence[str]], Mapping[str, str]]

_LOOK = 1.0
_LOST = (
    "its tasks did not end: the host became unreachable, or they ended the play (ansible.builtin.meta with end_host, "
    "end_batch or end_play)"
)


class Upgrade:
    """One step of a run. options: of the module. holder: of the run, for its Lease. notify: progress callback."""

    def __init__(
        self, client: Client, options: Mapping[str, Any], holder: str, notify: Callable[[str], None], check: Check
    ) -> None:
        self._options, self._holder, self._notify, self._check = options, holder, notify, check
        self.desired, self.rules = desired(options), rules(options)
        self.lease = upgrade_lease(client, options["namespace"], holder, notify)
        self._leased = False
        self._client = client = bind_client(client, self._confirm)
        folder = Path(options["output_dir"]) if options["output_dir"] else None
        self.pages = Pages(client, options["namespace"], options["name"], folder)
        self.watcher = Watcher(client, options["operator_namespace"], self._check_lease)
        self.worker = Worker(client, self.watcher, notify)

    def _check_lease(self) -> None:
        if self._leased:
            self.lease.check()

    def _confirm(self) -> None:
        if not self._leased:
            raise TypeError("a write of an upgrade that does not hold the lease")
        self.lease.confirm()

    def take_lease(self) -> None:
        """Hold the Lease from here on; ClusterError locked if another run does."""
        self.lease.take()
        self._leased = True

    def refuse(self) -> None:
        """Check what would fail half way: access and the journal's namespace."""
        options = self._options
        required = needs(options["namespace"], options["operator_namespace"], self.desired.hook, self.desired.target)
        require(self._client, required, "an upgrade", "kubewin-csi-upgrade and kubewin-csi-records")
        if why := check_namespace(self._client, options["namespace"], "the journal is"):
            raise RefusedError(why)
        self.desired = replace(self.desired, cluster=read_cluster_uid(self._client))

    def findings(self, observed: Observation) -> list[Finding]:
        """Findings about WMCO; blockers among them raise RefusedError in `open`."""
        if self.desired.hook != "wmco":
            return []
        chosen = [node for name, node in observed.nodes.items() if not self.desired.nodes or name in self.desired.nodes]
        found = list(wmco.notes(chosen, self.watcher.wmco(), self.desired.target))
        for name in self.watcher.kept_off(self._options["drivers"], self.desired.name):
            found.append(wmco.plugin_kept_off(name))
        return found

    def _start(self, found: Journal | None, observed: Observation) -> Journal:
        """The journal that this run continues, not stored yet."""
        confirmed = self._options["confirmed"]
        if found is not None:
            journal = take_up(found, self.desired, observed, confirmed)
        else:
            self.pages.warnings += [unfinished(other) for other in self.pages.beside()]
            journal = replace(begin(self.desired, observed, confirmed), before=self.watcher.picture())
        return replace(journal, run=self._holder)

    def _is_over(self, found: Journal | None) -> bool:
        """Whether nothing is to be done for the nodes of this upgrade any more."""
        if found is None or found.state != "finished":
            return False
        same(found, self.desired)
        return not left_cordoned(found, self.watcher.nodes())

    def plan(self) -> tuple[Journal, list[str]]:
        """The journal that the run would continue, and what it would do, as text. Writes nothing."""
        observed = self.watcher.everything(self.desired.target)
        found = self.pages.read()
        over = self._is_over(found)
        if found is not None and found.ended and over:
            self.pages.warnings.append(
                f"upgrade {found.name} finished at {found.ended}; nothing was done. To upgrade nodes again, set "
                "another name (kubewin_upgrade_name)"
            )
        journal = found if found is not None and over else notice(self._start(found, observed), observed)
        return journal, [*plan_of(journal), *self._rehearse(journal, observed)]

    def _rehearse(self, journal: Journal, observed: Observation) -> list[str]:
        """What would block the first drains."""
        waiting = [entry for entry in journal.nodes if entry.step == "waiting"]
        lines: list[str] = []
        if self.desired.hook == "wmco":
            return lines
        for entry in (one for one in waiting if one.batch == waiting[0].batch and one.node in observed.nodes):
            pods = observed.nodes[entry.node].pods or ()
            empty = drain(pods, {}, observed.now, delete_unowned=self.rules.delete_unowned)
            lines += [f"{entry.node}: {why}" for why in empty.never]
            lines += self.worker.rehearse(entry.node, empty.left)
        return lines

    def open(self) -> Journal:
        """The journal that this run continues, stored. The run holds the Lease."""
        found = self.pages.read()
        if found is not None and (self._is_over(found) or (found.state != "finished" and found.run == self._holder)):
            return found
        observed = self.watcher.everything(self.desired.target)
        blockers = [finding.line() for finding in self.findings(observed) if finding.severity == "blocker"]
        if blockers:
            raise RefusedError("\n".join(blockers))
        return self.pages.keep(self._start(found, observed))

    def begin(self, batch: Collection[str]) -> Decision:
        """Cordon and drain these nodes, all of one batch. The tasks of the nodes in `Journal.due` may run then."""
        journal = self.open()
        if all(entry.step == "done" for entry in journal.nodes if entry.node in batch):
            return _settled(journal)
        check_batch(notice(journal, Observation(self._client.now(), self.watcher.nodes())), batch)
        decision = self._follow(journal, frozenset(batch))
        if isinstance(decision, Delegate):
            return replace(decision, journal=self.pages.keep(replace(decision.journal, due=decision.nodes)))
        return decision

    def finish(self, results: Mapping[str, str]) -> Decision:
        """Record the results of the user's tasks, by node why they failed, and finish those nodes; none other starts.

        A node whose tasks began and that has no result fails. Another run may have finished the upgrade before this one began a node.
        """
        journal = self.pages.read()
        if journal is None or (journal.run != self._holder and journal.state != "finished"):
            raise RefusedError(
                f"upgrade {self.desired.name}: this run did not begin a node, expected step begin before step finish. "
                "Run the play from its beginning."
            )
        return self._record(journal, results) if journal.due else _settled(journal)

    def settle(self) -> Decision:
        """Finish what the user's play left: a node whose tasks did not end fails, and none other starts."""
        return self._record(self.open(), {})

    def _record(self, journal: Journal, results: Mapping[str, str]) -> Decision:
        if journal.due:
            found = {node: results.get(node, _LOST) for node in journal.due}
            journal = self.pages.keep(replace(returned(journal, "hook", found, self._client.now()), due=()))
        return self._follow(journal, frozenset())

    def follow(self) -> Decision:
        """Upgrade every node that is left, as hooks none and wmco do."""
        return self._follow(self.open(), None)

    def _follow(self, journal: Journal, only: frozenset[str] | None) -> Decision:
        """Go on until the user's tasks are due or no node is in progress. only: nodes that may start, None for all."""
        self.watcher.only, rules = only, replace(self.rules, only=only)
        while True:
            decision = advance(journal, self.pages.keep, self.watcher.observe, self.worker.do, rules, self._notify)
            if not isinstance(decision, Delegate) or decision.kind == "hook":
                return decision
            results = self._check(decision.kind, decision.nodes)
            journal = self.pages.keep(returned(decision.journal, decision.kind, results, self._client.now()))

    def leave(self, journal: Journal) -> Journal:
        """Record that nodes without a host wait for another run."""
        left = [entry.node for entry in journal.nodes if entry.step == "waiting"]
        why = f"{', '.join(left)} had no host in this run. Run again with their hosts"
        return self.pages.keep(replace(journal, state="paused", why=why))

    def record_end(self, journal: Journal, compared: Collection[str]) -> Journal:
        """Record that the last verification and comparison are done. compared: claims whose baselines are needed no more."""
        return self.pages.keep(replace(journal, ended=stamp(self._client.now()), compared=tuple(compared)))

    def compare(self, journal: Journal) -> tuple[list[str], list[Finding]]:
        """The nodes and volumes before and after, as text, and what changed."""
        after = self.watcher.picture(journal.before.volumes)
        return picture.lines(journal.before, after), list(picture.compare(journal.before, after))

    def describe(self, journal: Journal) -> dict[str, Any]:
        """The state of the upgrade as a result."""
        return {
            "journal": [asdict(entry) for entry in journal.nodes],
            "text": describe(journal).splitlines(),
            "claims": list(journal.before.volumes),
            "approval": journal.approval,
            "ended": journal.ended,
            "compared": list(journal.compared),
            "place": self.pages.location,
        }


def advance(
    journal: Journal, keep: Callable[[Journal], Journal], observe: Callable[[Journal], Observation],
    execute: Callable[[Do], None], rules: Rules, notify: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Decision:  # fmt: skip
    """Advance until the upgrade needs an external action: a Delegate, Pause, Stop, Settled or Done, whose journal is stored.

    keep: stores a journal and returns it as it was written. execute: makes one change; each is safe to repeat.
    """
    waits = Waits(lambda line: notify(f"waiting: {line}"))
    while True:
        observed = observe(journal)
        decision = decide(journal, observed, rules)
        following = decision.journal
        if isinstance(decision, Delegate):
            following = delegated_to(following, decision.kind, decision.nodes, observed.now)
        awaited = decision.what if isinstance(decision, Wait) else ()
        for event in following.happened:
            text = event.partition(" ")[2]
            # What the run waits for is reported below, with its time.
            if event not in journal.happened and text not in [one.what for one in awaited]:
                notify(text)
        if following != journal:
            journal = keep(following)
        if isinstance(decision, Do):
            execute(decision)
        elif isinstance(decision, Wait):
            waits.report(*awaited)
            sleep(_LOOK)
        else:
            return replace(decision, journal=journal)


def _settled(journal: Journal) -> Done | Settled:
    return Done(journal) if journal.state == "finished" else Settled(journal)


def outcome_of(decision: Decision) -> str:
    """A decision as a result."""
    if isinstance(decision, Done):
        return "finished"
    if isinstance(decision, Settled):
        return "settled"
    return "tasks" if isinstance(decision, Delegate) else "paused" if decision.journal.state == "paused" else "stopped"


def desired(params: Mapping[str, Any]) -> Request:
    """The options, checked as far as they can be without a cluster."""
    if NAMES.match(params["name"] or "") is None:
        raise RefusedError(f"name is {params['name']!r}, expected at most 62 lower-case letters, digits, - and '.'.")
    for name in params["drivers"]:
        if name not in DRIVERS:
            raise RefusedError(refuse_unknown_driver(name))
    for name, least in (("node_timeout", 1), ("patience", 0)):
        if params[name] < least:
            raise RefusedError(f"{name} is {params[name]}, expected at least {least}.")
    given = params["target"] or {}
    target = {key: str(given[key]) for key in ("kubelet", "openshift", "wmco") if given.get(key)}
    for what, release in target.items():
        try:
            parse(release)
        except ValueError as error:
            raise RefusedError(f"target {what}: {error}.") from error
    return Request(
        name=params["name"],
        hook=params["hook"],
        target=Target(**target),
        nodes=tuple(dict.fromkeys(params["nodes"])),
        canary=params["canary"],
        batches=tuple(params["batches"]),
        unproven_canary=params["unproven_canary"],
        pause=tuple(params["pause"]),
    )


def rules(params: Mapping[str, Any]) -> Rules:
    """How to go."""
    try:
        windows = tuple(read_hours(text, params["time_zone"]) for text in params["windows"])
    except ValueError as error:
        raise RefusedError(str(error)) from error
    return Rules(
        budget=float(params["node_timeout"]),
        patience=float(params["patience"]),
        pause=tuple(params["pause"]),
        windows=windows,
        stop_on=frozenset(params["stop_on"]),
        delete_unowned=params["delete_unowned"],
    )
