# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failing part of the checks reports what failed and why."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from ci.parts import failures


def test_each_failed_test_is_named_with_its_reason(tmp_path: Path) -> None:
    file, report = tmp_path / "test_sums.py", tmp_path / "report.xml"
    file.write_text(
        "import pytest\n"
        "def test_right():\n    assert 1 + 1 == 2\n"
        "@pytest.mark.parametrize('n', range(10))\n"
        "def test_wrong(n):\n    assert n == 12, ('a sum', n)\n"
        "@pytest.fixture\ndef broken():\n    raise OSError('no lab')\n"
        "def test_without_a_lab(broken):\n    pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(file)]
    assert subprocess.run(words, cwd=tmp_path, check=False, capture_output=True).returncode == 1
    lines = failures(ET.parse(report).getroot())
    assert lines[0].startswith("test_sums::test_wrong[0]: AssertionError: ('a sum', 0)")
    assert lines[-1] == "and 1 more"
    assert len(lines) == 11
