# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baselines in the cluster."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.baselines import Baselines
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import compare_manifests, format_report
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry, Manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

KEPT = Manifest("shop", "data", "pv-1", "listing", "2026-11-21T10:00:00Z", (FileEntry("a.txt", "file", 3),), ())
CLAIM = "shop/data"


def test_a_baseline_is_found_by_another_machine() -> None:
    store = ObjectStore()
    baselines = Baselines(client_of(store), "kubewin", "nine")
    assert baselines.read(CLAIM) is None
    assert baselines.write(CLAIM, KEPT, ()) == KEPT
    assert Baselines(client_of(store), "kubewin", "nine").read(CLAIM) == KEPT
    assert Baselines(client_of(store), "kubewin", "ten").read(CLAIM) is None


def test_of_more_files_than_a_config_map_holds_a_comparison_names_the_directory() -> None:
    chance, store = random.Random(1), ObjectStore()
    entries = tuple(
        FileEntry(f"{number % 7}/{chance.randbytes(8).hex()}", "file", 1, sha256=chance.randbytes(32).hex())
        for number in range(50_000)
    )
    many = Manifest("shop", "data", "pv-1", "content", "2026-11-21T10:00:00Z", entries, ())
    kept = Baselines(client_of(store), "kubewin", "nine").write(CLAIM, many, ())
    assert not kept.entries
    assert [one.path for one in kept.folders] == [str(number) for number in range(7)]
    before = Baselines(client_of(store), "kubewin", "nine").read(CLAIM)
    assert before == kept
    assert len(store.things) == 1
    assert compare_manifests(kept, many, ()).verdict == "same"
    spoiled = replace(many, entries=(replace(entries[0], sha256="0" * 64), *entries[2:]))
    text = format_report(kept, spoiled, compare_manifests(kept, spoiled, ()))
    assert "by digests of 7 folders, because the list of files was too large to keep" in text
    assert re.search(r"changed: 0: 7143 files .* single files are unknown", text)
    assert re.search(r"missing: 1: 7143 files .* 7142 files .* single files are unknown", text)


def test_a_baseline_that_another_run_recorded_meanwhile_is_not_replaced() -> None:
    store = ObjectStore()
    first, second = (Baselines(client_of(store), "kubewin", "nine") for _run in range(2))
    assert first.read(CLAIM) is second.read(CLAIM) is None
    first.write(CLAIM, KEPT, ())
    later = replace(KEPT, taken="2026-11-21T11:00:00Z")
    with pytest.raises(ClusterError, match="was written by another run meanwhile") as raised:
        second.write(CLAIM, later, ())
    assert raised.value.reason == "conflict"
    assert first.read(CLAIM) == KEPT


def test_a_set_is_removed_and_others_stay() -> None:
    store = ObjectStore()
    nine, ten = (Baselines(client_of(store), "kubewin", name) for name in ("nine", "ten"))
    for one in (nine, ten):
        one.write(CLAIM, KEPT, ())
    nine.write("shop/other", KEPT, ())
    assert len(nine.list_recorded()) == 2
    assert nine.forget(["shop/other"]) != nine.list_recorded()
    assert nine.read("shop/other") is None
    assert nine.read(CLAIM) == KEPT
    assert (nine.list_recorded(["shop/other"]), len(nine.list_recorded([CLAIM]))) == ([], 1)
    assert len(nine.forget()) == 1
    assert nine.read(CLAIM) is None
    assert ten.read(CLAIM) == KEPT
    assert nine.forget() == []


def test_a_baseline_that_cannot_be_read_is_named() -> None:
    store = ObjectStore()
    baselines = Baselines(client_of(store), "kubewin", "nine")
    baselines.write(CLAIM, KEPT, ())
    (path,) = store.things
    store.request("PATCH", path, {"metadata": {}, "data": {"baseline.json": "{"}})
    message = r"the baseline of shop/data cannot be read: ConfigMap kubewin/kubewin-data-\w+: it is .*forget=true"
    with pytest.raises(ClusterError, match=message) as unreadable:
        baselines.read(CLAIM)
    assert unreadable.value.reason == "baseline_unreadable"
