# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time, and the takeover of a stale lease."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import holder, kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.fencing import FENCED_BY, Reference
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process, identify_run, is_dead
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import Lease, LeaseSubject, bind_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.times import parse_time
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.apply import UpgradeExecutor, UpgradeObserver
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import ChangeObject
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, NodeEntry, UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease import upgrade_lease
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
NODE = "/api/v1/nodes/win-1"
CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"
ELSEWHERE = "another-machine/0123-1/77-5"


def ended() -> str:
    """Who held something on this machine and has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = identify_process(process.pid)
    assert not is_dead(name)
    process.communicate(b"\n")
    assert is_dead(name)
    return name


def elsewhere(store: ObjectStore) -> Lease:
    """The lease of a run on another machine, where its process cannot be checked."""
    return upgrade_lease(client_of(store), "kubewin", ELSEWHERE)


class Waiting:
    """Our run, whose waits only move the clocks. meanwhile: what happens in each of them. ahead: seconds of the API server's clock."""

    def __init__(
        self, store: ObjectStore, meanwhile: Callable[[], None] = lambda: None, *, ahead: float = 0.0,
        list_written: Callable[[], Iterable[Reference]] = tuple, holder: str = "",
    ) -> None:  # fmt: skip
        self.store, self.waited, self.messages, self._meanwhile = store, 0.0, list[str](), meanwhile
        store.now = datetime.now(timezone.utc) + timedelta(seconds=ahead)
        about = LeaseSubject("kubewin", "kubewin-upgrade", {}, "an upgrade of this cluster")
        self.lease = Lease(
            client_of(store), about, holder or identify_process(os.getpid()), self.messages.append, list_written=list_written,
            clock=lambda: self.waited, sleep=self._sleep,
        )  # fmt: skip
        # The first answer has the clock.
        self.lease.find_other_run()

    def _sleep(self, seconds: float) -> None:
        assert self.store.now is not None
        self.store.now += timedelta(seconds=seconds)
        self.waited += seconds
        self._meanwhile()


def test_a_run_that_renews_its_lease_excludes_a_second_one() -> None:
    store = ObjectStore()
    first = elsewhere(store)
    first.take()
    second = Waiting(store, first.renew)
    assert (
        f"another run works on an upgrade of this cluster: {ELSEWHERE} renewed its lease"
        in second.lease.find_other_run()
    )
    with pytest.raises(
        ClusterError, match=r"renewed its lease .*If it was killed, its lease expires within 45 s"
    ) as refused:
        second.lease.take()
    assert refused.value.reason == "locked"
    assert second.waited < 20
    second._meanwhile = lambda: None
    # The same run keeps it, and releases it.
    first.end()
    assert LEASE not in store.things
    assert second.lease.find_other_run() == ""
    second.lease.take()
    second.lease.check()
    second.lease.end()


def test_a_patient_run_waits_for_one_that_renews_and_reports_it_once() -> None:
    store = ObjectStore()
    first = elsewhere(store)
    first.take()
    second = Waiting(store, lambda: first.renew() if second.waited < 300 else first.end())
    second.lease.take(wait_timeout=600)
    assert 300 <= second.waited < 302
    assert len(second.messages) == 1
    second.lease.end()

    first = elsewhere(store)
    first.take()
    second = Waiting(store, first.renew)
    with pytest.raises(ClusterError) as refused:
        second.lease.take(wait_timeout=100)
    assert refused.value.reason == "locked"
    assert 100 <= second.waited < 103
    first.end()


def test_a_stale_lease_of_another_machine_is_taken_over_within_a_minute() -> None:
    store = ObjectStore()
    dead = elsewhere(store)
    dead.take()
    dead.leave()
    mine = Waiting(store)
    mine.lease.take()
    assert 0 < mine.waited <= 48
    assert store.things[LEASE]["spec"]["holderIdentity"] == identify_process(os.getpid())
    (reported,) = mine.messages
    assert re.search(r"waiting up to \d+ s for a renewal", reported)
    mine.lease.end()


