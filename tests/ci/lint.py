"""ansible-lint, whose syntax checks are forked from a process that has loaded Ansible: it makes one of each playbook and role.

Run as a script by the Python that has ansible-lint; the arguments are those of ansible-lint.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

from integration.warm import Warm, settings  # noqa: E402 - found through the line above

# Ansible checks the syntax of a playbook within a second.
CHECK_SECONDS = 600.0

_run = subprocess.run
_warm: dict[frozenset[tuple[str, str]], Warm] = {}
_lock = threading.Lock()


def is_sound(words: list[str], environment: dict[str, str], folder: str) -> bool:
    """Whether a syntax check ends with 0."""
    python = Path(sys.executable)
    with _lock:
        key = settings(environment)
        if key not in _warm:
            _warm[key] = Warm(python, environment)
        script = str(python.with_name(words[0]))
        return _warm[key].run([script, *words[1:]], Path(folder), environment, Path(os.devnull), CHECK_SECONDS) == 0


def run(words: Any, **how: Any) -> Any:
    """subprocess.run. A syntax check that fails runs again by itself, because ansible-lint reads its output."""
    check = isinstance(words, list) and words[:2] == ["ansible-playbook", "--syntax-check"]
    if check and is_sound(words, how["env"], how.get("cwd") or os.getcwd()):
        return subprocess.CompletedProcess(words, 0, "", "")
    return _run(words, **how)


if __name__ == "__main__":
    # ansible-lint sees the packages of its own environment alone.
    del sys.path[0]
    subprocess.run = run  # type: ignore[assignment]  # for ansible-lint, in this process alone
    runpy.run_module("ansiblelint", run_name="__main__", alter_sys=True)
