# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records are kept in two stores or not at all, and either store is enough to continue."""

from __future__ import annotations

import random
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.begin import create_record
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import ConversionRecord
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.records import (
    RecordDirectory,
    RecordError,
    RecordNamespace,
    Records,
    open_stores,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT
from unit.plugins.plugin_utils.convert.test_record import IN_PLACE, record
from unit.plugins.plugin_utils.convert.world import claim, facts, volume
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


def both(folders: tuple[Path, Path]) -> Records:
    return Records([RecordDirectory(str(folder)) for folder in folders], "c1")


def file(folder: Path, found: ConversionRecord) -> Path:
    return folder / f"kubewin-convert-{found.run}.json"


def test_one_place_is_none(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="one record store is set, expected two"):
        Records([RecordDirectory(str(tmp_path))], "c1")


def test_files_are_their_owners_alone_and_nothing_is_left_beside_them(folders: tuple[Path, Path]) -> None:
    written = both(folders).write(record(), "now")
    for folder in folders:
        (found,) = folder.iterdir()
        assert found == file(folder, written)
        assert stat.S_IMODE(found.stat().st_mode) == 0o600


@pytest.mark.parametrize("lost", [0, 1])
def test_either_place_is_enough(folders: tuple[Path, Path], lost: int) -> None:
    written = both(folders).write(record(), "now")
    file(folders[lost], written).unlink()
    assert both(folders).find("shop", "data-db-0", "") == written


def test_a_death_between_the_two_writes_leaves_the_newer_one(folders: tuple[Path, Path]) -> None:
    first = both(folders).write(record(), "now")
    newer = first.advance().prepare_save("later")
    RecordDirectory(str(folders[0])).write(newer)
    assert both(folders).find("shop", "data-db-0", "") == newer


def test_an_unreadable_copy_is_reported_and_the_other_one_used(folders: tuple[Path, Path]) -> None:
    written = both(folders).write(record(), "now")
    file(folders[0], written).write_text("{", encoding="utf-8")
    records = both(folders)
    assert records.find("shop", "data-db-0", "") == written
    (warning,) = records.warnings
    assert "cannot be read: it is not JSON" in warning


def test_when_no_copy_can_be_read_nothing_is_done(folders: tuple[Path, Path]) -> None:
    written = both(folders).write(record(), "now")
    for folder in folders:
        file(folder, written).write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match="claim shop/data-db-0 may have an unreadable record"):
        both(folders).find("shop", "data-db-0", "")


def test_a_record_that_is_done_is_history(folders: tuple[Path, Path]) -> None:
    both(folders).write(record().move_to("done"), "now")
    assert both(folders).find("shop", "data-db-0", "") is None


def test_a_claim_that_is_converted_again_begins_after_its_history(folders: tuple[Path, Path]) -> None:
    records = both(folders)
    records.write(record(), "now")
    done = records.write(record().move_to("done"), "now")
    again = both(folders)
    assert again.find("shop", "data-db-0", "") is None
    assert again.write(record(), "later").sequence > done.sequence


def test_records_of_other_claims_are_not_ours(folders: tuple[Path, Path]) -> None:
    both(folders).write(record(), "now")
    assert both(folders).find("shop", "data-db-1", "") is None


def test_a_claim_of_that_name_in_another_cluster_has_its_own_record_in_the_same_directory(
    folders: tuple[Path, Path],
) -> None:
    """A paused one of the staging cluster does not continue in production, and still exists afterwards."""
    staging = both(folders).write(record().move_to("finish"), "now")
    production = Records([RecordDirectory(str(folder)) for folder in folders], "c2")
    assert production.find("shop", "data-db-0", "") is None
    bound = {"namespace": "shop", "name": "data-db-0", "uid": "claim-uid-2"}
    other = facts(claim=claim(uid="claim-uid-2"), volume=volume(claimRef=bound))
    begun = production.write(create_record(other, evaluate(other, IN_PLACE), IN_PLACE, "c2", "k2"), "now")
    assert production.find("shop", "data-db-0", "") == begun
    assert both(folders).find("shop", "data-db-0", "") == staging
    assert (production.list_unfinished(), both(folders).list_unfinished()) == ([begun], [staging])


def test_in_a_cluster_that_was_restored_the_copy_that_is_done_is_left_out(folders: tuple[Path, Path]) -> None:
    """The claim has its lock again, and the copy that was restored with it has its present step."""
    restored = both(folders).write(record().move_to("canary"), "now")
    RecordDirectory(str(folders[0])).write(replace(restored, step="done").prepare_save("later"))
    records = both(folders)
    assert records.find("shop", "data-db-0", restored.lock) == restored
    (warning,) = records.warnings
    assert f"{file(folders[0], restored)}: run {restored.run} is done" in warning
    # Without its lock, or with that of another run, it is done.
    assert both(folders).find("shop", "data-db-0", "") is None
    assert both(folders).find("shop", "data-db-0", "another.k9") is None


