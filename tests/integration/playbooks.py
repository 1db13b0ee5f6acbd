# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real ansible-playbook runs, under any ansible-core line, read by their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from integration.warm import READ_WHEN_LOADED, Warm, settings
from lab.handle import eventually

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
CALLBACKS = Path(__file__).resolve().parent / "callback"
# Seconds after which a run that has not ended never will, also on a small machine that has other things to do.
PATIENCE = 1200.0


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run: its exit code, its screen, and an event per task and host (see callback/record.py)."""

    code: int
    screen: str
    events: tuple[dict[str, Any], ...]

    def results(self, task: str, event: str = "ok") -> dict[str, dict[str, Any]]:
        """Result by host of the task whose name ends so."""
        return {
            found["host"]: found["result"]
            for found in self.events
            if found["event"] == event and found["task"].endswith(task)
        }

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Every failed or unreachable result. The end of a run that failed refers to the summary. Where no task failed before, the one
        whose result the summary reports, which the playbook lets end well, is in its place."""
        found = [event for event in self.events if event["event"] in ("failed", "unreachable")]
        ends = [event for event in found if event["task"].rpartition(" : ")[2] == "Fail"]
        others = [event for event in found if event not in ends]
        if others or not ends:
            return others
        before = self.events[: self.events.index(ends[0])]
        return [
            event
            for event in before
            if event["event"] == "ok"
            and event["result"].get("failed_when_result") is False
            and "msg" in event["result"]
        ][-1:]

    @property
    def changed(self) -> list[tuple[str, str]]:
        """(task, host) of everything that changed or would change."""
        return [(event["task"], event["host"]) for event in self.events if event.get("changed")]

    @property
    def summary(self) -> dict[str, Any]:
        """The closing summary as data."""
        assert self.ends, f"the run printed no summary:\n{self.screen}"
        return self.ends[0]

    @property
    def ends(self) -> list[dict[str, Any]]:
        """Every closing summary as data; one, of a run of one playbook."""
        found = [one for one in self.events if one["event"] in ("ok", "failed") and one["action"].endswith("summary")]
        return [one["result"]["summary"] for one in found]

    @property
    def lines(self) -> list[str]:
        """The screen, without the empty line before the first play."""
        return self.screen.strip().splitlines()

    def plays(self) -> list[str]:
        """Names of the plays that were begun, in order."""
        return [event["play"] for event in self.events if event["event"] == "play"]


def lane(core: str | None = None) -> tuple[str, dict[str, str]]:
    """ansible-playbook of an ansible-core line ("2.16"), or of the line that runs the tests; and its environment."""
    python = Path(sys.executable)
    if core is not None:
        index = json.loads((ROOT / ".work" / "lanes.json").read_text(encoding="utf-8"))
        python = Path(index["lanes"][f"core-{core}"]["python"])
    environment = {
        **os.environ,
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "record,bytecode",
        "ANSIBLE_HOME": os.environ.get("ANSIBLE_HOME", str(Path.home() / ".ansible")),
    }
    # The interpreter's own packages are those of its lane; ours reach it through the collections path.
    environment.pop("PYTHONPATH", None)
    return str(python.parent / "ansible-playbook"), environment


def lines() -> list[str]:
    """The ansible-core lines that this machine has; CI fails before this when one is missing."""
    index = json.loads((ROOT / ".work" / "lanes.json").read_text(encoding="utf-8"))["lanes"]
    return [name.removeprefix("core-") for name in sorted(index, reverse=True) if name.startswith("core-")]


def command(
    playbook: str,
    inventory: str | Path,
    *arguments: str,
    record: Path,
    core: str | None = None,
    variables: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    root: Path = ROOT,
) -> tuple[list[str], dict[str, str]]:
    """Words and environment of a run of the checkout at `root`."""
    program, environment = lane(core)
    environment |= {
        "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(root / ".collections"),
        "KUBEWIN_RECORD": str(record),
        **(env or {}),
    }
    extra: Sequence[str] = ["-e", json.dumps(variables)] if variables else []
    return [program, "-i", str(inventory), str(root / playbook), *extra, *arguments], environment


def start(
    playbook: str,
    inventory: str | Path,
    *arguments: str,
    root: Path = ROOT,
    env: Mapping[str, str] | None = None,
    apart: Path | None = None,
    **how: Any,
) -> subprocess.Popen[str]:
    """Start a run in the background; `finish` collects it. Keywords as of `command`.

    apart: a new folder, with which the run is as in a container of its own: its home, its directory, its process table.
    """
    folder, given = root, dict(env or {})
    if apart is not None:
        apart.mkdir(parents=True)
        folder = apart
        given = {"HOME": str(apart), "ANSIBLE_HOME": str(apart / ".ansible"), "TMPDIR": str(apart), **given}
    words, environment = command(playbook, inventory, *arguments, root=root, env=given, **how)
    if apart is not None:
        words = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child", *words]
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def meanwhile(process: subprocess.Popen[str], probe: Callable[[], T | None], what: str, timeout: float = PATIENCE) -> T:
    """As `eventually`, for what happens during a run: a run that ends without it is not waited for."""
    found: list[T] = []

    def found_or_ended() -> bool:
        over = process.poll() is not None
        if now := probe():
            found.append(now)
        return bool(found) or over

    eventually(found_or_ended, what, timeout, longest_pause=0.1)
    if not found:
        screen, _nothing = process.communicate()
        raise AssertionError(f"{what}: the run ended before, with exit code {process.returncode}:\n{screen[-6000:]}")
    return found[0]


def finish(process: subprocess.Popen[str], record: Path, timeout: float = PATIENCE) -> Run:
    """Wait for a run and read what it did."""
    try:
        screen, _nothing = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        screen, _nothing = process.communicate()
        raise AssertionError(f"the run did not end within {timeout:.0f} s:\n{screen[-6000:]}") from None
    return Run(process.returncode, screen, read(record))


def read(record: Path) -> tuple[dict[str, Any], ...]:
    """The events so far, also of a run that has not ended or was killed."""
    if not record.exists():
        return ()
    lines = record.read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines if line.endswith("}"))


def play(playbook: str, inventory: str | Path, *arguments: str, timeout: float = PATIENCE, **how: Any) -> Run:
    """Run a playbook to its end. Keywords as of `start`."""
    with tempfile.TemporaryDirectory(prefix="kubewin-run-") as folder:
        record, screen = Path(folder) / "record.jsonl", Path(folder) / "screen"
        if "apart" in how:
            return finish(start(playbook, inventory, *arguments, record=record, **how), record, timeout)
        words, environment = command(playbook, inventory, *arguments, record=record, **how)
        if any(name in environment for name in READ_WHEN_LOADED):
            return finish(start(playbook, inventory, *arguments, record=record, **how), record, timeout)
        python = Path(words[0]).with_name("python")
        idle = _idle.setdefault((python, settings(environment)), [])
        warm = idle.pop() if idle else Warm(python, environment)
        try:
            code = warm.run(words, how.get("root", ROOT), environment, screen, timeout)
        except TimeoutError:
            raise AssertionError(
                f"the run did not end within {timeout:.0f} s:\n{screen.read_text(encoding='utf-8')[-6000:]}"
            ) from None
        idle.append(warm)
        return Run(code, screen.read_text(encoding="utf-8"), read(record))


# Processes from which no run is forked at present.
_idle: dict[tuple[Path, frozenset[tuple[str, str]]], list[Warm]] = {}


def family(process: int) -> list[int]:
    """A process and all that came of it: Ansible's workers and modules have sessions of their own."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            found += family(int(child))
    return found
