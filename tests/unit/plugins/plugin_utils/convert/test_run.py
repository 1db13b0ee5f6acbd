# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several conversions in one run: their order, and how the run ends before the last one."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.interruption import Interrupted, interruptible
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import ConversionRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.objects import LOCK, format_lock
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.options import RunOptions
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import ConversionStep
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.run import ConversionResult, Conversions
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.convert import world
from unit.plugins.plugin_utils.convert.test_record import record
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

OPTIONS = RunOptions(
    tuple(ConversionRequest("shop", claim) for claim in "abc"),
    False,
    False,
    ("kubewin", "copies"),
    60.0,
    0,
)


class Unfinished(Conversions):
    """Conversions that begin, one of which fails or is terminated."""

    def __init__(self, failing: str, *, terminated: bool = False) -> None:
        unused: Any = None
        super().__init__(unused, OPTIONS, lambda _text: None)
        self._failing, self._terminated = failing, terminated
        self.begun: list[str] = []

    def _convert(self, result: ConversionResult) -> None:
        desired = result.desired
        self.begun.append(desired.claim)
        if desired.claim == self._failing and self._terminated:
            os.kill(os.getpid(), signal.SIGTERM)
        elif desired.claim == self._failing:
            raise ClusterError("its data differs", "data_differs")
        result.status = "converted"


def list_results() -> list[ConversionResult]:
    begun, later = replace(record(), sequence=3), record()
    return [ConversionResult(desired, "to_do", begun if desired.claim == "b" else later) for desired in OPTIONS.desired]


def test_a_conversion_in_progress_comes_first_and_none_begins_after_a_failure() -> None:
    conversions, results = Unfinished("a"), list_results()
    conversions.run(results)
    assert conversions.begun == ["b", "a"]
    assert [(result.status, result.reason) for result in results] == [
        ("failed", "data_differs"), ("converted", ""), ("not_run", ""),
    ]  # fmt: skip


def test_a_terminated_run_begins_no_further_conversion() -> None:
    conversions, results = Unfinished("b", terminated=True), list_results()
    with pytest.raises(Interrupted, match="Run again"), interruptible("Run again"):
        conversions.run(results)
    assert conversions.begun == ["b"]
    assert [(result.status, result.reason) for result in results] == [
        ("to_do", ""), ("failed", "interrupted"), ("to_do", ""),
    ]  # fmt: skip


def store_of(volume_uid: str, step: ConversionStep) -> tuple[Conversions, ConversionResult]:
    """The conversion of shop/data-db-0 at that step, in a cluster with a volume of that uid."""
    begun = replace(record(), step=step, sequence=3)
    claim = world.claim(annotations={LOCK: format_lock(begun)})
    store = ObjectStore()
    store.things["/api/v1/namespaces/shop/persistentvolumeclaims/data-db-0"] = claim
    store.things["/api/v1/persistentvolumes/pv-1"] = world.volume()
    store.things["/api/v1/persistentvolumes/pv-1"]["metadata"]["uid"] = volume_uid
    desired = ConversionRequest("shop", "data-db-0")
    options = replace(OPTIONS, desired=(desired, ConversionRequest("shop", "a")))
    result = ConversionResult(desired, "to_do", begun, plan=[{"step": step, "description": "change it"}])
    return Conversions(client_of(store), options, lambda _text: None), result


# Each step after the lock; "baseline" is reached by proofs alone, "canary" follows the new volume.
@pytest.mark.parametrize("step", ["rehearse", "quiesce", "baseline", "delete_volume", "create_volume", "canary"])
def test_check_mode_fails_where_a_volume_was_replaced_by_hand(step: ConversionStep) -> None:
    conversions, result = store_of("made-by-hand", step)
    later = ConversionResult(
        ConversionRequest("shop", "a"), "to_do", record(), plan=[{"step": "lock", "description": "lock it"}]
    )
    conversions.run([later, result], check=True)
    assert (result.status, result.reason, result.plan) == ("failed", "foreign_volume", [])
    assert (
        "PersistentVolume pv-1 was created by another client (uid made-by-hand), expected the volume of"
        in result.message
    )
    assert (later.status, later.plan) == ("not_run", [])


def test_check_mode_keeps_the_plan_of_a_conversion_that_can_continue() -> None:
    conversions, result = store_of("pv-uid", "quiesce")
    conversions.run([result], check=True)
    assert (result.status, len(result.plan)) == ("to_do", 1)
