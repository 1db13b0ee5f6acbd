# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods of today are where they should be, and the next ones may go elsewhere or be made from another template."""

from __future__ import annotations

from situations.base import NO_OPENSHIFT, VSPHERE, openshift, situation
from situations.cluster import (
    SHOP,
    csi,
    owner_reference,
    pod,
    pod_spec,
    undecided,
    volume,
    windows_nodes,
    workload,
)
from situations.world import Object, World

WEB = "Deployment shop/web"


def _template(world: World, name: str = "web") -> Object:
    found: Object = world.get("Deployment", name, SHOP)["spec"]["template"]["spec"]
    return found


@situation("CSI-W01", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_that_only_a_toleration_lets_on_windows(world: World) -> None:
    for key in ("os", "nodeSelector"):
        del _template(world)[key]


@situation("CSI-W01", starts_again={WEB: "unknown"})
def pods_that_only_prefer_windows(world: World) -> None:
    pods_that_only_a_toleration_lets_on_windows(world)
    windows = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": windows}]}
    _template(world)["affinity"] = {"nodeAffinity": preferred}


@situation("CSI-W01", starts_again={WEB: "unknown"})
def pods_of_windows_that_the_scheduler_may_put_on_linux(world: World) -> None:
    del _template(world)["nodeSelector"]


@situation("CSI-W01", starts_again={"CronJob shop/nightly": "unknown"})
def a_cron_job_whose_last_pod_ran_on_linux(world: World) -> None:
    workload(world, "CronJob", "nightly", undecided("share"))
    owner = owner_reference("CronJob", "nightly", SHOP)
    pod(world, "nightly-0", undecided("share", restartPolicy="Never"), on="linux-1", owner=owner, phase="Succeeded")


@situation()
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


@situation("CSI-W08", starts_again={WEB: "unknown"})
def a_deployment_that_is_paused(world: World) -> None:
    world.get("Deployment", "web", SHOP)["spec"]["paused"] = True


@situation("CSI-W08", starts_again={"StatefulSet shop/db": "unknown"})
def a_stateful_set_that_keeps_ordinals_at_an_earlier_revision(world: World) -> None:
    found = world.get("StatefulSet", "db", SHOP)
    found["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    found["status"] |= {"currentRevision": "db-1", "updateRevision": "db-2"}


@situation(starts_again={"StatefulSet shop/db": "yes"})
def a_stateful_set_with_a_partition_and_one_revision(world: World) -> None:
    a_stateful_set_that_keeps_ordinals_at_an_earlier_revision(world)
    world.get("StatefulSet", "db", SHOP)["status"]["updateRevision"] = "db-1"


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"})
def pods_that_pod_security_of_their_namespace_refuses(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_that_mount_the_host_where_pod_security_is_baseline(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"
    _template(world)["volumes"].append({"name": "logs", "hostPath": {"path": "C:\\logs"}})


@situation(starts_again={WEB: "yes"})
def pods_that_are_as_restricted_as_their_namespace(world: World) -> None:
    pods_that_pod_security_of_their_namespace_refuses(world)
    for one in world.objects:
        template = (one.get("spec") or {}).get("template") or {}
        if one["metadata"].get("namespace") == SHOP and template:
            template["spec"]["securityContext"] = {"runAsNonRoot": True}


@situation("CSI-W20", starts_again={WEB: "no"}, only_here=NO_OPENSHIFT)
def pods_that_the_node_selector_of_their_namespace_keeps_on_linux(world: World) -> None:
    openshift(world)
    world.get("Namespace", SHOP)["metadata"]["annotations"] = {"openshift.io/node-selector": "kubernetes.io/os=linux"}


def _name_node(world: World, cpu: str) -> None:
    _template(world)["nodeName"] = "win-1"
    _template(world)["containers"][0]["resources"] = {"requests": {"cpu": cpu}}


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_that_name_a_node_without_room(world: World) -> None:
    _name_node(world, "64")


@situation("CSI-G05", "CSI-V52", "CSI-W20", starts_again={WEB: "no"})
def pods_that_name_a_node_that_is_not_ready(world: World) -> None:
    _name_node(world, "1")
    node = world.get("Node", "win-1")
    node["status"]["conditions"][0]["status"] = "Unknown"
    node["spec"]["taints"].append({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"})


def _press(world: World, resource: str) -> None:
    """Nodes that lack something, and pods that tolerate everything."""
    for node in windows_nodes(world):
        node["spec"]["taints"].append({"key": f"node.kubernetes.io/{resource}-pressure", "effect": "NoSchedule"})
        node["status"]["conditions"].append({"type": f"{resource.capitalize()}Pressure", "status": "True"})
    for name in ("legacy", "static", "web"):
        _template(world, name)["tolerations"] = [{"operator": "Exists"}]
    world.get("StatefulSet", "db", SHOP)["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"})
def pods_that_tolerate_nodes_without_disk_space(world: World) -> None:
    _press(world, "disk")


@situation("CSI-W20", starts_again={WEB: "yes", "StatefulSet shop/db": "no"})
def critical_pods_that_tolerate_nodes_without_disk_space(world: World) -> None:
    _press(world, "disk")
    _template(world)["priorityClassName"] = "system-cluster-critical"


@situation(starts_again={WEB: "yes", "StatefulSet shop/db": "yes"})
def pods_that_tolerate_nodes_without_memory(world: World) -> None:
    _press(world, "memory")


@situation("CSI-W20", starts_again={"StatefulSet shop/db": "no"})
def ordinals_that_name_a_node_of_linux(world: World) -> None:
    world.get("StatefulSet", "db", SHOP)["spec"]["template"]["spec"]["nodeName"] = "linux-1"


@situation("CSI-W21", starts_again={WEB: "unknown"})
def pods_that_name_a_node_without_room_for_all_of_them(world: World) -> None:
    _name_node(world, "5")


@situation("CSI-W20", starts_again={"Deployment shop/legacy": "no", "StatefulSet shop/db": "yes"})
def a_pod_that_names_a_node_without_room_for_its_disk(world: World) -> None:
    _template(world, "legacy")["nodeName"] = "win-2"
    _template(world, "legacy")["volumes"][0]["persistentVolumeClaim"]["claimName"] = "one-more"
    volume(world, "pv-one-more", csi(VSPHERE.name, "fcd-one-more"), "one-more")
    for entry in world.get("CSINode", "win-2")["spec"]["drivers"]:
        if entry["name"] == VSPHERE.name:
            entry["allocatable"] = {"count": 1}


@situation(starts_again={WEB: "yes"})
def pods_that_name_a_node_with_room(world: World) -> None:
    _name_node(world, "1")


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_that_request_more_than_a_node_has(world: World) -> None:
    for node in windows_nodes(world):
        node["status"]["allocatable"] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    _template(world)["containers"][0]["resources"] = {"requests": {"cpu": "5"}}


@situation("CSI-W09", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_whose_port_of_the_host_is_taken_on_each_node(world: World) -> None:
    port = [{"containerPort": 80, "hostPort": 8080}]
    agent = pod_spec()
    agent["containers"][0]["ports"] = port
    workload(world, "DaemonSet", "agent", agent, on=[node["metadata"]["name"] for node in windows_nodes(world)])
    _template(world)["containers"][0]["ports"] = port


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_beside_pods_that_are_nowhere(world: World) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "gone"}}, "topologyKey": "kubernetes.io/hostname"}
    _template(world)["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
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


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_for_which_a_node_has_room_one_by_one_and_not_together(world: World) -> None:
    # With priorities as admission sets them there is no pod to preempt.
    for one in world.of("Pod"):
        one["spec"]["priority"] = 2_000_001_000 if "priorityClassName" in one["spec"] else 0
    _leave_room_on_one_node(world, "3")


@situation(starts_again={WEB: "yes"})
def pods_for_which_a_node_has_room_together(world: World) -> None:
    _leave_room_on_one_node(world, "2")


@situation("CSI-W21", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_that_keep_each_other_from_the_only_node_with_room(world: World) -> None:
    _leave_room_on_one_node(world, "2")
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    _template(world)["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


_ORDINAL = {"matchLabels": {"apps.kubernetes.io/pod-index": "0"}}


@situation("CSI-W09", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_that_keep_apart_from_one_ordinal(world: World) -> None:
    for name in ("db-0", "db-1"):
        world.get("Pod", name, SHOP)["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = name[-1]
    term = {"labelSelector": _ORDINAL, "topologyKey": "kubernetes.io/hostname"}
    _template(world)["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@situation("CSI-W09", starts_again={WEB: "unknown"})
def pods_that_spread_by_the_number_of_one_ordinal(world: World) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    _template(world)["topologySpreadConstraints"] = [{**constraint, "labelSelector": _ORDINAL}]


# It applies them to the pods that are to run already.
_NO_LIMITS = "a real API server counts and limits the pods of the cluster itself"


def _set_admission(world: World, **fields: object) -> None:
    _template(world).update(fields)


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_whose_priority_class_does_not_exist(world: World) -> None:
    _set_admission(world, priorityClassName="gone")


@situation(starts_again={WEB: "yes"})
def pods_whose_priority_class_exists(world: World) -> None:
    world.add("PriorityClass", "high", value=1000, preemptionPolicy="Never")
    _set_admission(world, priorityClassName="high", priority=1000, preemptionPolicy="Never")


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_with_another_priority_than_their_class(world: World) -> None:
    world.add("PriorityClass", "high", value=1000)
    _set_admission(world, priorityClassName="high", priority=2000)


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_that_may_preempt_although_the_default_class_may_not(world: World) -> None:
    world.add("PriorityClass", "usual", value=10, globalDefault=True, preemptionPolicy="Never")
    _set_admission(world, preemptionPolicy="PreemptLowerPriority")


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_whose_service_account_does_not_exist(world: World) -> None:
    _set_admission(world, serviceAccountName="gone")


@situation(starts_again={WEB: "yes"})
def pods_whose_service_account_exists(world: World) -> None:
    world.add("ServiceAccount", "web", SHOP)
    _set_admission(world, serviceAccountName="web")


@situation("CSI-W20", starts_again={WEB: "yes", "StatefulSet shop/db": "no"})
def a_node_plugin_whose_service_account_does_not_exist(world: World) -> None:
    plugin = next(one for one in world.of("DaemonSet") if one["metadata"]["namespace"] != SHOP)
    plugin["spec"]["template"]["spec"]["serviceAccountName"] = "gone"


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_with_an_overhead_that_no_runtime_class_has(world: World) -> None:
    _set_admission(world, overhead={"memory": "100Mi"})


def _add_quota(world: World, hard: dict[str, str], used: dict[str, str], **spec: object) -> None:
    world.add("ResourceQuota", "team", SHOP, spec={"hard": hard, **spec}, status={"hard": hard, "used": used})


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"}, only_here=_NO_LIMITS)
def pods_of_a_namespace_that_uses_more_than_its_quota(world: World) -> None:
    _add_quota(world, {"pods": "3"}, {"pods": "4"})


@situation(starts_again={WEB: "yes", "StatefulSet shop/db": "yes"}, only_here=_NO_LIMITS)
def pods_that_their_quota_already_counts(world: World) -> None:
    _add_quota(world, {"pods": "4"}, {"pods": "4"})


@situation("CSI-W20", starts_again={"CronJob shop/nightly": "no", WEB: "yes"}, only_here=_NO_LIMITS)
def a_cron_job_whose_finished_jobs_use_up_a_quota(world: World) -> None:
    _add_quota(world, {"count/jobs.batch": "4"}, {"count/jobs.batch": "4"})
    workload(world, "CronJob", "nightly", pod_spec("share"))


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"}, only_here=_NO_LIMITS)
def pods_without_requests_where_a_quota_counts_them(world: World) -> None:
    _add_quota(world, {"requests.cpu": "100"}, {"requests.cpu": "0"})


@situation(starts_again={WEB: "yes", "StatefulSet shop/db": "yes"}, only_here=_NO_LIMITS)
def pods_that_get_their_requests_from_a_limit_range(world: World) -> None:
    pods_without_requests_where_a_quota_counts_them(world)
    part = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}
    world.add("LimitRange", "usual", SHOP, spec={"limits": [part]})


@situation("CSI-W21", starts_again={WEB: "unknown", "StatefulSet shop/db": "unknown"}, only_here=_NO_LIMITS)
def pods_that_a_full_quota_with_scopes_may_count(world: World) -> None:
    _add_quota(world, {"pods": "1"}, {"pods": "4"}, scopes=["Terminating"])


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"}, only_here=_NO_LIMITS)
def pods_without_a_limit_where_a_limit_range_asks_for_one(world: World) -> None:
    world.add("LimitRange", "most", SHOP, spec={"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]})


def _add_default_limit(world: World, size: str) -> None:
    _template(world)["containers"][0]["resources"] = {"requests": {"memory": "4Gi"}}
    world.add("LimitRange", "usual", SHOP, spec={"limits": [{"type": "Container", "default": {"memory": size}}]})


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"}, only_here=_NO_LIMITS)
def pods_whose_default_limit_is_less_than_they_request(world: World) -> None:
    _add_default_limit(world, "2Gi")


@situation(starts_again={WEB: "yes"}, only_here=_NO_LIMITS)
def pods_whose_default_limit_is_what_they_request(world: World) -> None:
    _add_default_limit(world, "4Gi")


@situation("CSI-W21", starts_again={WEB: "unknown"}, only_here=_NO_LIMITS)
def pods_for_which_two_limit_ranges_have_defaults(world: World) -> None:
    for name, size in (("one", "512Mi"), ("other", "2Gi")):
        part = {"type": "Container", "default": {"memory": size}, "defaultRequest": {"memory": size}}
        world.add("LimitRange", name, SHOP, spec={"limits": [part]})


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"}, only_here=_NO_LIMITS)
def pods_that_a_limit_range_lets_request_more_than_a_node_has(world: World) -> None:
    for node in windows_nodes(world):
        node["status"]["allocatable"] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    part = {"type": "Container", "default": {"cpu": "8"}, "defaultRequest": {"cpu": "8"}}
    world.add("LimitRange", "usual", SHOP, spec={"limits": [part]})


@situation("CSI-W21", starts_again={WEB: "unknown"})
def pods_that_probe_another_host_where_pod_security_is_baseline(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"
    _template(world)["containers"][0]["livenessProbe"] = {"httpGet": {"host": "10.0.0.1", "port": 80}}


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_that_say_they_may_run_as_root_where_all_containers_do_not(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    _template(world)["securityContext"] = {"runAsNonRoot": False}
    _template(world)["containers"][0]["securityContext"] = {"runAsNonRoot": True}


@situation("CSI-W21", starts_again={WEB: "unknown"})
def pods_of_a_container_engine_where_pod_security_is_baseline(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"
    del _template(world)["os"]
    _template(world)["securityContext"] = {"seLinuxOptions": {"type": "container_engine_t"}}


@situation("CSI-W20", "CSI-W21", starts_again={WEB: "unknown", "StatefulSet shop/db": "no"})
def pods_in_a_user_namespace_where_pod_security_is_restricted(world: World) -> None:
    """They name no operating system and run as any user."""
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    spec = _template(world)
    del spec["os"]
    spec["hostUsers"] = False
    spec["containers"][0]["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_that_name_no_system_where_pod_security_is_restricted(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    del _template(world)["os"]
    _template(world)["securityContext"] = {"runAsNonRoot": True}


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_with_a_capability_of_linux_where_pod_security_is_baseline(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"
    del _template(world)["os"]
    _template(world)["containers"][0]["securityContext"] = {"capabilities": {"add": ["SYS_ADMIN"]}}


@situation("CSI-W20", "CSI-W21", starts_again={WEB: "unknown"})
def pods_where_an_old_pod_security_policy_decides(world: World) -> None:
    labels = world.get("Namespace", SHOP)["metadata"]["labels"]
    labels["pod-security.kubernetes.io/enforce"] = "restricted"
    labels["pod-security.kubernetes.io/enforce-version"] = "v1.24"
    _template(world)["securityContext"] = {"runAsNonRoot": True}


@situation("CSI-W01", starts_again={WEB: "unknown"})
def pods_that_only_the_state_of_linux_nodes_keeps_on_windows(world: World) -> None:
    pods_that_only_a_toleration_lets_on_windows(world)
    world.get("Node", "linux-1")["spec"]["unschedulable"] = True
    world.get("Node", "linux-2")["spec"]["taints"] = [
        {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    ]


@situation(starts_again={WEB: "yes"})
def pods_with_a_device_that_only_windows_nodes_have(world: World) -> None:
    pods_that_only_a_toleration_lets_on_windows(world)
    for node in windows_nodes(world):
        node["status"]["allocatable"]["microsoft.com/directx"] = "4"
    _template(world)["containers"][0]["resources"] = {"limits": {"microsoft.com/directx": "1"}}


@situation("CSI-V27", starts_again={"StatefulSet shop/moving": "no"})
def pods_on_linux_whose_template_is_for_windows_now(world: World) -> None:
    workload(world, "StatefulSet", "moving", pod_spec("gone"), replicas=1, updateStrategy={"type": "OnDelete"})
    owner = owner_reference("StatefulSet", "moving", SHOP)
    pod(world, "moving-0", pod_spec("linux", windows=False), on="linux-2", owner=owner)


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "yes"})
def pods_with_the_label_of_linux(world: World) -> None:
    world.get("Deployment", "web", SHOP)["spec"]["template"]["metadata"]["labels"]["kubernetes.io/os"] = "linux"


def _set_without_system(world: World, **fields: object) -> None:
    """The API server refuses these fields for pods that name Windows."""
    del _template(world)["os"]
    _template(world).update(fields)


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_with_sysctls(world: World) -> None:
    _set_without_system(world, securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]})


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_with_strict_supplemental_groups(world: World) -> None:
    _set_without_system(world, securityContext={"supplementalGroupsPolicy": "Strict"})


@situation("CSI-W20", starts_again={WEB: "no"})
def pods_with_resources_as_a_whole(world: World) -> None:
    _set_without_system(world, resources={"requests": {"cpu": "1"}})


@situation(starts_again={WEB: "yes"}, only_here=_NO_LIMITS)
def pods_of_a_namespace_with_a_quota_of_nothing(world: World) -> None:
    world.add("ResourceQuota", "team", SHOP, spec={"hard": {}}, status={})
