# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time, a journal that survives whatever happens to one of its places, and evictions that say who forbids them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of, is_dead
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrade_book import Pages
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrade_lease import upgrade_lease
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.begin import Refused, Wishes, take_up
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.decide import Rules, decide
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import (
    Entry,
    Journal,
    Stopping,
    Target,
    Workload,
    from_json,
)
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.picture import Picture
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.seen import ClusterNow, Seen
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.told import told
from unit.plugins.module_utils.by_hand import spoiled_by_hand
from unit.plugins.module_utils.cluster.fakes import ApiError, Clock, Response, Script

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
PAGE = "/api/v1/namespaces/kubewin/configmaps/kubewin-upgrade-first"
BEGAN = "2026-11-21T20:00:00Z"
ELSEWHERE = "another-machine/0123-1/77-5"


class Store:
    """Objects by path, as an API server keeps them: versions that are compared, names that are taken, uids that must fit."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Any]] = {}
        self.serial = 0

    def request(self, method: str, path: str, body: Any = None, **_params: Any) -> Response:
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.things:
                raise ApiError(409, {"message": "already exists"})
            return self._put(path, {**body, "metadata": {**body["metadata"], "uid": f"u{self.serial}"}})
        live = self.things.get(path)
        if live is None:
            raise ApiError(404)
        if method == "PATCH":
            wanted = body["metadata"].get("resourceVersion")
            if wanted not in (None, live["metadata"]["resourceVersion"]):
                raise ApiError(409, {"message": "the object has been modified"})
            return self._put(path, {**live, **{key: {**live.get(key, {}), **body[key]} for key in body}})
        if method == "DELETE":
            if body["preconditions"]["uid"] != live["metadata"]["uid"]:
                raise ApiError(409)
            del self.things[path]
        return Response(live)

    def _put(self, path: str, thing: dict[str, Any]) -> Response:
        self.serial += 1
        self.things[path] = {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(self.serial)}}
        return Response(self.things[path])


def client(store: Store) -> Client:
    clock = Clock()
    return Client(store, retry_for=1, clock=clock, sleep=clock.sleep)


def journal(**changes: Any) -> Journal:
    made = Journal(
        "first",
        "none",
        Target(kubelet="1.27"),
        "2026-11-21T20:00:00Z",
        (Entry("win-1", 0),),
        before=Picture({}, {}).pack(),
    )
    return replace(made, **changes)


def ended() -> str:
    """Who held something on this machine and has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = holder_of(process.pid)
    assert not is_dead(name)
    process.communicate(b"\n")
    assert is_dead(name)
    return name


# The lease


def test_a_second_run_is_refused_with_who_holds_it_and_since_when() -> None:
    store = Store()
    first = upgrade_lease(client(store), "kubewin", ELSEWHERE)
    first.take()
    first.leave(3600)
    second = upgrade_lease(client(store), "kubewin", holder_of(os.getpid()))
    assert f"{ELSEWHERE} gave its last sign of life" in second.others()
    with pytest.raises(ClusterError, match=f"kubewin_upgrade_take_over={ELSEWHERE}") as refused:
        second.take()
    assert refused.value.reason == "locked"
    # The same run goes on with it, and gives it back.
    first = upgrade_lease(client(store), "kubewin", ELSEWHERE)
    first.take()
    first.end()
    assert LEASE not in store.things
    second = upgrade_lease(client(store), "kubewin", holder_of(os.getpid()))
    assert second.others() == ""
    second.take()
    second.check()
    second.end()


def test_a_run_that_has_ended_on_this_machine_is_followed_at_once_and_one_elsewhere_by_name() -> None:
    for holder, over in ((ended(), ""), (ELSEWHERE, ELSEWHERE)):
        store = Store()
        dead = upgrade_lease(client(store), "kubewin", holder)
        dead.take()
        dead.leave(3600)
        mine = upgrade_lease(client(store), "kubewin", holder_of(os.getpid()), over)
        mine.take()
        assert store.things[LEASE]["spec"]["holderIdentity"] == holder_of(os.getpid())
        mine.end()