def test_all_that_is_not_done_is_found_by_its_newest_copy(folders: tuple[Path, Path]) -> None:
    one = both(folders).write(record(), "now")
    newer = one.advance().prepare_save("later")
    RecordDirectory(str(folders[1])).write(newer)
    other = both(folders).write(replace(record(), run="another", claim="data-db-1"), "now")
    both(folders).write(replace(record(), run="over").move_to("done"), "now")
    file(folders[0], replace(record(), run="broken")).write_text("{", encoding="utf-8")
    assert {found.run: found for found in both(folders).list_unfinished()} == {one.run: newer, "another": other}


def test_two_unfinished_runs_of_one_claim_are_not_chosen_from(folders: tuple[Path, Path]) -> None:
    both(folders).write(record(), "now")
    both(folders).write(replace(record(), run="another"), "now")
    with pytest.raises(RecordError, match="2 unfinished runs"):
        both(folders).find("shop", "data-db-0", "")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match=r"cannot be written to .*expected a writable directory") as raised:
        RecordDirectory(str(blocked)).write(record())
    assert raised.value.reason == "record_unwritable"


# In the cluster


def path(found: ConversionRecord) -> str:
    return f"/api/v1/namespaces/kubewin/configmaps/kubewin-convert-{found.run}"


def test_a_record_that_is_too_large_is_refused_before_the_first_change() -> None:
    store, noted = ObjectStore(), random.Random(1).randbytes(LIMIT).hex()
    with pytest.raises(ClusterError, match=r"its text has .* Remove annotations of the claim") as refused:
        RecordNamespace(client_of(store), "kubewin").write(replace(record(), objects={"claim": {"note": noted}}))
    assert (refused.value.reason, store.things) == ("too_large", {})
    smaller = replace(record(), objects={"claim": {"note": noted[: LIMIT // 2]}})
    RecordNamespace(client_of(store), "kubewin").write(smaller)
    assert [text for _where, text in RecordNamespace(client_of(store), "kubewin").read()] == [smaller.to_json()]
    # Compressed, it still shows a reader of the ConfigMap whose it is.
    assert store.things[path(smaller)]["data"] == {
        "record.txt": f"Conversion of claim {smaller.namespace}/{smaller.claim}, direction forward, step lock\n"
        f"Run {smaller.run}, generation 1\n"
    }


def test_two_runs_of_one_term_do_not_overwrite_one_another() -> None:
    """Both took over from the same copy; the one that writes second has lost, whatever it writes."""
    store = ObjectStore()
    first, second = (RecordNamespace(client_of(store), "kubewin") for _run in range(2))
    first.write(record())
    ahead = record().advance().prepare_save("now")
    first.write(ahead)
    with pytest.raises(RecordError, match=r"written by another run \(generation 1, this run has 1\)") as raised:
        second.write(record().move_to("canary"))
    assert raised.value.reason == "taken_over"
    first.write(ahead.advance().prepare_save("now"))
    second.write(record().take_over())
    with pytest.raises(RecordError, match=r"generation 2, this run has 1"):
        first.write(ahead)


class Forgetful(ObjectStore):
    """Does what it is asked, and does not answer the first patches."""

    def __init__(self) -> None:
        super().__init__()
        self.unanswered = 0

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        answer = super().request(method, path, body, **params)
        if method == "PATCH" and self.unanswered:
            self.unanswered -= 1
            raise ApiError(503)
        return answer


def test_a_label_and_an_answer_that_was_lost_are_no_other_run() -> None:
    store = Forgetful()
    space = RecordNamespace(client_of(store), "kubewin")
    space.write(record())
    store.request("PATCH", path(record()), {"metadata": {"labels": {"team": "shop"}}})
    store.unanswered = 1
    later = record().advance().prepare_save("now")
    space.write(later)
    assert store.unanswered == 0
    assert store.things[path(later)]["data"]["record.json"] == later.to_json()


def test_a_run_that_was_taken_over_writes_to_the_directory_no_more(tmp_path: Path) -> None:
    store = ObjectStore()
    asked = {"record_dir": str(tmp_path), "record_namespace": "kubewin", "second_record_namespace": ""}
    first, later = (Records(open_stores(client_of(store), asked), "c1") for _run in range(2))
    begun = first.write(record(), "now")
    taken = later.write(begun.take_over(), "now")
    with pytest.raises(ClusterError, match="written by another run"):
        first.write(begun.advance(), "now")
    assert file(tmp_path, taken).read_text(encoding="utf-8") == taken.to_json()
