# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an upgrade finishes, held against nodes that are drained by real evictions, controllers and the real scheduler."""

from __future__ import annotations

import os

import pytest
from integration.oracle_rolls import RollOracle, RollTally
from lab.handle import Lab

SEED = os.environ.get("KUBEWIN_ORACLE_SEED", "1")


def check_rolls(oracle: RollOracle, count: int, label: str) -> None:
    seeds, job_seeds = ([f"{SEED}-{label}-{word}{number}" for number in range(count)] for word in ("", "job-"))
    tally = RollTally(oracle.run(seeds, job_seeds))
    print(f"seed {SEED}-{label}: {tally}", flush=True)
    assert not tally.wrong, "\n\n".join(str(oracle.shrink(outcome)) for outcome in tally.wrong[:3])


@pytest.mark.turn(3, 4)
def test_a_few_rolls_end_as_predicted(lab: Lab) -> None:
    check_rolls(RollOracle(lab), 4, "daily")


@pytest.mark.torture
def test_thirty_rolls_end_as_predicted(lab: Lab) -> None:
    oracle = RollOracle(lab)
    for batch in range(3):
        check_rolls(oracle, 10, str(batch))
