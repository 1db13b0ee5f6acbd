# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advance the upgrade until it needs an external action. Pure: clients are passed in.

A store keeps the journal, an observer reads, an executor changes; nothing here does I/O.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import Waits
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import delegated_to
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import (
    Decision,
    Delegate,
    Do,
    Rules,
    Wait,
    decide,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.facts import Observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal

_LOOK = 1.0


class JournalStore(Protocol):
    """Where the journal is kept."""

    def keep(self, journal: Journal) -> Journal:
        """Write it so that it is there after a crash of anything; answers with it as it was written."""


class Observer(Protocol):
    """Reads the cluster."""

    def observe(self, journal: Journal) -> Observation:
        """Everything that the next step is decided from."""


class Executor(Protocol):
    """What may be done to it. Each is safe to repeat."""

    def do(self, action: Do) -> None:
        """Do it."""


def drive(
    journal: Journal, store: JournalStore, observer: Observer, executor: Executor, rules: Rules, notify: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Decision:  # fmt: skip
    """Go on until a decision is not ours to carry out: a Delegate, Pause, Stop, Settled or Done. The journal in it was kept."""
    waits = Waits(lambda line: notify(f"waiting: {line}"))
    while True:
        observed = observer.observe(journal)
        decision = decide(journal, observed, rules)
        following = decision.journal
        if isinstance(decision, Delegate):
            following = delegated_to(following, decision.kind, decision.nodes, observed.now)
        awaited = decision.what if isinstance(decision, Wait) else ()
        for line in following.happened[_common(journal, following) :]:
            happened = line.partition(" ")[2]
            # What the run waits for is reported below, with its time.
            if happened not in [one.what for one in awaited]:
                notify(happened)
        if following != journal:
            journal = store.keep(following)
        if isinstance(decision, Do):
            executor.do(decision)
        elif isinstance(decision, Wait):
            waits.report(*awaited)
            sleep(_LOOK)
        else:
            return replace(decision, journal=journal)


def _common(old: Journal, new: Journal) -> int:
    """How many lines of the new one are known."""
    if not old.happened:
        return 0
    last = old.happened[-1]
    return len(new.happened) - new.happened[::-1].index(last) if last in new.happened else 0
