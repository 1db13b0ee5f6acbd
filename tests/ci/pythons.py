"""Finds the Pythons of this machine by running them: a name on PATH may be a shim that starts nothing."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# venv and ensurepip are separate packages on Debian, and a Python built without ssl cannot install anything.
PROBE = (
    "import sys, json, venv, ensurepip, ssl;"
    "print(json.dumps([list(sys.version_info[:3]), getattr(sys, '_base_executable', None) or sys.executable]))"
)
SECONDS = 10


@dataclass(frozen=True)
class Python:
    """An interpreter that can make virtual environments."""

    path: str
    version: tuple[int, int, int]

    @property
    def minor(self) -> str:
        """The line, such as `3.11`."""
        return f"{self.version[0]}.{self.version[1]}"

    @property
    def text(self) -> str:
        """The full version, such as `3.11.7`."""
        return ".".join(map(str, self.version))


def candidates() -> list[str]:
    """Paths that may be a Python, without duplicates, in order of preference."""
    names = [f"python3.{minor}" for minor in range(10, 15)]
    found = [sys.executable]
    found += [path for name in (*names, "python3") for path in [shutil.which(name)] if path]
    roots = [os.environ.get("PYENV_ROOT", ""), os.path.join(os.path.expanduser("~"), ".pyenv")]
    for root in dict.fromkeys(filter(None, roots)):
        found += sorted(glob.glob(os.path.join(root, "versions", "3.*", "bin", "python3")))
    for folder in ("/usr/bin", "/usr/local/bin"):
        found += [path for name in names for path in [os.path.join(folder, name)] if os.path.exists(path)]
    return list(dict.fromkeys(found))


def probe(path: str) -> Python | None:
    """The interpreter behind a path, or None where running it fails or it cannot make a virtual environment."""
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=SECONDS, check=True)
        version, executable = json.loads(done.stdout)
        return Python(str(executable), (int(version[0]), int(version[1]), int(version[2])))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def rank(python: Python) -> tuple[bool, tuple[int, int, int]]:
    """The higher, the better for a line. pyenv compiles without profile-guided optimization: a tenth to a fifth slower than others."""
    return "pyenv" not in Path(python.path).as_posix(), python.version


def discover() -> dict[str, Python]:
    """The best usable interpreter of each line from 3.10, keyed by line: not of pyenv where there is another one, then the newest."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = [python for python in pool.map(probe, candidates()) if python and python.version >= (3, 10)]
    best: dict[str, Python] = {}
    for python in found:
        if python.minor not in best or rank(python) > rank(best[python.minor]):
            best[python.minor] = python
    return best
