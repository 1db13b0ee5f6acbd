# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods the API server accepts, held against its real admission plugins."""

from __future__ import annotations

import os

import pytest
from integration.oracle_admission import AdmissionOracle, AdmissionTally
from lab.handle import Lab

SEED = os.environ.get("KUBEWIN_ORACLE_SEED", "1")


def check_admission(lab: Lab, seed: str, namespaces: int, pods: int) -> AdmissionTally:
    tally = AdmissionOracle(lab.api, lab.state.kubeconfigs["admin"], seed).run(namespaces, pods)
    print(f"seed {seed}: {tally}", flush=True)
    assert not tally.wrong, "\n\n".join([f"seed {seed}: {tally}", *map(str, tally.wrong[:5])])
    return tally


def test_pods_are_rejected_as_readiness_predicts(lab: Lab) -> None:
    tally = check_admission(lab, SEED, namespaces=12, pods=20)
    # Neither of the two gives every pod the same answer, and hardly any answer is open.
    assert min(tally.admitted, tally.rejected) * 5 > tally.pods
    assert tally.undecided * 10 < tally.pods


@pytest.mark.torture
def test_thousands_of_pods_are_rejected_as_readiness_predicts(lab: Lab) -> None:
    for batch in range(int(os.environ.get("KUBEWIN_ORACLE_BATCHES", "10"))):
        check_admission(lab, f"{SEED}-{batch}", namespaces=20, pods=50)
