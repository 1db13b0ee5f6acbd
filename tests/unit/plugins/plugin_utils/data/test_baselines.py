# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baselines in the cluster, and copies on this machine's disk."""

from __future__ import annotations

import random
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.baselines import BaselineError, Baselines
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import compare_manifests
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.explain import format_report
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry, Manifest, MissingBaseline
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

KEPT = Manifest("shop", "data", "pv-1", "listing", "2026-11-21T10:00:00Z", (FileEntry("a.txt", "file", 3),), ())
CLAIM = "shop/data"


def test_a_baseline_is_found_by_another_machine_whose_folder_is_empty(tmp_path: Path) -> None:
    store = ObjectStore()
    here = Baselines(client_of(store), "kubewin", "nine", str(tmp_path / "here"))
    assert here.read(CLAIM) is None
    assert here.write(CLAIM, KEPT, ()) == KEPT
    assert Baselines(client_of(store), "kubewin", "nine", str(tmp_path / "there")).read(CLAIM) == KEPT
    assert Baselines(client_of(store), "kubewin", "nine", None).read(CLAIM) == KEPT
    assert Baselines(client_of(store), "kubewin", "ten", None).read(CLAIM) is None
    # A readable copy, for its owner alone.
    copy = tmp_path / "here" / "shop_data.jsonl"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert here.describe_location(CLAIM).endswith(f" and file {copy}")
    # A user deletes the ConfigMap: the copy is enough.
    store.things.clear()
    assert here.read(CLAIM) == KEPT


def test_a_record_that_could_not_be_written_reports_why() -> None:
    store = ObjectStore()
    failed = MissingBaseline("it is used by web-0, which does not run", "2026-11-21T10:00:00Z")
    Baselines(client_of(store), "kubewin", "nine", None).write(CLAIM, failed, ())
    assert Baselines(client_of(store), "kubewin", "nine", None).read(CLAIM) == failed


def test_of_more_files_than_a_config_map_holds_a_comparison_names_the_directory() -> None:
    chance, store = random.Random(1), ObjectStore()
    entries = tuple(
        FileEntry(f"{number % 7}/{chance.randbytes(8).hex()}", "file", 1, sha256=chance.randbytes(32).hex())
        for number in range(50_000)
    )
    many = Manifest("shop", "data", "pv-1", "content", "2026-11-21T10:00:00Z", entries, ())
    kept = Baselines(client_of(store), "kubewin", "nine", None).write(CLAIM, many, ())
    assert isinstance(kept, Manifest)
    assert not kept.entries
    assert [one.path for one in kept.folders] == [str(number) for number in range(7)]
    before = Baselines(client_of(store), "kubewin", "nine", None).read(CLAIM)
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
    first, second = (Baselines(client_of(store), "kubewin", "nine", None) for _run in range(2))
    assert first.read(CLAIM) is second.read(CLAIM) is None
    first.write(CLAIM, KEPT, ())
    later = replace(KEPT, taken="2026-11-21T11:00:00Z")
    with pytest.raises(BaselineError, match="was written by another run meanwhile") as raised:
        second.write(CLAIM, later, ())
    assert raised.value.reason == "conflict"
    assert first.read(CLAIM) == KEPT
    second.replace(CLAIM)
    second.write(CLAIM, later, ())
    assert first.read(CLAIM) == later


def test_a_set_is_removed_and_others_stay() -> None:
    store = ObjectStore()
    nine, ten = (Baselines(client_of(store), "kubewin", name, None) for name in ("nine", "ten"))
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


def test_a_baseline_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    files = Baselines(None, "", "nine", str(tmp_path))
    with (
        room_for(10),
        pytest.raises(BaselineError, match=r"shop_data.jsonl cannot be written: .*File too large") as refused,
    ):
        files.write(CLAIM, KEPT, ())
    assert refused.value.reason == "refused"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "shop_data.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(
        BaselineError, match=r"the baseline of shop/data cannot be read: file .*renew=true"
    ) as unreadable:
        files.read(CLAIM)
    assert unreadable.value.reason == "baseline_unreadable"


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process can become larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
