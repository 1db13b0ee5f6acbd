# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection as users get it: its tarball, in an environment that holds what README has them install and nothing else."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ci import paths, tree, venvs
from integration.playbooks import CALLBACKS, ROOT, Run, finish

BESIDE = (ROOT / ".collections" / "ansible_collections" / "kubernetes" / "core").resolve()
# A machine that fetches for the first time has other tests to run meanwhile.
FETCH_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class User:
    """A user with an empty home, and the environment of that user."""

    home: Path

    @property
    def bin(self) -> Path:
        """Where the commands are."""
        return self.home / "venv" / "bin"

    @property
    def collection(self) -> Path:
        """Where ansible-galaxy installs ours."""
        return self.home / ".ansible" / "collections" / tree.OWN

    def environment(self) -> dict[str, str]:
        """Nothing of the tests' own but where temporary files are."""
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def run(self, *command: str | Path) -> None:
        """Run a command in the home."""
        done = subprocess.run(
            command, cwd=self.home, env=self.environment(), capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

    def play(self, playbook: str, inventory: str, *arguments: str) -> Run:
        """Run a playbook by its full name."""
        record = self.home / "record.jsonl"
        record.unlink(missing_ok=True)
        recorder = {
            "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "KUBEWIN_RECORD": str(record),
        }
        process = subprocess.Popen(
            [self.bin / "ansible-playbook", "-i", inventory, playbook, *arguments],
            cwd=self.home,
            env={**self.environment(), **recorder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return finish(process, record)


def wheels(pins: Path) -> Path:
    """ansible-core and what requirements.txt asks for, as wheels in the cache. Fetched once, so that a test needs no index."""
    wanted = ROOT / "requirements.txt"
    digest = hashlib.sha256(pins.read_bytes() + wanted.read_bytes() + sys.version.encode()).hexdigest()[:12]
    target = paths.cache() / "wheels" / digest
    with venvs.locked(target):
        if not (target / venvs.MARKER).exists():
            fetch: list[str | Path] = [sys.executable, "-m", "pip", "wheel", "-q", "-w", target, "-c", pins]
            subprocess.run(
                [*fetch, "ansible-core", "-r", wanted], env=venvs.pip_environment(), check=True, timeout=FETCH_SECONDS
            )
            (target / venvs.MARKER).touch()
    return target


def install(folder: Path) -> User:
    """Build the tarball and install it, as in README, with the releases that the tests are pinned to."""
    user = User(folder / "home")
    user.home.mkdir(parents=True)
    pins = folder / "pins.txt"
    pins.write_text("".join(f"{name}\n" for name in sorted(_releases())), encoding="utf-8")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", user.bin / "python", "install", "-q"]
    pip += ["--no-compile", "--no-index", "--find-links", wheels(pins)]
    user.run(sys.executable, "-m", "venv", "--without-pip", user.home / "venv")
    user.run(*pip, "ansible-core")
    # The dependency is there already; Galaxy cannot be reached from everywhere.
    shutil.copytree(BESIDE, user.collection.parents[1] / "kubernetes" / "core")
    user.run("ansible-galaxy", "collection", "build", tree.export(folder / "export", BESIDE.parents[2], shipped=True))
    (tarball,) = user.home.glob("kubewin-csi-*.tar.gz")
    user.run("ansible-galaxy", "collection", "install", "--offline", tarball)
    user.run(*pip, "-r", user.collection / "requirements.txt")
    return user


def _releases() -> set[str]:
    """Every package of this environment with its release, as pip reads it."""
    return {f"{one.name}=={one.version}" for one in metadata.distributions()}
