# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A module's process: what it starts with, and how it can end. The actions around it: tests/integration/test_controller_actions.py."""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils import controller
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import _result, beside, display, in_child


def _print(text: str) -> None:
    sys.stdout.write(text)


def test_its_output_is_returned_with_its_exit_code() -> None:
    def work() -> None:
        sys.stdout.write("to stdout")
        sys.stderr.write("to stderr")
        raise SystemExit(3)

    assert in_child(work) == (3, "to stdout", "to stderr")


def test_more_than_a_pipe_holds_is_read_whole() -> None:
    def work() -> None:
        sys.stdout.write("o" * 1_000_000)
        sys.stderr.write("e" * 1_000_000)

    status, stdout, stderr = in_child(work)
    assert (status, len(stdout), len(stderr)) == (0, 1_000_000, 1_000_000)


def test_text_that_is_not_unicode_is_returned() -> None:
    status, stdout, _stderr = in_child(lambda: os.write(1, b"\xff{}"))
    assert (status, stdout) == (0, "\ufffd{}")


def test_an_exception_ends_the_child_alone() -> None:
    def work() -> None:
        raise KeyboardInterrupt("of the child")

    status, stdout, stderr = in_child(work)
    assert (status, stdout) == (1, "")
    assert stderr.splitlines()[-1] == "KeyboardInterrupt: of the child"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGALRM])
def test_signals_end_it_although_the_parent_handles_them(number: signal.Signals) -> None:
    def kill() -> None:
        os.kill(os.getpid(), number)
        time.sleep(60)

    before = [] if number == signal.SIGKILL else [signal.signal(number, lambda *_given: None)]
    try:
        assert in_child(kill)[0] == -number
    finally:
        for handler in before:
            signal.signal(number, handler)


def test_it_runs_its_own_exit_functions_and_not_the_parents(tmp_path: Path) -> None:
    """Ansible registers the removal of its temporary files, which a module's end must not remove."""
    of_parent, of_child = tmp_path / "parent", tmp_path / "child"
    atexit.register(of_parent.touch)
    try:
        in_child(lambda: atexit.register(of_child.touch))
    finally:
        atexit.unregister(of_parent.touch)
    assert of_child.exists()
    assert not of_parent.exists()


def test_it_waits_for_its_threads() -> None:
    def later() -> None:
        time.sleep(0.3)
        _print("late")

    assert in_child(threading.Thread(target=later).start)[1] == "late"


def test_it_has_no_files_of_the_parent() -> None:
    """The queue and the pipes of Ansible's processes would stay open as long as a module."""
    reading, writing = os.pipe()
    try:
        status, stdout, _stderr = in_child(lambda: _print(str(sorted(os.listdir("/proc/self/fd")))))
    finally:
        os.close(reading)
        os.close(writing)
    # The last one is the listing's own.
    assert (status, stdout) == (0, "['0', '1', '2', '3']")


def test_it_detects_a_closed_reader(tmp_path: Path) -> None:
    """As the modules detect it: an error on stdout (module_utils/kube/progress.py)."""
    observed = tmp_path / "observed"

    def work() -> None:
        poll = select.poll()
        poll.register(1, 0)
        _print("begun")
        sys.stdout.flush()
        if poll.poll(60_000):
            observed.touch()

    class Over(BaseException):
        """As the time limit of a task."""

    def over() -> None:
        raise Over

    with pytest.raises(Over):
        in_child(work, over)
    os.wait()
    assert observed.exists()


def test_something_can_be_done_meanwhile_and_once_at_the_end() -> None:
    calls: list[float] = []
    in_child(lambda: time.sleep(0.7), lambda: calls.append(time.monotonic()))
    assert len(calls) >= 3


def test_subprocesses_of_a_module_work() -> None:
    """As programs that a kubeconfig names for credentials."""
    assert in_child(lambda: subprocess.run(["echo", "token"], check=True))[:2] == (0, "token\n")


@pytest.mark.parametrize(
    ("stdout", "found"),
    [
        ('\n{"changed": false, "_ansible_x": 1, "invocation": {}}\n', {"changed": False}),
        ('noise\n{"changed": true}\nmore {noise}\n{no json}\n', {"changed": True}),
    ],
)
def test_the_result_is_found_among_what_libraries_print(stdout: str, found: dict[str, Any]) -> None:
    assert _result("kubewin.csi.node_info", 0, stdout, "") == found


@pytest.mark.parametrize(
    ("status", "stderr", "expected"),
    [
        (-9, "", "the process of the module was ended by SIGKILL, expected a result. Find the cause"),
        (
            1,
            "Traceback\nValueError: no\n",
            "the process of the module ended with code 1: ValueError: no, expected a result.",
        ),
        (0, "", "the process of the module ended with code 0: no output, expected a result."),
    ],
)
def test_a_module_without_a_result_is_named_with_how_it_ended(
    monkeypatch: pytest.MonkeyPatch, status: int, stderr: str, expected: str
) -> None:
    result = _result("kubewin.csi.node_info", status, "no object\n", stderr)
    assert result["failed"] is True
    assert result["reason"] == "module_lost"
    assert result["msg"].startswith(f"kubewin.csi.node_info: {expected}")
    assert "traceback" not in result
    # As the message describes for -vvv.
    monkeypatch.setattr(display, "verbosity", 3)
    assert _result("kubewin.csi.node_info", status, "", stderr).get("traceback", []) == stderr.splitlines()


def test_a_background_process_outlives_the_task_and_holds_nothing_of_it(tmp_path: Path) -> None:
    ended, observed = tmp_path / "ended", tmp_path / "observed"

    def work() -> None:
        waited = 0.0
        while not ended.exists() and waited < 300:
            time.sleep(0.05)
            waited += 0.05
        sys.stdout.write("to nobody")
        observed.write_text(str(os.getsid(0) == os.getpid()), encoding="utf-8")

    # Its pipes are closed when the task ends, or this would wait for ever.
    assert in_child(lambda: beside(work)) == (0, "", "")
    assert not observed.exists()
    ended.touch()
    deadline = time.monotonic() + 300
    while not (observed.exists() and observed.read_text(encoding="utf-8")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert observed.read_text(encoding="utf-8") == "True"


def test_a_process_beside_the_task_is_no_zombie_of_it() -> None:
    def work() -> None:
        beside(lambda: None)
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, 0)

    assert in_child(work) == (0, "", "")


@pytest.mark.parametrize("listed", [True, False], ids=["Linux", "without /proc"])
def test_open_descriptors_are_closed_without_a_try_for_every_number(
    monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    """A container may allow a thousand million descriptors, and only Linux 5.9 closes a range at once."""
    tried: list[int] = []

    def close_range(first: int, last: int) -> None:
        tried.append(last - first)

    monkeypatch.setattr(os, "closerange", close_range)
    monkeypatch.setattr(os, "sysconf", lambda _name: 1 << 30)
    if not listed:
        monkeypatch.setattr(controller, "_DESCRIPTORS", "/nowhere")

    def work() -> None:
        sys.stdout.write(f"{sum(tried) < 1 << 17} {os.path.exists(f'/proc/self/fd/{descriptor}')}")

    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        # What stands for closing a range here closes nothing.
        assert in_child(work) == (0, f"True {not listed}", "")
    finally:
        os.close(descriptor)
