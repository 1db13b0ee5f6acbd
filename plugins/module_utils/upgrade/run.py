# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One call of a run that upgrades nodes: check its options, observe, take the lease, and continue the journal."""

from __future__ import annotations

import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS, unknown
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.module_utils.findings import Finding
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import bind_client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.namespaces import cluster_uid, unusable
from ansible_collections.kubewin.csi.plugins.module_utils.kube.permissions import require
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter
from ansible_collections.kubewin.csi.plugins.module_utils.stored import plain
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade import picture, wmco
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.apply import Watcher, Worker
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.begin import (
    RefusedError,
    Request,
    begin,
    returned,
    same,
    take_up,
)
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.decide import (
    Decision,
    Delegate,
    Done,
    Pause,
    Rules,
    left_cordoned,
)
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.drain import drain
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.drive import drive
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.explain import describe, plan_of, unfinished
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.facts import Observation
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.hours import read as read_hours
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import Journal, Target, stamp
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.lease import upgrade_lease
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.needs import needs
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.records import NAMES, Pages


class Upgrade:
    """One call. stop: set when no process waits for it."""

    def __init__(self, client: Client, params: dict[str, Any], stop: threading.Event) -> None:
        self._params, self._stop = params, stop
        self.desired, self.rules = desired(params), rules(params)
        folder = Path(params["output_dir"]) if params["output_dir"] else None
        self.notify = reporter(params["progress_file"])
        self.lease = upgrade_lease(client, params["namespace"], params["holder"], self.notify)
        self._leased = False
        self._client = client = bind_client(client, self._confirm)
        self.pages = Pages(client, params["namespace"], params["name"], folder)
        self.watcher = Watcher(client, params["operator_namespace"], self._check)
        self.worker = Worker(client, self.watcher, self.notify)

    def _check(self) -> None:
        if self._stop.is_set():
            raise ClusterError("the run was terminated. Run again to resume from the journal", "interrupted")
        if self._leased:
            self.lease.check()

    def _confirm(self) -> None:
        self._check()
        if not self._leased:
            raise TypeError("a write of an upgrade that does not hold the lease")
        self.lease.confirm()

    def refuse(self) -> None:
        """What would go wrong half way."""
        params = self._params

        required = needs(params["namespace"], params["operator_namespace"], self.desired.hook, self.desired.target)
        require(self._client, required, "an upgrade", "kubewin-csi-upgrade and kubewin-csi-records")
        if why := unusable(self._client, params["namespace"], "the journal is"):
            raise RefusedError(why)
        self.desired = replace(self.desired, cluster=cluster_uid(self._client))

    def findings(self, observed: Observation) -> list[Finding]:
        """What is in the way of WMCO's hook, or worth knowing."""
        if self.desired.hook != "wmco":
            return []
        chosen = [node for name, node in observed.nodes.items() if not self.desired.nodes or name in self.desired.nodes]
        found = list(wmco.notes(chosen, self.watcher.wmco(), self.desired.target))
        for name in self.watcher.kept_off(self._params["drivers"], self.desired.name):
            found.append(wmco.plugin_kept_off(name))
        return found

    def start(self, found: Journal | None, observed: Observation) -> Journal:
        """The journal that this run continues; unchanged within the same run."""
        if self._params["generation"]:
            if found is None or found.generation != self._params["generation"]:
                raise RefusedError(f"another run changed the journal of upgrade {self.desired.name}. Run again")
            return found
        if found is not None:
            return take_up(found, self.desired, observed, self._params["confirmed"])
        self.pages.warnings += [unfinished(other) for other in self.pages.beside()]
        return begin(self.desired, observed, self.watcher.picture().pack(), self._params["confirmed"])

    def _is_over(self, found: Journal | None) -> bool:
        """Whether nothing is to be done for this upgrade any more."""
        if found is None or found.state != "finished":
            return False
        same(found, self.desired)
        if left_cordoned(found, self.watcher.nodes()):
            return False
        if found.ended and not self._params["generation"]:
            self.pages.warnings.append(
                f"upgrade {found.name} finished at {found.ended}; nothing was done. To upgrade nodes again, set "
                "another name (kubewin_upgrade_name)"
            )
        return True

    def plan(self) -> dict[str, Any]:
        """What would be done."""
        observed = self.watcher.everything(self.desired.target)
        found = self.pages.read()
        journal = found if found is not None and self._is_over(found) else self.start(found, observed)
        lines = plan_of(journal)
        waiting = [entry for entry in journal.nodes if entry.step == "waiting"]
        if waiting and self.desired.hook != "wmco":
            for entry in (one for one in waiting if one.batch == waiting[0].batch and one.node in observed.nodes):
                empty = drain(
                    observed.nodes[entry.node].pods or (),
                    {},
                    observed.now,
                    delete_unowned=self._params["delete_unowned"],
                )
                lines += [f"{entry.node}: {why}" for why in empty.never]
                lines += self.worker.rehearse(entry.node, empty.left)
        findings = [plain(one) for one in self.findings(observed)]
        planned = {"plan": lines, "locked": self.lease.others(), "findings": findings, "stored": _version(found)}
        return {**self._result(journal, "planned"), **planned}

    def hold(self) -> dict[str, Any]:
        """Take the lease for the run; answers with the version of the journal, which from here on no other run changes."""
        self.lease.take()
        try:
            return {"outcome": "held", "stored": _version(self.pages.read())}
        finally:
            self.lease.leave()

    def _take(self) -> None:
        self.lease.take()
        self._leased = True

    def go_on(self) -> tuple[dict[str, Any], Journal]:
        """Begin or take over the upgrade, and advance it."""
        found = self.pages.read()
        if found is not None and self._is_over(found) and not self._params["generation"]:
            if self._params["ended"] and not found.ended:
                self._take()
                # Read again: from here on no other run writes it.
                found = self.pages.read() or found
                found = self.pages.keep(
                    replace(found, ended=stamp(self._client.now()), compared=tuple(self._params["compared"]))
                )
            if found.ended:
                self.lease.end()
            return self._finished(found), found
        self._take()
        delegated = False
        try:
            # Read again: from here on no other run writes it.
            found = self.pages.read()
            findings: list[Finding] = []
            if self._params["generation"]:
                journal = self.start(found, Observation(self._client.now(), {}))
                if self._params["finished"]:
                    results = {str(node): str(why or "") for node, why in self._params["results"].items()}
                    journal = self.pages.keep(returned(journal, self._params["finished"], results, self._client.now()))
            else:
                observed = self.watcher.everything(self.desired.target)
                findings = self.findings(observed)
                blockers = [one.line() for one in findings if one.severity == "blocker"]
                if blockers:
                    raise RefusedError("\n".join(blockers))
                journal = self.pages.keep(self.start(found, observed))
            decision = drive(journal, self.pages, self.watcher, self.worker, self.rules, self.notify)
            delegated = isinstance(decision, Delegate)
            return self._ended(decision, findings), decision.journal
        finally:
            if delegated:
                self.lease.leave()
            else:
                self.lease.end()

    def _ended(self, decision: Decision, findings: list[Finding]) -> dict[str, Any]:
        if isinstance(decision, Done):
            return self._finished(decision.journal)
        outcome = (
            "delegated" if isinstance(decision, Delegate) else "paused" if isinstance(decision, Pause) else "stopped"
        )
        following = {"kind": decision.kind, "nodes": list(decision.nodes)} if isinstance(decision, Delegate) else None
        result = self._result(decision.journal, outcome, following)
        approval = decision.approval if isinstance(decision, Pause) else ""
        return {**result, "approval": approval, "findings": [plain(one) for one in findings]}

    def _finished(self, journal: Journal) -> dict[str, Any]:
        before = picture.unpack(journal.before)
        after = self.watcher.picture(before.volumes)
        return {
            **self._result(journal, "finished"),
            "report": picture.lines(before, after),
            "findings": [plain(one) for one in picture.compare(before, after)],
        }

    def _result(self, journal: Journal, outcome: str, following: dict[str, Any] | None = None) -> dict[str, Any]:
        left = [entry for entry in journal.nodes if entry.step != "done"]
        batches = len(left) if journal.hook == "wmco" else len({entry.batch for entry in left})
        return {
            "outcome": outcome,
            "next": following or {"kind": "", "nodes": []},
            # One round returns a batch for its tasks, the gate and the verification; one more round for nodes that join meanwhile.
            "max_rounds": batches + 1 if left else 0,
            "generation": journal.generation,
            "journal": [asdict(entry) for entry in journal.nodes],
            "text": describe(journal).splitlines(),
            "claims": list(picture.unpack(journal.before).volumes),
            "ended": journal.ended,
            "compared": list(journal.compared),
            "place": self.pages.location,
            "stored": _version(journal),
        }


def _version(journal: Journal | None) -> str:
    return f"{journal.generation}.{journal.sequence}" if journal is not None else ""


def desired(params: dict[str, Any]) -> Request:
    """The options, checked as far as they can be without a cluster."""
    if NAMES.match(params["name"]) is None:
        raise RefusedError(f"name is {params['name']!r}, expected at most 62 lower-case letters, digits, - and '.'.")
    for name in params["drivers"]:
        if name not in DRIVERS:
            raise RefusedError(unknown(name))
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


def rules(params: dict[str, Any]) -> Rules:
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
