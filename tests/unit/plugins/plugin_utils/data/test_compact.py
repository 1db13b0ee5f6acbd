# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of directories show that something differs and where; they never call equal what was not read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import LOST, compare_manifests, format_report
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import (
    MOST,
    FileEntry,
    Gap,
    How,
    Manifest,
    describe_manifest,
    from_json,
    summarize,
    summarize_counts,
)


def volume(*entries: FileEntry, how: How = "content", gaps: tuple[Gap, ...] = ()) -> Manifest:
    return Manifest("shop", "data", "pv-1", how, "2026-11-21T10:00:00Z", entries, gaps)


def file(path: str, size: int = 1, sha256: str = "aa") -> FileEntry:
    return FileEntry(path, "file", size, sha256=sha256)


FILES = (file("a/1"), file("a/2"), file("b/c/3"), file("top"), FileEntry("link", "link", target="a"))
BEFORE = summarize(volume(*FILES), ())


def test_it_is_kept_and_reported_as_it_is() -> None:
    assert [one.path for one in BEFORE.folders] == ["", "a", "b/c"]
    assert from_json(BEFORE.to_json()) == BEFORE
    assert summarize_counts(BEFORE)["files"] == 4
    assert "too many to keep by name: digests of 3 folders are kept instead" in describe_manifest(BEFORE)


def test_the_same_is_the_same() -> None:
    found = compare_manifests(BEFORE, volume(*FILES), ())
    assert (found.verdict, found.equal) == ("same", 4)
    assert "by digests of 3 folders, because the list of files was too large to keep" in format_report(
        BEFORE, volume(*FILES), found
    )


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ((file("a/1"), *FILES[2:]), {"a": "missing"}),
        ((file("a/1", sha256="bb"), *FILES[1:]), {"a": "changed"}),
        ((file("a/1", size=2), *FILES[1:]), {"a": "changed"}),
        ((*FILES, file("new/1")), {"new": "added"}),
        ((*FILES[:3], FILES[4]), {"the root folder": "missing"}),
        ((*FILES[:4], FileEntry("link", "link", target="b")), {"the root folder": "changed"}),
    ],
)
def test_a_folder_that_differs_is_named(entries: tuple[FileEntry, ...], what: dict[str, str]) -> None:
    found = compare_manifests(BEFORE, volume(*entries), ())
    assert {one.path: one.what for one in found.differences} == what
    assert all("single files are unknown" in one.detail for one in found.differences)
    assert ("missing" in what.values()) == any(one.what in LOST for one in found.differences)


def test_an_unread_file_is_compared_by_name_alone() -> None:
    listed = volume(*(replace(one, sha256="") for one in FILES), how="listing")
    found = compare_manifests(BEFORE, listed, ())
    assert (found.verdict, found.listed, found.equal) == ("incomplete", 4, 0)


def test_files_that_may_grow_do_not_make_a_difference() -> None:
    log = file("a/app.log")
    before = summarize(volume(*FILES, log), ["*.log"])
    found = compare_manifests(before, volume(*FILES, file("a/app.log", size=900, sha256="cc")), ["*.log"])
    assert found.verdict == "same"


def test_a_folder_that_could_not_be_listed_is_not_compared() -> None:
    gaps = (Gap("a", "access is denied"),)
    found = compare_manifests(BEFORE, volume(*FILES[2:], gaps=gaps), ())
    assert [one.path for one in found.not_compared] == ["a"]
    assert found.verdict == "incomplete"


def test_it_is_bounded_however_many_folders_there_are() -> None:
    entries = tuple(file(f"{number % 50}/{number}/x") for number in range(3 * MOST))
    small = summarize(volume(*entries), ())
    assert [one.path for one in small.folders] == sorted(str(number) for number in range(50))
    gaps = tuple(Gap(str(number), "denied") for number in range(MOST + 1))
    assert len(summarize(volume(*entries, gaps=gaps), ()).gaps) == 1
