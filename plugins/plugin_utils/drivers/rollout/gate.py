# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that watches a rollout, and the gate: wait until the driver works on every node.

The objects come in as a view, and time as a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from .evaluate import Evaluation, GateRules, evaluate
from .observe import RolloutView
from .snapshot import RolloutPicture

# Changes come in groups: a pod becomes Ready, its CSINode entry follows. One report for what happens within this time.
COALESCE = 2.0
# Seconds between two reports without a change.
REPORT_INTERVAL = 30.0
# How long a pod is Ready changes a verdict although nothing happens.
_EVALUATION_INTERVAL = 1.0


def watch_rollout(view: RolloutView) -> Iterator[RolloutPicture]:
    """Yield the state at once, then after each change, at the latest after a second."""
    view.load()
    yield view.picture()
    view.watch()
    try:
        while True:
            view.wait(_EVALUATION_INTERVAL)
            yield view.picture()
    finally:
        view.stop()


def wait_for_gate(
    view: RolloutView, rules: GateRules, timeout: float, report: Callable[[Evaluation], None], *,
    is_over: Callable[[Evaluation], bool] = lambda evaluation: evaluation.settled, clock: Callable[[], float] = time.monotonic,
) -> Evaluation:  # fmt: skip
    """Watch until the evaluation is settled, or for that many seconds; 0 observes once.

    report: called with what changed, at least each REPORT_INTERVAL, and with the last evaluation, which it explains.
    """
    began = reported_at = clock()
    reported: dict[str, str] = {}
    changed_at: float | None = None
    evaluation = Evaluation((), (), ())
    for picture in watch_rollout(view):
        evaluation, evaluated_at = evaluate(picture, rules), clock()
        if changed_at is None and list_fingerprints(evaluation) != reported:
            changed_at = evaluated_at
        due = reported_at + REPORT_INTERVAL if changed_at is None else changed_at + COALESCE
        over = is_over(evaluation) or evaluated_at - began >= timeout
        if over or evaluated_at >= due:
            # Another provider may have appeared, or left, since the rollout was read.
            view.read_providers()
            evaluation = evaluate(view.picture(), rules)
            over = is_over(evaluation) or evaluated_at - began >= timeout
            if evaluation.verdict in ("waiting", "red"):
                view.explain()
                evaluation = evaluate(view.picture(), rules)
            report(evaluation)
            reported, reported_at, changed_at = list_fingerprints(evaluation), evaluated_at, None
        if over:
            break
    return evaluation


def list_fingerprints(evaluation: Evaluation) -> dict[str, str]:
    """What identifies each node's verdict."""
    return {node.node: node.fingerprint for node in evaluation.nodes}
