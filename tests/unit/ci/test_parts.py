# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failing part of the checks reports what failed and why."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from ci import parts, paths, runner
from ci.parts import Bench, failures, molecule_part
from ci.runner import Runner
from ci.venvs import MOLECULE, Lane

DEADLINE_SECONDS = 120.0


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


def test_an_interrupted_molecule_leaves_no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LOGS", tmp_path)
    monkeypatch.setattr(parts, "SCRATCH", tmp_path / "scratch")
    lab, programs = tmp_path / "lab is up", tmp_path / "bin"
    programs.mkdir()
    scripts = {
        "python": f'[ "$*" = "-m lab down --name molecule" ] && rm -f "{lab}"',
        "molecule": f"trap 'exit 5' INT; touch '{lab}'; for beat in $(seq 6000); do sleep 0.05; done",
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    bench = Bench({}, {MOLECULE: Lane(MOLECULE, "3.11", tmp_path)}, {}, tmp_path)

    def stop() -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not lab.exists() and time.monotonic() < deadline:
            time.sleep(0.01)  # nothing but the file shows that the scenario runs
        runner.interrupt_children()

    signal.signal(signal.SIGINT, signal.default_int_handler)
    stopping = threading.Thread(target=stop)
    stopping.start()
    (outcome,) = Runner(lambda _text: None, jobs=1).run([molecule_part(bench)])
    stopping.join(DEADLINE_SECONDS)
    assert outcome.counts.failed == 1
    assert not lab.exists()
