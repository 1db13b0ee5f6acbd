# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run begins, and what it leaves behind while others do what it handed out."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import holder_of
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import Journal, NodeEntry, Target
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.picture import Picture
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.records import Pages
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.run import Upgrade
from ansible_collections.kubewin.csi.plugins.modules.node_upgrade import ARGUMENT_SPEC
from unit.plugins.module_utils.kube.fakes import ObjectStore, Response, client_of

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
LISTS = [f"/api/v1/{plural}" for plural in ("nodes", "pods", "persistentvolumeclaims")]
BEGAN = "2026-11-21T20:00:00Z"


class Cluster(ObjectStore):
    """Windows nodes that are closed by upgrade "first", and no pods."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            metadata = {"name": name, "annotations": {"kubewin.io/cordoned": "upgrade first"}}
            self._put(f"/api/v1/nodes/{name}", {"metadata": metadata, "spec": {"unschedulable": True}})

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method != "GET" or path not in LISTS:
            if path == "/version":
                return Response({"gitVersion": "v1.36.3"})
            return super().request(method, path, body, **params)
        items = [thing for where, thing in self.things.items() if where.startswith(f"{path}/")]
        return Response({"items": items, "metadata": {"resourceVersion": "1"}})


PARAMS = {**{key: option.get("default") for key, option in ARGUMENT_SPEC.items()}, "name": "first"}
ELSEWHERE = "another/1-1/1-1"


def refusing(upgrade: Upgrade, other: Upgrade) -> Upgrade:
    """The same, whose waits only let the other run renew its lease."""
    upgrade.lease._sleep = lambda _seconds: other.lease.renew()
    return upgrade


def upgrade_of(store: Cluster, *entries: NodeEntry, **changes: Any) -> Upgrade:
    """A run of upgrade "first", whose nodes stand there."""
    journal = Journal("first", "none", Target(), BEGAN, entries, before=Picture({}, {}).pack())
    Pages(client_of(store), "kubewin", "first", None).keep(replace(journal, state=changes.pop("state", "open")))
    params = {**PARAMS, "holder": holder_of(os.getpid()), **changes}
    return Upgrade(client_of(store), params, threading.Event())


def test_an_external_step_leaves_a_short_lease_that_the_run_still_holds() -> None:
    store = Cluster("win-1", "win-2")
    entries = [NodeEntry(name, 0, "gate", began=BEGAN) for name in ("win-1", "win-2")]
    upgrade = upgrade_of(store, *entries, generation=1)
    result, _journal = upgrade.go_on()
    assert result["next"] == {"kind": "gate", "nodes": ["win-1", "win-2"]}
    assert store.things[LEASE]["spec"]["leaseDurationSeconds"] == 45
    upgrade.lease.renew()
    # As after the controller slept, and another run took over.
    store.things[LEASE]["metadata"]["resourceVersion"] = "later"
    store.things[LEASE]["spec"]["holderIdentity"] = "another/1-1/1-1"
    with pytest.raises(ClusterError, match="is held by another/1-1/1-1") as lost:
        upgrade.lease.renew()
    assert lost.value.reason == "taken_over"


def test_a_finished_upgrade_removes_its_cordons_set_after_its_end() -> None:
    store = Cluster("win-1")
    result, _journal = upgrade_of(store, NodeEntry("win-1", 0, "done", began=BEGAN), state="finished").go_on()
    assert result["outcome"] == "finished"
    assert store.things["/api/v1/nodes/win-1"]["spec"] == {"unschedulable": False}
    assert LEASE not in store.things


def test_a_run_that_takes_the_lease_reads_what_another_run_did() -> None:
    """Else it would note what is on the volumes again, over what the faster run noted before it changed the nodes."""
    store = Cluster("win-1")
    slow = upgrade_of(store, NodeEntry("win-1", 0, "gate", began=BEGAN))
    before = slow.plan()["stored"]
    fast, following = (
        Upgrade(client_of(store), {**PARAMS, "holder": ELSEWHERE}, threading.Event()) for _each in range(2)
    )
    fast.hold()
    with pytest.raises(ClusterError, match=f"another run works on an upgrade of this cluster: {ELSEWHERE}"):
        refusing(slow, fast).hold()
    delegated, _journal = following.go_on()
    assert delegated["outcome"] == "delegated"
    following.lease.end()
    again = Upgrade(client_of(store), {**PARAMS, "holder": holder_of(os.getpid())}, threading.Event())
    held = again.hold()
    assert held["outcome"] == "held"
    assert held["stored"] != before
    # The run keeps it between its tasks.
    assert store.things[LEASE]["spec"]["holderIdentity"] == holder_of(os.getpid())
    again.lease.renew()


def test_the_end_that_is_noted_gives_the_lease_back() -> None:
    store = Cluster()
    upgrade_of(store, NodeEntry("win-1", 0, "done", began=BEGAN), state="finished").hold()
    given = {**PARAMS, "holder": holder_of(os.getpid()), "ended": True, "compared": ["a/data"]}
    result, _journal = Upgrade(client_of(store), given, threading.Event()).go_on()
    assert result["ended"]
    assert LEASE not in store.things
    # A run that follows one that was killed before it removed these baselines knows them.
    again = Upgrade(client_of(store), {**PARAMS, "holder": ELSEWHERE}, threading.Event())
    assert again.go_on()[0]["compared"] == again.plan()["compared"] == ["a/data"]


def test_a_run_that_ends_gives_back_its_own_lease_and_no_other() -> None:
    store = Cluster()
    held, other = (
        upgrade_of(store, NodeEntry("win-1", 0, "gate", began=BEGAN), holder=name)
        for name in (holder_of(os.getpid()), ELSEWHERE)
    )
    held.hold()
    other.lease.end()
    assert LEASE in store.things
    held.lease.end()
    assert LEASE not in store.things
