# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The count of the lab's answers without a capture: on the lab's page, and after a run of the Windows workflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab.windows.conformance import Case, load
from real_windows import captures
from unit.plugins.shown import RST


def test_the_page_of_the_lab_has_the_count() -> None:
    assert captures.report()[0] in (RST / "lab.rst").read_text(encoding="utf-8")


def test_every_name_of_a_source_is_that_of_a_case() -> None:
    sources = [case.source for case in load()]
    names = (*captures.CAPTURES, *captures.OWN)
    assert [name for name in names if not any(source.startswith(name) for source in sources)] == []


def test_every_source_can_be_found() -> None:
    assert [case.name for case in load() if case.source.startswith(("general knowledge", "issue threads"))] == []


def test_what_windows_answered_replaces_what_the_table_guessed(tmp_path: Path) -> None:
    repeated: dict[str, Any] = {
        "name": "repeated",
        "source": "a document",
        "line": "ver",
        "rc": 1,
        "stdout_regex": "^one",
    }
    guessed = {"name": "guessed", "source": "a document", "line": "vol", "setup": ["ver"], "stdout": "two\r\n"}
    untouched: dict[str, Any] = {"name": "untouched", "source": "a document", "line": "cd", "stdout": "Größe\r\n"}
    table = tmp_path / "cmd.json"
    table.write_text(json.dumps([repeated, guessed, untouched]), encoding="utf-8")
    answers = [
        {"case": "repeated", "line": "ver", "rc": 1, "stdout": "one\r\n", "stderr": ""},
        {"case": "guessed", "line": "ver", "setup": True, "rc": 0, "stdout": "", "stderr": ""},
        {"case": "guessed", "line": "vol", "rc": 5, "stdout": "", "stderr": "Access is denied.\r\n"},
    ]
    captures.adopt({"image": "win25 20260818.207", "answers": answers}, tmp_path)
    source = "actions/runner-images win25 20260818.207"
    captured, corrected, third = load(tmp_path)
    assert captured == Case(**{**repeated, "source": source})
    assert third == Case(**untouched)
    assert (corrected.source, corrected.setup, corrected.rc, corrected.stdout) == (source, ("ver",), 5, "")
    assert corrected.differences(5, "", "Access is denied.\r\n") == []
    assert corrected.differences(5, "", "Denied.\r\n") != []
    assert [captures.is_captured(case) for case in (captured, corrected, third)] == [True, True, False]
