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

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError, read
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.picture import Picture

SCHEMA = 1

Hook = Literal["none", "tasks", "wmco"]
Step = Literal["waiting", "cordon", "drain", "allow", "hook", "back", "gate", "canary", "uncordon", "workloads", "done"]
State = Literal["open", "paused", "stopped", "finished"]

# Steps of a node with each hook. cordon: a cordon of ours, or with WMCO, which uncordons by itself, a taint of ours.
TABLES: Mapping[Hook, tuple[Step, ...]] = {
    "none": ("waiting", "cordon", "drain", "back", "gate", "canary", "uncordon", "workloads", "done"),
    "tasks": ("waiting", "cordon", "drain", "hook", "back", "gate", "canary", "uncordon", "workloads", "done"),
    "wmco": ("waiting", "cordon", "allow", "back", "gate", "canary", "uncordon", "workloads", "done"),
}
DRAINING: frozenset[Step] = frozenset({"cordon", "drain"})

# As text.
_WORDS: Mapping[Step, str] = {
    "waiting": "is waiting",
    "cordon": "is being cordoned",
    "drain": "is being drained",
    "allow": "WMCO may now upgrade it",
    "hook": "is being upgraded by your tasks",
    "back": "is awaited",
    "gate": "is checked by the gate",
    "canary": "is verified with a volume",
    "uncordon": "is being uncordoned",
    "workloads": "waits for its workloads",
    "done": "is done",
}

# The newest lines of what happened; a ConfigMap has an end.
_KEPT = 200


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """A Deployment or StatefulSet that had a pod with a volume on the node, and how many of its pods were Ready in all."""

    kind: str
    namespace: str
    name: str
    ready: int = field(compare=False)

    @property
    def title(self) -> str:
        """As text."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Target:
    """What nodes and cluster are to become: Kubernetes of the kubelets, OpenShift, WMCO; empty where it does not matter."""

    kubelet: str = ""
    openshift: str = ""
    wmco: str = ""

    def text(self) -> str:
        """As text."""
        named = (("kubelet", self.kubelet), ("OpenShift", self.openshift), ("WMCO", self.wmco))
        return ", ".join(f"{what} {version}" for what, version in named if version)


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
    step: Step = "waiting"
    since: str = ""
    began: str = ""
    failed: str = ""
    why: str = ""
    kept_cordoned: bool = False
    by_itself: bool = False
    kubelet: str = ""
    wmco: str = ""
    tries: int = 0
    workloads: tuple[Workload, ...] = ()

    def at(self, step: Step, now: datetime, why: str = "") -> NodeEntry:
        """At that step, from now on."""
        return replace(self, step=step, since=stamp(now), why=why)

    def begun(self, now: datetime) -> NodeEntry:
        """The entry at the start of its node's upgrade."""
        return replace(self, step="cordon", since=stamp(now), began=stamp(now), why="")

    @property
    def status(self) -> str:
        """Its step as text. A node that failed before its first change has no step."""
        if not self.failed:
            return _WORDS[self.step]
        return f"failed ({self.failed})" + (f" while: {_WORDS[self.step]}" if self.step != "waiting" else "")

    @property
    def untouched(self) -> bool:
        """Whether it has begun but nothing was changed on the node itself yet, so that it can be released as it was."""
        return self.tries == 0 and (self.step in DRAINING or self.step == "hook")

    @property
    def under_way(self) -> bool:
        """Whether something is still to be done or waited for."""
        if self.failed:
            # A later failure stays as it is until an administrator checks it.
            return self.untouched
        return self.step not in ("waiting", "done")


@dataclass(frozen=True, slots=True)
class Stopping:
    """Why no further node starts: a finding, as it is reported."""

    id: str
    object: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Journal:
    """One upgrade.

    name: of the upgrade; a finished one does not begin again. cluster: its id, empty if it was not read.
    only: the Nodes that were named, empty for all. generation: grows whenever a run resumes it, so that a run that was taken over
    can write nothing more. run: the run of this generation, as the lease names it. due: nodes whose tasks that run began, and whose
    results are not recorded yet. approval: name of the pause that waits for an approval. held_since: since when the next batch has
    been waiting. confirmed: pauses that were approved, and when. before: the volumes as they were.
    ended: when everything was proven and compared after
    the last node. compared: the claims whose baselines were compared then, and are needed no more. happened: the newest events, one line each.
    """

    name: str
    hook: Hook
    target: Target
    began: str
    nodes: tuple[NodeEntry, ...]
    state: State = "open"
    why: str = ""
    generation: int = 1
    run: str = ""
    due: tuple[str, ...] = ()
    approval: str = ""
    sequence: int = field(default=0, compare=False)
    stopping: Stopping | None = None
    held_since: str = ""
    confirmed: Mapping[str, str] = field(default_factory=dict)
    before: Picture = field(default_factory=Picture)
    ended: str = ""
    compared: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    cluster: str = ""
    happened: tuple[str, ...] = field(default=(), compare=False)

    def entry(self, node: str) -> NodeEntry:
        """A node's entry; KeyError when it has none."""
        for entry in self.nodes:
            if entry.node == node:
                return entry
        raise KeyError(node)

    def following(self, step: Step) -> Step:
        """The step after that one."""
        table = TABLES[self.hook]
        return table[table.index(step) + 1]

    def put(self, entry: NodeEntry, now: datetime) -> Journal:
        """With this entry instead of the node's former one, and a line about what changed in it."""
        old = self.entry(entry.node)
        changed = (old.step, old.failed, old.by_itself) != (entry.step, entry.failed, entry.by_itself)
        happened = self.happened
        if changed:
            line = (
                f"{stamp(now)} {entry.node}: {entry.status if entry.failed and not old.failed else _WORDS[entry.step]}"
                + (f" ({entry.why})" if entry.why else "")
            )
            happened = (*happened, line)[-_KEPT:]
        nodes = tuple(entry if one.node == entry.node else one for one in self.nodes)
        return replace(self, nodes=nodes, happened=happened)

    def note(self, text: str, now: datetime) -> Journal:
        """With one more line."""
        return replace(self, happened=(*self.happened, f"{stamp(now)} {text}")[-_KEPT:])

    @property
    def mark(self) -> str:
        """The mark that identifies our cordons."""
        return f"upgrade {self.name}"

    def as_json(self) -> str:
        """To be stored."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, sort_keys=True, ensure_ascii=False)


def stamp(when: datetime) -> str:
    """A time as the journal writes it."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_json(text: str) -> Journal:
    """Read a stored journal. FormatError says what is wrong with it."""
    journal: Journal = read(Journal, text, SCHEMA)
    names = [entry.node for entry in journal.nodes]
    if not names or len(set(names)) < len(names):
        raise FormatError(f"nodes are {', '.join(names) or 'none'}, expected at least one, each once")
    for entry in journal.nodes:
        if entry.step not in TABLES[journal.hook]:
            raise FormatError(f"{entry.node} is at step {entry.step}, which hook {journal.hook} does not have")
    return journal


def newest(copies: Mapping[str, Journal]) -> Journal | None:
    """The copy that was written last, None without any. copies: by where each was found."""
    return max(copies.values(), key=lambda one: (one.generation, one.sequence), default=None)
