# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time, and who may follow one that is dead."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of, is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrade_lease import upgrade_lease
from unit.plugins.module_utils.cluster.fakes import ObjectStore, client_of

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
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


def test_a_lease_that_somebody_deleted_is_made_again_unless_another_run_has_it_by_then() -> None:
    store = ObjectStore()
    mine = upgrade_lease(client_of(store), "kubewin", holder_of(os.getpid()))
    mine.take()
    del store.things[LEASE]
    mine.leave(3600)
    assert store.things[LEASE]["spec"]["holderIdentity"] == holder_of(os.getpid())
    assert store.things[LEASE]["spec"]["leaseDurationSeconds"] > 3600
    del store.things[LEASE]
    upgrade_lease(client_of(store), "kubewin", ELSEWHERE).take()
    with pytest.raises(ClusterError, match="conflict"):
        mine.leave(3600)
    assert store.things[LEASE]["spec"]["holderIdentity"] == ELSEWHERE


def test_a_module_whose_run_has_ended_changes_nothing_more() -> None:
    store = ObjectStore()
    orphan = upgrade_lease(client_of(store), "kubewin", ended())
    orphan.take()
    with pytest.raises(ClusterError, match="has ended; nothing more is changed"):
        orphan.check()
    orphan.end()
