# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which workloads start, held against the real admission, controllers and scheduler."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from integration.oracle_workloads import WorkloadOracle, WorkloadTally
from lab import handle
from lab.handle import Lab

SEED = os.environ.get("KUBEWIN_ORACLE_SEED", "1")


@pytest.fixture
def own_lab() -> Iterator[Lab]:
    """A lab whose controllers may stand still; the pods of its nodes are KWOK's alone."""
    started = handle.start(f"workloads-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    started.call("stop", name="kubelet")
    yield started
    started.stop()


@pytest.mark.torture
def test_workloads_start_as_readiness_predicts(own_lab: Lab) -> None:
    oracle, tally = WorkloadOracle(own_lab), WorkloadTally()
    for batch in range(int(os.environ.get("KUBEWIN_ORACLE_BATCHES", "5"))):
        tally.outcomes += oracle.run([f"{SEED}-{batch}-{number}" for number in range(40)])
        print(f"seed {SEED}-{batch}: {tally}", flush=True)
    assert not tally.wrong, "\n\n".join(str(oracle.shrink(outcome)) for outcome in tally.wrong[:3])
