# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the walk with a real control plane on random clusters, and print what it came to after each batch.

    python -m integration.oracle --seed 1 --pods 2000 --admissions 1000 --workloads 400 --replacements 90 --rolls 100
    python -m integration.oracle --known-seeds
    python -m integration.oracle --record

The second compares what the seeds so far draw. The third writes the answers that unit tests compare the walk with. API server,
controllers and scheduler are real. KWOK and stand-ins are kubelet, provisioner and attacher: that a pod on a node starts is no
proof. Between batches the objects that a whole server has are replaced: default classes, a default priority, CSIDrivers. A batch
in which an exception is raised counts as failed, and the next one follows.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from integration.oracle_admission import AdmissionOracle
from integration.oracle_revisions import RevisionOracle
from integration.oracle_rolls import RollOracle, RollTally
from integration.oracle_scheduling import SchedulingOracle
from integration.oracle_shared import GROUPS, SharedObjects, find_default_class, leave_classes_out
from integration.oracle_workloads import WorkloadOracle, WorkloadTally
from lab import handle
from lab.handle import Lab
from situations.random_clusters import made
from situations.recorded_answers import Recording, store_recordings

_COLUMNS = ("cases", "yes", "no", "placement", "unknown", "if assumed", "too hopeful", "too wary", "failed")
_ROWS = {
    "pod": "pods, by the scheduler", "admission": "pods, by admission", "workload": "workloads, by controllers",
    "replacement": "next pods, by revisions", "roll": "rolls, by drains",
}  # fmt: skip
# Of each kind, how many are compared at a time at most.
_BATCHES = {"pod": 1000, "admission": 1000, "workload": 40, "replacement": 16, "roll": 16}
# Of the file for unit tests.
_RECORDED = {"pod": 600, "admission": 400, "workload": 80, "replacement": 30, "roll": 32}
# What has been compared so far: of each seed how many pods, admissions, workloads and rolls.
_KNOWN_SEEDS: dict[str, dict[str, int]] = {
    seed: dict(zip(_ROWS, counts, strict=True))
    for seed, counts in {
        "23": (0, 0, 0, 0, 48), "24": (0, 0, 0, 0, 48), "25": (0, 0, 0, 0, 48),
        "31": (600, 360, 18, 0, 0), "32": (600, 360, 18, 0, 0), "41": (600, 360, 18, 0, 0), "42": (0, 0, 18, 0, 48),
        "43": (0, 0, 36, 0, 0), "51": (300, 120, 36, 48, 48), "52": (300, 120, 36, 48, 0), "53": (300, 120, 18, 48, 0),
        "77": (300, 120, 18, 48, 16),
    }.items()
}  # fmt: skip


