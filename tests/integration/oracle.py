# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the walk with a real control plane on random clusters, and print what it came to after each batch.

    python -m integration.oracle --seed 1 --pods 2000 --admissions 1000 --workloads 400 --rolls 100
    python -m integration.oracle --record

The second writes the answers that unit tests compare the walk with. API server, controllers and scheduler are real. KWOK and
stand-ins are kubelet, provisioner and attacher: that a pod on a node starts is no proof.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from integration.oracle_admission import AdmissionOracle
from integration.oracle_rolls import RollOracle, RollTally
from integration.oracle_scheduling import SchedulingOracle
from integration.oracle_workloads import WorkloadOracle, WorkloadTally
from lab import handle
from lab.handle import Lab
from situations.random_clusters import made
from situations.recorded_answers import Recording, store_recordings

_COLUMNS = ("cases", "yes", "no", "placement", "unknown", "if assumed", "too hopeful", "too wary")
_ROWS = {
    "pod": "pods, by the scheduler", "admission": "pods, by admission", "workload": "workloads, by controllers",
    "roll": "rolls, by drains",
}  # fmt: skip
# Of each kind, how many are compared at a time.
_BATCHES = {"pod": 1000, "admission": 1000, "workload": 40, "roll": 16}
# Of the file for unit tests.
_RECORDED = {"pod": 600, "admission": 400, "workload": 80, "roll": 32}


class OracleRun:
    """The oracles in one lab, batch by batch."""

    def __init__(self, lab: Lab, seed: str) -> None:
        self._lab, self._seed = lab, seed
        self._kubeconfig = lab.state.kubeconfigs["admin"]
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
        tally = oracle.run([made(f"{seed}-{number}") for number in range(count // 10)])
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

    def _compare_rolls(self, seed: str, count: int) -> tuple[list[Recording], Iterator[object]]:
        self._lab.call("start", name="kwok")
        oracle = RollOracle(self._lab, records=True)
        tally = RollTally(oracle.run([f"{seed}-{number}" for number in range(count)]))
        return oracle.recordings.copy(), map(oracle.shrink, tally.wrong[:3])


def main(arguments: Sequence[str]) -> int:
    """Compare, and print; 1 where a prediction is wrong."""
    parser = argparse.ArgumentParser(prog="python -m integration.oracle")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--record", action="store_true")
    for kind in _ROWS:
        parser.add_argument(f"--{kind}s", type=int, default=0)
    options = parser.parse_args(arguments)
    lab = handle.start(f"oracle-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    try:
        run = OracleRun(lab, options.seed)
        lab.call("stop", name="kubelet")
        wanted = _RECORDED if options.record else {kind: getattr(options, f"{kind}s") for kind in _ROWS}
        for kind, count in wanted.items():
            for batch, done in enumerate(range(0, count, _BATCHES[kind])):
                run.compare(kind, batch, min(_BATCHES[kind], count - done))
                print(run, flush=True)
                if options.record:
                    store_recordings(run.recordings)
                else:
                    run.recordings.clear()
    finally:
        lab.stop()
    return int(run.has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
