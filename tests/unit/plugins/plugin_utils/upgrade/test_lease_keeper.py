# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that renews the lease of an upgrade; tests/integration runs it with an API server."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process, is_dead
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import read_uptime
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease_keeper import (
    end_run,
    release_keeper,
    start_keeper,
)
from lab.handle import eventually

SECRET = "hunter2"


def test_credentials_are_neither_on_the_command_line_nor_in_a_file(tmp_path: Path) -> None:
    path, run = tmp_path / "lease", subprocess.Popen(["sleep", "3600"])
    access = {"host": "https://127.0.0.1:1", "api_key": SECRET}
    start_keeper(str(path), read_uptime(), identify_process(run.pid), "kubewin", access)
    keeper = path.read_text(encoding="utf-8")
    cmdline = Path(f"/proc/{keeper.rpartition('/')[2].partition('-')[0]}/cmdline")
    # Popen returns when the new program has closed what it inherits; a moment later the kernel shows its words.
    command = eventually(cmdline.read_bytes, "the command line of the keeper")
    try:
        assert str(path).encode() in command
        assert SECRET.encode() not in command
        assert not [file for file in tmp_path.iterdir() if SECRET in file.read_text(encoding="utf-8")]
        assert 0 < float(Path(f"{path}.held").read_text(encoding="utf-8")) - time.time() <= 45
        assert not is_dead(keeper)
    finally:
        release_keeper(str(path))
        run.kill()
        run.wait()
    assert is_dead(keeper)


def test_a_run_that_lost_its_lease_is_terminated() -> None:
    run = subprocess.Popen(["sleep", "3600"])
    end_run(identify_process(run.pid), "the lease is lost")
    assert run.wait(10) == -15
