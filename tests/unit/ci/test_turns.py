# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long tests take turns before a landing, and the torture runs those of other days."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ci import paths

TESTS = """
import pytest

@pytest.mark.parametrize("name", ["always", *(pytest.param(f"day{day}", marks=pytest.mark.turn(day, 2)) for day in (0, 1))])
def test_story(name):
    assert name
"""


@pytest.mark.parametrize(
    ("day", "selection", "expected"),
    [
        ("332", "not torture", {"always", "day0"}),
        ("333", "not torture", {"always", "day1"}),
        ("332", "torture", {"day1"}),
        ("333", "torture", {"day0"}),
    ],
)
def test_each_story_has_its_day_and_none_is_left_out(
    day: str, selection: str, expected: set[str], tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_bytes((paths.ROOT / "tests" / "conftest.py").read_bytes())
    (tmp_path / "test_stories.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "-m", selection]
    environment = {**os.environ, "KUBEWIN_DAY": day, "PYTHONPATH": str(paths.ROOT / "tests")}
    done = subprocess.run([*command, str(tmp_path)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = [line for line in done.stdout.splitlines() if line.startswith("test_stories.py::")]
    assert {line.split("[")[1].rstrip("]") for line in collected} == expected
