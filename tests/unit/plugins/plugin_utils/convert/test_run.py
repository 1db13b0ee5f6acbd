# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several conversions in threads, and a run that is terminated meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.interruption import interruptible
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import ConversionRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.options import ConversionLimits, RunOptions
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.run import ConversionResult, Conversions
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.termination import Interrupted

CLAIMS = ("a", "b")


class Terminated(Conversions):
    """Runs that are terminated while they convert all claims, each of which ends once they stop."""

    all_began = threading.Barrier(len(CLAIMS), lambda: os.kill(os.getpid(), signal.SIGTERM), timeout=60)

    def _convert(self, result: ConversionResult, desired: ConversionRequest) -> None:
        self.all_began.wait()
        assert self._stopped.wait(60), "the conversion was not stopped"
        raise ClusterError(f"{desired.claim} was stopped", "interrupted")


def test_a_terminated_run_stops_each_of_its_conversions() -> None:
    options = RunOptions(
        tuple(ConversionRequest("shop", claim) for claim in CLAIMS),
        False,
        ConversionLimits(60.0, 0),
        final=False,
        parallel=2,
    )
    unused: Any = None
    runs = Terminated(unused, "cluster", options, lambda _client: [], "kubewin", lambda _text: None)
    results = [ConversionResult(f"shop/{claim}", "native") for claim in CLAIMS]
    with pytest.raises(Interrupted, match="Run again"), interruptible("Run again"):
        runs.run(results)
    assert [(result.status, result.reason) for result in results] == [("failed", "interrupted")] * 2
