# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The count of the lab's answers without a capture: on the lab's page, and after a run of the Windows workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab.windows.conformance import Case, load
from real_windows import captures
from unit.plugins.shown import RST


def test_the_page_of_the_lab_has_the_count() -> None:
    assert captures.report()[0] in (RST / "lab.rst").read_text(encoding="utf-8")


def test_every_name_of_a_source_is_that_of_a_case() -> None:
    sources = [case.source for case in load()]
    names = (*captures.CAPTURES, *captures.KINDS, *captures.OWN)
    assert [name for name in names if not any(source.startswith(name) for source in sources)] == []


def test_a_source_that_is_not_known_is_no_capture() -> None:
    assert captures.classify(Case("new", "ver", "another/project#1")) == captures.DESCRIBED
    assert captures.classify(Case("new", "ver", "issue threads")) == captures.UNNAMED


def test_an_answer_that_windows_repeats_is_captured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = {case.name: case for case in load() if case.stdout and captures.classify(case) != captures.CAPTURED}
    repeated, different = list(cases)[:2]
    setup = {"case": different, "setup": True, "line": "ver", "rc": 0, "stdout": "", "stderr": ""}
    records = [
        setup,
        *(
            {"case": name, "line": cases[name].line, "rc": cases[name].rc, "stdout": text, "stderr": ""}
            for name, text in ((repeated, cases[repeated].stdout), (different, "something else\r\n"))
        ),
        {"line": "ver", "rc": 0, "stdout": "", "stderr": ""},
    ]
    transcript = tmp_path / "winrm.jsonl"
    transcript.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    captures.main([])
    before = capsys.readouterr().out.splitlines()
    captures.main([str(transcript)])
    after = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in before[1:] if line not in after] == [repeated]
    assert len(after) == len(before) - 1