def test_a_run_that_has_ended_on_this_machine_is_followed_at_once() -> None:
    store = ObjectStore()
    dead = upgrade_lease(client_of(store), "kubewin", ended())
    dead.take()
    dead.leave()
    mine = Waiting(store)
    mine.lease.take()
    assert mine.waited == 0
    mine.lease.end()


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0], ids=["behind", "ahead"])
def test_a_live_run_keeps_its_lease_whatever_its_clock_says(ahead: float) -> None:
    """API servers of one cluster may disagree about the time by more than a lease lasts."""
    store = ObjectStore()
    first = elsewhere(store)
    first.take()
    renewals = 0

    def renew_every_11_seconds() -> None:
        nonlocal renewals
        if second.waited >= 11 * (renewals + 1):
            renewals += 1
            first.renew()

    second = Waiting(store, renew_every_11_seconds, ahead=ahead)
    with pytest.raises(ClusterError, match=f"another run works on an upgrade of this cluster: {ELSEWHERE}") as refused:
        second.lease.take()
    assert refused.value.reason == "locked"
    first.check()
    first.end()


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0], ids=["behind", "ahead"])
def test_a_stale_lease_is_taken_over_within_a_minute_whatever_its_time_says(ahead: float) -> None:
    store = ObjectStore()
    dead = elsewhere(store)
    dead.take()
    dead.leave()
    mine = Waiting(store, ahead=ahead)
    mine.lease.take()
    assert 45 <= mine.waited <= 48
    mine.lease.end()


def test_a_label_on_a_lease_is_no_renewal_and_starts_the_observation_again() -> None:
    store = ObjectStore()
    dead = elsewhere(store)
    dead.take()
    dead.leave()

    def label_once() -> None:
        if mine.waited == 30:
            store._put(LEASE, store.things[LEASE])

    mine = Waiting(store, label_once)
    mine.lease.take()
    assert 75 <= mine.waited <= 78
    mine.lease.end()


class Beside:
    """The process beside a run. dies: after so many checks."""

    def __init__(self, dies: int, meanwhile: Callable[[int], None] = lambda _look: None) -> None:
        self.store, self.uptime, self.checks, self._dies, self._meanwhile = ObjectStore(), 0.0, 0, dies, meanwhile
        self.store.now = datetime.now(timezone.utc)
        run = upgrade_lease(client_of(self.store), "kubewin", ELSEWHERE)
        run.take()
        run.leave()
        about = LeaseSubject("kubewin", "kubewin-upgrade", {}, "an upgrade of this cluster")
        self.lease = Lease(client_of(self.store), about, ELSEWHERE, clock=lambda: self.uptime, sleep=self._sleep)
        self.lease.keep(self._ended)

    def _ended(self) -> bool:
        self.checks += 1
        self._meanwhile(self.checks)
        return self.checks > self._dies

    def _sleep(self, seconds: float) -> None:
        assert self.store.now is not None
        self.store.now += timedelta(seconds=seconds)
        self.uptime += seconds


def test_the_process_beside_a_run_renews_its_lease_until_the_run_ends() -> None:
    beside = Beside(300)
    renewed = parse_time(beside.store.things[LEASE]["spec"]["renewTime"])
    assert beside.store.now is not None
    assert renewed is not None
    # As long as the run lived it was renewed. The clock that is written is that of the answer before.
    assert timedelta() <= beside.store.now - renewed <= timedelta(seconds=32)
    assert beside.checks == 301


@pytest.mark.parametrize("what", ["gone", "taken"])
def test_the_process_beside_a_run_leaves_a_lease_alone_that_is_not_its_runs(what: str) -> None:
    stores: list[ObjectStore] = []

    class Kept(Beside):
        def _ended(self) -> bool:
            if self.checks == 20:
                stores.append(self.store)
                if what == "gone":
                    del self.store.things[LEASE]
                else:
                    metadata = {**self.store.things[LEASE]["metadata"], "resourceVersion": "later"}
                    spec = {**self.store.things[LEASE]["spec"], "holderIdentity": "another/1-1/1-1"}
                    self.store.things[LEASE] = {**self.store.things[LEASE], "metadata": metadata, "spec": spec}
            return super()._ended()

    kept = Kept(1000)
    assert kept.checks < 50
    assert (LEASE in stores[0].things) == (what == "taken")
    if what == "taken":
        assert stores[0].things[LEASE]["spec"]["holderIdentity"] == "another/1-1/1-1"


