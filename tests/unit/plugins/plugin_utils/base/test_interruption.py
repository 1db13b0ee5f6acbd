# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that is terminated, or whose run is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[5]
# It ends by itself only where it cannot be interrupted, so that this test ends then as well. Its pauses are short, as a task's are:
# Python handles a signal that comes right before one when that is over.
TASK = """\
import os, signal, time
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.interruption import Interrupted
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.interruption import interruptible

try:
    with interruptible("Run again"):
        try:
            print(os.getpid(), flush=True)
            for _second in range(600):
                time.sleep(1)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            print("cleaned up", flush=True)
except Interrupted as error:
    print(error, flush=True)
"""
RUN = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.parametrize("terminated", ["task", "run"])
def test_a_terminated_task_removes_what_it_created(terminated: str) -> None:
    """A signal ends it, or its run was killed: it cleans up, also after a second signal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".collections")}
    command = [sys.executable, "-c", RUN, TASK]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        task = int(run.stdout.readline())
        if terminated == "run":
            run.kill()
        else:
            os.kill(task, signal.SIGTERM)
        assert run.communicate(timeout=300)[0] == "cleaned up\nthe run was terminated. Run again\n"
