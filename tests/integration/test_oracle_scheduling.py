# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where pods can be scheduled, held against the real scheduler and the real volume controllers."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import yaml
from integration.oracle_scheduling import SchedulingOracle, Tally
from lab import handle
from lab.handle import Lab
from situations.random_clusters import claim_alone, made

# Another run tries other clusters: KUBEWIN_ORACLE_SEED=7 makes those of run 7 again.
SEED = os.environ.get("KUBEWIN_ORACLE_SEED", "1")


def reported(tally: Tally) -> str:
    shown = [
        f"seed {SEED}: {tally.clusters} clusters, {tally.pods} pods: {tally.placed} placed, {tally.pending} Pending, "
        f"{tally.undecided} where nothing is claimed; {len(tally.disagreements)} disagreements"
    ]
    return "\n\n".join([*shown, *map(str, tally.disagreements)])


def test_pods_run_only_where_readiness_predicts(lab: Lab) -> None:
    oracle = SchedulingOracle(lab.api, lab.state.kubeconfigs["admin"])
    tally = oracle.run([made(f"{SEED}-{number}", pods=3) for number in range(15)])
    tally.disagreements = [oracle.shrink(one) for one in tally.disagreements[:3]]
    assert not tally.disagreements, reported(tally)
    # Neither of the two gives every pod the same answer.
    assert tally.placed * 5 > tally.pods
    assert tally.pending * 5 > tally.pods
    assert tally.undecided * 4 < tally.pods


def test_claims_are_bound_as_readiness_predicts(lab: Lab) -> None:
    """Before the volume controller has seen them; then again under their names, when their volumes are Released."""
    oracle = SchedulingOracle(lab.api, lab.state.kubeconfigs["admin"])
    clusters = [claim_alone(f"{SEED}-{number}") for number in range(20)]
    before, words = oracle.bound(clusters)
    assert not before, yaml.safe_dump(before)
    assert min(words.count("Bound"), words.count("Pending")) > 5
    afterwards, words = oracle.bound(clusters, again=True)
    assert not afterwards, yaml.safe_dump(afterwards)
    assert words.count("Pending") > 10


@pytest.fixture
def silent() -> Iterator[Lab]:
    """A lab with a control plane and nothing else: a kubelet would wait for the volumes of thousands of pods."""
    started = handle.start(f"oracle-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    for name in ("kwok", "kubelet"):
        started.call("stop", name=name)
    yield started
    started.stop()


@pytest.mark.torture
def test_ten_thousand_pods_in_a_thousand_clusters(silent: Lab) -> None:
    oracle, tally = SchedulingOracle(silent.api, silent.state.kubeconfigs["admin"]), Tally()
    for batch in range(int(os.environ.get("KUBEWIN_ORACLE_BATCHES", "10"))):
        found = oracle.run([made(f"{SEED}-{batch}-{number}") for number in range(100)])
        tally.add(found)
        print(reported(Tally(**{**vars(tally), "disagreements": found.disagreements})), flush=True)
    hopeful = [one for one in tally.disagreements if one.hopeful]
    wary = [one for one in tally.disagreements if not one.hopeful]
    tally.disagreements = [oracle.shrink(one) for one in [*hopeful[:3], *wary[:3]]]
    assert not hopeful, reported(tally)
    assert len(wary) * 1000 <= tally.pods, reported(tally)
