# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting and ending a lab from outside: `up` and `down` as functions."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import builds, control, state
from lab.spec import Spec
from lab.state import LabError, LabState
from lab.windows.wine import base_prefix, find_wine

Notify = Callable[[str], None]
CONTROL_PLANE = ("controlplane", "etcd", "kwok")
WINDOWS_PROGRAMS = {
    "wine": ("winland-windows", "csiclient", *(f"csi-proxy-{release}" for release in builds.CSI_PROXY_RELEASES)),
    "simulated": ("winland-linux",),
    "none": (),
}
# A busy machine needs more than a moment to take a dozen processes down.
END_SECONDS = 60.0
NAMESPACE_FLAGS = ("--pid", "--fork", "--kill-child", "--mount-proc")


def _namespace() -> list[str]:
    """unshare(1) with what this machine allows; without root, through a user namespace of our own."""
    prefixes: list[tuple[str, ...]] = [("unshare",)] if os.geteuid() == 0 else []
    prefixes.append(("unshare", "--user", "--map-root-user"))
    trouble = ""
    for prefix in prefixes:
        command = [*prefix, *NAMESPACE_FLAGS]
        try:
            done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False, timeout=60)
        except FileNotFoundError:
            raise LabError("unshare(1) is not installed: apt-get install util-linux") from None
        if done.returncode == 0:
            return command
        trouble = done.stderr.strip()
    raise LabError(
        f"no PID namespace can be made here ({trouble}), and the lab lives in one so that nothing is left behind. "
        "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
        "kernel.apparmor_restrict_unprivileged_userns=0), or run as root"
    )


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One `up` or `down` of a lab at a time. The lock's file goes when the lab's folder has gone."""
    state.root().mkdir(parents=True, exist_ok=True)
    path = state.root() / f".{name}.lock"
    while True:
        with path.open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not _same_file(path, handle.fileno()):
                # Its former holder has removed it: the lock that we hold excludes no other run.
                continue
            try:
                yield
            finally:
                if not state.paths(name).directory.exists():
                    path.unlink(missing_ok=True)
            return


def _same_file(path: Path, descriptor: int) -> bool:
    try:
        there, held = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)


def binaries(windows: str, report: builds.Reporter | None = None) -> dict[str, str]:
    """Every program that a lab of this kind runs, built if need be."""
    found: dict[str, str] = {}
    for name in (*CONTROL_PLANE, *WINDOWS_PROGRAMS[windows]):
        found.update({file: str(path) for file, path in builds.build(name, report).items()})
    return found


def prepare_wine(report: builds.Reporter) -> None:
    """Make sure that hosts can run on Wine: it is installed, and the prefix that they are copied from is made.

    Raises LabError (WineMissing when it is not installed).
    """
    base_prefix(find_wine(), builds.cache(), report.line)


def running(name: str) -> LabState | None:
    """The lab if it is up and healthy; None when none runs."""
    if not state.alive(name):
        return None
    try:
        return state.load(name) if control.call(name, "status")["healthy"] else None
    except LabError:
        return None


def up(spec: Spec, notify: Notify, lifeline: int | None = None) -> LabState:
    """Start a lab, whose binaries are built; one that is up and healthy by now is answered as it is.

    `lifeline` is the reading end of a pipe: the lab ends once its writing end is closed.
    Raises LabError with what failed; nothing runs then.
    """
    with _alone(spec.name):
        # Another `up` may have held the lock.
        if (found := running(spec.name)) is not None:
            return found
        if state.alive(spec.name):
            _end(spec.name)
        state.clean(spec.name)
        place = state.paths(spec.name)
        place.logs.mkdir(parents=True)
        place.directory.chmod(0o700)
        spec_file = place.directory / "spec.json"
        spec.write(spec_file)
        return _launch(spec, spec_file, notify, lifeline)


def _launch(spec: Spec, spec_file: Path, notify: Notify, lifeline: int | None) -> LabState:
    reading, writing = os.pipe()
    command = [*_namespace(), sys.executable, "-m", "lab.supervisor", str(spec_file), "--progress", str(writing)]
    passed = [writing]
    if lifeline is not None:
        command += ["--lifeline", str(lifeline)]
        passed.append(lifeline)
    search = [str(Path(__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search)}
    place = state.paths(spec.name)
    with (place.logs / "supervisor.log").open("ab") as log, place.lock.open("w") as lock:
        # unshare(1) keeps the lock open, and it waits until the last process of the namespace is gone.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[*passed, lock.fileno()],
            start_new_session=True,
            env=environment,
        )
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in lines:
                message = json.loads(line)
                if "text" in message:
                    notify(message["text"])
                elif message.get("ready"):
                    _started[spec.name] = process
                    return state.load(spec.name)
                elif "failed" in message:
                    process.wait(60)
                    raise LabError(message["failed"])
        process.wait(60)
        text = (place.logs / "supervisor.log").read_text(errors="replace")
        raise LabError(f"the lab's supervisor ended with {process.returncode} while it started:\n" + text[-2000:])
    except BaseException:
        # Interrupted or failed: unshare's --kill-child takes the namespace along.
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        raise


# The unshare(1) of each lab that this process started.
_started: dict[str, subprocess.Popen[bytes]] = {}


def down(name: str, keep: bool = False) -> bool:
    """End a lab and remove its folder (`keep` leaves it for inspection); answers whether it was up."""
    with _alone(name):
        was_up = state.alive(name)
        if was_up:
            _end(name)
        if (process := _started.pop(name, None)) is not None:
            process.wait()
        if not keep:
            state.clean(name)
        return was_up


def _end(name: str) -> None:
    try:
        control.call(name, "down", timeout=30)
    except LabError:
        # It does not answer: its lock names the holder.
        _kill_holder(name)
    deadline = time.monotonic() + END_SECONDS
    while state.alive(name):
        if time.monotonic() > deadline:
            raise LabError(
                f"lab {name!r} is still running {END_SECONDS:g} s after its stop was requested; see {state.paths(name).logs}"
            )
        time.sleep(0.02)


def _kill_holder(name: str) -> None:
    """Kill the supervisor of a lab that does not answer: the process with the lab's lock file open."""
    lock = state.paths(name).lock.stat()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"lab.supervisor" not in words:
                continue
            held = [entry.stat() for entry in (folder / "fd").iterdir()]
        except OSError:
            continue
        if any((found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino) for found in held):
            os.kill(int(folder.name), signal.SIGKILL)
