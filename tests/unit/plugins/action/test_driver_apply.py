# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the end of a rolling update is described."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.kubewin.csi.plugins.action.driver_apply import explain_failed_roll, list_warnings
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.apply import FailedTemplate, RollResult
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import (
    RollOptions,
    RollStep,
    find_state,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules, evaluate

from ..plugin_utils.drivers.rollout.pictures import host, node, picture, pod, registration

NAMES = ("win-1", "win-2", "win-3", "win-4")
FAILED = FailedTemplate("hash", "win-1", "ErrImagePull")


def ended(step: RollStep, *, of_run: tuple[str, ...] = NAMES[:3]) -> RollResult:
    """win-1 has the new plugin, win-2 a pod that does not start, win-3 and win-4 the former one; win-3 is down."""
    pods = (
        pod("win-1"),
        pod("win-2", ready=False, ready_since=None),
        *(pod(name, revision="0") for name in NAMES[2:]),
    )
    observed = picture(
        nodes=tuple(node(name, ready=name != "win-3") for name in NAMES),
        pods=pods,
        hosts={name: host(name) for name in NAMES},
        registrations={name: registration(name) for name in NAMES},
    )
    evaluation = evaluate(observed, GateRules())
    return RollResult(step, find_state(observed, evaluation, RollOptions(of_run)))


def text(roll: RollResult) -> str:
    return str(explain_failed_roll(roll, "d/plugin", "SMB"))


def test_a_finished_update_names_nodes_that_are_down_and_nodes_of_other_runs() -> None:
    roll = ended(RollStep("finish"))
    assert explain_failed_roll(roll, "d/plugin", "SMB") is None
    down, left = list_warnings(roll)
    assert down.startswith("win-3: not Ready")
    assert left.startswith("win-4 still have the former plugin")


def test_a_stopped_update_names_the_nodes_of_each_template() -> None:
    message = text(ended(RollStep("stop", nodes=("win-2",), message="ErrImagePull"), of_run=()))
    assert "stopped at win-2: ErrImagePull. With the new plugin: win-1; untouched: win-4." in message


def test_a_node_whose_pod_was_replaced_is_not_untouched() -> None:
    """Its pod is old again after a change of the DaemonSet by hand."""
    stopped = ended(RollStep("stop", message="another run or user changed it meanwhile"), of_run=())
    expected = "replaced before the template changed: win-4; untouched: none."
    assert expected in text(replace(stopped, replaced=("win-4",)))


def test_a_failed_canary_that_was_restored_says_what_failed() -> None:
    message = text(replace(ended(RollStep("finish")), failed=FAILED))
    assert "canary win-1: ErrImagePull. Rolled back" in message


def test_a_canary_that_works_with_neither_template_says_both() -> None:
    message = text(replace(ended(RollStep("stop", nodes=("win-1",), message="no pipe")), failed=FAILED))
    assert "ErrImagePull" in message
    assert "was not restored there: no pipe" in message


def test_the_record_of_a_failed_template_is_read_as_it_was_written() -> None:
    def of_annotation(value: str) -> FailedTemplate | None:
        return FailedTemplate.from_object({"metadata": {"annotations": {"kubewin.io/failed-template": value}}})

    assert of_annotation(FAILED.text()) == FAILED
    assert of_annotation("{}") is None
    assert of_annotation("of another tool") is None
