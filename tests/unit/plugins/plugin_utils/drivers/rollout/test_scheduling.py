# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a DaemonSet puts pods: the scheduler's rules."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.scheduling import explain_exclusion
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode, Taint
from unit.plugins.plugin_utils.drivers.rollout.pictures import daemon_set

LABELS = {"kubernetes.io/os": "windows", "pool": "a", "number": "5"}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def placed(pod_spec: dict[str, Any], *taints: Taint, host_network: bool = False) -> str | None:
    return explain_exclusion(
        daemon_set(pod_spec={**pod_spec, "hostNetwork": host_network}),
        ObservedNode(name="win-1", labels=LABELS, taints=taints),
    )


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ({"kubernetes.io/os": "windows"}, None),
        ({"kubernetes.io/os": "linux"}, "label kubernetes.io/os is windows, expected linux"),
        ({"zone": "x"}, "label zone is missing, expected x"),
    ],
)
def test_node_selector(selector: dict[str, str], reason: str | None) -> None:
    assert placed({"nodeSelector": selector}) == reason


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([expression("pool", "In", "a", "b")], True),
        ([expression("pool", "In", "b")], False),
        ([expression("pool", "NotIn", "b")], True),
        ([expression("pool", "NotIn", "a")], False),
        ([expression("none", "NotIn", "a")], True),
        ([expression("pool", "Exists")], True),
        ([expression("none", "Exists")], False),
        ([expression("none", "DoesNotExist")], True),
        ([expression("pool", "DoesNotExist")], False),
        ([expression("number", "Gt", "4")], True),
        ([expression("number", "Gt", "5")], False),
        ([expression("number", "Lt", "6")], True),
        ([expression("pool", "Lt", "6")], False),
        ([expression("pool", "In", "b"), expression("pool", "In", "a")], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win-1"]}]}], True),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win-2"]}]}], False),
        ([{}], False),
        ([], False),
    ],
)
def test_required_affinity(terms: list[dict[str, Any]], fits: bool) -> None:
    assert (placed({"affinity": affinity(*terms)}) is None) is fits


@pytest.mark.parametrize(
    ("taint", "tolerations", "fits"),
    [
        (Taint("os", "Windows", "NoSchedule"), [], False),
        (Taint("os", "Windows", "PreferNoSchedule"), [], True),
        (Taint("os", "Windows", "NoSchedule"), [{"operator": "Exists"}], True),
        (Taint("os", "Windows", "NoSchedule"), [{"operator": "Exists", "effect": "NoExecute"}], False),
        (Taint("os", "Windows", "NoSchedule"), [{"key": "os", "value": "Windows", "effect": "NoSchedule"}], True),
        (Taint("os", "Windows", "NoSchedule"), [{"key": "os", "value": "windows"}], False),
        (Taint("os", "Windows", "NoSchedule"), [{"key": "other", "operator": "Exists"}], False),
        (Taint("os", "", "NoSchedule"), [{"key": "os"}], True),
        (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"), [], True),
        (Taint("node.kubernetes.io/not-ready", "", "NoExecute"), [], True),
        (Taint("node.kubernetes.io/not-ready", "", "NoSchedule"), [], False),
        (Taint("node.kubernetes.io/network-unavailable", "", "NoSchedule"), [], False),
    ],
)
def test_taints(taint: Taint, tolerations: list[dict[str, str]], fits: bool) -> None:
    assert (placed({"tolerations": tolerations}, taint) is None) is fits


def test_pods_on_the_host_network_start_before_the_network() -> None:
    taint = Taint("node.kubernetes.io/network-unavailable", "", "NoSchedule")
    assert placed({}, taint, host_network=True) is None
