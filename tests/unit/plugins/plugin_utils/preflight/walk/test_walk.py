# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A walk leaves no pod, node and step without an answer, whatever a cluster holds."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.findings import create_finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk import walk as walking
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import (
    STEPS,
    NodeToStatus,
    PodToStart,
    StepAnswer,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.walk import PodWalk, Rules, decide_start, walk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from situations.cluster import csi, healthy, pod_spec, volume, workload
from situations.named import SITUATIONS
from situations.world import World

SOURCES: list[dict[str, Any]] = [
    csi("csi.vsphere.vmware.com", "fcd-x"),
    csi("csi.unknown.example", "x"),
    csi("", "x"),
    {"azureDisk": {"diskURI": "/x", "kind": "Newer", "fsType": "zfs"}},
    {"vsphereVolume": {"volumePath": "[x] y"}},
    {"local": {"path": "C:\\x"}},
    {"nfs": {"server": "s", "path": "/"}},
    {"kindOfTomorrow": {"name": "x"}},
    {},
]
MODES = ["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod", "WriteOnceOfTomorrow"]
KINDS = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"]


def walked(world: World, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Index, int, PodWalk]]:
    """Every walk that the evaluation of a world takes, with the nodes that it was asked about."""
    found: list[tuple[Index, int, PodWalk]] = []

    def noted(index: Index, pod: PodToStart, nodes: int, rules: Rules) -> PodWalk:
        one = walk(index, pod, nodes, rules)
        # On Linux nodes only the scheduler is asked.
        if nodes & index.windows:
            found.append((index, nodes, one))
        return one

    with monkeypatch.context() as patch:
        patch.setattr(walking, "walk", noted)
        evaluated = evaluate(world.snapshot())
    if evaluated.verdict == "ready":
        assert "unknown" not in {one.starts_again for one in evaluated.workloads}
    for one in evaluated.workloads:
        if one.starts_again == "unknown":
            assert one.findings or one.because.startswith("CSI-C01"), one
    return found


def check(nodes: int, one: PodWalk) -> None:
    """Each step has an answer for each volume on each node that the steps before let through."""
    assert one.ok | one.blocked | one.unknown == nodes
    assert one.ok ^ one.blocked ^ one.unknown == nodes
    left = nodes
    for step in STEPS:
        reported = [answer for answer in one.answers if answer.step == step]
        whole = sum_of(reported, "")
        for about in one.pod.volumes or ("",):
            assert not left & ~whole & ~sum_of(reported, about), (step, about)
        left &= ~sum_of([answer for answer in reported if answer.answer == "no"])
    for answer in one.list_stops():
        assert answer.findings, answer
        assert answer.because, answer


def sum_of(reported: list[StepAnswer], about: str | None = None) -> int:
    """The nodes of answers, of those about a volume where one is given."""
    nodes = 0
    for answer in reported:
        if about is None or answer.volume == about:
            nodes |= answer.nodes
    return nodes


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_pod_node_and_step_of_a_situation_is_without_an_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for dummy, nodes, one in walked(SITUATIONS[name].world(), monkeypatch):
        check(nodes, one)


@given(
    kind=st.sampled_from(KINDS),
    some=st.lists(st.tuples(st.sampled_from(SOURCES), st.sampled_from(MODES), st.booleans()), min_size=1, max_size=3),
    inline=st.lists(st.sampled_from(SOURCES), max_size=2),
    missing=st.booleans(),
    base=st.sampled_from(sorted(SITUATIONS)),
    replicas=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_pod_node_and_step_of_a_random_cluster_is_without_an_answer(
    kind: str,
    some: list[tuple[dict[str, Any], str, bool]],
    inline: list[dict[str, Any]],
    missing: bool,
    base: str,
    replicas: int,
) -> None:
    world = SITUATIONS[base].world()
    for number, (source, mode, block) in enumerate(some):
        volume(
            world,
            f"pv-any-{number}",
            source,
            f"any-{number}",
            accessModes=[mode],
            volumeMode="Block" if block else "Filesystem",
        )
    claims = [f"any-{number}" for number in range(len(some))] + ["nowhere"] * missing
    extra = [{"name": f"own-{number}", **source} for number, source in enumerate(inline)]
    more: dict[str, Any] = {"replicas": replicas} if kind in ("Deployment", "StatefulSet") else {}
    workload(world, kind, "any", pod_spec(*claims, extra_volumes=extra), **more)
    with pytest.MonkeyPatch.context() as patch:
        for dummy, nodes, one in walked(world, patch):
            check(nodes, one)


def test_nodes_without_an_answer_are_unknown_and_a_finding() -> None:
    index = Index(healthy().snapshot())
    [pod] = [one.pod for dummy, nodes, one in walked_of("Deployment shop/legacy")]
    reported = walk(index, pod, index.windows, {"stage": ((lambda pod, nodes: []),)})
    assert (reported.ok, reported.unknown) == (0, index.windows)
    assert decide_start(reported) == "unknown"
    [answer] = reported.list_stops()
    assert [one.id for one in answer.findings] == ["CSI-W09"]
    assert answer.findings[0].doubt


def walked_of(workload_: str) -> list[tuple[Index, int, PodWalk]]:
    """The walks of one workload of the healthy cluster."""
    with pytest.MonkeyPatch.context() as patch:
        return [one for one in walked(healthy(), patch) if one[2].pod.workload == workload_]


def test_a_pod_starts_only_where_all_its_volumes_do() -> None:
    index = Index(healthy().snapshot())
    first, second = index.bit["win-1"], index.bit["win-2"]
    [pod] = [one.pod for dummy, nodes, one in walked_of("Deployment shop/legacy")]
    finding = create_finding("CSI-W09", pod.workload, "left out", ("found",), "repair it")

    def schedule(pod: PodToStart, nodes: int) -> list[StepAnswer]:
        return [
            StepAnswer("schedule", "yes", nodes & first),
            StepAnswer("schedule", "no", nodes & second, "", "x", (finding,)),
        ]

    def stage(pod: PodToStart, nodes: int) -> list[StepAnswer]:
        assert not nodes & second
        return [StepAnswer("stage", "no", nodes, pod.volumes[0], "x", (finding,))]

    reported = walk(index, pod, index.windows, {"schedule": (schedule,), "stage": (stage,)})
    assert (reported.ok, reported.blocked, reported.placed) == (0, first | second, first)
    assert decide_start(reported) == "no"
    assert decide_start(walk(index, pod, index.windows, {"schedule": (schedule,)})) == "yes"


def test_the_answers_of_a_step_are_freed_while_the_collector_is_off() -> None:
    gc.disable()
    try:
        statuses = NodeToStatus("schedule", 3, "Deployment shop/web", "Pod shop/web")
        statuses.block(1, "CSI-W20", "the node is cordoned", "uncordon it")
        statuses.doubt(2, "CSI-W21", "it is not known", "look")
        freed = weakref.ref(statuses)
        del statuses
        assert freed() is None
    finally:
        gc.enable()