def test_a_lease_that_was_not_renewed_in_time_is_free() -> None:
    store = Store()
    old = upgrade_lease(client(store), "kubewin", ELSEWHERE)
    old.take()
    old.leave(0)
    store.things[LEASE]["spec"]["renewTime"] = "2126-01-01T00:00:00.000000Z"
    jumped = upgrade_lease(client(store), "kubewin", holder_of(os.getpid())).others()
    assert (
        f"its clock jumped. When you know that it is dead: run again with kubewin_upgrade_take_over={ELSEWHERE}"
        in jumped
    )
    store.things[LEASE]["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
    mine = upgrade_lease(client(store), "kubewin", holder_of(os.getpid()))
    assert mine.others() == ""
    mine.take()
    mine.end()


def test_a_lease_that_somebody_deleted_is_made_again_unless_another_run_has_it_by_then() -> None:
    store = Store()
    mine = upgrade_lease(client(store), "kubewin", holder_of(os.getpid()))
    mine.take()
    del store.things[LEASE]
    mine.leave(3600)
    assert store.things[LEASE]["spec"]["holderIdentity"] == holder_of(os.getpid())
    assert store.things[LEASE]["spec"]["leaseDurationSeconds"] > 3600
    del store.things[LEASE]
    upgrade_lease(client(store), "kubewin", ELSEWHERE).take()
    with pytest.raises(ClusterError, match="conflict"):
        mine.leave(3600)
    assert store.things[LEASE]["spec"]["holderIdentity"] == ELSEWHERE


def test_a_module_whose_run_has_ended_changes_nothing_more() -> None:
    store = Store()
    orphan = upgrade_lease(client(store), "kubewin", ended())
    orphan.take()
    with pytest.raises(ClusterError, match="has ended; nothing more is changed"):
        orphan.check()
    orphan.end()


# The journal


def test_a_journal_is_kept_in_the_cluster_and_in_files_and_read_from_either(tmp_path: Path) -> None:
    store = Store()
    pages = Pages(client(store), "kubewin", "first", tmp_path)
    assert pages.read() is None
    assert not pages.written
    kept = pages.keep(journal())
    assert pages.written
    assert from_json(store.things[PAGE]["data"]["journal.json"]) == kept
    assert "win-1 (batch 0): its turn has not come" in store.things[PAGE]["data"]["journal.txt"]
    assert (tmp_path / "upgrade-first.txt").read_text(encoding="utf-8") == store.things[PAGE]["data"]["journal.txt"]
    later = pages.keep(replace(kept, why="later"))
    assert later.sequence == kept.sequence + 1
    # Somebody deletes the ConfigMap; from the files it is brought back.
    del store.things[PAGE]
    again = Pages(client(store), "kubewin", "first", tmp_path)
    assert again.read() == later
    again.keep(later)
    assert PAGE in store.things
    # And on another controller the ConfigMap does.
    assert Pages(client(store), "kubewin", "first", None).read() == later


def test_the_newest_copy_counts_and_an_unreadable_one_is_told(tmp_path: Path) -> None:
    store = Store()
    pages = Pages(client(store), "kubewin", "first", tmp_path)
    pages.keep(journal(why="old"))
    old = (tmp_path / "upgrade-first.json").read_text(encoding="utf-8")
    newest = pages.keep(journal(why="new", sequence=5))
    (tmp_path / "upgrade-first.json").write_text(old, encoding="utf-8")
    assert Pages(client(store), "kubewin", "first", tmp_path).read() == newest
    (tmp_path / "upgrade-first.json").write_text("{", encoding="utf-8")
    spoilt = Pages(client(store), "kubewin", "first", tmp_path)
    assert spoilt.read() == newest
    assert "it is no JSON" in spoilt.warnings[0]
    store.things[PAGE]["data"]["journal.json"] = json.dumps({"schema": 99})
    with pytest.raises(
        ClusterError, match="cannot be read: ConfigMap kubewin/kubewin-upgrade-first: its schema version"
    ) as bad:
        Pages(client(store), "kubewin", "first", tmp_path).read()
    assert bad.value.reason == "journal_unreadable"


def test_whatever_somebody_did_to_it_by_hand_it_is_refused_or_can_be_gone_on_with() -> None:
    """Never a traceback: every value, one after the other, by what it might have become."""
    workload = Workload("StatefulSet", "shop", "db", 1)
    entries = (Entry("win-1", 0, "drain", BEGAN, BEGAN, workloads=(workload,)), Entry("win-2", 1))
    stopping = Stopping("CSI-U03", "Node win-1", "it is full", "empty it")
    whole = json.loads(
        journal(nodes=entries, stopping=stopping, happened=("x",), confirmed={"canary": BEGAN}).as_json()
    )
    seen = Seen(datetime(2026, 11, 21, 21, tzinfo=timezone.utc), {}, cluster=ClusterNow())
    store, refused, read = Store(), Counter[str](), 0
    for spoiled in spoiled_by_hand(whole):
        store.things[PAGE] = {"metadata": {"resourceVersion": "1"}, "data": {"journal.json": json.dumps(spoiled)}}
        try:
            found = Pages(client(store), "kubewin", "first", None).read()
            assert found is not None
            told(found)
            found = take_up(found, Wishes(found.name, found.hook, found.target, found.only), seen, ())
            decide(found, seen, Rules())
            read += 1
        except ClusterError as error:
            refused[error.reason] += 1
    assert set(refused) == {"journal_unreadable"}
    assert (refused.total() > 300, read > 30) == (True, True)


def test_a_journal_of_another_cluster_in_the_same_folder_is_not_gone_on_with() -> None:
    seen = Seen(datetime(2026, 11, 21, 21, tzinfo=timezone.utc), {})
    wishes = Wishes("first", "none", Target(kubelet="1.27"), cluster="here")
    take_up(journal(cluster="here"), wishes, seen, ())
    for state in ("open", "finished"):
        with pytest.raises(Refused, match=r"of another cluster .*kubewin_output_dir"):
            take_up(journal(cluster="there", state=state), wishes, seen, ())


def test_a_run_that_was_taken_over_writes_nothing_more() -> None:
    store = Store()
    old, new = (Pages(client(store), "kubewin", "first", None) for _each in range(2))
    first = old.keep(journal())
    new.read()
    new.keep(replace(first, term=2))
    with pytest.raises(ClusterError, match=r"taken over by a later run \(term 2, ours is 1\)") as over:
        old.keep(replace(first, why="still here"))
    assert over.value.reason == "taken_over"


def test_a_label_that_somebody_adds_keeps_nobody_from_writing() -> None:
    store = Store()
    pages = Pages(client(store), "kubewin", "first", None)
    kept = pages.keep(journal())
    store.request("PATCH", PAGE, {"metadata": {"labels": {"team": "blue"}}})
    assert pages.keep(replace(kept, why="on")).why == "on"


def test_files_that_cannot_be_written_are_told_once_and_stop_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    pages = Pages(client(Store()), "kubewin", "first", blocked)
    kept = pages.keep(journal())
    pages.keep(kept)
    assert len(pages.warnings) == 1
    assert "the journal's copy cannot be written to" in pages.warnings[0]


# Evictions


def evicted(*answers: Any) -> tuple[str, Script]:
    script, clock = Script(*answers), Clock()
    made = Client(script, retry_for=5, clock=clock, sleep=clock.sleep)
    return made.evict("web-1", "shop", "u1", dry_run=False), script


def test_an_eviction_is_of_the_pod_that_was_seen() -> None:
    why, script = evicted(Response({}))
    assert why == ""
    ((method, path, sent),) = script.asked
    assert (method, path) == ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction")
    assert sent["body"]["deleteOptions"] == {"preconditions": {"uid": "u1"}}
    for gone in (404, 409):
        assert evicted(ApiError(gone))[0] == ""


def test_a_budget_is_named_at_once_and_a_busy_server_is_asked_again() -> None:
    says = "The disruption budget db needs 1 healthy pods and has 1 currently"
    budget = {"message": "Cannot evict pod", "details": {"causes": [{"reason": "DisruptionBudget", "message": says}]}}
    why, script = evicted(ApiError(429, budget, {"Retry-After": "10"}))
    assert why == says
    assert len(script.asked) == 1
    why, script = evicted(ApiError(429, {"message": "slow down"}, {"Retry-After": "1"}), Response({}))
    assert why == ""
    assert len(script.asked) == 2
    two = {
        "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    }
    assert "more than one PodDisruptionBudget" in evicted(ApiError(500, two))[0]
