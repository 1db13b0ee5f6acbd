# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template and the claims of next pods, held against the real controllers and the garbage collector."""

from __future__ import annotations

import os

import pytest
from integration.oracle_revisions import RevisionOracle
from lab.handle import Lab

SEED = os.environ.get("KUBEWIN_ORACLE_SEED", "1")


@pytest.mark.torture
def test_next_pods_are_those_that_controllers_make(lab: Lab) -> None:
    oracle = RevisionOracle(lab)
    oracle.run([f"{SEED}-{number}" for number in range(16)])
    outcomes = [outcome for recording in oracle.recordings for outcome in recording.list_outcomes()]
    assert not [outcome for outcome in outcomes if outcome.error]
    # Most of them claim something.
    assert sum(outcome.answer == "yes" for outcome in outcomes) > 8
