# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records are kept in two places or not at all, and either place is enough to go on."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.rebind_records import CannotKeep, Folder, Records
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.record import Record
from unit.plugins.module_utils.rebind.test_record import record


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


def both(folders: tuple[Path, Path]) -> Records:
    return Records([Folder(str(folder)) for folder in folders])


def file(folder: Path, found: Record) -> Path:
    return folder / f"kubewin-rebind-{found.run}.json"


def test_one_place_is_none(tmp_path: Path) -> None:
    with pytest.raises(CannotKeep, match="kept in two places, and one was given"):
        Records([Folder(str(tmp_path))])


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
    assert both(folders).find("shop", "data-db-0") == written


def test_a_death_between_the_two_writes_leaves_the_newer_one(folders: tuple[Path, Path]) -> None:
    first = both(folders).write(record(), "now")
    newer = first.following().saved("later")
    Folder(str(folders[0])).write(newer)
    assert both(folders).find("shop", "data-db-0") == newer


def test_a_copy_that_cannot_be_read_is_told_and_the_other_one_used(folders: tuple[Path, Path]) -> None:
    written = both(folders).write(record(), "now")
    file(folders[0], written).write_text("{", encoding="utf-8")
    records = both(folders)
    assert records.find("shop", "data-db-0") == written
    (warning,) = records.warnings
    assert "cannot be read: it is no JSON" in warning


def test_when_no_copy_can_be_read_nothing_is_done(folders: tuple[Path, Path]) -> None:
    written = both(folders).write(record(), "now")
    for folder in folders:
        file(folder, written).write_text("{", encoding="utf-8")
    with pytest.raises(CannotKeep, match="a record cannot be read, and it may be the one of claim shop/data-db-0"):
        both(folders).find("shop", "data-db-0")


def test_a_record_that_is_done_is_history(folders: tuple[Path, Path]) -> None:
    both(folders).write(record().at("done"), "now")
    assert both(folders).find("shop", "data-db-0") is None


def test_a_claim_that_is_converted_again_begins_after_its_history(folders: tuple[Path, Path]) -> None:
    records = both(folders)
    records.write(record(), "now")
    done = records.write(record().at("done"), "now")
    again = both(folders)
    assert again.find("shop", "data-db-0") is None
    assert again.write(record(), "later").sequence > done.sequence


def test_records_of_other_claims_are_not_ours(folders: tuple[Path, Path]) -> None:
    both(folders).write(record(), "now")
    assert both(folders).find("shop", "data-db-1") is None


def test_all_that_is_not_done_is_found_by_its_newest_copy(folders: tuple[Path, Path]) -> None:
    one = both(folders).write(record(), "now")
    newer = one.following().saved("later")
    Folder(str(folders[1])).write(newer)
    other = both(folders).write(replace(record(), run="another", claim="data-db-1"), "now")
    both(folders).write(replace(record(), run="over").at("done"), "now")
    file(folders[0], replace(record(), run="broken")).write_text("{", encoding="utf-8")
    assert {found.run: found for found in both(folders).open_ones()} == {one.run: newer, "another": other}


def test_two_unfinished_runs_of_one_claim_are_not_chosen_from(folders: tuple[Path, Path]) -> None:
    both(folders).write(record(), "now")
    both(folders).write(replace(record(), run="another"), "now")
    with pytest.raises(CannotKeep, match="2 unfinished runs"):
        both(folders).find("shop", "data-db-0")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(CannotKeep, match=r"cannot be written to .*expected a directory") as raised:
        Folder(str(blocked)).write(record())
    assert raised.value.reason == "record_unwritable"