def test_a_deleted_or_taken_over_lease_is_lost_and_never_created_again() -> None:
    """The run that took it may have ended, and with it the upgrade."""
    store = ObjectStore()
    mine = upgrade_lease(client_of(store), "kubewin", identify_process(os.getpid()))
    mine.take()
    del store.things[LEASE]
    with pytest.raises(ClusterError, match=r"Lease kubewin/kubewin-upgrade is missing, expected .*run again") as gone:
        mine.leave()
    assert gone.value.reason == "taken_over"
    assert LEASE not in store.things
    upgrade_lease(client_of(store), "kubewin", ELSEWHERE).take()
    with pytest.raises(ClusterError, match=f"is held by {ELSEWHERE}, expected"):
        mine.leave()
    mine.end()
    assert store.things[LEASE]["spec"]["holderIdentity"] == ELSEWHERE


def test_a_lease_that_a_user_labels_stays_ours() -> None:
    store = ObjectStore()
    mine = upgrade_lease(client_of(store), "kubewin", identify_process(os.getpid()))
    mine.take()
    store.things[LEASE]["metadata"]["resourceVersion"] = "labelled"
    mine.leave()
    assert store.things[LEASE]["metadata"]["resourceVersion"] != "labelled"


def test_the_end_of_a_run_leaves_alone_what_another_one_took_a_moment_before() -> None:
    class Contested(ObjectStore):
        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
            if method == "DELETE":
                self._put(path, {**self.things[path], "spec": {"holderIdentity": ELSEWHERE}})
            return super().request(method, path, body, **params)

    store = Contested()
    mine = upgrade_lease(client_of(store), "kubewin", identify_process(os.getpid()))
    mine.take()
    mine.end()
    assert store.things[LEASE]["spec"]["holderIdentity"] == ELSEWHERE


def test_the_end_of_a_run_gives_back_what_the_process_beside_it_renewed_at_that_moment() -> None:
    class Renewed(ObjectStore):
        renewals = 2

        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
            if method == "DELETE" and self.renewals:
                self.renewals -= 1
                self._put(path, self.things[path])
            return super().request(method, path, body, **params)

    store = Renewed()
    mine = upgrade_lease(client_of(store), "kubewin", identify_process(os.getpid()))
    mine.take()
    mine.end()
    assert LEASE not in store.things


class Machine:
    """One that may sleep: its own clock then runs on, or is paused with it, and the API server's always runs on."""

    def __init__(self, *, paused: bool) -> None:
        self.paused, self.store, self.uptime = paused, ObjectStore(), 0.0
        self.store.now = datetime.now(timezone.utc)
        self.store._put(NODE, {"metadata": {"name": "win-1"}, "spec": {}})
        self.client = client_of(self.store)
        about = LeaseSubject("kubewin", "kubewin-upgrade", {}, "an upgrade of this cluster")
        self.lease = Lease(self.client, about, identify_process(os.getpid()), clock=lambda: self.uptime)
        self.lease.take()

    def sleep(self, seconds: float) -> None:
        assert self.store.now is not None
        self.store.now += timedelta(seconds=seconds)
        self.uptime += 0 if self.paused else seconds

    def renewed(self) -> datetime:
        found = parse_time(self.store.things[LEASE]["spec"]["renewTime"])
        assert found is not None
        return found


@pytest.mark.parametrize("paused", [False, True], ids=["suspended", "paused"])
def test_a_suspended_run_checks_its_lease_before_it_changes_a_node(paused: bool) -> None:
    """Its thread was suspended as well. The run that took over has ended: no journal would name the run that cordoned that node."""
    machine = Machine(paused=paused)
    store = machine.store
    watcher = UpgradeObserver(machine.client, machine.lease.check)
    worker = UpgradeExecutor(bind_client(machine.client, machine.lease.confirm), watcher, lambda _line: None)
    journal = Journal("first", "tasks", UpgradeTarget(), "2026-11-21T20:00:00Z", (NodeEntry("win-1", 0, "cordon"),))
    machine.sleep(3600)
    other = Waiting(store, holder=ELSEWHERE)
    other.lease.take()
    other.lease.end()
    with pytest.raises(ClusterError, match=r"could not be renewed.*is missing") as lost:
        worker.execute(ChangeObject("cordon", "win-1", journal))
    assert lost.value.reason == "taken_over"
    assert store.things[NODE]["spec"] == {}
    assert LEASE not in store.things


