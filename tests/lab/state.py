# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a lab keeps what it is: `.lab/<name>/` and its `lab.json`.

`lab.json` is written by the supervisor only, as a whole and atomically; everybody else reads it.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA = 1
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?\Z")
TRANSPORTS = ("ntlm-http", "basic-http", "basic-https", "ntlm-https", "ssh", "psrp")


class LabError(RuntimeError):
    """An error of a lab that its user can act on."""


def root() -> Path:
    """The one ignored folder under which every lab lives (`KUBEWIN_LAB_ROOT` moves it)."""
    return Path(os.environ.get("KUBEWIN_LAB_ROOT") or REPOSITORY / ".lab").resolve()


@dataclass(frozen=True, slots=True)
class Paths:
    """The files of one lab."""

    directory: Path

    @property
    def state(self) -> Path:
        return self.directory / "lab.json"

    @property
    def lock(self) -> Path:
        """Locked for as long as anything of the lab runs."""
        return self.directory / "lock"

    @property
    def control(self) -> Path:
        return self.directory / "control.sock"

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def pki(self) -> Path:
        return self.directory / "pki"

    @property
    def kubeconfigs(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def inventories(self) -> Path:
        return self.directory / "inventory"

    @property
    def artifacts(self) -> Path:
        return self.directory / "artifacts"

    @property
    def audit(self) -> Path:
        return self.directory / "audit.log"

    @property
    def volumes(self) -> Path:
        """A directory for each volume that was provisioned, below one for its driver."""
        return self.directory / "volumes"

    @property
    def kubelet_settings(self) -> Path:
        return self.directory / "kubelet.json"


def paths(name: str) -> Paths:
    if not NAME.match(name):
        raise LabError(
            f"lab name {name!r}: found something else than lower case letters, digits and dashes (at most 32)"
        )
    return Paths(root() / name)


@dataclass(frozen=True, slots=True)
class Host:
    """One Windows host of the lab and the Node it stands for.

    `agent` is where the agent protocol is served ("127.0.0.1:port"); `http`, `https` and `ssh` are ports on
    `address`, 0 where that endpoint is not served.
    """

    name: str
    node: str
    address: str
    kind: str
    agent: str
    http: int = 0
    https: int = 0
    ssh: int = 0


@dataclass(frozen=True, slots=True)
class Artifact:
    """One csi-proxy build that the lab serves."""

    release: str
    path: str
    sha256: str
    http_url: str = ""
    https_url: str = ""


@dataclass(frozen=True, slots=True)
class LabState:
    """Everything machine-readable about a running lab. Paths are absolute, ports are on loopback."""

    name: str
    directory: str
    server: str
    ca: str
    audit: str
    windows: str
    requested_windows: str
    started: str
    version: str = ""
    kubeconfigs: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    hosts: tuple[Host, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    user: str = ""
    password_file: str = ""
    ssh_key: str = ""
    ssh_known_hosts: str = ""
    inventories: dict[str, str] = field(default_factory=dict)
    front: str = ""
    ready: bool = False
    schema: int = SCHEMA

    @property
    def paths(self) -> Paths:
        return Paths(Path(self.directory))

    def host(self, name: str) -> Host:
        """The host called `name` (a host's name or its node's)."""
        for host in self.hosts:
            if name in (host.name, host.node):
                return host
        known = ", ".join(host.name for host in self.hosts) or "none"
        raise LabError(f"lab {self.name}: no Windows host {name!r}; its hosts are {known}")

    @classmethod
    def from_json(cls, text: str) -> LabState:
        raw: dict[str, Any] = json.loads(text)
        if raw.get("schema") != SCHEMA:
            raise LabError(
                f"lab.json has schema {raw.get('schema')!r}, this lab reads {SCHEMA}: run `python -m lab down`"
            )
        raw["hosts"] = tuple(Host(**host) for host in raw.get("hosts", ()))
        raw["artifacts"] = tuple(Artifact(**artifact) for artifact in raw.get("artifacts", ()))
        raw["nodes"] = tuple(raw.get("nodes", ()))
        return cls(**raw)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


def load(name: str = "default") -> LabState:
    """The state of a lab that is up.

    Raises LabError when there is none.
    """
    place = paths(name)
    try:
        text = place.state.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError(
            f"lab {name!r} is not up ({place.state} does not exist): run `python -m lab up --name {name}`"
        ) from None
    return LabState.from_json(text)


def save(state: LabState) -> None:
    write_atomic(state.paths.state, state.to_json())


def write_atomic(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file as a whole: a reader gets the old text or the new one."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as handle:
        handle.write(text)
    scratch.replace(path)


def alive(name: str) -> bool:
    """Does anything of this lab run? Asked of its lock, which the kernel drops when the last of it is gone."""
    lock = paths(name).lock
    if not lock.exists():
        return False
    with lock.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def names() -> list[str]:
    """The labs that have a folder, up or stale."""
    if not root().is_dir():
        return []
    return sorted(entry.name for entry in root().iterdir() if entry.is_dir() and NAME.match(entry.name))


def clean(name: str) -> None:
    """Remove the folder of a lab that is not running."""
    shutil.rmtree(paths(name).directory, ignore_errors=True)
