# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The walk held against recorded answers of a real control plane, which notice each part that is switched off.

`python -m unit.plugins.plugin_utils.preflight.test_mutations` prints which answer notices each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.admission import Admission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.external_provisioner import (
    ExternalProvisioner,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.persistent_volume_controller import (
    PersistentVolumeController,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.kubelet.admission import KubeletAdmission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.framework import Scheduler
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.inter_pod_affinity import InterPodAffinity
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.node_affinity import NodeAffinity
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.node_name import NodeName
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.node_ports import NodePorts
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.node_resources_fit import NodeResourcesFit
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.node_unschedulable import (
    NodeUnschedulable,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.node_volume_limits import NodeVolumeLimits
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.pod_topology_spread import (
    PodTopologySpread,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.pods_together import PodsTogether
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.taint_toleration import TaintToleration
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.volume_binding import VolumeBinding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.volume_restrictions import (
    VolumeRestrictions,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.volume_zone import VolumeZone
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.mount import Mounts
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import (
    Places,
    PodToStart,
    Step,
    StepAnswer,
)
from situations.named import SITUATIONS
from situations.recorded_answers import Recording, load_recordings


def _note_nothing(*_arguments: Any) -> str:
    return ""


def _count_pods(_self: PodsTogether, places: Places) -> tuple[int, int]:
    count = sum(pod.count for pod, _nodes in places)
    return count, count


def _accept(step: Step) -> Callable[[Any, PodToStart, int], list[StepAnswer]]:
    """A step that lets every node pass."""
    return lambda _self, pod, nodes: [StepAnswer(step, "yes", nodes, volume) for volume in pod.volumes or ("",)]


# Of each part: the class, its method, and what stands for it.
PARTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "admission NamespaceLifecycle": (Admission, "_check_namespace_lifecycle", _note_nothing),
    "admission ServiceAccount": (Admission, "_check_service_account", _note_nothing),
    "admission Priority": (Admission, "_check_priority", _note_nothing),
    "admission LimitRanger": (Admission, "_check_limit_ranger", _note_nothing),
    "admission ResourceQuota": (Admission, "_check_resource_quota", _note_nothing),
    "admission RuntimeClass": (Admission, "_check_runtime_class", _note_nothing),
    "admission PodSecurity": (Admission, "_check_pod_security", _note_nothing),
    "admission OriginPodNodeEnvironment": (Admission, "_check_node_selector", _note_nothing),
    "admission webhooks": (Admission, "_check_webhooks", _note_nothing),
    "controller PersistentVolumeController": (PersistentVolumeController, "__call__", _accept("bind")),
    "controller external-provisioner": (ExternalProvisioner, "__call__", _accept("provision")),
    "scheduler profile": (Scheduler, "_check_profile", _note_nothing),
    **{
        f"scheduler {plugin.__name__}": (plugin, "filter_pod", _note_nothing)
        for plugin in (
            InterPodAffinity, NodeAffinity, NodeName, NodePorts, NodeResourcesFit, NodeUnschedulable, NodeVolumeLimits,
            PodTopologySpread, TaintToleration,
        )
    },
    "scheduler, all pods of a workload together": (PodsTogether, "count_placed", _count_pods),
    "scheduler VolumeRestrictions of pods": (VolumeRestrictions, "filter_pod", _note_nothing),
    "scheduler VolumeRestrictions of claims": (VolumeRestrictions, "filter_claim", _note_nothing),
    "scheduler VolumeBinding": (VolumeBinding, "filter_claim", _note_nothing),
    "scheduler VolumeZone": (VolumeZone, "filter_claim", _note_nothing),
    "kubelet admission": (KubeletAdmission, "filter_pod", _note_nothing),
    "kubelet attach": (Mounts, "attach", _accept("attach")),
    "kubelet stage": (Mounts, "stage", _accept("stage")),
    "kubelet publish": (Mounts, "publish", _accept("publish")),
}  # fmt: skip


# There is no real kubelet, no OpenShift and no webhook in the lab: what notices these are situations with the answers that we expect.
WITHOUT_REAL_ANSWERS = (
    "admission OriginPodNodeEnvironment", "admission webhooks", "kubelet admission", "kubelet attach", "kubelet stage",
    "kubelet publish",
)  # fmt: skip


def list_wrong_situations() -> Iterator[str]:
    """The situations of which an answer is not as expected."""
    for name, situation in SITUATIONS.items():
        report = evaluate(situation.world().snapshot(), Options(target=situation.target))
        answers = {one.workload: one.starts_again for one in report.workloads}
        if any(answers.get(workload) != answer for workload, answer in situation.starts_again.items()):
            yield f"situation {name}"


def list_wrong_answers(recordings: Iterable[Recording]) -> Iterator[str]:
    """The recorded answers that the walk predicts otherwise."""
    for recording in recordings:
        for outcome in recording.list_outcomes():
            if outcome.error:
                yield f"{outcome.kind} {outcome.seed}: {outcome.error}"


def find_noticing(part: str, recordings: Sequence[Recording]) -> str:
    """The first answer that notices that a part is switched off; empty for none."""
    owner, method, replacement = PARTS[part]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, replacement)
        # The filters about other pods are asked for pods together, too.
        if hasattr(owner, "find_rejecting_nodes"):
            patch.setattr(owner, "find_rejecting_nodes", lambda *_arguments: 0)
        if part in WITHOUT_REAL_ANSWERS:
            return next(list_wrong_situations(), "")
        of_admission = part.startswith("admission")
        return next(list_wrong_answers(one for one in recordings if bool(one.admissions) == of_admission), "")


@pytest.fixture(scope="module")
def recordings() -> tuple[Recording, ...]:
    return load_recordings()


def test_the_walk_predicts_the_recorded_answers(recordings: Sequence[Recording]) -> None:
    outcomes = [outcome for recording in recordings for outcome in recording.list_outcomes()]
    assert [outcome for outcome in outcomes if outcome.error] == []
    for kind in ("pod", "admission", "workload", "roll"):
        answers = [outcome.answer for outcome in outcomes if outcome.kind == kind]
        assert min(answers.count("yes"), answers.count("no")) * 10 > len(answers), kind


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_switched_off_is_noticed(part: str, recordings: Sequence[Recording]) -> None:
    assert find_noticing(part, recordings)


if __name__ == "__main__":
    loaded = load_recordings()
    for name in PARTS:
        print(f"{name:45} {(find_noticing(name, loaded) or 'NOT NOTICED').splitlines()[0]}", flush=True)
