"""The runner reports what happened: nothing that failed is counted as passed, nothing starts before what it needs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ci import paths, runner
from ci.runner import Counts, Part, PartFailed, Runner, Step, durations, summary

DEADLINE_SECONDS = 120.0


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "LOGS", tmp_path)
    return tmp_path


def passes(step: Step) -> None:
    step.notify("fine")


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_a_failing_command_fails_its_part_and_shows_the_end_of_its_log(logs: Path) -> None:
    messages: list[str] = []

    def work(step: Step) -> None:
        step.run(["sh", "-c", "echo what went wrong; exit 3"])

    outcomes = Runner(messages.append).run([Part("broken", work), Part("sound", passes)])

    assert [outcome.counts.failed for outcome in outcomes] == [1, 0]
    text = "\n".join(messages)
    assert "what went wrong" in text
    assert "sh ended with 3" in text
    assert str(logs / "broken.log") in text
    assert summary(outcomes, 1.4) == "1 passed, 1 failed in 1 s"


def test_a_part_is_not_started_when_what_it_needs_failed() -> None:
    started: list[str] = []

    def fails(step: Step) -> None:
        raise PartFailed("no")

    outcomes = Runner(lambda text: None).run(
        [
            Part("second", lambda step: started.append(step.name), needs=("first",)),
            Part("first", fails),
            Part("third", lambda step: started.append(step.name), needs=("second",)),
        ]
    )

    assert started == []
    assert [outcome.counts.failed for outcome in outcomes] == [1, 1, 1]
    assert outcomes[2].counts.note == "needs second"


def test_an_unexpected_error_is_a_failure_with_its_name() -> None:
    messages: list[str] = []

    def work(step: Step) -> None:
        raise ValueError("unforeseen")

    (outcome,) = Runner(messages.append).run([Part("odd", work)])

    assert outcome.counts == Counts(failed=1)
    assert any("ValueError: unforeseen" in line for line in messages)


def test_parts_run_beside_one_another_and_one_at_a_time_beside_the_one_that_comes_first() -> None:
    running: list[str] = []
    observed: dict[str, set[str]] = {}
    met = threading.Barrier(2, timeout=DEADLINE_SECONDS)

    def work(step: Step) -> None:
        running.append(step.name)
        met.wait()
        observed[step.name] = set(running)
        met.wait()
        running.remove(step.name)
        met.wait()

    def beside(step: Step) -> None:
        until(lambda: "lab" in running)
        observed[step.name] = set(running)

    def lab(step: Step) -> None:
        running.append(step.name)
        until(lambda: {"c", "d"} <= set(observed))
        running.remove(step.name)

    parts = [Part("c", beside), Part("d", beside), Part("lab", lab, first=True)]
    outcomes = Runner(lambda text: None, jobs=2).run(parts)
    assert summary(outcomes, 0).startswith("3 passed, 0 failed")
    assert observed == {"c": {"lab"}, "d": {"lab"}}

    outcomes = Runner(lambda text: None, jobs=2).run([Part("a", work), Part("b", work)])
    assert summary(outcomes, 0).startswith("2 passed, 0 failed")
    assert observed["a"] == observed["b"] == {"a", "b"}


def test_what_runs_beside_the_first_part_leaves_the_cpu_to_it(logs: Path) -> None:
    reported = [sys.executable, "-c", "import os; print('niceness', os.nice(0))"]

    def work(step: Step) -> None:
        step.run(reported)

    Runner(lambda text: None, jobs=1).run([Part("check", work), Part("lab", work, first=True)])
    before = os.nice(0)
    assert f"niceness {before}" in (logs / "lab.log").read_text().splitlines()
    assert f"niceness {min(19, before + runner.NICENESS)}" in (logs / "check.log").read_text().splitlines()


def test_counts_of_all_parts_are_added_up() -> None:
    outcomes = Runner(lambda text: None).run(
        [
            Part("tests", lambda step: Counts(7, 0, 2)),
            Part("check", passes),
            Part("none", lambda step: Counts(skipped=1)),
        ]
    )

    assert summary(outcomes, 61) == "8 passed, 0 failed, 3 skipped in 61 s"


def test_what_takes_long_is_named_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HEARTBEAT_SECONDS", 0.02)
    messages: list[str] = []

    def work(step: Step) -> None:
        step.notify("linking etcd")
        until(lambda: any("running: slow" in line and line.endswith("linking etcd") for line in messages))

    outcomes = Runner(messages.append).run([Part("slow", work)])

    assert summary(outcomes, 0).startswith("1 passed")


def test_a_termination_signal_ends_the_commands_like_a_key_press() -> None:
    program = "trap 'echo put away; exit 5' INT; echo ready; for beat in $(seq 6000); do sleep 0.05; done"
    messages: list[str] = []

    def work(step: Step) -> None:
        step.run(["sh", "-c", program])

    def stop() -> None:
        # It may print before the runner has noted that it was started; the log also holds the command, with the same words.
        try:
            until(lambda: bool(runner.STARTED) and any("ready" in one[1].tail() for one in list(made.running.values())))
        finally:
            runner.interrupt_children()

    # What is started inherits an ignored SIGINT, which is what a shell's background jobs have.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    made = Runner(messages.append, jobs=1)
    stopping = threading.Thread(target=stop)
    stopping.start()
    (outcome,) = made.run([Part("endless", work)])
    stopping.join(DEADLINE_SECONDS)

    assert outcome.counts.failed == 1
    assert any("put away" in map(str.strip, text.splitlines()) for text in messages)
    assert not runner.STARTED


def test_the_cpu_time_of_a_parts_commands_and_of_their_children_is_reported() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"

    def work(step: Step) -> None:
        step.run(["sh", "-c", f"{sys.executable} -c '{burn}'; true"])

    idle, busy = Runner(lambda text: None, jobs=1).run([Part("idle", passes), Part("busy", work)])
    assert idle.cpu == 0
    # The kernel counts in ticks.
    assert busy.cpu > 0.25
    assert durations([idle, busy]).startswith("seconds (CPU): busy ")