def test_a_suspended_run_that_kept_its_lease_renews_it_and_continues() -> None:
    machine = Machine(paused=True)
    first = machine.renewed()
    machine.sleep(3600)
    machine.client.get(kinds.NODE, "win-1")
    machine.lease.confirm()
    assert machine.renewed() > first
    machine.lease.end()


def test_a_module_whose_run_has_ended_changes_nothing_more() -> None:
    store = ObjectStore()
    orphan = upgrade_lease(client_of(store), "kubewin", ended())
    orphan.take()
    with pytest.raises(ClusterError, match="has ended; no further change is made"):
        orphan.check()
    orphan.end()


def test_a_write_whose_answer_was_lost_is_not_sent_again_for_a_run_that_was_followed() -> None:
    machine = Machine(paused=False)
    store, silences = machine.store, list[float]()
    answer = store.request

    def cut(method: str, path: str, body: Any = None, **params: Any) -> Response:
        if (method, path) == ("POST", CLAIMS):
            silences.append(params["_request_timeout"])
            if len(silences) == 1:
                machine.sleep(61)
                Waiting(store, holder=ELSEWHERE).lease.take()
                raise ConnectionResetError
        return answer(method, path, body, **params)

    store.request = cut  # type: ignore[method-assign]  # its answers are lost
    client = bind_client(machine.client, machine.lease.confirm)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"}}
    with pytest.raises(ClusterError, match="could not be renewed") as lost:
        client.create_new(kinds.PERSISTENT_VOLUME_CLAIM, claim, dry_run=False)
    assert lost.value.reason == "taken_over"
    # And its one try did not wait as long as the lease lasts.
    assert silences == [10]
    assert f"{CLAIMS}/data" not in store.things


