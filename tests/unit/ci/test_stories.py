# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run ends with its dearest tests and what each is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ci import paths
from ci.stories import dearest, keep_seconds, table


def test_the_longest_tests_come_first_with_their_own_purpose_or_that_of_their_file(tmp_path: Path) -> None:
    folder, report = tmp_path / "tests", tmp_path / "report.xml"
    folder.mkdir()
    for name in ("conftest.py", "day.py"):
        (folder / name).write_bytes((paths.ROOT / "tests" / name).read_bytes())
    (folder / "test_waits.py").write_text(
        '"""What all of them are for.\n\nMore."""\n'
        "import subprocess, sys, threading, pytest\n"
        "def test_quick():\n    assert True\n"
        "@pytest.mark.parametrize('name', ['a'])\n"
        'def test_long(name):\n    """Why it is long.\n\n    Details.\n    """\n    assert not threading.Event().wait(0.3)\n'
        "    subprocess.run([sys.executable, '-c', 'import time\\nwhile time.process_time() < 0.3: pass'], check=True)\n"
        "@pytest.fixture\ndef dear():\n    threading.Event().wait(0.15)\n"
        "class TestMore:\n"
        "    def test_with_a_dear_fixture(self, dear):\n        assert True\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "tests"]
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    found = dearest([report, tmp_path / "none.xml"], tmp_path, shown=2)
    assert [(one.file, one.name, one.purpose) for one in found] == [
        ("tests/test_waits.py", "test_long[a]", "Why it is long."),
        ("tests/test_waits.py", "TestMore.test_with_a_dear_fixture", "What all of them are for."),
    ]
    assert found[0].cpu >= 0.1 > found[1].cpu
    first, purpose, *_more = table(found)
    assert first.split()[:2] == [f"{found[0].seconds:.1f}", "s,"]
    assert first.endswith("s of CPU  tests/test_waits.py::test_long[a]")
    assert purpose.strip() == "Why it is long."


def test_the_seconds_of_each_file_are_kept_with_the_longest_first(tmp_path: Path) -> None:
    report, kept = tmp_path / "report.xml", tmp_path / "seconds.json"
    cases = [
        ("tests.integration.test_short", "test_a", 3),
        ("tests.integration.test_long.TestOn219", "test_a", 40),
        ("tests.integration.test_long.TestOn221", "test_a", 20),
    ]
    rows = "".join(f'<testcase classname="{module}" name="{name}" time="{time}.2"/>' for module, name, time in cases)
    report.write_text(f"<testsuites><testsuite>{rows}</testsuite></testsuites>", encoding="utf-8")
    keep_seconds(report, kept)
    assert kept.read_text(encoding="utf-8") == '{\n  "test_long": 60,\n  "test_short": 3\n}\n'
