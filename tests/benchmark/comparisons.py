# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparisons with ansible.windows. Each puts both sides on new hosts in one run and answers tables of rows."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmark import enable, gate, readiness, slices
from benchmark.report import Row
from benchmark.rig import BenchmarkError, Figures, Rig

RELEASE = "1.3.0"
PUSHED_BYTES = 25 * 1024 * 1024
PULLED = f"csi-proxy-{RELEASE}.exe"
PUSHED = "csi-proxy-25MB.exe"
DEFAULT_FORKS = 5
# Seconds that a PowerShell takes to start on a host whose assemblies are compiled ahead of time; others take several.
USUAL_START = 0.2

Progress = Callable[[str], None]


@dataclass(slots=True)
class Plan:
    """What to measure with: how many hosts, forks and PowerShell start times (seconds) to compare at.

    enabled: numbers of hosts of a whole converged enable_csi. sliced, slices: hosts of enable_csi by slices, and numbers of slices.
    smallest: each part in its smallest form, whose figures mean nothing.
    """

    rig: Rig
    artifacts: Path
    notify: Progress
    hosts: int = 100
    forks: Sequence[int] = (DEFAULT_FORKS,)
    starts: Sequence[float] = (USUAL_START,)
    enabled: Sequence[int] = (50, 200)
    sliced: int = 200
    slices: Sequence[int] = (1, 2, 4)
    smallest: bool = False
    _next: Iterator[int] = field(default_factory=lambda: iter(range(1, 100000)))

    def number(self, count: int = 1) -> int:
        """The first of ``count`` free host numbers."""
        first = next(self._next)
        for _more in range(count - 1):
            next(self._next)
        return first

    def ours(self, source: str, artifact: str) -> dict[str, object]:
        """Variables of our playbook."""
        return {"ours_release": RELEASE, "ours_source": source, "ours_sha256": self.sha256(artifact)}

    def peer(self, artifact: str, *, url: str = "", file: str = "") -> dict[str, object]:
        """Variables of the peer's playbook."""
        return {
            "csi_proxy_peer_release": RELEASE,
            "csi_proxy_peer_sha256": self.sha256(artifact),
            "csi_proxy_peer_url": url,
            "csi_proxy_peer_file": file,
        }

    def sha256(self, artifact: str) -> str:
        return hashlib.sha256((self.artifacts / artifact).read_bytes()).hexdigest()


def write_programs(folder: Path) -> None:
    """Programs that simulated hosts run as csi-proxy: one of ordinary size, one to push. Not compressible."""
    head = b"WINLAND-EXE " + json.dumps({"kind": "csi-proxy", "release": RELEASE}).encode() + b"\n"
    noise = random.Random(1)
    for name, size in ((PULLED, 17 * 1024 * 1024), (PUSHED, PUSHED_BYTES)):
        (folder / name).write_bytes(head + noise.randbytes(size - len(head)))


def single(plan: Plan) -> dict[str, Sequence[Row]]:
    """One host: first install by pull, then converged."""
    number = plan.number()
    ours, peer = plan.rig.add_hosts("ours", number, 1), plan.rig.add_hosts("peer", number, 1)
    url = plan.rig.url(PULLED)
    our_variables, peer_variables = plan.ours(url, PULLED), plan.peer(PULLED, url=url)
    plan.notify("first install, the node pulls")
    first = _both(plan.rig, ours, peer, our_variables, peer_variables)
    _expect("first install", first[0].changed > 0 and first[1].changed > 0)
    plan.notify("converged")
    again = _both(plan.rig, ours, peer, our_variables, peer_variables)
    _expect("second run without changes", again[0].changed == 0 and again[1].changed == 0)
    again_parts = plan.rig.parts(ours[0], again[0])
    # Of a run that a busy machine let wait, the bytes are those of more requests than the budget is for.
    for _again in range(3):
        whole = plan.rig.play("ours", ours, our_variables, playbook="ours_play.yml")
        if not whole.waits:
            break
    whole_parts = plan.rig.parts(ours[0], whole)
    return {
        "Converged, one host, WinRM over HTTP with Basic (peer: ansible.windows)": [
            Row("requests", again[0].requests, again[1].requests, at_most=4),
            Row("bytes", again[0].bytes / 1000, again[1].bytes / 1000, "kB", 1, at_most=23, why=again_parts),
            Row("PowerShell starts", again[0].starts, again[1].starts, at_most=0),
            *_times(again),
            Row(
                "a play that observes first: requests",
                whole.requests,
                again[1].requests,
                at_most=8,
                why=whole_parts,
            ),
            Row(
                "a play that observes first: bytes",
                whole.bytes / 1000,
                again[1].bytes / 1000,
                "kB",
                1,
                at_most=45,
                why=whole_parts,
            ),
        ],
        "First install, the node pulls (peer: ansible.windows)": [
            Row("requests", first[0].requests, first[1].requests, at_most=30),
            Row("bytes", first[0].bytes / 1000, first[1].bytes / 1000, "kB", 1),
            Row("PowerShell starts", first[0].starts, first[1].starts, at_most=0),
            *_times(first),
        ],
    }