class OracleRun:
    """The oracles in one lab, batch by batch."""

    def __init__(self, lab: Lab, seed: str) -> None:
        self._lab, self._seed = lab, seed
        self._kubeconfig = lab.state.kubeconfigs["admin"]
        self._shared = SharedObjects(lab.api, seed)
        self._counts: dict[str, Counter[str]] = {kind: Counter() for kind in _ROWS}
        self.recordings: list[Recording] = []
        self.has_failed = False

    def __str__(self) -> str:
        head = f"{f'seed {self._seed}':28}" + "".join(f"{column:>13}" for column in _COLUMNS)
        rows = (
            f"{title:28}" + "".join(f"{self._counts[kind][column]:>13}" for column in _COLUMNS)
            for kind, title in _ROWS.items()
        )
        return "\n".join([head, *rows])

    def add(self, other: OracleRun) -> None:
        """Count what another run came to as well."""
        self.has_failed |= other.has_failed
        for kind, counts in other._counts.items():
            self._counts[kind].update(counts)

    def compare_all(self, wanted: Mapping[str, int]) -> Iterator[None]:
        """Compare so many of each kind, and stop after each batch. Each group of shared objects has a batch at least."""
        for kind, count in wanted.items():
            batches = max(GROUPS, -(-count // _BATCHES[kind]))
            sizes = [count * (batch + 1) // batches - count * batch // batches for batch in range(batches)]
            for batch, size in enumerate(sizes):
                if size:
                    try:
                        self._shared.replace(batch)
                        self.compare(kind, batch, size)
                    except Exception:
                        print(f"{kind} {self._seed}-{batch}: failed\n{traceback.format_exc()}", flush=True)
                        self._counts[kind]["failed"] += size
                        self.has_failed = True
                    yield
        self._shared.delete()

    def compare(self, kind: str, batch: int, count: int) -> None:
        """Compare so many of a kind. What differs is printed, made as small as it gets."""
        recordings, failures = getattr(self, f"_compare_{kind}s")(f"{self._seed}-{batch}", count)
        for recording in recordings:
            for outcome in recording.list_outcomes():
                counts = self._counts[kind]
                counts["cases"] += 1
                counts["placement" if outcome.is_placement else outcome.answer] += 1
                counts["if assumed"] += outcome.is_assumed and outcome.answer == "yes"
                if outcome.error:
                    counts["too hopeful" if outcome.error.startswith("too hopeful") else "too wary"] += 1
                    self.has_failed = True
                if outcome.error or outcome.answer == "unknown":
                    print(f"{kind} {outcome.seed}: {outcome.error or 'unknown'}: {outcome.because}", flush=True)
        for failure in failures:
            print(failure, flush=True)
        self.recordings += recordings

    def _compare_pods(self, seed: str, count: int) -> tuple[list[Recording], Iterator[object]]:
        for name in ("kwok", "kubelet"):
            # A kubelet would wait for the volumes of thousands of pods.
            self._lab.call("stop", name=name)
        oracle = SchedulingOracle(self._lab.api, self._kubeconfig, records=True)
        clusters, default = (
            [made(f"{seed}-{number}") for number in range(count // 10)],
            find_default_class(self._lab.api),
        )
        for cluster in clusters:
            volumes = [volume["spec"] for volume in cluster.volumes]
            leave_classes_out(random.Random(f"{cluster.seed} default"), cluster.list_claim_specs(), volumes, default)
        tally = oracle.run(clusters)
        return oracle.recordings.copy(), map(oracle.shrink, tally.disagreements[:3])

    def _compare_admissions(self, seed: str, count: int) -> tuple[list[Recording], Iterator[object]]:
        oracle = AdmissionOracle(self._lab.api, self._kubeconfig, seed, records=True)
        tally = oracle.run(40, count // 40)
        return oracle.recordings.copy(), iter(tally.wrong[:3])

    def _compare_workloads(self, seed: str, count: int) -> tuple[list[Recording], Iterator[object]]:
        self._lab.call("start", name="kwok")
        oracle = WorkloadOracle(self._lab, records=True)
        tally = WorkloadTally(oracle.run([f"{seed}-{number}" for number in range(count)]))
        return oracle.recordings.copy(), map(oracle.shrink, tally.wrong[:3])

    def _compare_replacements(self, seed: str, count: int) -> tuple[list[Recording], Iterator[object]]:
        self._lab.call("start", name="kwok")
        oracle = RevisionOracle(self._lab)
        oracle.run([f"{seed}-{number}" for number in range(count)])
        return oracle.recordings.copy(), iter(())

    def _compare_rolls(self, seed: str, count: int) -> tuple[list[Recording], Iterator[object]]:
        self._lab.call("start", name="kwok")
        oracle = RollOracle(self._lab, records=True)
        tally = RollTally(oracle.run([f"{seed}-{number}" for number in range(count)]))
        return oracle.recordings.copy(), map(oracle.shrink, tally.wrong[:3])


def main(arguments: Sequence[str]) -> int:
    """Compare, and print; 1 where a prediction is wrong or a batch failed."""
    parser = argparse.ArgumentParser(prog="python -m integration.oracle")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--known-seeds", action="store_true")
    parser.add_argument("--record", action="store_true")
    for kind in _ROWS:
        parser.add_argument(f"--{kind}s", type=int, default=0)
    options = parser.parse_args(arguments)
    wanted = _RECORDED if options.record else {kind: getattr(options, f"{kind}s") for kind in _ROWS}
    wanted_of_seeds = _KNOWN_SEEDS if options.known_seeds else {options.seed: wanted}
    lab = handle.start(f"oracle-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    total = OracleRun(lab, "all")
    try:
        lab.call("stop", name="kubelet")
        for seed, counts in wanted_of_seeds.items():
            run = OracleRun(lab, seed)
            for _batch in run.compare_all(counts):
                print(run, flush=True)
                if options.record:
                    store_recordings(run.recordings)
                else:
                    run.recordings.clear()
            total.add(run)
            print(total, flush=True)
    finally:
        lab.stop()
    return int(total.has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
