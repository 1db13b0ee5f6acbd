# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A journal that survives whatever happens to one of its places."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import blocker
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import (
    UpgradeRequest,
    resume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import UpgradeRules, decide
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.explain import describe
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import (
    Journal,
    NodeEntry,
    UpgradeTarget,
    UpgradeWorkload,
    from_json,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal_store import JournalStore
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import ClusterState, UpgradeObservation
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.snapshot import ClaimedVolume
from unit.plugins.plugin_utils.base.by_hand import spoiled_by_hand
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

PAGE = "/api/v1/namespaces/kubewin/configmaps/kubewin-upgrade-first"
BEGAN = "2026-11-21T20:00:00Z"


def with_volumes(*backends: str) -> dict[str, ClaimedVolume]:
    claims = [f"shop/claim-{number}" for number in range(len(backends))]
    volumes = [
        ClaimedVolume(claim, "c", "pv", "v", "csi", backend, "Delete")
        for claim, backend in zip(claims, backends, strict=True)
    ]
    return {volume.claim: volume for volume in volumes}


def journal(**changes: Any) -> Journal:
    made = Journal(
        "first",
        "none",
        UpgradeTarget(kubelet="1.27"),
        "2026-11-21T20:00:00Z",
        (NodeEntry("win-1", 0),),
        before=with_volumes("pv-1"),
    )
    return replace(made, **changes)


def test_a_journal_is_kept_in_the_cluster() -> None:
    store = ObjectStore()
    pages = JournalStore(client_of(store), "kubewin", "first")
    assert pages.read() is None
    assert not pages.written
    kept = pages.keep(journal())
    assert pages.written
    assert from_json(store.things[PAGE]["data"]["journal.json"]) == kept
    assert "win-1 (batch 0): is waiting" in store.things[PAGE]["data"]["journal.txt"]
    later = pages.keep(replace(kept, why="later"))
    assert later.sequence == kept.sequence + 1
    assert JournalStore(client_of(store), "kubewin", "first").read() == later


def test_a_journal_that_may_outgrow_its_config_map_is_refused_before_the_upgrade_begins() -> None:
    chance, store = random.Random(1), ObjectStore()
    pages = JournalStore(client_of(store), "kubewin", "first")
    many = [base64.b64encode(chance.randbytes(1 << 10)).decode() for _volume in range(LIMIT // (2 << 10))]
    with pytest.raises(ClusterError, match=r"kubewin-upgrade-first: its text has .* Scale down workloads") as refused:
        pages.keep(journal(before=with_volumes(*many)))
    assert refused.value.reason == "too_large"
    assert store.things == {}
    # One that just fits can grow, and its state stays readable.
    kept = pages.keep(journal(before=with_volumes(*many[:-100])))
    pages.keep(replace(kept, compared=tuple(chance.randbytes(20).hex() for _claim in range(5_000))))
    assert "journal.json" not in store.things[PAGE]["data"]
    assert store.things[PAGE]["data"]["journal.txt"].startswith(f"Upgrade first, begun {BEGAN}: open")
    assert "; run 1" in store.things[PAGE]["data"]["journal.txt"]


def test_a_journal_that_cannot_be_read_is_refused_by_name() -> None:
    store = ObjectStore()
    JournalStore(client_of(store), "kubewin", "first").keep(journal())
    store.things[PAGE]["data"]["journal.json"] = json.dumps({"schema": 99})
    with pytest.raises(
        ClusterError, match="cannot be read: ConfigMap kubewin/kubewin-upgrade-first: its schema version"
    ) as bad:
        JournalStore(client_of(store), "kubewin", "first").read()
    assert bad.value.reason == "journal_unreadable"


def test_an_edited_journal_is_refused_or_can_continue() -> None:
    """Never a traceback: every value, one after the other, by what it might have become."""
    workload = UpgradeWorkload("StatefulSet", "shop", "db", 1)
    entries = (NodeEntry("win-1", 0, "drain", BEGAN, BEGAN, workloads=(workload,)), NodeEntry("win-2", 1))
    stopping = blocker("CSI-U03", "Node win-1", "it is full", "empty it")
    whole = json.loads(
        journal(nodes=entries, stopping=stopping, happened=("x",), confirmed={"canary": BEGAN}).to_json()
    )
    observed = UpgradeObservation(datetime(2026, 11, 21, 21, tzinfo=timezone.utc), {}, cluster=ClusterState())
    store, refused, read = ObjectStore(), Counter[str](), 0
    for spoiled in spoiled_by_hand(whole):
        store.things[PAGE] = {
            "metadata": {"name": "x", "resourceVersion": "1"},
            "data": {"journal.json": json.dumps(spoiled)},
        }
        try:
            found = JournalStore(client_of(store), "kubewin", "first").read()
            assert found is not None
            describe(found)
            found = resume(found, UpgradeRequest(found.name, found.hook, found.target, found.only), observed, ())
            decide(found, observed, UpgradeRules())
            read += 1
        except ClusterError as error:
            refused[error.reason] += 1
    assert set(refused) == {"journal_unreadable"}
    assert (refused.total() > 300, read > 30) == (True, True)


def test_a_run_that_was_taken_over_writes_nothing_more() -> None:
    store = ObjectStore()
    old, new = (JournalStore(client_of(store), "kubewin", "first") for _each in range(2))
    first = old.keep(journal())
    new.read()
    new.keep(replace(first, generation=2))
    with pytest.raises(ClusterError, match=r"taken over by a later run \(generation 2, this run has 1\)") as over:
        old.keep(replace(first, why="still here"))
    assert over.value.reason == "taken_over"


@pytest.mark.parametrize("change", [{"generation": 2, "new": True}, {"schema": 4}])
def test_a_run_that_a_later_release_took_over_writes_nothing_more(change: dict[str, Any]) -> None:
    store = ObjectStore()
    pages = JournalStore(client_of(store), "kubewin", "first")
    first = pages.keep(journal())
    text = json.dumps({**json.loads(store.things[PAGE]["data"]["journal.json"]), **change})
    store.request("PATCH", PAGE, {"metadata": {}, "data": {"journal.json": text}})
    with pytest.raises(ClusterError, match=r"taken over by a later run: .* run that release") as over:
        pages.keep(replace(first, why="still here"))
    assert over.value.reason == "taken_over"
    assert store.things[PAGE]["data"]["journal.json"] == text


def test_a_label_that_a_user_adds_prevents_no_write() -> None:
    store = ObjectStore()
    pages = JournalStore(client_of(store), "kubewin", "first")
    kept = pages.keep(journal())
    store.request("PATCH", PAGE, {"metadata": {"labels": {"team": "blue"}}})
    assert pages.keep(replace(kept, why="on")).why == "on"


def test_an_unreadable_journal_of_another_upgrade_is_a_warning() -> None:
    store = ObjectStore()
    JournalStore(client_of(store), "kubewin", "first").keep(journal())
    store.things[PAGE]["data"]["journal.json"] = json.dumps({"schema": 99})
    other = JournalStore(client_of(store), "kubewin", "second")
    assert other.find_unfinished() == []
    place = "ConfigMap kubewin/kubewin-upgrade-first"
    assert other.warnings == [
        f"{place} may be the journal of an unfinished upgrade, and cannot be read: its schema version is 99, expected 3: a later "
        "release wrote it; run that release"
    ]
    assert other.find_unfinished() == []
    assert len(other.warnings) == 1
