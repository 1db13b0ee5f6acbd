# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes of a Windows host on Wine count as hanging in their end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from lab.windows.wine import find_hanging

WAITS_FOR_A_LOCK = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
WAITS_FOR_INPUT = "import sys; sys.stdin.read()"
WORKS_BESIDE_A_LOCK = f"import threading; threading.Thread(target=input).start(); {WAITS_FOR_A_LOCK}"


@contextlib.contextmanager
def running(program: str, prefix: Path) -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", program], env={"WINEPREFIX": str(prefix)}, stdin=subprocess.PIPE
    ) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_only_a_last_thread_that_waits_for_a_mutex_hangs(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "prefix", tmp_path / "prefix-2"
    with (
        running(WAITS_FOR_INPUT, here),
        running(WORKS_BESIDE_A_LOCK, here),
        running(WAITS_FOR_A_LOCK, elsewhere) as other,
        running(WAITS_FOR_A_LOCK, here) as hanging,
    ):
        deadline = time.monotonic() + 30
        while not (find_hanging(here) and find_hanging(elsewhere)) and time.monotonic() < deadline:
            pass
        assert find_hanging(here) == {hanging}
        assert find_hanging(elsewhere) == {other}
