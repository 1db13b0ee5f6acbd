# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run ends with its dearest tests and what each is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ci.stories import dearest, table


def test_the_longest_tests_come_first_with_their_own_purpose_or_that_of_their_file(tmp_path: Path) -> None:
    folder, report = tmp_path / "tests", tmp_path / "report.xml"
    folder.mkdir()
    (folder / "test_waits.py").write_text(
        '"""What all of them are for.\n\nMore."""\n'
        "import threading, pytest\n"
        "def test_quick():\n    assert True\n"
        "@pytest.mark.parametrize('name', ['a'])\n"
        'def test_long(name):\n    """Why it is long.\n\n    Details.\n    """\n    assert not threading.Event().wait(0.3)\n'
        "@pytest.fixture\ndef dear():\n    threading.Event().wait(0.15)\n"
        "def test_with_a_dear_fixture(dear):\n    assert True\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "tests"]
    done = subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    found = dearest([report, tmp_path / "none.xml"], tmp_path, shown=2)
    assert [(one.file, one.name, one.purpose) for one in found] == [
        ("tests/test_waits.py", "test_long[a]", "Why it is long."),
        ("tests/test_waits.py", "test_with_a_dear_fixture", "What all of them are for."),
    ]
    first, purpose, *_more = table(found)
    assert first.split() == [f"{found[0].seconds:.1f}", "s", "tests/test_waits.py::test_long[a]"]
    assert purpose.strip() == "Why it is long."