def test_an_api_server_outage_shorter_than_the_timeout_loses_no_lease() -> None:
    machine = Machine(paused=False)
    store, answer, tries = machine.store, machine.store.request, list[str]()

    def away(method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "PATCH" and len(tries) < 4:
            tries.append(body["spec"]["renewTime"])
            machine.sleep(2)
            raise ConnectionRefusedError
        return answer(method, path, body, **params)

    store.request = away  # type: ignore[method-assign]  # it is restarted
    machine.lease._renew_timeout = 60
    machine.lease.confirm()
    assert len(tries) == 4
    machine.lease.end()


NODES = (Reference(kinds.NODE, "win-1"), Reference(kinds.NODE, "win-2"))


@pytest.mark.parametrize("status", [401, 403])
def test_an_api_server_that_refuses_a_renewal_for_a_moment_loses_no_lease(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    store = ObjectStore()
    mine = Waiting(store)
    mine.lease.take()
    request, refusals = store.request, iter([ApiError(status)])

    def refuse_once(method: str, path: str, **params: Any) -> Response:
        if method == "PATCH" and (refusal := next(refusals, None)):
            raise refusal
        return request(method, path, **params)

    monkeypatch.setattr(store, "request", refuse_once)
    before = store.things[LEASE]["metadata"]["resourceVersion"]
    mine.lease.confirm()
    assert store.things[LEASE]["metadata"]["resourceVersion"] != before
    refusals = iter([ApiError(status)] * 1000)
    # Longer than the run waits for an API server.
    monkeypatch.setattr(mine.lease, "_clock", itertools.count(0, 30).__next__)
    with pytest.raises(ClusterError, match="could not be renewed") as lost:
        mine.lease.confirm()
    assert lost.value.reason == "taken_over"
    mine.lease.end()


def test_a_write_that_was_checked_before_and_sent_after_a_takeover_is_refused() -> None:
    """As when a process is stopped between the two, or a proxy holds the request. The third run need not know of the first."""
    machine = Machine(paused=False)
    store, answer = machine.store, machine.store.request

    def hold(method: str, path: str, body: Any = None, **params: Any) -> Response:
        if (method, path) == ("PATCH", NODE):
            store.request = answer  # type: ignore[method-assign]  # only this one is held
            for holder in (ELSEWHERE, "a-third/0123-1/9-9"):
                other = Waiting(store, list_written=lambda: NODES, holder=holder)
                other.lease.take()
                other.lease.end()
        return answer(method, path, body, **params)

    store.request = hold  # type: ignore[method-assign]  # the network does
    client = bind_client(machine.client, machine.lease.confirm)
    with pytest.raises(ClusterError, match="could not be renewed") as lost:
        modify(client, kinds.NODE, "win-1", None, lambda _node: {"spec": {"unschedulable": True}})
    assert lost.value.reason == "taken_over"
    assert store.things[NODE]["spec"] == {}
    assert store.things[NODE]["metadata"]["annotations"][FENCED_BY].startswith(f"{ELSEWHERE} ")


def test_a_run_that_begins_normally_touches_nothing() -> None:
    store = ObjectStore()
    store._put(NODE, {"metadata": {"name": "win-1"}, "spec": {}})
    before = dict(store.things[NODE])
    for _run in range(2):
        mine = Waiting(store, list_written=lambda: NODES)
        mine.lease.take()
        mine.lease.end()
    assert store.things[NODE] == before


def test_a_run_that_could_not_fence_leaves_that_to_the_next_one() -> None:
    store = ObjectStore()
    store._put(NODE, {"metadata": {"name": "win-1"}, "spec": {}})
    former = upgrade_lease(client_of(store), "kubewin", ended())
    former.take()
    former.leave()

    def unreadable() -> Iterable[Reference]:
        raise ClusterError("forbidden", "forbidden", 403)

    second = Waiting(store, list_written=unreadable)
    with pytest.raises(ClusterError, match="forbidden"):
        second.lease.take()
    second.lease.end()
    assert FENCED_BY not in store.things[NODE]["metadata"].get("annotations", {})
    # The same run, in its next module: it has the lease already.
    third = Waiting(store, list_written=lambda: NODES)
    third.lease.take()
    assert FENCED_BY in store.things[NODE]["metadata"]["annotations"]
    third.lease.end()
    assert LEASE not in store.things


@pytest.mark.parametrize(
    "write",
    [
        lambda client: client.patch(kinds.NODE, "win-1", None, {"spec": {}}, "us"),
        lambda client: client.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win-1"}}, dry_run=False),
        lambda client: client.delete(kinds.POD, "db-0", "shop", "u1", dry_run=False),
    ],
    ids=["patch", "apply", "delete"],
)
def test_a_run_with_a_lease_cannot_send_a_write_that_no_fence_would_stop(write: Callable[[Client], None]) -> None:
    store = ObjectStore()
    sent = list[str]()
    client = bind_client(client_of(store), lambda: sent.append("checked"))
    with pytest.raises(TypeError, match="names no version of its object"):
        write(client)
    assert sent == []


def test_a_process_of_a_run_names_the_run_also_when_that_has_ended() -> None:
    """Its parent is then the reaper of orphans, PID 1 in a container, which never ends."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def task(run: int) -> None:
        while os.getppid() == run:
            time.sleep(0.01)  # nothing notifies a process of its new parent
        sending.send(identify_run())

    def run() -> None:
        context.Process(target=task, args=(os.getpid(),)).start()
        os._exit(0)

    process = context.Process(target=run)
    process.start()
    process.join(60)
    process.kill()
    assert receiving.poll(60)
    holder = receiving.recv()
    assert f"/{process.pid}-" in holder
    assert is_dead(holder)


def test_a_machine_without_proc_distinguishes_its_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(holder, "_PROC", tmp_path)
    mine = identify_process(os.getpid())
    assert mine == identify_process(os.getpid())
    assert not is_dead(mine)
    assert ended() != mine
    # The number of an ended process there may be that of none here.
    machine, process = mine.partition("/")[0], ended().partition("/")[2]
    assert is_dead(f"{machine}/{process}")
    assert not is_dead(f"another-{machine}/{process}")
