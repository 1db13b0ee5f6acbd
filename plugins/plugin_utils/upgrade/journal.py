# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of an upgrade: which node stands at which step, since when and why. Written before each change. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from typing import Literal

from ..base.findings import Finding
from ..base.stored import FormatError, read
from .snapshot import ClaimedVolume

SCHEMA = 3

Hook = Literal["none", "tasks", "wmco"]
UpgradeStep = Literal[
    "waiting", "cordon", "drain", "allow", "hook", "wait_ready", "gate", "verify", "workloads", "done"
]
State = Literal["open", "paused", "stopped", "finished"]

# Steps of a node with each hook. cordon: a cordon of ours, or with WMCO, which uncordons by itself, a taint of ours.
STEPS_BY_HOOK: Mapping[Hook, tuple[UpgradeStep, ...]] = {
    "none": ("waiting", "cordon", "drain", "wait_ready", "gate", "verify", "workloads", "done"),
    "tasks": ("waiting", "cordon", "drain", "hook", "wait_ready", "gate", "verify", "workloads", "done"),
    "wmco": ("waiting", "cordon", "allow", "wait_ready", "gate", "verify", "workloads", "done"),
}
DRAINING: frozenset[UpgradeStep] = frozenset({"cordon", "drain"})

# As text.
_STEP_STATES: Mapping[UpgradeStep, str] = {
    "waiting": "is waiting",
    "cordon": "is being cordoned",
    "drain": "is being drained",
    "allow": "may now be upgraded by WMCO",
    "hook": "is being upgraded by your tasks",
    "wait_ready": "waits until it is Ready",
    "gate": "is checked by the gate",
    "verify": "is verified with a volume",
    "workloads": "waits for its workloads",
    "done": "is done",
}

# The newest lines of what happened; a ConfigMap has an end.
_MAX_EVENTS = 200


@dataclass(frozen=True, slots=True, order=True)
class UpgradeWorkload:
    """A Deployment or StatefulSet that had a pod with a volume on the node, and how many of its pods were Ready in all."""

    kind: str
    namespace: str
    name: str
    ready: int = field(compare=False)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class UpgradeTarget:
    """The target releases of kubelets, OpenShift and WMCO; empty without a target."""

    kubelet: str = ""
    openshift: str = ""
    wmco: str = ""

    def describe(self) -> str:
        named = (("kubelet", self.kubelet), ("OpenShift", self.openshift), ("WMCO", self.wmco))
        return ", ".join(f"{component} {version}" for component, version in named if version)


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """One node.

    batch: its batch, 0 is the canary's. since: when this step began. began: when the node began, a run took it over,
    or its external step returned; its time budget counts from there. failed: id of the finding
    that it failed with. why: what it waits for or what became of it. kept_cordoned: cordon of another user, which stays.
    by_itself: it began to change without this run. kubelet, wmco: releases when the upgrade began. tries: how often the hook ran.
    """

    node: str
    batch: int
    step: UpgradeStep = "waiting"
    since: str = ""
    began: str = ""
    failed: str = ""
    why: str = ""
    kept_cordoned: bool = False
    by_itself: bool = False
    kubelet: str = ""
    wmco: str = ""
    tries: int = 0
    workloads: tuple[UpgradeWorkload, ...] = ()

    def move_to(self, step: UpgradeStep, current_time: datetime, why: str = "") -> NodeEntry:
        return replace(self, step=step, since=format_time(current_time), why=why)

    def start(self, current_time: datetime) -> NodeEntry:
        return replace(self, step="cordon", since=format_time(current_time), began=format_time(current_time), why="")

    @property
    def status(self) -> str:
        """Its step as text. A node that failed before its first change has no step."""
        if not self.failed:
            return _STEP_STATES[self.step]
        return f"failed ({self.failed})" + (f" while it {_STEP_STATES[self.step]}" if self.step != "waiting" else "")

    @property
    def untouched(self) -> bool:
        """Whether the upgrade has begun but has not changed the node, so that it can be uncordoned."""
        return self.tries == 0 and (self.step in DRAINING or self.step == "hook")

    @property
    def under_way(self) -> bool:
        """Whether the node has steps left."""
        if self.failed:
            # A later failure stays as it is until an administrator checks it.
            return self.untouched
        return self.step not in ("waiting", "done")


@dataclass(frozen=True, slots=True)
class Journal:
    """One upgrade.

    name: of the upgrade; a finished one does not begin again.
    only: the Nodes that were named, empty for all. generation: grows whenever a run resumes it, so that a run that was taken over
    can write nothing more. run: the run of this generation, as the lease names it. due: nodes whose tasks that run began, and whose
    results are not recorded yet. approval: name of the pause that waits for an approval. held_since: since when the next batch has
    been waiting. stopping: why no further node starts. confirmed: pauses that were approved, and when. before: the volumes as they were, by claim.
    ended: when everything was proven and compared after
    the last node. compared: the claims whose baselines were compared then, and are needed no more. happened: the newest events, one line each.
    """

    name: str
    hook: Hook
    target: UpgradeTarget
    began: str
    nodes: tuple[NodeEntry, ...]
    state: State = "open"
    why: str = ""
    generation: int = 1
    run: str = ""
    due: tuple[str, ...] = ()
    approval: str = ""
    sequence: int = field(default=0, compare=False)
    stopping: Finding | None = None
    held_since: str = ""
    confirmed: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, ClaimedVolume] = field(default_factory=dict)
    ended: str = ""
    compared: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    happened: tuple[str, ...] = field(default=(), compare=False)

    def find_entry(self, node: str) -> NodeEntry:
        """Return a node's entry; KeyError if it has none."""
        for entry in self.nodes:
            if entry.node == node:
                return entry
        raise KeyError(node)

    def find_next_step(self, step: UpgradeStep) -> UpgradeStep:
        table = STEPS_BY_HOOK[self.hook]
        return table[table.index(step) + 1]

    def put(self, entry: NodeEntry, current_time: datetime) -> Journal:
        """Replace a node's entry, and add an event about the change."""
        old = self.find_entry(entry.node)
        changed = (old.step, old.failed, old.by_itself) != (entry.step, entry.failed, entry.by_itself)
        happened = self.happened
        if changed:
            line = (
                f"{format_time(current_time)} {entry.node}: {entry.status if entry.failed and not old.failed else _STEP_STATES[entry.step]}"
                + (f" ({entry.why})" if entry.why else "")
            )
            happened = (*happened, line)[-_MAX_EVENTS:]
        nodes = tuple(entry if former.node == entry.node else former for former in self.nodes)
        return replace(self, nodes=nodes, happened=happened)

    def add_event(self, text: str, current_time: datetime) -> Journal:
        return replace(self, happened=(*self.happened, f"{format_time(current_time)} {text}")[-_MAX_EVENTS:])

    @property
    def mark(self) -> str:
        """The mark that identifies our cordons."""
        return f"upgrade {self.name}"

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, sort_keys=True, ensure_ascii=False)


def format_time(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_json(text: str) -> Journal:
    """Read a stored journal. FormatError says what is wrong with it."""
    journal: Journal = read(Journal, text, SCHEMA)
    names = [entry.node for entry in journal.nodes]
    if not names or len(set(names)) < len(names):
        raise FormatError(f"nodes are {', '.join(names) or 'none'}, expected at least one, each once")
    for entry in journal.nodes:
        if entry.step not in STEPS_BY_HOOK[journal.hook]:
            raise FormatError(f"{entry.node} is at step {entry.step}, which hook {journal.hook} does not have")
    return journal
