# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods of today are where they should be, and the next ones may go elsewhere or be made from another template."""

from __future__ import annotations

from situations.base import NO_OPENSHIFT, openshift, situation
from situations.cluster import SHOP, owner_reference, pod, pod_spec, undecided, windows_nodes, workload
from situations.world import Object, World

WEB = "Deployment shop/web"


def _template(world: World) -> Object:
    found: Object = world.get("Deployment", "web", SHOP)["spec"]["template"]["spec"]
    return found


@situation("all nodes", "CSI-W01", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_that_only_a_toleration_lets_on_windows(world: World) -> None:
    for key in ("os", "nodeSelector"):
        del _template(world)[key]


@situation("all nodes", "CSI-W01", starts_again={WEB: "unknown"})
def pods_that_only_prefer_windows(world: World) -> None:
    pods_that_only_a_toleration_lets_on_windows(world)
    windows = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": windows}]}
    _template(world)["affinity"] = {"nodeAffinity": preferred}


@situation("all nodes", "CSI-W01", starts_again={WEB: "unknown"})
def pods_of_windows_that_the_scheduler_may_put_on_linux(world: World) -> None:
    del _template(world)["nodeSelector"]


@situation("all nodes", "CSI-W01", starts_again={"CronJob shop/nightly": "unknown"})
def a_cron_job_whose_last_pod_ran_on_linux(world: World) -> None:
    workload(world, "CronJob", "nightly", undecided("share"))
    owner = owner_reference("CronJob", "nightly", SHOP)
    pod(world, "nightly-0", undecided("share", restartPolicy="Never"), on="linux-1", owner=owner, phase="Succeeded")


@situation("all nodes")
def a_linux_workload_that_the_taint_of_gke_keeps_from_windows(world: World) -> None:
    for node in windows_nodes(world):
        node["spec"]["taints"] = [{"key": "node.kubernetes.io/os", "value": "windows", "effect": "NoSchedule"}]
    for one in world.objects:
        template = (one.get("spec") or {}).get("template") or {}
        for spec in (template.get("spec") or {}, one.get("spec") or {}):
            for toleration in spec.get("tolerations") or ():
                if toleration.get("key") == "os":
                    toleration.update(key="node.kubernetes.io/os", value="windows")
    workload(world, "Deployment", "plain", undecided("linux", tolerations=None), replicas=1)


@situation("templates", "CSI-W08", starts_again={WEB: "unknown"})
def a_deployment_that_is_paused(world: World) -> None:
    world.get("Deployment", "web", SHOP)["spec"]["paused"] = True


@situation("templates", "CSI-W08", starts_again={"StatefulSet shop/db": "unknown"})
def a_stateful_set_that_keeps_ordinals_at_an_earlier_revision(world: World) -> None:
    found = world.get("StatefulSet", "db", SHOP)
    found["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    found["status"] = {"replicas": 2, "currentRevision": "db-1", "updateRevision": "db-2"}


@situation("templates", starts_again={"StatefulSet shop/db": "yes"})
def a_stateful_set_with_a_partition_and_one_revision(world: World) -> None:
    a_stateful_set_that_keeps_ordinals_at_an_earlier_revision(world)
    world.get("StatefulSet", "db", SHOP)["status"]["updateRevision"] = "db-1"


@situation("admission", "CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"})
def pods_that_pod_security_of_their_namespace_refuses(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"


@situation("admission", "CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_that_mount_the_host_where_pod_security_is_baseline(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"
    _template(world)["volumes"].append({"name": "logs", "hostPath": {"path": "C:\\logs"}})


@situation("admission", starts_again={WEB: "yes"})
def pods_that_are_as_restricted_as_their_namespace(world: World) -> None:
    pods_that_pod_security_of_their_namespace_refuses(world)
    for one in world.objects:
        template = (one.get("spec") or {}).get("template") or {}
        if one["metadata"].get("namespace") == SHOP and template:
            template["spec"]["securityContext"] = {"runAsNonRoot": True}


@situation("admission", "CSI-W20", starts_again={WEB: "no"}, only_here=NO_OPENSHIFT)
def pods_that_the_node_selector_of_their_namespace_keeps_on_linux(world: World) -> None:
    openshift(world)
    world.get("Namespace", SHOP)["metadata"]["annotations"] = {"openshift.io/node-selector": "kubernetes.io/os=linux"}


@situation("scheduler", "CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_that_request_more_than_a_node_has(world: World) -> None:
    for node in windows_nodes(world):
        node["status"]["allocatable"] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    _template(world)["containers"][0]["resources"] = {"requests": {"cpu": "5"}}


@situation("scheduler", "CSI-W09", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_whose_port_of_the_host_is_taken_on_each_node(world: World) -> None:
    port = [{"containerPort": 80, "hostPort": 8080}]
    agent = pod_spec()
    agent["containers"][0]["ports"] = port
    workload(world, "DaemonSet", "agent", agent, on=[node["metadata"]["name"] for node in windows_nodes(world)])
    _template(world)["containers"][0]["ports"] = port


@situation("scheduler", "CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_beside_pods_that_are_nowhere(world: World) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "gone"}}, "topologyKey": "kubernetes.io/hostname"}
    _template(world)["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@situation("scheduler", "CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_that_spread_over_a_label_that_no_node_has(world: World) -> None:
    _template(world)["topologySpreadConstraints"] = [
        {
            "topologyKey": "example.com/rack",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]


def _leave_room_on_one_node(world: World, request: str) -> None:
    for node, cpu in zip(windows_nodes(world), ("4", "1"), strict=True):
        node["status"]["allocatable"] = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    _template(world)["containers"][0]["resources"] = {"requests": {"cpu": request}}


@situation("scheduler", "CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_for_which_a_node_has_room_one_by_one_and_not_together(world: World) -> None:
    # With priorities as admission sets them there is no pod to preempt.
    for one in world.of("Pod"):
        one["spec"]["priority"] = 2_000_001_000 if "priorityClassName" in one["spec"] else 0
    _leave_room_on_one_node(world, "3")


@situation("scheduler", starts_again={WEB: "yes"})
def pods_for_which_a_node_has_room_together(world: World) -> None:
    _leave_room_on_one_node(world, "2")


@situation("scheduler", "CSI-W21", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_that_keep_each_other_from_the_only_node_with_room(world: World) -> None:
    _leave_room_on_one_node(world, "2")
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    _template(world)["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
