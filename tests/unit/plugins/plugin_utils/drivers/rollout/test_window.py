# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a window of the gate ends: settled, a verdict changed a moment ago, or its time is over."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import Rules, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import Picture
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.window import COALESCE, fingerprints, run
from unit.plugins.plugin_utils.drivers.rollout.pictures import host, picture, pod, win2

RULES = Rules()
GREEN = picture()
WAITING = win2(pods=None)
CLOSER = win2(pods=pod("win-2", ready=False, ready_since=None))
RED = win2(hosts=host("win-2", serving=False, pipes=()))


class View:
    """Pictures that come at given seconds; time passes only while the caller waits."""

    def __init__(self, *coming: tuple[float, Picture]) -> None:
        self.coming = list(coming)
        self.now = 0.0
        self.explained = 0
        self.watched: list[float] = []

    def load(self) -> None:
        pass

    def watch(self, seconds: float) -> None:
        self.watched.append(seconds)

    def wait(self, seconds: float) -> None:
        following = [at for at, picture_then in self.coming if at > self.now]
        self.now = min([self.now + seconds, *following])

    def explain(self) -> None:
        self.explained += 1

    def picture(self) -> Picture:
        return [shown for at, shown in self.coming if at <= self.now][-1]

    def clock(self) -> float:
        return self.now


def observed(view: View, known: Sequence[Picture] = (), seconds: float = 30) -> str:
    reported = fingerprints(evaluate(known[0], RULES)) if known else {}
    return run(view, RULES, reported, seconds, view.clock).verdict


def test_a_settled_gate_ends_at_once_and_watches_nothing() -> None:
    view = View((0, GREEN))
    assert observed(view) == "green"
    assert (view.now, view.watched, view.explained) == (0, [], 0)


def test_the_last_node_ends_it_at_once() -> None:
    view = View((0, WAITING), (7.3, GREEN))
    assert observed(view, [WAITING]) == "green"
    assert view.now == 7.3


def test_the_first_window_reports_the_state_soon() -> None:
    view = View((0, WAITING))
    assert observed(view) == "waiting"
    assert view.now == COALESCE


def test_a_change_is_reported_with_what_follows_within_a_moment() -> None:
    view = View((0, WAITING), (5, CLOSER), (6.5, GREEN))
    assert observed(view, [WAITING]) == "green"
    assert view.now == 6.5
    view = View((0, WAITING), (5, CLOSER))
    assert observed(view, [WAITING]) == "waiting"
    assert view.now == 5 + COALESCE


def test_without_a_change_it_ends_with_its_time() -> None:
    view = View((0, WAITING))
    assert observed(view, [WAITING]) == "waiting"
    assert view.now == 30
    assert view.explained == 1


def test_red_ends_it_and_is_explained() -> None:
    view = View((0, WAITING), (3, RED))
    assert observed(view, [WAITING]) == "red"
    assert (view.now, view.explained) == (3, 1)


def test_no_time_observes_once() -> None:
    view = View((0, WAITING))
    assert observed(view, seconds=0) == "waiting"
    assert (view.now, view.watched) == (0, [])
