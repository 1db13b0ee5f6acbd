# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time, and who may follow one that is dead."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of, is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.lease import About, Lease
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrade_lease import upgrade_lease
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrader import Watcher, Worker
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import moment
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.decide import Do
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import Entry, Journal, Target
from unit.plugins.module_utils.cluster.fakes import ObjectStore, Response, client_of

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
NODE = "/api/v1/nodes/win-1"
ELSEWHERE = "another-machine/0123-1/77-5"


def ended() -> str:
    """Who held something on this machine and has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = holder_of(process.pid)
    assert not is_dead(name)
    process.communicate(b"\n")
    assert is_dead(name)
    return name


def test_a_second_run_is_refused_with_who_holds_it_and_since_when() -> None:
    store = ObjectStore()
    first = upgrade_lease(client_of(store), "kubewin", ELSEWHERE)
    first.take()
    first.leave(3600)
    second = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    assert f"{ELSEWHERE} gave its last sign of life" in second.others()
    with pytest.raises(ClusterError, match=f"kubewin_upgrade_take_over={ELSEWHERE}") as refused:
        second.take()
    assert refused.value.reason == "locked"
    # The same run goes on with it, and gives it back.
    first = upgrade_lease(client_of(store), "kubewin", ELSEWHERE)
    first.take()
    first.end()
    assert LEASE not in store.things
    second = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    assert second.others() == ""
    second.take()
    second.check()
    second.end()


def test_a_run_that_has_ended_on_this_machine_is_followed_at_once_and_one_elsewhere_by_name() -> None:
    for holder, over in ((ended(), ""), (ELSEWHERE, ELSEWHERE)):
        store = ObjectStore()
        dead = upgrade_lease(client_of(store), "kubewin", holder)
        dead.take()
        dead.leave(3600)
        mine = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()), over)
        mine.take()
        assert store.things[LEASE]["spec"]["holderIdentity"] == holder_of(os.getpid())
        mine.end()


def test_a_lease_that_was_not_renewed_in_time_is_free() -> None:
    store = ObjectStore()
    old = upgrade_lease(client_of(store), "kubewin", ELSEWHERE)
    old.take()
    old.leave(0)
    store.things[LEASE]["spec"]["renewTime"] = "2126-01-01T00:00:00.000000Z"
    jumped = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid())).others()
    assert (
        f"its clock jumped. When you know that it is dead: run again with kubewin_upgrade_take_over={ELSEWHERE}"
        in jumped
    )
    store.things[LEASE]["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
    mine = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    assert mine.others() == ""
    mine.take()
    mine.end()


def test_a_lease_that_is_gone_or_another_runs_is_lost_and_never_made_again() -> None:
    """Whoever took it may have ended, and with it the upgrade."""
    store = ObjectStore()
    mine = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    mine.take()
    del store.things[LEASE]
    with pytest.raises(ClusterError, match=r"Lease kubewin/kubewin-upgrade is gone, expected was .*run again") as gone:
        mine.leave(3600)
    assert gone.value.reason == "taken_over"
    assert LEASE not in store.things
    upgrade_lease(client_of(store), "kubewin", ELSEWHERE).take()
    with pytest.raises(ClusterError, match=f"is held by {ELSEWHERE}, expected was"):
        mine.leave(3600)
    mine.end()
    assert store.things[LEASE]["spec"]["holderIdentity"] == ELSEWHERE


def test_a_lease_that_somebody_gave_a_label_stays_ours() -> None:
    store = ObjectStore()
    mine = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    mine.take()
    store.things[LEASE]["metadata"]["resourceVersion"] = "labelled"
    mine.leave(3600)
    assert store.things[LEASE]["spec"]["leaseDurationSeconds"] > 3600


def test_the_end_of_a_run_leaves_alone_what_another_one_took_a_moment_before() -> None:
    class Contested(ObjectStore):
        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
            if method == "DELETE":
                self._put(path, {**self.things[path], "spec": {"holderIdentity": ELSEWHERE}})
            return super().request(method, path, body, **params)

    store = Contested()
    mine = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    mine.take()
    mine.end()
    assert store.things[LEASE]["spec"]["holderIdentity"] == ELSEWHERE


class Machine:
    """One that may sleep: its own clock then runs on, or is paused with it, and the API server's always runs on."""

    def __init__(self, *, paused: bool) -> None:
        self.paused, self.store, self.uptime = paused, ObjectStore(), 0.0
        self.store.now = datetime.now(timezone.utc)
        self.store._put(NODE, {"metadata": {"name": "win-1"}, "spec": {}})
        self.client = client_of(self.store)
        about = About("kubewin", "kubewin-upgrade", {}, "an upgrade of this cluster", "run again")
        self.lease = Lease(self.client, about, holder_of(os.getpid()), 120, clock=lambda: self.uptime)
        self.lease.take()

    def sleep(self, seconds: float) -> None:
        assert self.store.now is not None
        self.store.now += timedelta(seconds=seconds)
        self.uptime += 0 if self.paused else seconds

    def renewed(self) -> datetime:
        found = moment(self.store.things[LEASE]["spec"]["renewTime"])
        assert found is not None
        return found


@pytest.mark.parametrize("paused", [False, True], ids=["suspended", "paused"])
def test_who_slept_looks_whether_he_was_followed_before_he_changes_a_node(paused: bool) -> None:
    """His thread slept as well. The one who followed has ended: no journal would say who closed that node."""
    machine = Machine(paused=paused)
    store = machine.store
    watcher = Watcher(machine.client, "", machine.lease.check)
    worker = Worker(machine.client, watcher, machine.lease.check, lambda _line: None)
    journal = Journal("first", "tasks", Target(), "2026-11-21T20:00:00Z", (Entry("win-1", 0, "close"),))
    machine.sleep(3600)
    other = upgrade_lease(client_of(store), "kubewin", ELSEWHERE)
    other.take()
    other.end()
    with pytest.raises(ClusterError, match=r"could not be renewed.*is gone") as lost:
        worker.do(Do("close", "win-1", journal))
    assert lost.value.reason == "taken_over"
    assert store.things[NODE]["spec"] == {}
    assert LEASE not in store.things


@pytest.mark.parametrize("paused", [False, True], ids=["suspended", "paused"])
def test_who_slept_and_was_not_followed_goes_on_with_a_new_sign_of_life(paused: bool) -> None:
    machine = Machine(paused=paused)
    first = machine.renewed()
    machine.sleep(50)
    machine.lease.check()
    assert machine.renewed() == first
    machine.sleep(3600)
    if paused:
        # What is read before each change tells what time it is.
        machine.client.get(kinds.NODE, "win-1")
    machine.lease.check()
    assert machine.renewed() > first
    machine.lease.end()


def test_a_module_whose_run_has_ended_changes_nothing_more() -> None:
    store = ObjectStore()
    orphan = upgrade_lease(client_of(store), "kubewin", ended())
    orphan.take()
    with pytest.raises(ClusterError, match="has ended; nothing more is changed"):
        orphan.check()
    orphan.end()
