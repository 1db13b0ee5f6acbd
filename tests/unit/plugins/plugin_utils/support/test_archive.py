# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An archive has a limited size: each file, and all of them; what is truncated or omitted is named."""

from __future__ import annotations

import random

from ansible_collections.kubewin.csi.plugins.plugin_utils.support.archive import (
    Missing,
    Part,
    cut,
    explain,
    fit,
    name_host_folder,
)


def test_a_file_keeps_its_end_from_the_beginning_of_a_line() -> None:
    part = Part("logs/a.log", "".join(f"line {number} ä\n" for number in range(1000)))
    kept = cut(part, 500)
    assert kept.size <= 500
    assert kept.text.endswith("line 999 ä\n")
    assert kept.text.splitlines()[0].startswith("line ")
    assert kept.problem.startswith("only the last ")
    assert cut(part, part.size) is part
    assert cut(Part("one-line", "x" * 1000), 500).text == ""


def test_truncation_at_any_byte_leaves_whole_characters() -> None:
    text = "ä€😀\n" * 50
    for limit in range(1, 100):
        kept = cut(Part("a", text), limit)
        assert kept.size <= limit
        assert set(kept.text) <= set("ä€😀\n")


def test_all_files_together_are_bounded_and_small_ones_are_kept() -> None:
    draw = random.Random(5)
    for _round in range(200):
        names = ["hosts/win-1/a", "hosts/win-2/b", "cluster/pods.json", "logs/x.log", "readiness/readiness.html"]
        parts = [Part(name, "x" * draw.randint(0, 400)) for name in names]
        limit = draw.randint(0, 1500)
        kept, left = fit(parts, limit)
        assert sum(one.size for one in kept) <= limit
        assert {one.path for one in (*kept, *left)} == set(names)
        assert len(kept) + len(left) == len(names)
        # Nothing is left out that there is room for.
        room = limit - sum(one.size for one in kept)
        assert all(one.size > room for one in left)
    kept, left = fit([Part("cluster/pods.json", "x" * 10), Part("hosts/win-1/log", "x" * 9)], 10)
    assert [one.path for one in kept] == ["hosts/win-1/log"]
    assert [one.path for one in left] == ["cluster/pods.json"]


def test_the_summary_names_what_is_missing_and_the_archive() -> None:
    lacks = [Missing("host win-2", "it cannot be reached."), Missing("cluster/events.json", "forbidden.")]
    lines = explain([Part("a", "x")], lacks, ["win-1", "win-2"], "/srv/a.tar.gz")
    text = "\n".join(lines)
    assert " of 1 of 2 Windows hosts and the cluster" in text
    assert "host win-2: it cannot be reached." in text
    assert "cluster/events.json: forbidden." in text
    assert "Archive: /srv/a.tar.gz" in text
    assert explain([], [], [], None)[0] == "Would gather 0 files (0.0 MiB) of the cluster."
    unread = [Missing("cluster", "the API server does not answer.")]
    assert explain([], unread, ["win-1"], None)[0] == "Would gather 0 files (0.0 MiB) of 1 Windows host."
    many = explain([], [Missing(str(number), "") for number in range(50)], [], None)
    assert "  and 30 more, see summary.json" in many


def test_each_host_has_a_folder_of_its_own() -> None:
    names = ["win-1.example.com", "win:1", "win/1", "win 1", "win_1", "win%3A1", "..", "%2E%2E"]
    folders = [name_host_folder(name) for name in names]
    assert folders[0] == "hosts/win-1.example.com"
    assert len(set(folders)) == len(names)
    assert [folder for folder in folders if folder.count("/") != 1 or folder.endswith("/..")] == []
