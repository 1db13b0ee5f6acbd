# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is called different, what equal, and what neither."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import (
    compare_manifests,
    find_head_sizes,
    format_report,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import (
    FileEntry,
    Gap,
    How,
    Manifest,
    is_append_only,
)

LOGS = ("*.log",)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file(path: str, data: bytes, *, head: int | None = None, written: str = "monday", read: bool = True) -> FileEntry:
    """A file; head: how many of its first bytes were asked for."""
    first = sha(data[:head]) if head is not None else ""
    return FileEntry(
        path, "file", len(data), written, sha256=sha(data) if read else "", head=first, why="" if read else "locked"
    )


def manifest(*entries: FileEntry, gaps: tuple[Gap, ...] = (), how: How = "content") -> Manifest:
    return Manifest("shop", "data", "pv-1", how, "2026-11-21T10:00:00Z", entries, gaps)


CASES: dict[str, tuple[FileEntry | None, FileEntry | None, str, str]] = {
    "equal": (file("a", b"one"), file("a", b"one", written="friday"), "same", ""),
    "a changed byte": (file("a", b"one"), file("a", b"onE"), "different", "changed"),
    "another size": (file("a", b"one"), file("a", b"one more"), "different", "changed"),
    "a missing file": (file("a", b"one"), None, "different", "missing"),
    "an added file": (None, file("a", b"one"), "different", "added"),
    "a log that grew": (file("a.log", b"one"), file("a.log", b"one two", head=3), "same", ""),
    "a log that stayed": (file("a.log", b"one"), file("a.log", b"one", head=3), "same", ""),
    "a log that came": (None, file("b.LOG", b"one"), "same", ""),
    "a log that went": (file("a.log", b"one"), None, "different", "missing"),
    "a shortened log": (file("a.log", b"one two"), file("a.log", b"one", head=7), "different", "shortened"),
    "a log begun anew": (file("a.log", b"one"), file("a.log", b"two two", head=3), "different", "rewritten"),
    "another target": (
        FileEntry("l", "link", target="a"),
        FileEntry("l", "link", target="b"),
        "different",
        "retargeted",
    ),
    "another kind": (FileEntry("l", "link", target="a"), file("l", b"one"), "different", "replaced"),
    "a folder": (FileEntry("d", "directory"), FileEntry("d", "directory"), "same", ""),
    "locked now": (file("a", b"one"), file("a", b"one", read=False), "incomplete", ""),
    "locked before": (file("a", b"one", read=False), file("a", b"one"), "incomplete", ""),
    "a locked log": (file("a.log", b"one"), file("a.log", b"one", read=False), "incomplete", ""),
    "locked and written to": (
        file("a", b"one"),
        file("a", b"onE", read=False, written="friday"),
        "different",
        "written",
    ),
}


@pytest.mark.parametrize(("was", "now", "verdict", "what"), CASES.values(), ids=CASES)
def test_one_path(was: FileEntry | None, now: FileEntry | None, verdict: str, what: str) -> None:
    before, after = (manifest(*([one] if one else [])) for one in (was, now))
    found = compare_manifests(before, after, LOGS)
    assert found.verdict == verdict
    assert [one.what for one in found.differences] == ([what] if what else [])
    report = format_report(before, after, found)
    assert (what or "shop/data") in report
    if verdict == "incomplete":
        assert f"not compared: {found.not_compared[0].path}: its content was not read" in report
        assert "locked" in report


def test_a_path_that_only_one_read_could_reach_is_not_compared_and_neither_missing_nor_added() -> None:
    gap = (Gap("deep", "longer than 260 characters"),)
    inside = file("deep/er/a", b"one")
    for before, after in ((manifest(inside), manifest(gaps=gap)), (manifest(gaps=gap), manifest(inside))):
        found = compare_manifests(before, after, ())
        assert (found.verdict, found.differences) == ("incomplete", [])
        assert [one.path for one in found.not_compared] == ["deep"]
    # Its neighbours are none of its business.
    assert compare_manifests(manifest(file("deeper", b"")), manifest(gaps=gap), ()).verdict == "different"


def test_a_volume_in_use_is_compared_and_reported_by_names_sizes_and_times() -> None:
    before = manifest(file("a", b"one"), file("b.log", b"one"))
    after = manifest(
        file("a", b"one", read=False), file("b.log", b"one two", read=False, written="friday"), how="listing"
    )
    found = compare_manifests(before, after, LOGS)
    assert (found.verdict, found.listed, found.equal) == ("incomplete", 2, 0)
    assert "names and sizes only: 2 files" in format_report(before, after, found)


def test_patterns_are_of_names_or_of_paths() -> None:
    assert is_append_only("logs/App.LOG", ["*.log"])
    assert is_append_only("journal/2026/1", ["journal/*"])
    assert not is_append_only("journal", ["journal/*"])
    assert not is_append_only("a.log.txt", ["*.log"])


def test_only_what_was_read_before_and_may_grow_has_a_beginning_to_compare() -> None:
    before = manifest(file("a.log", b"one"), file("b.log", b"one", read=False), file("c", b"one"))
    assert find_head_sizes(before, LOGS) == {"a.log": 3}


def test_many_differences_are_counted() -> None:
    before = manifest(*(file(f"{number:03}", b"one") for number in range(60)))
    found = compare_manifests(before, manifest(), ())
    report = format_report(before, manifest(), found)
    assert "60 paths changed" in report
    assert report.count("missing:") == 50
    assert "and 10 more" in report
