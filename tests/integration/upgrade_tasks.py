# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's tasks for a node that wait until a test lets them end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path

from integration.playbooks import PATIENCE, family, start
from integration.upgrade_kills import PLAYBOOK, given, inventory
from lab.handle import Lab, eventually


class TaskFile:
    """Three tasks of a user. Each reports that it began, then waits until it may end."""

    def __init__(self, lab: Lab, name: str, folder: Path) -> None:
        self.folder, hook = folder, folder / "hook.yml"
        tasks = [
            {
                "ansible.builtin.shell": f"echo {number} >> {folder / 'began'}; until [ -e {folder}/end-{number} ]; do sleep 0.1; done",
                "delegate_to": "localhost",
            }
            for number in (1, 2, 3)
        ]
        hook.write_text(json.dumps(tasks), encoding="utf-8")
        self.options = {"name": name, "hook": "tasks", "nodes": ["win-3"], "node_timeout": 1800}
        variables = given(
            lab, name, {}, None, kubewin_upgrade_hook="tasks", kubewin_upgrade_tasks=str(hook), kubewin_upgrade_nodes=["win-3"],
            kubewin_upgrade_node_timeout=1800, kubewin_upgrade_unproven_canary=True, kubewin_upgrade_data=False,
        )  # fmt: skip
        self.hook = hook
        self.process = start(PLAYBOOK, inventory(lab), record=folder / "record.jsonl", variables=variables)

    def began(self) -> list[str]:
        path = self.folder / "began"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def let_end(self, *numbers: int) -> None:
        for number in numbers:
            (self.folder / f"end-{number}").touch()

    def until_in_task(self, number: int) -> None:
        self.let_end(*range(1, number))
        eventually(
            lambda: str(number) in self.began() or self.process.poll() is not None, f"task {number} works", PATIENCE
        )
        assert self.process.poll() is None, self.process.communicate()[0]

    def processes(self) -> set[int]:
        """All processes of the run, also those that it left on purpose."""
        return {*family(self.process.pid), *_find_processes(re.escape(str(self.hook))), *self._keepers()}

    def _keepers(self) -> list[int]:
        """Processes that renew the run's lease, by Ansible's directory of the run."""
        return _find_processes(rf"/ansible-local-{self.process.pid}\w{{8}}/kubewin-lease")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the run; one that ends meanwhile is left out, such as a `sleep` of a task."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_keeper(self) -> None:
        """Kill the process that renews the run's lease, and wait until nobody knows whether the lease is held."""
        (keeper,) = self._keepers()
        path = Path(f"/proc/{keeper}/cmdline").read_text(encoding="utf-8").split("\0")[-2]
        os.kill(keeper, signal.SIGKILL)
        held = Path(f"{path}.held")
        eventually(lambda: time.time() > float(held.read_text(encoding="utf-8")), "the lease may have expired", 60)

    def end(self) -> str:
        """Wait for the end of the run, which fails; its screen."""
        screen, _nothing = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode != 0, screen
        eventually(lambda: self.processes() <= {self.process.pid}, "nothing of the run is left")
        return screen


def _find_processes(pattern: str) -> list[int]:
    """Processes with this text in their command line."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if re.search(pattern.encode(), path.read_bytes()):
                processes.append(int(path.parent.name))
    return processes
