"""Lanes: one virtual environment per ansible-core line, and one for the linters, from pinned requirement files.

They live in the cache folder, named by lane and by a key of the requirement files and the Python version, so that a
change of either makes a new one and several checkouts share what is equal.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .pythons import Python

MAIN = "core-2.19"
LINT = "lint"
MOLECULE = "molecule"
KERBEROS = "kerberos"
RULEBOOK = "rulebook"
# Lane -> Python lines in order of preference. For ansible-core these are the controller Pythons of that line.
LANES: dict[str, tuple[str, ...]] = {
    "core-2.16": ("3.11", "3.12"),
    MAIN: ("3.11", "3.12", "3.13"),
    "core-2.21": ("3.12", "3.13", "3.14"),
    LINT: ("3.11", "3.12", "3.13"),
    # The tests under the other lines, each with the Pythons of its line.
    "unit-2.16": ("3.11", "3.12"),
    "unit-2.21": ("3.12", "3.13", "3.14"),
    # The scenarios of molecule under each line: it insists on the ansible-core of its own environment.
    MOLECULE: ("3.11", "3.12", "3.13"),
    "molecule-2.16": ("3.11", "3.12"),
    "molecule-2.21": ("3.12", "3.13", "3.14"),
    # The main lane with the packages of Kerberos, which need a compiler and libraries of the machine.
    KERBEROS: ("3.11", "3.12", "3.13"),
    RULEBOOK: ("3.11", "3.12", "3.13"),
}
CORES = tuple(name for name in LANES if name.startswith("core-"))
MOLECULES = tuple(name for name in LANES if name.startswith(MOLECULE))
MARKER = ".complete"
UNUSED_DAYS = 30
Notify = Callable[[str], None]


class LaneError(Exception):
    """A lane that cannot be made, with what to do."""


@dataclass(frozen=True)
class Lane:
    """A virtual environment that is ready to use."""

    name: str
    python_version: str
    folder: Path

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.bin / "python"


def requirement_files(name: str) -> list[Path]:
    """The requirement file of a lane and all that it includes with `-r`."""
    file = paths.REQUIREMENTS / f"{name}.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    names = [line[3:].strip().removesuffix(".txt") for line in lines if line.startswith("-r ")]
    return [file, *(found for name in names for found in requirement_files(name))]


def choose(name: str, pythons: dict[str, Python]) -> Python:
    """The Python for a lane; LaneError names the lines that would do."""
    for minor in LANES[name]:
        if minor in pythons:
            return pythons[minor]
    have = ", ".join(sorted(pythons)) or "none"
    raise LaneError(
        f"lane {name}: no Python {' or '.join(LANES[name])} with the venv module was found (found: {have}); "
        f"install one, for example with pyenv"
    )


def folder(name: str, python: Python) -> Path:
    """Where the lane's environment is, or will be."""
    # The same interpreter under another name makes the same environment.
    digest = hashlib.sha256(f"{os.path.realpath(python.path)} {python.text}\n".encode())
    for file in requirement_files(name):
        digest.update(file.read_bytes())
    return paths.cache() / "venv" / f"{name}-{digest.hexdigest()[:12]}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds `<path>.lock` against other processes; released by the kernel if this one dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def ensure(name: str, pythons: dict[str, Python], notify: Notify) -> Lane:
    """The lane, made first where the cache does not hold it. Safe against other processes doing the same."""
    python = choose(name, pythons)
    target = folder(name, python)
    lane = Lane(name, python.text, target)
    with locked(target):
        # The marker is written last: a folder without it is what an interrupted run left.
        if not (target / MARKER).exists():
            shutil.rmtree(target, ignore_errors=True)
            started = time.monotonic()
            notify(f"{name}: making its environment with Python {python.text}")
            build(name, python, target)
            notify(f"{name}: ready after {time.monotonic() - started:.0f} s")
            prune(name, keep=target)
        os.utime(target / MARKER)
    return lane


def build(name: str, python: Python, target: Path) -> None:
    """Creates the environment in place (environments cannot be moved), the marker last."""
    log = paths.LOGS / f"venv-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    file = paths.REQUIREMENTS / f"{name}.txt"
    commands = [
        [python.path, "-m", "venv", str(target)],
        [str(target / "bin" / "python"), "-m", "pip", "install", "--no-input", "--require-hashes", "-r", str(file)],
    ]
    with open(log, "w", encoding="utf-8") as out:
        for command in commands:
            if subprocess.run(
                command, check=False, stdout=out, stderr=subprocess.STDOUT, env=pip_environment()
            ).returncode:
                out.flush()
                tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
                raise LaneError(f"lane {name}: `{' '.join(command)}` failed; {paths.short(log)} ends with\n{tail}")
    (target / MARKER).write_text(json.dumps({"lane": name, "python": python.text}) + "\n", encoding="utf-8")


def pip_environment() -> dict[str, str]:
    """The caller's environment, with pip's own cache inside ours and without its notice of newer versions."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    return {**env, "PIP_CACHE_DIR": str(paths.cache() / "pip"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def prune(name: str, keep: Path) -> None:
    """Removes this lane's environments that were unused for a month."""
    for marker in keep.parent.glob(f"{name}-*/{MARKER}"):
        if marker.parent != keep and time.time() - marker.stat().st_mtime > UNUSED_DAYS * 86400:
            shutil.rmtree(marker.parent, ignore_errors=True)


def write_index(lanes: dict[str, Lane], missing: dict[str, str]) -> Path:
    """Writes `.work/lanes.json`, by which tests find the ansible-core lines to run under, molecule and ansible-rulebook.

    Shape: `{"lanes": {"core-2.19": {"python", "bin", "ansible_playbook", "python_version"}}, "missing": {lane: why}}`.
    """
    index = {
        "lanes": {
            name: {
                "python": str(lane.python),
                "bin": str(lane.bin),
                "ansible_playbook": str(lane.bin / "ansible-playbook"),
                "python_version": lane.python_version,
            }
            for name, lane in lanes.items()
            if name in (*CORES, MOLECULE, RULEBOOK)
        },
        "missing": missing,
    }
    target = paths.WORK / "lanes.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    scratch.replace(target)
    return target
