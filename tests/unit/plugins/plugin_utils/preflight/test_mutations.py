# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The walk held against recorded answers of a real control plane, which notice each part that is switched off.

`python -m unit.plugins.plugin_utils.preflight.test_mutations` prints which answer notices each part.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import (
    controllers,
    kubelet,
    roll,
    scheduler,
    workloads,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.admission import Admission
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.attach_detach_controller import (
    AttachDetachController,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.external_provisioner import (
    ExternalProvisioner,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.controllers.persistent_volume_controller import (
    PersistentVolumeController,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.kubelet import (
    KubeletAdmission,
    KubeletImages,
    VolumeManager,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.attach_capacity import AttachCapacity
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.framework import Filter, Scheduler
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
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.taint_toleration import TaintToleration
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.volume_binding import VolumeBinding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.volume_restrictions import (
    VolumeRestrictions,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.volume_zone import VolumeZone
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import (
    Places,
    PodToStart,
    StepAnswer,
    WalkStep,
)
from situations.named import SITUATIONS, snapshot_of
from situations.recorded_answers import Recording, load_recordings


def _note_nothing(*_arguments: Any) -> str:
    return ""


def _count_pods(_self: Scheduler, places: Places) -> tuple[int, int]:
    count = sum(pod.count for pod, _nodes in places)
    return count, count


def _accept(step: WalkStep) -> Callable[[Any, PodToStart, int], list[StepAnswer]]:
    """A step that lets every node pass."""
    return lambda _self, pod, nodes: [StepAnswer(step, "yes", nodes, volume) for volume in pod.volumes or ("",)]


def _evict(self: roll._Simulation, pod: roll._MovingPod, node: str) -> bool:
    """An eviction that no budget forbids."""
    for budget in pod.budgets:
        self._healthy[budget] -= 1
    self._infos.remove((pod.shape, node))
    return True


# Of each part: the class or module, its function, and what stands for it.
PARTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "admission, the workload itself": (Admission, "_check_controller", _note_nothing),
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
    "scheduler, all pods of a workload together": (Scheduler, "count_placed", _count_pods),
    "scheduler, attach limits of a workload": (AttachCapacity, "check_workload", _note_nothing),
    "scheduler, attach limits of all workloads": (AttachCapacity, "find_contended_workloads", _note_nothing),
    "scheduler, Linux nodes and held templates": (workloads, "_check_next_pods", _note_nothing),
    "scheduler VolumeRestrictions of pods": (VolumeRestrictions, "filter_pod", _note_nothing),
    "scheduler VolumeRestrictions of claims": (VolumeRestrictions, "filter_claim", _note_nothing),
    "scheduler VolumeBinding": (VolumeBinding, "filter_claim", _note_nothing),
    "scheduler VolumeZone": (VolumeZone, "filter_claim", _note_nothing),
    "kubelet admission": (KubeletAdmission, "filter_pod", _note_nothing),
    "kubelet images": (KubeletImages, "__call__", _note_nothing),
    "kubelet of a node": (workloads._NodeRule, "__call__", _note_nothing),
    "controller AttachDetachController": (AttachDetachController, "__call__", _accept("attach")),
    "kubelet stage": (VolumeManager, "stage", _accept("stage")),
    "kubelet publish": (VolumeManager, "publish", _accept("publish")),
    "live state": (workloads, "_check_live_state", _note_nothing),
    "roll, budgets": (roll._Simulation, "_evict", _evict),
    "roll, pods that wait": (roll._Simulation, "find_waiting_pod", _note_nothing),
}  # fmt: skip


# There is no real kubelet, no OpenShift and no webhook in the lab, and recorded pods without room for all of them have another doubt,
# too: what notices these are situations with the answers that we expect.
WITHOUT_REAL_ANSWERS = (
    "admission, the workload itself", "admission OriginPodNodeEnvironment", "admission webhooks", "kubelet admission",
    "kubelet images", "kubelet of a node", "controller AttachDetachController", "kubelet stage", "kubelet publish", "live state",
    "scheduler, attach limits of a workload", "scheduler, attach limits of all workloads",
    "scheduler, all pods of a workload together",
)  # fmt: skip


def list_wrong_situations() -> Iterator[str]:
    """The situations of which an answer is not as expected."""
    for name, situation in SITUATIONS.items():
        if not situation.starts_again:
            continue
        report = evaluate(snapshot_of(name), situation.target)
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


def test_each_admission_plugin_filter_controller_and_kubelet_is_a_part() -> None:
    switched = {(owner, function) for owner, function, _replacement in PARTS.values()}
    # The first one calls the others for node plugins.
    checks = {name for name in vars(Admission) if name.startswith("_check_")} - {"_check_template"}
    assert [name for name in checks if (Admission, name) not in switched] == []
    modules = [
        kubelet,
        *(
            importlib.import_module(f"{package.__name__}.{module.name}")
            for package in (scheduler, controllers)
            for module in pkgutil.iter_modules(package.__path__)
        ),
    ]
    functions = [
        (owner, function)
        for module in modules
        for _name, owner in inspect.getmembers(module, inspect.isclass)
        for function in ("filter_pod", "filter_claim", "__call__")
        if owner.__module__ == module.__name__ and function in vars(owner) and owner not in (Filter, Scheduler)
    ]
    assert len(functions) > 15
    assert [pair for pair in functions if pair not in switched] == []


if __name__ == "__main__":
    loaded = load_recordings()
    for name in PARTS:
        print(f"{name:45} {(find_noticing(name, loaded) or 'NOT NOTICED').splitlines()[0]}", flush=True)
