# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What pods on nodes leave to the next ones: room, ports, spreading and affinity, as the scheduler counts them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.scheduling import PodShape
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scheduler.framework import Scheduler
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.claims import Claims
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.steps import PodToStart
from situations.cluster import SHOP, node, pod, pod_spec
from situations.world import Object, World

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = {"matchLabels": {"app": "web"}}


def three_nodes() -> World:
    """Windows nodes win-1 and win-2 in zone a, win-3 in zone b, with 8 CPUs each."""
    world = World()
    for name, zone in (("win-1", "a"), ("win-2", "a"), ("win-3", "b")):
        node(world, name, zone=zone)
    return world


def put(world: World, name: str, on: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    """A pod that runs on a node."""
    return pod(world, name, pod_spec(**spec), on=on, labels=labels or {})


def containers(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "registry.example.com/main:1", **more}]}


def cpu(amount: str) -> dict[str, Any]:
    return containers(resources={"requests": {"cpu": amount}})


def anti_affinity(key: str, **term: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": WEB, **term}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def affinity(key: str, **term: Any) -> dict[str, Any]:
    terms = anti_affinity(key, **term)["affinity"]["podAntiAffinity"]
    return {"affinity": {"podAffinity": terms}}


def spread(key: str, **more: Any) -> dict[str, Any]:
    constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB, **more}
    return {"topologySpreadConstraints": [constraint]}


def places(world: World, **spec: Any) -> dict[str, set[str]]:
    """Where the next pod of shop/web goes: the nodes by the scheduler's answer."""
    item = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(**spec)}
    shape, index = PodShape.from_object(item, SHOP), Index(world.snapshot())
    next_pod = PodToStart("Deployment shop/web", SHOP, "web", shape.placement, shape=shape)
    answers = Scheduler(index, Claims(index))(next_pod, index.all)
    words = group_values((answer.answer, name) for answer in answers for name in index.list_names(answer.nodes))
    return {word: set(names) for word, names in words.items()}


def test_a_pod_goes_where_its_requests_fit_beside_those_of_the_pods_there() -> None:
    world = three_nodes()
    put(world, "large", "win-1", **cpu("7500m"))
    put(world, "small", "win-2", **cpu("7"))
    assert places(world, **cpu("1")) == {"yes": {"win-2", "win-3"}, "no": {"win-1"}}


def test_a_limit_an_init_container_and_a_sidecar_take_room_too() -> None:
    world = three_nodes()
    put(world, "limited", "win-1", **containers(resources={"limits": {"cpu": "8"}}))
    put(world, "begins", "win-2", **cpu("1"), initContainers=[{"name": "i", "resources": {"requests": {"cpu": "8"}}}])
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "5"}}}
    put(world, "proxied", "win-3", **cpu("3"), initContainers=[sidecar])
    assert places(world, **cpu("1m")) == {"no": {"win-1", "win-2", "win-3"}}


def test_a_node_takes_no_more_pods_than_it_says() -> None:
    world = three_nodes()
    for name in ("win-1", "win-2"):
        world.get("Node", name)["status"]["allocatable"]["pods"] = "1"
    put(world, "only", "win-1")
    put(world, "finished", "win-2")["status"]["phase"] = "Succeeded"
    assert places(world) == {"yes": {"win-2", "win-3"}, "no": {"win-1"}}


def test_a_device_that_no_node_has_is_not_found() -> None:
    resources = {"limits": {"microsoft.com/directx": "1"}}
    assert places(three_nodes(), **containers(resources=resources)) == {"no": {"win-1", "win-2", "win-3"}}


def test_whether_a_pod_preempts_another_one_is_not_known() -> None:
    world = three_nodes()
    put(world, "spare", "win-1", **cpu("8"), priority=-10)
    put(world, "vital", "win-2", **cpu("8"), priority=1000)
    assert places(world, **cpu("1")) == {"yes": {"win-3"}, "unknown": {"win-1"}, "no": {"win-2"}}


@pytest.mark.parametrize(
    ("there", "asked", "free"),
    [
        ({"hostPort": 8080}, {"hostPort": 8080}, False),
        ({"hostPort": 8080}, {"hostPort": 8081}, True),
        ({"hostPort": 8080}, {"hostPort": 8080, "protocol": "UDP"}, True),
        ({"hostPort": 8080, "hostIP": "10.0.0.1"}, {"hostPort": 8080, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 8080, "hostIP": "10.0.0.1"}, {"hostPort": 8080}, False),
    ],
    ids=["same", "other number", "other protocol", "other address", "every address"],
)
def test_a_port_of_a_node_is_for_one_pod(there: Object, asked: Object, free: bool) -> None:
    world = three_nodes()
    put(world, "proxy", "win-1", **containers(ports=[{"containerPort": 80, **there}]))
    answer = places(world, **containers(ports=[{"containerPort": 80, **asked}]))
    assert ("win-1" in answer["yes"]) == free


def test_a_pod_on_the_hosts_network_takes_the_ports_of_its_containers() -> None:
    world = three_nodes()
    put(world, "agent", "win-1", **containers(ports=[{"containerPort": 9100}]), hostNetwork=True)
    asked = containers(ports=[{"containerPort": 80, "hostPort": 9100}])
    assert places(world, **asked)["no"] == {"win-1"}


def test_a_zone_with_too_many_pods_takes_no_more() -> None:
    world = three_nodes()
    put(world, "web-1", "win-1", {"app": "web"})
    assert places(world, **spread(ZONE)) == {"yes": {"win-3"}, "no": {"win-1", "win-2"}}
    put(world, "web-2", "win-3", {"app": "web"})
    assert places(world, **spread(ZONE)) == {"yes": {"win-1", "win-2", "win-3"}}


