# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts at every command of an installation, an upgrade and a removal, and between the steps of every line.

After each cut the node has a usable executable and service, or a state that the next run finishes; and the next run,
which starts at once, while the command whose reply was lost may still run, ends converged.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from lab.windows.channel import Cut
from lab.windows.cuts import ALL_KINDS, conversation, every_cut
from lab.windows.simulated import SimulatedServer
from unit.plugins.plugin_utils.windows.simulated import NEW, OLD, Artifacts, Host, simulated_host, wanted
from unit.plugins.plugin_utils.windows.test_life import plant_rancher

_names = itertools.count(1)
_AT_ONCE = 6

WRITES = re.compile(
    r"md |ren |rd |move |echo id=|.*(reg\.exe add|reg\.exe delete|sc\.exe (create|config|start|stop|failure|description))",
    re.IGNORECASE,
)
SLOW = r"sc\.exe (create|config|stop|start)|^ren |^md |taskkill|reg\.exe add"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a host has at first, what the run that is cut wants, and what the next run wants."""

    first: model.Desired | None
    cut_off: model.Desired
    next: model.Desired
    plant: Callable[[Host], None] | None = None
    """makes the host as `first` describes it"""

    @property
    def digests(self) -> set[str]:
        return {wanted.sha256 for wanted in (self.first, self.cut_off, self.next) if wanted}


def cuts_of(host: Host, desired: model.Desired) -> list[Cut]:
    """Every cut of the run that tries to bring ``host`` to ``desired``.

    A line is killed after each step that does something, not also after the mark that the step prints. Lines that only
    look are killed at their beginning and end.
    """
    host.forget()
    with contextlib.suppress(NodeError):
        host.run(desired)
    done = [entry["steps"] for entry in host.journal()]
    cuts = []
    sent = [replace(command, has_input="tar.exe" in command.line) for command in conversation(host.agent)]
    for cut in every_cut(sent, (*ALL_KINDS, "input_lost")):
        steps = done[cut.at]
        if cut.kind == "killed":
            reads_only = not any(WRITES.match(step) for step in steps)
            ends = (0, len(steps))
            if cut.after_steps not in ends and (
                reads_only or steps[cut.after_steps - 1].startswith(("echo #", "set k="))
            ):
                continue
            cuts.append(cut)
        else:
            # Once the connection stays lost, and once it recovers, so that the run can still roll back.
            cuts += [cut, replace(cut, for_good=False)]
    return cuts


def shown(cut: Cut) -> str:
    return f"{cut.kind} at {cut.at}" + (
        f" after {cut.after_steps} steps" if cut.kind == "killed" else f", for good: {cut.for_good}"
    )


def check(host: Host, cut: Cut, scenario: Scenario) -> str:
    """One cut; what went wrong, or ''."""
    desired = scenario.next
    # WinRS keeps the input of a lost client open for hours; here long enough for the next run to meet that tar.exe.
    host.agent.control("set", orphan_stdin_ms=500)
    if cut.kind == "reply_lost":
        # Slow enough that what runs on is still at work when the next run starts.
        host.fault(match=SLOW, times=12, delay_ms=15)
    with contextlib.suppress(NodeError):
        host.run(scenario.cut_off, cut=cut)
    if scenario.first is not None:
        # Whatever the service manager may start now, or after a reboot, is a whole, verified release.
        between = host.observe(desired)
        if between.service is None or between.executable_sha256 not in scenario.digests:
            return f"{shown(cut)}: the service runs {between.service and between.service.command_line}, {between.executable_sha256}"
    try:
        host.run(desired)
    except NodeError as error:
        return f"{shown(cut)}: the next run failed: {error.reason}: {error}; notes {host.notes}"
    host.quiet()
    last = host.run(desired)
    if last.changed and all(step.kind in ("prune", "clear_lock") for step in last.steps):
        # What ran on ended after the next run did: it left a staging directory or its lock, which is swept away now.
        last = host.run(desired)
    snapshot = last.snapshot
    if last.changed:
        return f"{shown(cut)}: a later run still changes {[step.kind for step in last.steps]}"
    if snapshot.lock or snapshot.lock_leftovers:
        return f"{shown(cut)}: a lock stays: {snapshot.lock} {snapshot.lock_leftovers}"
    if (
        snapshot.executable_sha256 != desired.sha256
        or snapshot.service is None
        or snapshot.service.state != model.RUNNING
    ):
        return f"{shown(cut)}: not converged: {snapshot.service}"
    state = host.agent.control("state")["state"]
    serving = [
        (process["path"].lower(), bool(process["pipes"]))
        for process in state["processes"]
        if process["image"] == "csi-proxy.exe"
    ]
    if serving != [(desired.executable.lower(), True)]:
        return f"{shown(cut)}: what runs is {serving}"
    return ""


def failures(server: SimulatedServer, cuts: list[Cut], scenario: Scenario) -> Iterator[str]:
    """What went wrong, cut by cut. Each worker has a host that goes back to its beginning after every cut."""
    hosts: queue.SimpleQueue[Host] = queue.SimpleQueue()

    def one(cut: Cut) -> str:
        host = hosts.get()
        try:
            host.agent.control("restore")
            host.forget()
            host.clear_faults()
            return check(host, cut, scenario)
        finally:
            hosts.put(host)

    with contextlib.ExitStack() as stack:
        for number in range(_AT_ONCE):
            host = stack.enter_context(simulated_host(server.address, f"cut-{next(_names)}-{number}"))
            if scenario.plant is not None:
                scenario.plant(host)
            elif scenario.first is not None:
                host.run(scenario.first)
            host.agent.control("snapshot")
            hosts.put(host)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from filter(None, pool.map(one, cuts))


# The lines that download are cut in the upgrade too.
@pytest.mark.parametrize("push", [pytest.param(False, marks=pytest.mark.torture), True], ids=["pull", "push"])
def test_every_interruption_of_an_installation(
    server: SimulatedServer, host: Host, artifacts: Artifacts, push: bool
) -> None:
    artifact = artifacts.csi_proxy(NEW)
    desired = wanted(artifact, **({"source": str(artifact.path)} if push else {}))
    cuts = cuts_of(host, desired)
    assert {cut.kind for cut in cuts} == {*ALL_KINDS, *(["input_lost"] if push else [])}
    assert len(cuts) > 60
    assert list(failures(server, cuts, Scenario(None, desired, desired))) == []


def test_every_interruption_of_an_upgrade(server: SimulatedServer, host: Host, artifacts: Artifacts) -> None:
    old, new = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)
    cuts = cuts_of(host, new)
    assert len(cuts) > 100
    assert list(failures(server, cuts, Scenario(old, new, new))) == []


@pytest.mark.torture
def test_every_interruption_of_a_take_over(server: SimulatedServer, host: Host, artifacts: Artifacts) -> None:
    plant_rancher(host)
    new = wanted(artifacts.csi_proxy(NEW), take_over="rancher-wins")
    before = replace(new, sha256=host.observe(new).executable_sha256 or "")
    cuts = cuts_of(host, new)
    assert len(cuts) > 100
    assert list(failures(server, cuts, Scenario(before, new, new, plant_rancher))) == []


@pytest.mark.torture
@pytest.mark.parametrize("after", [OLD, "1.2.1"])
@pytest.mark.parametrize("behaviour", [{"start": "exit:2"}, {"start": "crash:2"}, {"pipes": "none"}], ids=str)
def test_every_interruption_of_a_failing_upgrade_and_of_its_rollback(
    server: SimulatedServer, host: Host, artifacts: Artifacts, behaviour: dict[str, str], after: str
) -> None:
    old, bad = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW, **behaviour))
    host.run(old)
    cuts = cuts_of(host, bad)
    then = wanted(artifacts.csi_proxy(after), allow_downgrade=True)
    assert list(failures(server, cuts, Scenario(old, bad, then))) == []


@pytest.mark.torture
def test_every_interruption_of_a_removal(server: SimulatedServer, host: Host, artifacts: Artifacts) -> None:
    installed, absent = wanted(artifacts.csi_proxy(OLD)), wanted(None, state="absent")
    host.run(installed)
    host.agent.control("snapshot")
    cuts = cuts_of(host, absent)
    assert len(cuts) > 20
    for cut in cuts:
        host.agent.control("restore")
        host.forget()
        host.clear_faults()
        if cut.kind == "reply_lost":
            host.fault(match=SLOW, times=12, delay_ms=15)
        with contextlib.suppress(NodeError):
            host.run(absent, cut=cut)
        host.run(absent)
        host.quiet()
        last = host.run(absent)
        if last.steps:
            # What ran on ended after the next run did, and left its lock.
            assert {step.kind for step in last.steps} == {"clear_lock"}, shown(cut)
            last = host.run(absent)
        snapshot = last.snapshot
        left = (snapshot.service, snapshot.owns_install_dir, snapshot.install_dir_exists, snapshot.lock, snapshot.pipes)
        assert left == (None, False, False, None, ()), shown(cut)
