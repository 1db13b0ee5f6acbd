# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop that watches a rollout, and the gate: wait until the driver works on every node."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...base.screen import Screen
from ...base.waiting import render_progress
from ...catalog.base import Driver
from ...kube.client import Client
from ...kube.errors import UnreachableError
from .evaluate import Evaluation, GateRules, evaluate
from .gate_report import GateResult, build_gate_result, describe_progress
from .observe import RolloutView, find_target
from .snapshot import ObservedHost, RolloutPicture

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


@dataclass(frozen=True, slots=True)
class GateOptions:
    """Options of the gate. namespace: of the DaemonSet, empty to find it. timeout: seconds, of which `once` uses none.

    accept_unproven: whether nodes pass that are registered and whose hosts were not read.
    """

    driver: Driver
    namespace: str = ""
    hosts: tuple[ObservedHost, ...] = ()
    rules: GateRules = field(default_factory=GateRules)
    timeout: int = 600
    once: bool = False
    accept_unproven: bool = False


class Gate:
    """Waits until a driver works on its Windows nodes. connect: takes how many seconds it may retry, None for the default."""

    def __init__(self, connect: Callable[[float | None], Client], options: GateOptions, screen: Screen) -> None:
        self._connect, self._options, self._screen = connect, options, screen
        self._started = time.monotonic()
        self._evaluation: Evaluation | None = None

    def run(self) -> GateResult:
        """Wait, or evaluate once; return the last evaluation. Raises ClusterError, but not for a server that restarts."""
        timeout, once = self._options.timeout, self._options.once
        while True:
            unreachable = ""
            try:
                self._watch(max(1.0, timeout - self._elapsed()))
                break
            except UnreachableError as error:
                # Not a failure of the gate: an API server may restart while nodes come up.
                unreachable = str(error)
                progress = "" if once else f"{render_progress(self._elapsed(), timeout)}: "
                self._screen.show(f"{progress}{unreachable}")
            if once or self._elapsed() >= timeout:
                break
        result = build_gate_result(
            self._evaluation, self._options.accept_unproven, timeout, unreachable, check_mode=once
        )
        if result.table:
            self._screen.display(f"\n{result.table}\n")
        return result

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _watch(self, seconds: float) -> None:
        """Watch until the gate is settled, but not longer than these seconds."""
        options = self._options
        client = self._connect(None if options.once else seconds)
        target = find_target(client, options.driver, options.namespace)
        view = RolloutView(client, target, list(options.hosts))

        def report(evaluation: Evaluation) -> None:
            fingerprints = list_fingerprints(self._evaluation) if self._evaluation else {}
            self._evaluation = evaluation
            timeout = 0 if options.once else options.timeout
            lines = describe_progress(
                evaluation, fingerprints, int(self._elapsed()), timeout, accepts=options.accept_unproven
            )
            self._screen.display(*lines)

        wait_for_gate(view, options.rules, 0.0 if options.once else seconds, report)