def push(plan: Plan) -> dict[str, Sequence[Row]]:
    """One host: first install with a program of 25 MB that the controller sends."""
    number = plan.number()
    ours, peer = plan.rig.add_hosts("ours", number, 1), plan.rig.add_hosts("peer", number, 1)
    file = str(plan.artifacts / PUSHED)
    plan.notify("first install, 25 MB pushed")
    both = _both(plan.rig, ours, peer, plan.ours(file, PUSHED), plan.peer(PUSHED, file=file))
    _expect("first install", both[0].changed > 0 and both[1].changed > 0)
    return {
        "First install, the controller pushes 25 MB (peer: ansible.windows)": [
            Row("bytes sent per byte", both[0].sent / PUSHED_BYTES, both[1].sent / PUSHED_BYTES, "", 2, at_most=1.4),
            Row("requests", both[0].requests, both[1].requests),
            Row("PowerShell starts", both[0].starts, both[1].starts, at_most=0),
            *_times(both),
        ]
    }


def many(plan: Plan) -> dict[str, Sequence[Row]]:
    """Many converged hosts, one controller, at several numbers of forks and PowerShell start times."""
    first = plan.number(plan.hosts)
    ours = plan.rig.add_hosts("ours", first, plan.hosts)
    peer = plan.rig.add_hosts("peer", first, plan.hosts)
    url = plan.rig.url(PULLED)
    our_variables, peer_variables = plan.ours(url, PULLED), plan.peer(PULLED, url=url)
    plan.notify(f"first install on {plan.hosts} hosts")
    plan.rig.start_seconds(0)
    plan.rig.play("ours", ours, our_variables, forks=20)
    plan.rig.play("peer", peer[:1], peer_variables)
    plan.rig.clone_peers(peer[0], peer[1:])
    tables: dict[str, Sequence[Row]] = {}
    for forks in plan.forks:
        plan.notify(f"{plan.hosts} hosts converged, {forks} forks")
        mine = plan.rig.play("ours", ours, our_variables, forks=forks)
        _expect("converged hosts", mine.changed == 0)
        rows: list[Row] = []
        for seconds in plan.starts:
            plan.notify(f"the same by ansible.windows, PowerShell starts in {seconds:g} s")
            plan.rig.start_seconds(seconds)
            other = plan.rig.play("peer", peer, peer_variables, forks=forks)
            _expect("converged hosts", other.changed == 0)
            budget = 10 if seconds == USUAL_START and forks == DEFAULT_FORKS else None
            what = f"wall time, PowerShell starts in {seconds:g} s"
            rows.append(Row(what, mine.seconds, other.seconds, "s", 1, at_least=budget))
        rows.append(Row("controller CPU", mine.cpu, other.cpu, "s", 1))
        rows.append(Row("requests", mine.requests, other.requests))
        rows.append(Row("bytes", mine.bytes / 1e6, other.bytes / 1e6, "MB", 1))
        tables[f"{plan.hosts} hosts converged, one controller, {forks} forks (peer: ansible.windows)"] = rows
    plan.rig.start_seconds(0)
    return tables


def waiting(plan: Plan) -> dict[str, Sequence[Row]]:
    """The gate against polling."""
    return gate.measure(plan.rig.folder, plan.notify, gate.PHASES[: 1 if plan.smallest else None])


def enabling(plan: Plan) -> dict[str, Sequence[Row]]:
    """A whole converged run of enable_csi."""
    return enable.measure(plan.rig.folder, plan.notify, plan.enabled, DEFAULT_FORKS)


def slicing(plan: Plan) -> dict[str, Sequence[Row]]:
    """enable_csi by slices of AWX."""
    return slices.measure(plan.rig.folder, plan.notify, plan.sliced, plan.slices, DEFAULT_FORKS)


def evaluating(plan: Plan) -> dict[str, Sequence[Row]]:
    """A large cluster read and evaluated."""
    return readiness.measure(plan.rig.folder, plan.notify, readiness.TINY if plan.smallest else readiness.SIZES)


COMPARISONS: Mapping[str, Callable[[Plan], dict[str, Sequence[Row]]]] = {
    "single": single,
    "push": push,
    "many": many,
    "gate": waiting,
    "readiness": evaluating,
    "enable": enabling,
    "slices": slicing,
}


def _both(
    rig: Rig,
    ours: list[str],
    peer: list[str],
    our_variables: Mapping[str, object],
    peer_variables: Mapping[str, object],
) -> tuple[Figures, Figures]:
    rig.start_seconds(USUAL_START)
    return rig.play("ours", ours, our_variables), rig.play("peer", peer, peer_variables)


def _times(both: tuple[Figures, Figures]) -> list[Row]:
    return [
        Row(f"wall time, PowerShell starts in {USUAL_START:g} s", both[0].seconds, both[1].seconds, "s", 1),
        Row("controller CPU", both[0].cpu, both[1].cpu, "s", 1),
    ]


def _expect(what: str, exists: bool) -> None:
    if not exists:
        raise BenchmarkError(f"{what}: the run did not do what it should, so nothing is measured")