def test_a_pod_that_is_being_deleted_counts_no_more() -> None:
    world = three_nodes()
    put(world, "web-1", "win-1", {"app": "web"})["metadata"]["deletionTimestamp"] = world.ago(seconds=5)
    assert places(world, **spread(ZONE)) == {"yes": {"win-1", "win-2", "win-3"}}


def test_a_cordoned_node_is_still_a_domain_unless_its_taints_are_honored() -> None:
    world = three_nodes()
    world.get("Node", "win-3")["spec"].update(
        unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    )
    put(world, "web-1", "win-1", {"app": "web"})
    assert places(world, **spread(HOST)) == {"yes": {"win-2"}, "no": {"win-1", "win-3"}}
    put(world, "web-2", "win-2", {"app": "web"})
    assert places(world, **spread(HOST)) == {"no": {"win-1", "win-2", "win-3"}}
    assert places(world, **spread(HOST, nodeTaintsPolicy="Honor"))["yes"] == {"win-1", "win-2"}


def test_fewer_zones_than_asked_count_as_if_one_were_empty() -> None:
    world = three_nodes()
    put(world, "web-1", "win-1", {"app": "web"})
    put(world, "web-2", "win-3", {"app": "web"})
    assert places(world, **spread(ZONE, minDomains=3)) == {"no": {"win-1", "win-2", "win-3"}}


def test_a_node_without_the_label_is_left_out() -> None:
    world = three_nodes()
    del world.get("Node", "win-2")["metadata"]["labels"][ZONE]
    assert places(world, **spread(ZONE)) == {"yes": {"win-1", "win-3"}, "no": {"win-2"}}


def test_a_constraint_about_the_hash_of_a_template_is_unknown_before_a_pod_has_it() -> None:
    answer = places(three_nodes(), **spread(ZONE, matchLabelKeys=["pod-template-hash"]))
    assert answer == {"unknown": {"win-1", "win-2", "win-3"}}


def test_pods_keep_away_from_each_other_in_either_direction() -> None:
    world = three_nodes()
    put(world, "web-1", "win-1", {"app": "web"})
    assert places(world, **anti_affinity(HOST)) == {"yes": {"win-2", "win-3"}, "no": {"win-1"}}
    assert places(world, **anti_affinity(ZONE)) == {"yes": {"win-3"}, "no": {"win-1", "win-2"}}
    put(world, "hermit", "win-3", **anti_affinity(HOST))
    assert places(world) == {"yes": {"win-1", "win-2"}, "no": {"win-3"}}


def test_a_pod_of_another_namespace_counts_only_where_the_term_names_it() -> None:
    world = three_nodes()
    pod(world, "web-1", pod_spec(), on="win-1", namespace="other", labels={"app": "web"})
    assert places(world, **anti_affinity(HOST)) == {"yes": {"win-1", "win-2", "win-3"}}
    assert places(world, **anti_affinity(HOST, namespaces=["other"]))["no"] == {"win-1"}
    assert places(world, **anti_affinity(HOST, namespaceSelector={}))["no"] == {"win-1"}
    selector = {"matchLabels": {"team": "a"}}
    assert places(world, **anti_affinity(HOST, namespaceSelector=selector)) == {"unknown": {"win-1", "win-2", "win-3"}}


def test_pods_that_a_term_about_one_pod_may_name_are_unknown() -> None:
    ordinal = {"labelSelector": {"matchLabels": {"app": "web", "apps.kubernetes.io/pod-index": "0"}}}
    world = three_nodes()
    put(world, "guard", "win-3", **anti_affinity(HOST, **ordinal))
    assert places(world) == {"unknown": {"win-1", "win-2", "win-3"}}
    world = three_nodes()
    put(world, "guard", "win-3", **anti_affinity(HOST, **ordinal, namespaces=["other"]))
    assert places(world) == {"yes": {"win-1", "win-2", "win-3"}}


def test_a_pod_follows_the_pods_that_its_affinity_names() -> None:
    world = three_nodes()
    other = {"labelSelector": {"matchLabels": {"app": "db"}}}
    assert places(world, **affinity(ZONE, **other)) == {"no": {"win-1", "win-2", "win-3"}}
    put(world, "db-0", "win-3", {"app": "db"})
    assert places(world, **affinity(ZONE, **other)) == {"yes": {"win-3"}, "no": {"win-1", "win-2"}}


def test_the_first_pod_that_follows_its_own_kind_goes_anywhere() -> None:
    world = three_nodes()
    assert places(world, **affinity(ZONE)) == {"yes": {"win-1", "win-2", "win-3"}}
    put(world, "web-1", "win-3", {"app": "web"})
    assert places(world, **affinity(ZONE)) == {"yes": {"win-3"}, "no": {"win-1", "win-2"}}


def test_pods_that_no_rule_counts_are_kept_as_the_room_that_they_take() -> None:
    world = World()
    node(world, "win-1")
    node(world, "linux-1", windows=False)
    pod(world, "a", pod_spec(windows=False, **cpu("2")), on="linux-1", labels={"app": "a"})
    pod(world, "b", pod_spec(windows=False, **cpu("2")), on="linux-1", labels={"app": "b"})
    snapshot = world.snapshot()
    assert len(set(snapshot.shapes)) == 1
    assert [snapshot.shapes[number].labels for number in snapshot.pods_on["linux-1"]] == [(), ()]
    put(world, "near", "win-1", **affinity(ZONE, labelSelector={"matchLabels": {"app": "b"}}))
    assert {shape.labels for shape in world.snapshot().shapes} >= {(("app", "b"),)}
