# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One window of watching a rollout: until the gate is settled, a node's verdict changed, or the time is over.

What is watched comes in as a View, and time as a clock; nothing here talks to a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import Rules, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import Picture
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.verdict import Evaluation

# Changes come in groups: a pod becomes Ready, its CSINode entry follows. One report for what happens within this time.
COALESCE = 2.0

# How long a pod is Ready changes a verdict although nothing happens.
_LOOK_AGAIN = 1.0


class Watched(Protocol):
    """What is needed of a View."""

    def load(self) -> None:
        """Read everything once."""

    def watch(self, seconds: float) -> None:
        """Keep watching for that long, in the background."""

    def wait(self, seconds: float) -> None:
        """Take in changes, at the latest after that time."""

    def explain(self) -> None:
        """Read what explains trouble."""

    def picture(self) -> Picture:
        """The current state."""


def run(
    view: Watched, rules: Rules, known: Mapping[str, str], seconds: float, clock: Callable[[], float] = time.monotonic
) -> Evaluation:
    """Watch and evaluate. known: fingerprints of the node verdicts that the caller has; seconds 0 observes once."""
    view.load()
    evaluation = evaluate(view.picture(), rules)
    if seconds > 0 and not evaluation.settled:
        evaluation = _watch(view, rules, known, seconds, clock)
    if evaluation.verdict in ("waiting", "red"):
        view.explain()
        evaluation = evaluate(view.picture(), rules)
    return evaluation


def _watch(
    view: Watched, rules: Rules, known: Mapping[str, str], seconds: float, clock: Callable[[], float]
) -> Evaluation:
    ends = clock() + seconds
    view.watch(seconds)
    changed_at: float | None = None
    while True:
        evaluation = evaluate(view.picture(), rules)
        now = clock()
        if changed_at is None and fingerprints(evaluation) != dict(known):
            changed_at = now
        until = ends if changed_at is None else min(ends, changed_at + COALESCE)
        if evaluation.settled or now >= until:
            return evaluation
        view.wait(min(_LOOK_AGAIN, until - now))


def fingerprints(evaluation: Evaluation) -> dict[str, str]:
    """What identifies each node's verdict."""
    return {node.node: node.fingerprint for node in evaluation.nodes}
