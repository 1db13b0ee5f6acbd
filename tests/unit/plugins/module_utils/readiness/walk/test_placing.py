# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The steps that bind, provision and schedule: each rule, beside a twin that differs in one field and is ready."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.index import Index
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.bind import Bind
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.provision import Provision
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.schedule import Schedule
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.words import Answer, PodToStart
from situations.placing import CASES, Case, Plant, waiting


def answers(plant: Plant, node: str = "") -> tuple[Index, list[Answer]]:
    """What the three steps say of pod web on one node, all nodes without one; each node is answered for once."""
    world = waiting()
    plant(world)
    index = Index(world.snapshot())
    [web] = [one for one in index.snapshot.pods if one.name == "web"]
    pod = PodToStart(
        workload="Pod shop/web",
        namespace=web.namespace,
        name=web.name,
        placement=web.placement,
        node=web.node,
        claims=tuple(f"{web.namespace}/{name}" for name in web.volumes.claims),
        made=web.volumes.ephemeral,
        inline=web.volumes.inline,
    )
    claims = Claims(index)
    nodes = index.bit[node] if node else index.all
    found: list[Answer] = []
    for step in (Bind(index, claims), Provision(index, claims), Schedule(index, claims)):
        said = step(pod, nodes)
        for about in {"", *pod.volumes} if isinstance(step, Schedule) else pod.volumes:
            covered = [one.nodes for one in said if one.volume == about]
            assert sum(covered) == nodes
            for one in covered:
                assert one
        found += said
    return index, found


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_rule_finds_its_case(case: Case) -> None:
    told = [one for one in answers(case.plant, "win-1")[1] if one.word != "ok"]
    assert {(one.step, one.word) for one in told} >= {(case.step, case.word)}, told
    assert case.finding in {finding.id for one in told for finding in one.findings if one.step == case.step}
    for one in told:
        assert one.because
        assert one.findings


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_its_twin_is_ready(case: Case) -> None:
    assert [one for one in answers(case.ready, "win-1")[1] if one.word != "ok"] == []


def test_each_node_is_answered_for() -> None:
    index, found = answers(lambda world: None)
    blocked = [one for one in found if one.word == "blocked"]
    assert {one.nodes for one in blocked} == {index.linux}
