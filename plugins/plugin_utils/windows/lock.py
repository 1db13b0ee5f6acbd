# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node lock: one run at a time changes a node.

The lock is a directory with the holder's name in it, put into place by a rename, which only one run can win. Every line of
the holder renews it, and a line that waits renews it while it waits. A holder that is known to have ended, or that does not
renew its lock for SILENCE seconds, is pushed aside by renaming its lock away; a line of it that still runs on the node then
stops at its next guarded step.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from dataclasses import replace

from ..kube import holder
from . import commands, model
from .commands import Command, Steps, builtin, program
from .errors import NodeError
from .model import LockOwner
from .node import Clock

SILENCE = 45.0
"""Seconds without a renewal, by the clock of the run that waits, after which it takes the lock over. The longest step that does not
renew is the start of a service: the service control manager waits 30 s for it."""

Alive = Callable[[str], "bool | None"]


def make_lock_owner(clock: Clock) -> LockOwner:
    """The name of this run as the holder of a lock. Characters that no line may have make its process one of which nothing is known."""
    process = re.sub(r"[^A-Za-z0-9_.:@/-]", "-", holder.identify_process(os.getpid()))
    return LockOwner(_make_identity(), clock.now(), process)


def _make_identity() -> str:
    return uuid.uuid4().hex[:12]


class NodeLock:
    """The lock from the view of one run. Makes steps for lines; sends nothing itself."""

    def __init__(self, me: LockOwner, clock: Clock, is_alive: Alive = holder.is_alive) -> None:
        self.me = me
        self.held = False
        self._clock = clock
        self._is_alive = is_alive
        self._attempts = 0
        self._renewed_at = clock.monotonic()
        self._other: str | None = None
        """the other run's lock as it was last read"""
        self._other_since = 0.0
        self._other_renewed = False

    def is_stale(self, owner: LockOwner) -> bool:
        """Whether a lock is stale: its holder has ended, or does not renew it while this run waits."""
        moment = self._clock.monotonic()
        if owner.text != self._other:
            self._other_renewed = self._other is not None
            self._other, self._other_since = owner.text, moment
        return self._is_alive(owner.process) is False or moment - self._other_since > SILENCE

    def is_alive(self, owner: LockOwner) -> bool:
        """Whether the other run is known to work: its process exists, or it renewed its lock since this run first read it."""
        return self._other_renewed or bool(self._is_alive(owner.process))

    def acquire_steps(self, current: LockOwner | None) -> Steps:
        """Take the lock, pushing ``current`` aside if there is one. The steps' labels begin with ``lock``."""
        self._attempts += 1  # an attempt that lost the race leaves its directory behind
        own_dir = rf"{model.LOCK_PARENT}\kubewin.csi.{self.me.identity}-{self._attempts}"
        steps = []
        if current is not None:
            stale_name = f"kubewin.csi.stale-{current.identity}-{self.me.identity}"
            if current.identity != model.UNREADABLE:
                # Another run may have pushed it aside meanwhile and hold a fresh one.
                owner = rf"{model.LOCK_DIR}\owner"
                still = commands.discard_output(program("findstr", "/l", f"/c:id={current.identity}", owner))
                steps.append(("lock still", still))
            steps.append(("lock aside", self._rename(model.LOCK_DIR, stale_name)))
        steps += [
            ("lock prepare", builtin("md", own_dir)),
            ("lock owner", commands.write_line(self._render_owner(), rf"{own_dir}\owner")),
            ("lock", self._rename(own_dir, model.LOCK_NAME)),
        ]
        return steps

    def renew_steps(self) -> Steps:
        self._renewed_at = self._clock.monotonic()
        return self.guard_step("renew", commands.write_line(self._render_owner(), rf"{model.LOCK_DIR}\owner"))

    def rename_steps(self) -> Steps:
        """Hold the lock under a new name from here on: a line of this very run that may still be at work on the node,
        its reply being lost, then stops at its next guarded step.
        """
        guard = self.guard("rename")
        self.me = replace(self.me, identity=_make_identity())
        return [guard, ("rename", commands.write_line(self._render_owner(), rf"{model.LOCK_DIR}\owner"))]

    def beat(self) -> Command:
        """Renew the lock if this run holds it: its file gets one more character. For lines that wait."""
        dot = commands.append_dot(rf"{model.LOCK_DIR}\owner")
        return Command(f"({self.guard('beat')[1].text} 2>nul && {dot.text} 2>nul)", builtin=True)

    def beat_steps(self) -> Steps:
        """A step for a line that only reads, when the last renewal of the held lock is some time ago."""
        if not self.held or self._clock.monotonic() - self._renewed_at < SILENCE / 4:
            return []
        self._renewed_at = self._clock.monotonic()
        return [("beat", self.beat())]

    def guard(self, before: str) -> tuple[str, Command]:
        """A step that fails when this run does not hold the lock any more."""
        owner = rf"{model.LOCK_DIR}\owner"
        guard = commands.discard_output(program("findstr", "/l", f"/c:{self.me.identity}", owner))
        return f"guard {before}", replace(guard, leads=True)

    def guard_step(self, label: str, command: Command) -> Steps:
        """A step that runs only while this run holds the lock."""
        return [self.guard(label), (label, command)]

    def release_steps(self) -> Steps:
        return self.guard_step("unlock", builtin("rd", model.LOCK_DIR, switches="/s /q"))

    def build_leftover_steps(self, leftovers: tuple[str, ...]) -> Steps:
        """Remove what cut-off attempts left. Names come from the node: only those of our own making are touched."""
        names = [name for name in leftovers if re.fullmatch(r"kubewin\.csi\.[a-z0-9-]+", name)]
        return [
            (f"leftover {name}", commands.tolerate(builtin("rd", rf"{model.LOCK_PARENT}\{name}", switches="/s /q")))
            for name in names
        ]

    @staticmethod
    def describe(owner: LockOwner) -> str:
        return f"lock {owner.identity} of {owner.process or 'an unknown process'}"

    def build_held_error(self, owner: LockOwner, waited: float) -> NodeError:
        age = max(0, round(self._clock.now() - owner.since))
        return NodeError(
            "locked",
            f"Another run is changing this node: {self.describe(owner)}, {age} s old and still held; waited {waited:.0f} s for it.",
            remedy=f"Wait for that run to end, then run again. If it was killed, its lock expires after {SILENCE:.0f} s.",
        )

    def _render_owner(self) -> str:
        me = self.me
        return f"id={me.identity} at={me.since:.0f} renewed={self._clock.now():.0f} process={me.process}"

    @staticmethod
    def _rename(path: str, name: str) -> Command:
        # ren takes a bare new name, and fails when it exists; move would put a directory into the existing one.
        return builtin("ren", path, name)
