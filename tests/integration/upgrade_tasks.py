# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's tasks for a node that wait until a test lets them end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
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
        found = set()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(self.hook).encode() in path.read_bytes():
                    found.add(int(path.parent.name))
        return found | set(family(self.process.pid))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the run; one that ends meanwhile is left out, such as a `sleep` of a task."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def keepers(self) -> dict[str, int]:
        """The two processes that keep the run's lease."""
        beside = self.processes() - set(family(self.process.pid))
        parents: dict[int, int] = {}
        for pid in beside:
            # A task's `sleep` may have ended.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        (keeper,) = (pid for pid, parent in parents.items() if parent in beside)
        return {"keeper": keeper, "watcher": parents[keeper]}

    def end(self) -> str:
        """Wait for the end of the run, which fails; its screen."""
        screen, _nothing = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode != 0, screen
        eventually(lambda: self.processes() <= {self.process.pid}, "nothing of the run is left")
        return screen
