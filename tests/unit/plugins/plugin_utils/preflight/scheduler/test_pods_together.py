# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods of a workload that a node takes each by itself, and the volumes, nodes and rules that they share."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from situations.cluster import SHOP, csi, healthy, in_zones, pod_spec, volume, windows_nodes, workload
from situations.world import Object, World

HOST = "kubernetes.io/hostname"
CLAIM: Object = {
    "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}},
}  # fmt: skip


def local_disks(**disks: int) -> World:
    """The healthy cluster with so many free local volumes on each node, and room for four pods of one CPU each."""
    world = healthy()
    world.add(
        "StorageClass", "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"
    )
    for pod in world.of("Pod"):
        # As admission sets it: there is no pod to preempt.
        pod["spec"]["priority"] = 2_000_001_000 if "priorityClassName" in pod["spec"] else 0
    for node in windows_nodes(world):
        name = node["metadata"]["name"]
        node["status"]["allocatable"] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [name]}]}
        for number in range(disks.get(name.replace("-", "_"), 0)):
            spec = {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "local": {"path": "C:\\disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            }  # fmt: skip
            world.add("PersistentVolume", f"{name}-{number}", spec=spec, status={"phase": "Available"})
    return world


def spec_with(cpu: str, *claims: str, **more: Any) -> Object:
    spec = pod_spec(*claims, **more)
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return spec


def answer(world: World, key: str) -> str:
    return next(one.starts_again for one in evaluate(world.snapshot()).workloads if one.workload == key)


@pytest.mark.parametrize(("replicas", "disks", "expected"), [(1, 2, "yes"), (2, 2, "unknown"), (1, 0, "no")])
def test_which_free_disk_each_of_several_ordinals_gets_is_unknown(replicas: int, disks: int, expected: str) -> None:
    world = local_disks(win_1=disks)
    made = [{"metadata": {"name": "data"}, "spec": CLAIM}]
    spec, status = spec_with("1"), {"replicas": replicas}
    workload(world, "StatefulSet", "search", spec, replicas=replicas, volumeClaimTemplates=made, status=status)
    assert answer(world, "StatefulSet shop/search") == expected


def test_where_pods_go_that_share_an_unbound_claim_is_unknown() -> None:
    world = local_disks(win_1=1, win_2=1)
    world.add("PersistentVolumeClaim", "shared", SHOP, spec=CLAIM, status={"phase": "Pending"})
    workload(world, "Deployment", "cache", spec_with("2", "shared"), replicas=2, status={"replicas": 2})
    assert answer(world, "Deployment shop/cache") == "unknown"
    world.remove("PersistentVolume", "win-2-0")
    windows_nodes(world)[0]["status"]["allocatable"]["cpu"] = "3"
    assert answer(world, "Deployment shop/cache") != "yes"


@pytest.mark.parametrize(("cpu", "expected"), [("3", "unknown"), ("2", "yes")])
def test_an_ordinal_with_more_choice_may_take_the_node_that_another_one_needs(cpu: str, expected: str) -> None:
    world = local_disks()
    template = {"metadata": {"name": "disk"}, "spec": {**CLAIM, "storageClassName": ""}}
    for number, zones in enumerate((("a", "b"), ("a",))):
        source = csi(DRIVERS["vsphere"].name, f"fcd-search-{number}")
        volume(world, f"pv-search-{number}", source, f"disk-search-{number}", nodeAffinity=in_zones(*zones))
    spec, status = spec_with(cpu), {"replicas": 2}
    workload(world, "StatefulSet", "search", spec, replicas=2, volumeClaimTemplates=[template], status=status)
    assert answer(world, "StatefulSet shop/search") == expected


def daemon_set(world: World, spec: Object) -> None:
    status = {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2}
    workload(world, "DaemonSet", "agent", spec, status=status)


def test_a_daemon_set_lacks_the_pod_of_each_node_that_refuses_it() -> None:
    world = local_disks()
    daemon_set(world, spec_with("1", "share"))
    assert answer(world, "DaemonSet shop/agent") == "yes"
    windows_nodes(world)[0]["status"]["allocatable"]["cpu"] = "500m"
    assert answer(world, "DaemonSet shop/agent") == "no"
    # The controller creates no pod there.
    windows_nodes(world)[0]["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    assert answer(world, "DaemonSet shop/agent") == "yes"


def test_a_daemon_set_is_not_sure_to_share_a_disk_of_one_node() -> None:
    world = local_disks(win_1=1, win_2=1)
    world.add("PersistentVolumeClaim", "shared", SHOP, spec=CLAIM, status={"phase": "Pending"})
    daemon_set(world, spec_with("1", "shared"))
    assert answer(world, "DaemonSet shop/agent") == "unknown"


def test_a_group_that_wants_one_node_is_open_where_only_some_nodes_hold_all_of_it() -> None:
    world = local_disks()
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "group"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    workload(
        world, "Deployment", "group", spec_with("1", "share", affinity=affinity), replicas=3, status={"replicas": 3}
    )
    assert answer(world, "Deployment shop/group") == "yes"
    windows_nodes(world)[0]["status"]["allocatable"]["cpu"] = "2"
    assert answer(world, "Deployment shop/group") == "unknown"
