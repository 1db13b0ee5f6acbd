# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the kubelet stand-in:  `.lab/<name>/kubelet.json`, read again whenever it changes."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.state import write_atomic


@dataclass(frozen=True, slots=True)
class Answer:
    """A scripted answer to exec: the first whose pattern is found in "<container> <command words>" is given."""

    pattern: str
    rc: int = 0
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """What a driver answers when it registers: node id (`{uuid}` and `{node}` are filled in) and topology."""

    node_id: str = "{uuid}"
    topology: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wmco:
    """The pace of the Windows Machine Config Operator: how often it polls, and how long each step on a node takes."""

    poll: float = 0.3
    step: float = 0.3


@dataclass(frozen=True, slots=True)
class Settings:
    """Delays in seconds; `node_delays` replaces `start_delay` on single nodes; `backoff` is the wait before each restart,
    its last entry for all further ones.

    `pull_delay` is how long an image takes that a node has not had yet.

    `bad_images` are shell patterns of images that cannot be pulled, `silent_images` of images with which a plugin is Ready and
    never registers. `pipes_without_host` is what a Windows node with
    no host behind it is taken to serve, for clusters larger than the hosts. `stale` names nodes whose registration
    outlives its pod, as when a registrar is killed before it can remove its socket. `liveness_delay` is how long a liveness
    probe takes to find that another plugin of the same driver took the socket along when it ended. `rolled_back` are
    nodes whose volumes come back with an older content each time they were unmounted there, `busy_disks` nodes whose disks the
    platform does not detach. An exec found by a pattern of
    `exec_cuts` (searched for in its words) runs, and loses its connection before it says so, once a pod and command.
    vSphere's syncer takes `syncer_delay` to notice that a volume was deleted, and only renews its Lease while it is
    `syncer_stuck`. With `syncer_misses` it misses every deletion (as if a volume were deleted and created between two events) before its
    next full sync, which runs every `full_sync` seconds. Pods that write do so every `write_interval`. `wmco`: there is such an
    operator (`openshift.py` makes its objects), and csi-proxy on nodes without a host is what its release on them brings.
    """

    start_delay: float = 0.15
    node_delays: Mapping[str, float] = field(default_factory=dict)
    registration_delay: float = 0.1
    pull_delay: float = 0.0
    backoff: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    bad_images: tuple[str, ...] = ("*:nosuchtag",)
    silent_images: tuple[str, ...] = ("*:silent",)
    pipes_without_host: bool = False
    stale: tuple[str, ...] = ()
    liveness_delay: float = 1.0
    drivers: Mapping[str, Driver] = field(default_factory=dict)
    exec_answers: tuple[Answer, ...] = ()
    rolled_back: tuple[str, ...] = ()
    busy_disks: tuple[str, ...] = ()
    exec_cuts: tuple[str, ...] = ()
    syncer_delay: float = 0.3
    syncer_stuck: bool = False
    syncer_misses: bool = False
    full_sync: float = 1800.0
    write_interval: float = 0.5
    wmco: Wmco | None = None

    def pullable(self, image: str) -> bool:
        return not any(fnmatch.fnmatchcase(image, pattern) for pattern in self.bad_images)

    def registers(self, images: Iterable[str]) -> bool:
        return not any(fnmatch.fnmatchcase(image, pattern) for image in images for pattern in self.silent_images)

    def delay(self, node: str) -> float:
        """How long a plugin pod takes to start on a node."""
        return self.node_delays.get(node, self.start_delay)

    def driver(self, name: str) -> Driver:
        return self.drivers.get(name, Driver())

    def restart_delay(self, restarts: int) -> float:
        return self.backoff[min(restarts, len(self.backoff) - 1)]

    def answer(self, container: str, command: list[str]) -> Answer | None:
        text = " ".join([container, *command])
        return next((answer for answer in self.exec_answers if re.search(answer.pattern, text)), None)

    def cuts(self, command: list[str]) -> bool:
        return any(re.search(pattern, " ".join(command)) for pattern in self.exec_cuts)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        raw: dict[str, Any] = json.loads(text)
        for name in ("backoff", "bad_images", "silent_images", "stale", "rolled_back", "busy_disks", "exec_cuts"):
            if name in raw:
                raw[name] = tuple(raw[name])
        raw["drivers"] = {name: Driver(**driver) for name, driver in raw.get("drivers", {}).items()}
        raw["wmco"] = Wmco(**raw["wmco"]) if raw.get("wmco") else None
        raw["exec_answers"] = tuple(Answer(**answer) for answer in raw.get("exec_answers", ()))
        return cls(**raw)

    def write(self, path: Path) -> None:
        """Make these the settings in force; the stand-in uses them from its next decision on."""
        write_atomic(path, json.dumps(dataclasses.asdict(self), indent=2) + "\n")


class Source:
    """Settings kept in step with their file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._observed = (0, 0)
        self._current = Settings()

    def get(self) -> Settings:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return Settings()
        if self._observed != (found.st_mtime_ns, found.st_ino):
            self._current = Settings.from_json(self._path.read_text(encoding="utf-8"))
            self._observed = (found.st_mtime_ns, found.st_ino)
        return self._current
