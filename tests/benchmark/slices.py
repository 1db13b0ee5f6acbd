# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""enable_csi by slices of AWX on two execution nodes, beside one job over all hosts.

Receptor and ansible-runner are real. New hosts are set up by the most slices; then each number of slices runs over converged hosts.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration.kube import ACCOUNT, writes
from integration.mesh import NODES, Credential, Mesh, inventory_of, sliced
from integration.playbooks import family
from lab import handle
from lab.handle import Lab

from benchmark.report import Row
from benchmark.rig import BenchmarkError, requests_sent

_TICK = os.sysconf("SC_CLK_TCK")
_LOOK_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Ran:
    """All jobs of a launch together. cpu: seconds of the execution nodes. memory: the most that they took at a time, in MB.

    calls, writes: to the API server. requests: to all hosts.
    """

    seconds: float
    cpu: float
    memory: float
    calls: int
    writes: int
    requests: int


class _Memory:
    """The most memory of processes and all that comes of them, shared pages counted once, while a block runs."""

    def __init__(self, processes: Sequence[int]) -> None:
        self.most = 0.0
        self._processes = processes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> _Memory:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(_LOOK_EVERY):
            self.most = max(self.most, sum(map(_proportional, self._children())) / 1000)

    def _children(self) -> set[int]:
        found: set[int] = set()
        for process in self._processes:
            try:
                found.update(family(process))
            except OSError:
                # One that ended while its children were listed; the next look has the rest.
                continue
        return found


def _proportional(process: int) -> int:
    """Memory of a process in kB, pages that several have divided among them; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _spent(process: int) -> float:
    """Seconds of CPU of the children of a process that have ended, and of theirs."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICK


def measure(
    folder: Path, notify: Callable[[str], None], hosts: int, counts: Sequence[int], forks: int
) -> dict[str, Sequence[Row]]:
    """One table for new hosts, and one for each number of slices beside the first of counts."""
    notify(f"a cluster with {hosts} hosts")
    lab = handle.start(f"bench-slices-{os.getpid()}", nodes=hosts)
    mesh = Mesh(folder / "mesh")
    try:
        most = max(counts)
        notify(f"{most} slices over {hosts} new hosts")
        new = _launch(lab, mesh, most, forks)
        tables: dict[str, Sequence[Row]] = {
            f"enable_csi on {hosts} new hosts in {most} slices, {forks} forks each": _rows(new, None, hosts)
        }
        found: dict[int, Ran] = {}
        for count in counts:
            notify(f"{count} slices over {hosts} converged hosts")
            found[count] = _launch(lab, mesh, count, forks)
            if found[count].writes:
                raise BenchmarkError(f"{count} slices wrote {found[count].writes} times in a converged cluster")
        first = min(counts)
        for count in counts:
            title = f"enable_csi on {hosts} converged hosts in {count} slices, {forks} forks each (peer: {first})"
            tables[title] = _rows(found[count], found[first], hosts)
    finally:
        mesh.stop()
        lab.stop()
    return tables


def _rows(ours: Ran, peer: Ran | None, hosts: int) -> Sequence[Row]:
    def row(what: str, value: Callable[[Ran], float], unit: str = "", digits: int = 0) -> Row:
        return Row(what, value(ours), None if peer is None else value(peer), unit, digits)

    return [
        row("wall time", lambda ran: ran.seconds, "s", 1),
        row("CPU of the execution nodes", lambda ran: ran.cpu, "s", 1),
        row("memory of the execution nodes", lambda ran: ran.memory, "MB"),
        row("API calls", lambda ran: ran.calls),
        row("API writes", lambda ran: ran.writes),
        row("requests to each host", lambda ran: ran.requests / hosts, digits=1),
    ]


def _launch(lab: Lab, mesh: Mesh, count: int, forks: int) -> Ran:
    """Run the job template in so many slices. BenchmarkError with the output of one that fails."""
    inventory, credential = inventory_of(lab), Credential.of(lab)
    for host in lab.state.hosts:
        lab.front.counters(host.name, reset=True)
    size, spent, begin = lab.audit_size(), [_spent(pid) for pid in mesh.executors], time.monotonic()
    answers = {"kubewin_drivers": ["vsphere"], "kubewin_batches": "1,100%"}
    with _Memory(mesh.executors) as memory:
        running = [
            mesh.launch(
                "enable_csi.yml",
                sliced(inventory, number, count),
                credential,
                answers,
                node=NODES[number % len(NODES)],
                words=["--forks", str(forks)],
            )
            for number in range(1, count + 1)
        ]
        jobs = [one.finish() for one in running]
    seconds = time.monotonic() - begin
    for job in jobs:
        if job.code:
            raise BenchmarkError(f"job {job.number} ended with {job.code}:\n{job.explanation}\n{job.screen[-6000:]}")
    return Ran(
        seconds=seconds,
        cpu=sum(_spent(pid) for pid in mesh.executors) - sum(spent),
        memory=memory.most,
        calls=sum(entry["stage"] == "ResponseComplete" for entry in lab.audit(ACCOUNT, size)),
        writes=len(writes(lab, size)),
        requests=sum(requests_sent(lab.front.counters(host.name)) for host in lab.state.hosts),
    )
