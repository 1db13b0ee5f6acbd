# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outside of its environment the lab prints how to start it, instead of a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


def test_a_python_without_the_labs_packages_gets_the_command_that_has_them() -> None:
    # Isolated from site-packages, as a system's Python is.
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-S", "-m", "lab", "status"], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert " is missing in " in run.stderr
    assert run.stderr.splitlines()[-1] == '  make lane CORE=2.19 CMD="python -m lab --help"'
