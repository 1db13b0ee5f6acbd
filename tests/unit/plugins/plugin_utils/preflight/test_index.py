# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sets of nodes are the ones the scheduler's rules give, which rollout.scheduling asks node by node."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.scheduling import explain_exclusion
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.placement import Placement, read_terms
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from hypothesis import given
from hypothesis import strategies as st
from situations.cluster import node
from situations.world import World

KEYS = st.sampled_from(["kubernetes.io/os", "pool", "size", "kubernetes.io/hostname"])
VALUES = st.sampled_from(["windows", "linux", "a", "b", "1", "5", "n-1", "n-2"])
EXPRESSION = st.builds(
    lambda key, operator, values: {
        "key": key,
        "operator": operator,
        "values": values[:1] if operator in ("Gt", "Lt") else values,
    },
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.lists(VALUES, min_size=1, max_size=2),
)
FIELD = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n-1", "n-2", "n-9"]),
)
TERM = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(EXPRESSION, max_size=2), "matchFields": st.lists(FIELD, max_size=1)}
)
TOLERATION = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["os", "dedicated"]),
        "operator": st.sampled_from(["Exists", "Equal"]),
        "value": st.sampled_from(["Windows", "x"]),
        "effect": st.sampled_from(["NoSchedule", "NoExecute"]),
    },
)
POD = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(KEYS, VALUES, max_size=2),
        "tolerations": st.lists(TOLERATION, max_size=2),
        "affinity": st.builds(
            lambda terms: {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            },
            st.lists(TERM, max_size=2),
        ),
    },
)


def cluster() -> Index:
    world = World()
    for number, windows in enumerate((True, True, False, False)):
        made = node(world, f"n-{number}", windows=windows)
        made["metadata"]["labels"].update(pool="ab"[number % 2], size=str(number * 2))
    world.get("Node", "n-3")["spec"]["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoExecute"}]
    world.get("Node", "n-2")["spec"]["taints"] = [{"key": "dedicated", "value": "x", "effect": "PreferNoSchedule"}]
    return Index(world.snapshot())


INDEX = cluster()


@given(spec=POD)
def test_the_nodes_that_fit_a_pod_are_those_of_a_daemon_set_with_its_template(spec: dict[str, Any]) -> None:
    daemon_set = ObservedDaemonSet("ns", "ds", pod_spec=spec)
    expected = {one.name for one in INDEX.node_list if explain_exclusion(daemon_set, one) is None}
    assert set(INDEX.list_names(INDEX.find_fitting(Placement.from_spec(spec)))) == expected


@pytest.mark.parametrize(("operator", "nodes"), [("In", {"n-1"}), ("NotIn", {"n-0", "n-2", "n-3"})])
def test_a_field_names_a_node(operator: str, nodes: set[str]) -> None:
    field = {"key": "metadata.name", "operator": operator, "values": ["n-1", "gone"]}
    terms = read_terms({"nodeSelectorTerms": [{"matchFields": [field]}]})
    assert terms is not None
    assert set(INDEX.list_names(INDEX.find_matching(terms))) == nodes


def test_a_volume_without_affinity_is_reachable_from_everywhere_and_one_without_terms_from_nowhere() -> None:
    assert read_terms(None) is None
    nowhere = read_terms({"nodeSelectorTerms": []})
    assert nowhere == ()
    assert not INDEX.find_matching(nowhere)
