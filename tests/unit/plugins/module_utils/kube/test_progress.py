# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module whose task has ended, or that is terminated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[5]


@pytest.mark.parametrize("how", ["terminated", "orphaned"])
def test_a_terminated_module_removes_what_it_created(how: str, tmp_path: Path) -> None:
    """Its task has ended, or a signal ends it: it cleans up, also after a second signal."""
    lines = tmp_path / "lines"
    lines.touch()
    # It is ended from outside; by itself only where that does not work, so that this test ends then as well. Its pauses are short,
    # as a module's are: Python handles a signal that comes right before one when that is over.
    program = (
        "import os, signal, sys, time\n"
        "from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import Interrupted, watch_over\n"
        "watch_over(sys.argv[1], '')\n"
        "try:\n"
        "    try:\n"
        "        print('begun', flush=True)\n"
        "        for _second in range(600):\n"
        "            time.sleep(1)\n"
        "    finally:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        print('cleared up', flush=True)\n"
        "except Interrupted:\n"
        "    print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(lines)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".collections")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if how == "orphaned":
            lines.unlink()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=300)[0] == "cleared up\ninterrupted\n"
