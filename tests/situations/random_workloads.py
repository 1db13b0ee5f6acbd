# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Random workloads with volumes on a few Windows and Linux nodes, as API objects: the same seed makes the same ones."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from situations.smaller import Cut

Object = dict[str, Any]
MARK, HOST, ZONE = "workload.test/cluster", "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KINDS = ("Deployment", "Deployment", "StatefulSet", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
# The second one is the workload's alone, or it would adopt its neighbours.
LABELS, OWN = {"app": "main"}, {"set": "main"}
_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeProxyVersion",
)  # fmt: skip


@dataclass
class RandomWorkload:
    """A workload with its nodes, volumes and neighbours. name: what all names begin with. classes: names of PriorityClasses."""

    seed: str
    name: str
    classes: tuple[str, ...] = ()
    luck: random.Random = field(init=False)
    nodes: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    limits: list[Object] = field(default_factory=list)
    neighbours: list[Object] = field(default_factory=list)
    workload: Object = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.luck = random.Random(self.seed)
        for number in range(self.luck.randint(2, 4)):
            self.nodes.append(self._draw_node(f"{self.name}-w{number}", "windows"))
        for number in range(self.luck.choice((0, 0, 1, 2))):
            self.nodes.append(self._draw_node(f"{self.name}-l{number}", "linux"))
        for node in self.nodes:
            self.volumes += self._draw_volumes(node)
        if self._often(0.15):
            self.labels["pod-security.kubernetes.io/enforce"] = self.luck.choice(("baseline", "restricted"))
        if self._often(0.2):
            hard = {self.luck.choice(("pods", "requests.cpu", "persistentvolumeclaims")): str(self.luck.randint(1, 4))}
            self.limits.append(self._make("v1", "ResourceQuota", "quota", {"hard": hard}))
        if self._often(0.2):
            part = {"type": "Container", "default": {"cpu": "1500m"}, "defaultRequest": {"cpu": "1"}}
            self.limits.append(self._make("v1", "LimitRange", "limits", {"limits": [part]}))
        self.neighbours = [self._draw_neighbour(number) for number in range(self.luck.choice((0, 1, 2, 3)))]
        self._draw_workload()

    def _often(self, share: float) -> bool:
        return self.luck.random() < share

    def _make(self, version: str, kind: str, name: str, spec: Object) -> Object:
        metadata: Object = {"name": name, "namespace": self.name}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    def _draw_node(self, name: str, os: str) -> Object:
        room = {"cpu": self.luck.choice(("2", "3", "4")), "memory": "16Gi", "pods": self.luck.choice(("2", "20", "20"))}
        labels = {"kubernetes.io/os": os, HOST: name, MARK: self.name, ZONE: self.luck.choice("ab")}
        taints = []
        if os == "windows" and self._often(0.3):
            taints.append({"key": "os", "value": "Windows", "effect": "NoSchedule"})
        if self._often(0.1):
            taints.append({"key": "team", "value": "a", "effect": self.luck.choice(("NoSchedule", "NoExecute"))})
        info = {**dict.fromkeys(_INFO, ""), "kubeletVersion": "v1.36.3", "operatingSystem": os, "architecture": "amd64"}
        condition = {"type": "Ready", "status": "True", "reason": "r"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": {"taints": taints, "unschedulable": self._often(0.1)},
            "status": {"capacity": room, "allocatable": room, "conditions": [condition], "nodeInfo": info},
        }

    def _draw_volumes(self, node: Object) -> Iterator[Object]:
        name = node["metadata"]["name"]
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [name]}]}
        for number in range(self.luck.choice((0, 1, 2, 3))):
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"{name}-{number}", "labels": {MARK: self.name}},
                "spec": {
                    "capacity": {"storage": self.luck.choice(("1Gi", "2Gi"))},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": self.name,
                    "persistentVolumeReclaimPolicy": "Retain",
                    "local": {"path": f"C:\\disks\\{number}"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                },
            }

    def list_claim_specs(self) -> Iterator[Object]:
        """What its claims and those that come with its pods ask for."""
        whole = self.workload["spec"]
        yield from (claim["spec"] for claim in (*self.claims, *(whole.get("volumeClaimTemplates") or ())))
        for volume in whole["template"]["spec"].get("volumes") or ():
            if "ephemeral" in volume:
                yield volume["ephemeral"]["volumeClaimTemplate"]["spec"]

    @property
    def storage_class(self) -> Object:
        """The class of its volumes."""
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": self.name, "labels": {MARK: self.name}},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }

    def _draw_container(self) -> Object:
        container: Object = {"name": "main", "image": "registry.example.com/main:1"}
        if self._often(0.7):
            container["resources"] = {"requests": {"cpu": self.luck.choice(("200m", "500m", "1", "1500m", "3"))}}
        if self._often(0.15):
            container["ports"] = [{"containerPort": 80, "hostPort": self.luck.choice((8080, 8081))}]
        return container

    def _draw_neighbour(self, number: int) -> Object:
        node = self.luck.choice(self.nodes)
        spec: Object = {"containers": [self._draw_container()], "nodeName": node["metadata"]["name"]}
        if self._often(0.4) and self.classes:
            spec["priorityClassName"] = self.luck.choice(self.classes)
        if self._often(0.2):
            spec["affinity"] = self._draw_pod_affinity("podAntiAffinity")
        pod = self._make("v1", "Pod", f"neighbour-{number}", spec)
        pod["metadata"]["labels"] = {"app": self.luck.choice(("main", "other"))}
        return pod

    def _draw_pod_affinity(self, field_: str) -> Object:
        selector = {"matchLabels": {"app": self.luck.choice(("main", "main", "other"))}}
        term = {"topologyKey": self.luck.choice((HOST, ZONE)), "labelSelector": selector}
        return {field_: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def _draw_spec(self) -> Object:
        spec: Object = {"containers": [self._draw_container()], "nodeSelector": {MARK: self.name}}
        if self._often(0.85):
            spec["nodeSelector"]["kubernetes.io/os"] = "windows"
        if self._often(0.5):
            spec["os"] = {"name": "windows"}
        if self._often(0.8):
            spec["tolerations"] = [{"key": "os", "operator": "Exists"}]
            if self._often(0.3):
                seconds = {"tolerationSeconds": 1} if self._often(0.5) else {}
                spec["tolerations"].append({"key": "team", "operator": "Exists", "effect": "NoExecute", **seconds})
        if self._often(0.2):
            spec["affinity"] = self._draw_pod_affinity(self.luck.choice(("podAffinity", "podAntiAffinity")))
        if self._often(0.2):
            constraint = {"topologyKey": self.luck.choice((HOST, ZONE)), "maxSkew": 1}
            constraint["whenUnsatisfiable"] = self.luck.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
            spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": {"matchLabels": LABELS}}]
        if self._often(0.25) and self.classes:
            spec["priorityClassName"] = self.luck.choice((*self.classes, f"{self.name}-gone"))
        if self._often(0.1):
            spec["serviceAccountName"] = self.luck.choice(("default", "gone"))
        if self._often(0.3):
            spec["securityContext"] = {"runAsNonRoot": True}
        return spec

    def _draw_workload(self) -> None:
        kind = self.luck.choice(KINDS)
        spec = self._draw_spec()
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.name,
            "resources": {"requests": {"storage": self.luck.choice(("1Gi", "1Gi", "2Gi"))}},
        }
        whole: Object = {"selector": {"matchLabels": OWN}}
        if kind not in ("DaemonSet", "Job"):
            whole["replicas"] = self.luck.randint(1, 4)
        if kind == "Job":
            whole = {"parallelism": self.luck.randint(1, 3), "completions": 3}
            spec["restartPolicy"] = "Never"
        if kind == "StatefulSet":
            whole["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
            # In order the second pod waits for a kubelet that mounts the first one's volume, and the oracle's lab has none.
            whole["podManagementPolicy"] = "Parallel"
            whole["serviceName"] = "main"
        elif self._often(0.5):
            spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]
        else:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            self.claims.append(self._make("v1", "PersistentVolumeClaim", "data", claim))
        self._draw_node_name(spec, whole, claim)
        whole["template"] = {"metadata": {"labels": {**LABELS, **OWN}}, "spec": spec}
        self.workload = self._make("batch/v1" if kind == "Job" else "apps/v1", kind, "main", whole)

    def _draw_node_name(self, spec: Object, whole: Object, claim: Object) -> None:
        """Let the template name a Linux node in some clusters, where a volume of a Windows node is bound already."""
        # One that evicts its pods would get new ones for ever.
        linux = [
            name
            for node in self.nodes
            if (name := node["metadata"]["name"]).startswith(f"{self.name}-l")
            and all(taint["effect"] != "NoExecute" for taint in node["spec"]["taints"])
        ]
        disks = [name for volume in self.volumes if (name := volume["metadata"]["name"]).startswith(f"{self.name}-w")]
        # Drawn apart, so that a seed makes what it made before.
        if not linux or not disks or random.Random(f"{self.seed} node").random() > 0.3:
            return
        spec |= {"nodeName": linux[0], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
        whole.pop("volumeClaimTemplates", None)
        bound = {**claim, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": disks[0]}
        self.claims = [self._make("v1", "PersistentVolumeClaim", "data", bound)]

    def rename(self, name: str) -> RandomWorkload:
        """The same cluster under another name."""
        renamed = copy.copy(self)
        renamed.name = name
        for part in ("nodes", "volumes", "claims", "limits", "neighbours", "workload", "labels"):
            setattr(renamed, part, json.loads(json.dumps(getattr(self, part)).replace(self.name, name)))
        return renamed

    def list_cuts(self) -> Iterator[Cut]:
        """What may be left out."""
        for part in ("nodes", "volumes", "claims", "limits", "neighbours"):
            yield from ((part, number, ()) for number in range(len(getattr(self, part))))
        yield from (("labels", key, ()) for key in self.labels)
        for number, node in enumerate(self.nodes):
            yield from (("nodes", number, ("spec", key)) for key in node["spec"] if node["spec"][key])
        template = ("template", "spec")
        for key, value in self.workload["spec"]["template"]["spec"].items():
            if key not in ("containers", "restartPolicy"):
                yield "workload", "spec", (*template, key)
            if key in ("nodeSelector", "tolerations"):
                names = value if isinstance(value, dict) else range(len(value))
                yield from (("workload", "spec", (*template, key, name)) for name in names)
        for name in self.workload["spec"]["template"]["spec"]["containers"][0]:
            if name not in ("name", "image"):
                yield "workload", "spec", (*template, "containers", 0, name)

    @property
    def key(self) -> str:
        """What the report calls the workload."""
        return f"{self.workload['kind']} {self.name}/main"

    @property
    def count(self) -> int | None:
        """How many pods it asks for, None for one on each node."""
        spec = self.workload["spec"]
        if self.workload["kind"] == "Job":
            return int(spec["parallelism"])
        return None if self.workload["kind"] == "DaemonSet" else int(spec["replicas"])
