# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A converged enable_csi, which is what a user waits for, beside a bare loop of as many actions that do nothing.

In a lab of its own every host is set up once; then the second run is measured. The peer is the same ansible-playbook with the
same hosts and forks, and as many tasks for each host as the second run had results.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import handle
from lab.state import REPOSITORY

from benchmark.report import Row
from benchmark.rig import BenchmarkError, environment, requests_sent

_RECAP = re.compile(
    r"^\S+\s+: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s+unreachable=0\s+failed=0\s+skipped=(?P<skipped>\d+)",
    re.MULTILINE,
)


# Budgets: seconds of the controller's CPU for each further host and besides, and requests of a look at a host.
_FURTHER, _BESIDES, _REQUESTS = 0.15, 3.0, 13


@dataclass(frozen=True, slots=True)
class Ran:
    """One run. cpu: the controller's seconds of it. results: of tasks, skipped ones included."""

    seconds: float
    cpu: float
    changed: int
    results: int


def measure(folder: Path, notify: Callable[[str], None], counts: Sequence[int], forks: int) -> dict[str, Sequence[Row]]:
    """A table for each number of hosts, and one for what a further host costs."""
    tables: dict[str, Sequence[Row]] = {}
    cpu: dict[int, tuple[float, float]] = {}
    for count in counts:
        title = f"Converged enable_csi, {count} simulated hosts, {forks} forks (peer: as many actions that do nothing)"
        tables[title], cpu[count] = _of(folder, notify, count, forks)
    if len(cpu) > 1:
        few, many = min(cpu), max(cpu)
        ours, peer = ((cpu[many][side] - cpu[few][side]) / (many - few) for side in (0, 1))
        tables[f"Controller CPU of a converged enable_csi, from {few} and {many} hosts"] = [
            Row("for each further host", ours, peer, "s", 2, at_most=_FURTHER),
            Row("besides", cpu[few][0] - few * ours, cpu[few][1] - few * peer, "s", 1, at_most=_BESIDES),
        ]
    return tables


def _of(
    folder: Path, notify: Callable[[str], None], count: int, forks: int
) -> tuple[Sequence[Row], tuple[float, float]]:
    notify(f"a cluster with {count} hosts")
    lab = handle.start(f"bench-enable-{count}-{os.getpid()}", nodes=count)
    try:
        inventory = str(lab.state.inventories["ntlm-http"])
        enable = [
            str(REPOSITORY / "playbooks" / "enable-csi.yml"),
            "-i",
            inventory,
            "-e",
            json.dumps({"kubewin_drivers": "vsphere"}),
        ]
        notify(f"enable_csi on {count} new hosts")
        # All at once after the canary: batches are no part of what is measured.
        _run(folder, [*enable, "-e", json.dumps({"kubewin_batches": "1,100%"})], forks=50)
        for host in lab.state.hosts:
            lab.front.counters(host.name, reset=True)
        size = lab.audit_size()
        notify(f"enable_csi on {count} converged hosts")
        ours = _run(folder, enable, forks=forks)
        if ours.changed:
            raise BenchmarkError(f"enable_csi changed {ours.changed} things in its second run, so nothing is measured")
        calls = len(
            [
                one
                for one in lab.audit("system:serviceaccount:kubewin:kubewin", size)
                if one["stage"] == "ResponseComplete"
            ]
        )
        counters = [lab.front.counters(host.name) for host in lab.state.hosts]
        requests = sum(map(requests_sent, counters))
        kilobytes = sum(one["bytes_in"] + one["bytes_out"] for one in counters) / 1000
    finally:
        lab.stop()
    notify(f"{ours.results} actions that do nothing")
    peer = _run(folder, _nothing(folder, count, ours.results), forks=forks)
    rows = [
        Row("wall time", ours.seconds, peer.seconds, "s", 1),
        Row("controller CPU", ours.cpu, peer.cpu, "s", 1, at_most=_BESIDES + _FURTHER * count),
        Row("results of tasks", ours.results, peer.results),
        Row("requests to each host", requests / count, digits=1, at_most=_REQUESTS),
        Row("kB with each host", kilobytes / count, unit="kB", digits=1),
        Row("API calls", calls),
    ]
    return rows, (ours.cpu, peer.cpu)


def _nothing(folder: Path, count: int, results: int) -> list[str]:
    """A play whose tasks have as many results and do nothing."""
    task = {"name": "Do nothing", "ansible.builtin.debug": {"msg": "", "verbosity": 4}}
    play = {
        "name": "Do nothing",
        "hosts": "all",
        "gather_facts": False,
        "tasks": [task] * max(1, round(results / count)),
    }
    playbook, inventory = folder / "idle-peer.yml", folder / "idle-peer.json"
    playbook.write_text(json.dumps([play]), encoding="utf-8")
    inventory.write_text(
        json.dumps({"all": {"hosts": {f"none-{number}": {} for number in range(count)}}}), encoding="utf-8"
    )
    return [str(playbook), "-i", str(inventory)]


def _run(folder: Path, arguments: Sequence[str], *, forks: int) -> Ran:
    """Run a playbook and measure it from outside. BenchmarkError with its output when it fails."""
    log = folder / "enable.log"
    begin = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("ansible-playbook")), *arguments, "--forks", str(forks)],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        _pid, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding="utf-8", errors="replace")
    recap = list(_RECAP.finditer(text))
    if process.returncode != 0 or not recap:
        raise BenchmarkError(f"{arguments[0]} ended with {process.returncode}:\n{text[-6000:]}")
    return Ran(
        seconds=seconds,
        cpu=usage.ru_utime + usage.ru_stime,
        changed=sum(int(one["changed"]) for one in recap),
        results=sum(int(one["ok"]) + int(one["skipped"]) for one in recap),
    )


def _environment() -> Mapping[str, str]:
    return {**environment(), "ANSIBLE_SHOW_CUSTOM_STATS": "0"}
