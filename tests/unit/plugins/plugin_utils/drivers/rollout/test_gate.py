# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a window of the gate ends: settled, a verdict changed a moment ago, or its time is over."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.gate import (
    COALESCE,
    REPORT_INTERVAL,
    wait_for_gate,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.observe import RolloutView
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import RolloutPicture
from unit.plugins.plugin_utils.drivers.rollout.pictures import host, picture, pod, win2

RULES = GateRules()
GREEN = picture()
WAITING = win2(pods=None)
CLOSER = win2(pods=pod("win-2", ready=False, ready_since=None))
RED = win2(hosts=host("win-2", serving=False, pipes=()))


class View(RolloutView):
    """Pictures that come at given seconds; time passes only while the caller waits."""

    def __init__(self, *coming: tuple[float, RolloutPicture]) -> None:
        self.coming = list(coming)
        self.now = 0.0
        self.explained = 0
        self.watched = self.stopped = 0
        # Pictures that no watch brings.
        self.unwatched: list[tuple[float, RolloutPicture]] = []

    def load(self) -> None:
        pass

    def watch(self) -> None:
        self.watched += 1

    def stop(self) -> None:
        self.stopped += 1

    def wait(self, seconds: float) -> None:
        following = [at for at, picture_then in self.coming if at > self.now]
        self.now = min([self.now + seconds, *following])

    def read_providers(self) -> None:
        self.coming += self.unwatched
        self.unwatched = []

    def explain(self) -> None:
        self.explained += 1

    def picture(self, planned: dict[str, Any] | None = None) -> RolloutPicture:
        return [shown for at, shown in self.coming if at <= self.now][-1]

    def clock(self) -> float:
        return self.now


def gate(view: View, seconds: float = 30) -> list[tuple[float, str]]:
    """When what was reported; the last one is the gate's result."""
    reports: list[tuple[float, str]] = []
    result = wait_for_gate(
        view, RULES, seconds, lambda evaluation: reports.append((view.now, evaluation.verdict)), clock=view.clock
    )
    assert result.verdict == reports[-1][1]
    return reports


def test_a_settled_gate_ends_at_once_and_watches_nothing() -> None:
    view = View((0, GREEN))
    assert gate(view) == [(0, "green")]
    assert (view.watched, view.explained) == (0, 0)


def test_the_last_node_ends_it_at_once_and_its_watches() -> None:
    view = View((0, WAITING), (7.3, GREEN))
    assert gate(view) == [(COALESCE, "waiting"), (7.3, "green")]
    assert (view.watched, view.stopped) == (1, 1)


def test_a_change_is_reported_with_what_follows_within_a_moment() -> None:
    assert gate(View((0, WAITING), (5, CLOSER), (6.5, GREEN))) == [(COALESCE, "waiting"), (6.5, "green")]
    assert gate(View((0, WAITING), (5, CLOSER)))[:2] == [(COALESCE, "waiting"), (5 + COALESCE, "waiting")]


def test_without_a_change_it_reports_now_and_then_and_ends_with_its_time() -> None:
    view = View((0, WAITING))
    assert gate(view, seconds=40) == [(COALESCE, "waiting"), (COALESCE + REPORT_INTERVAL, "waiting"), (40, "waiting")]
    assert view.explained == 3


def test_red_ends_it_and_is_explained() -> None:
    view = View((0, WAITING), (3, RED))
    assert gate(view) == [(COALESCE, "waiting"), (3, "red")]
    assert view.explained == 2


def test_no_time_observes_once() -> None:
    view = View((0, WAITING))
    assert gate(view, seconds=0) == [(0, "waiting")]
    assert view.watched == 0


def test_another_provider_that_appears_while_the_gate_waits_is_read_before_it_ends() -> None:
    view = View((0, WAITING), (7.3, GREEN))
    view.unwatched = [(7.3, RED)]
    assert gate(view) == [(COALESCE, "waiting"), (7.3, "red")]
