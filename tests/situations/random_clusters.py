# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Random small clusters of nodes, classes, volumes, claims and pods, as API objects: the same seed makes the same one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from situations.smaller import Cut

Object = dict[str, Any]
DRIVER = "disk.oracle.test"
TOPOLOGY = "topology.oracle.test/zone"
MARK = "oracle.test/cluster"
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
# Stands for a cluster's own prefix in every name.
OWN = "@"


@dataclass
class Cluster:
    """A cluster as API objects, their names with OWN in front. seed: it is made again from that."""

    seed: str
    nodes: list[Object] = field(default_factory=list)
    csi_nodes: list[Object] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    claims: list[Object] = field(default_factory=list)
    attachments: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)

    def list_claim_specs(self) -> Iterator[Object]:
        """What its claims and those that come with its pods ask for."""
        yield from (claim["spec"] for claim in self.claims)
        for pod in self.pods:
            for volume in pod["spec"]["volumes"]:
                if "ephemeral" in volume:
                    yield volume["ephemeral"]["volumeClaimTemplate"]["spec"]


def made(seed: str, pods: int = 10) -> Cluster:
    """A random cluster."""
    luck = random.Random(seed)
    found = Cluster(seed)
    for number in range(luck.randint(2, 5)):
        node = _node(luck, f"{OWN}n{number}")
        found.nodes.append(node)
        if luck.random() < 0.85:
            found.csi_nodes.append(_csi_node(luck, node))
    names = [one["metadata"]["name"] for one in found.nodes]
    for number in range(luck.randint(1, 3)):
        found.classes.append(_class(luck, f"{OWN}c{number}"))
    classes = [one["metadata"]["name"] for one in found.classes]
    some = [*classes, *classes, f"{OWN}static", ""]
    for number in range(luck.randint(2, 7)):
        name = f"{OWN}d{number}"
        volume = _volume(luck, f"{OWN}v{number}", some, names)
        found.claims.append(_claim(luck, name, some))
        if luck.random() < 0.75:
            _pair(luck, volume, found.claims[-1])
        found.volumes.append(volume)
        if luck.random() < 0.15 and "csi" in volume["spec"]:
            found.attachments.append(_attachment(f"{OWN}a{number}", volume, luck.choice(names)))
    for number in range(pods):
        found.pods.append(_pod(luck, f"{OWN}p{number}", found, names))
    return found


def claim_alone(seed: str) -> Cluster:
    """A random cluster with one claim, which nothing competes with for its volumes, and a pod that needs it."""
    luck = random.Random(seed)
    found = Cluster(seed, nodes=[_node(luck, f"{OWN}n0")])
    for number in range(luck.randint(1, 2)):
        found.classes.append(_class(luck, f"{OWN}c{number}"))
    some = [one["metadata"]["name"] for one in found.classes]
    some += [*some, f"{OWN}static"]
    found.claims.append(_claim(luck, f"{OWN}d0", some))
    for number in range(luck.randint(1, 3)):
        volume = _volume(luck, f"{OWN}v{number}", some, [f"{OWN}n0"])
        if _often(luck, 0.6):
            _pair(luck, volume, found.claims[0])
        found.volumes.append(volume)
    own = {"name": "data", "persistentVolumeClaim": {"claimName": f"{OWN}d0"}}
    found.pods.append({"metadata": {"name": f"{OWN}p0"}, "spec": {"volumes": [own]}})
    return found


def _often(luck: random.Random, share: float) -> bool:
    return luck.random() < share


def _node(luck: random.Random, name: str) -> Object:
    zone = luck.choice("abc")
    labels = {"kubernetes.io/os": "windows", "kubernetes.io/hostname": name, MARK: f"{OWN}x"}
    for key, share in ((ZONE, 0.75), (OLD_ZONE, 0.4), (TOPOLOGY, 0.7), ("topology.ebs.csi.aws.com/zone", 0.4)):
        if _often(luck, share):
            labels[key] = zone if _often(luck, 0.9) else luck.choice("abc")
    if _often(luck, 0.6):
        labels["disk"] = luck.choice(["ssd", "hdd"])
    if _often(luck, 0.5):
        labels["rank"] = luck.choice(["1", "2", "3", "x"])
    taints = []
    for key, value in (("os", "Windows"), ("team", luck.choice(["a", "b"])), ("bare", "")):
        if _often(luck, 0.12):
            effect = luck.choice(["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])
            taints.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    ready = _often(luck, 0.93)
    spec: Object = {"taints": taints}
    if _often(luck, 0.1):
        spec["unschedulable"] = True
    room = {"cpu": luck.choice(["1", "2", "100"]), "memory": "100Gi", "pods": luck.choice(["2", "200", "200"])}
    if _often(luck, 0.3):
        room["oracle.test/device"] = "1"
    condition = {"type": "Ready", "status": str(ready), "reason": "Told", "message": "told"}
    info = dict.fromkeys(
        (
            "machineID",
            "systemUUID",
            "bootID",
            "kernelVersion",
            "osImage",
            "containerRuntimeVersion",
            "kubeProxyVersion",
        ),
        "",
    )
    info |= {"kubeletVersion": "v1.36.3", "operatingSystem": "windows", "architecture": "amd64"}
    status = {"capacity": room, "allocatable": room, "conditions": [condition], "nodeInfo": info}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def _csi_node(luck: random.Random, node: Object) -> Object:
    drivers = []
    for driver, keys in ((DRIVER, [TOPOLOGY]), ("ebs.csi.aws.com", ["topology.ebs.csi.aws.com/zone"])):
        if not _often(luck, 0.8):
            continue
        entry: Object = {"name": driver, "nodeID": node["metadata"]["name"]}
        entry["topologyKeys"] = [key for key in keys if key in node["metadata"]["labels"]]
        if _often(luck, 0.7):
            entry["allocatable"] = {"count": luck.randint(1, 5)}
        drivers.append(entry)
    found: Object = {"metadata": {"name": node["metadata"]["name"]}, "spec": {"drivers": drivers}}
    if _often(luck, 0.5):
        found["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    return found


def _class(luck: random.Random, name: str) -> Object:
    provisioner = luck.choice([DRIVER, DRIVER, DRIVER, "kubernetes.io/no-provisioner"])
    found: Object = {"metadata": {"name": name}, "provisioner": provisioner}
    found["volumeBindingMode"] = "WaitForFirstConsumer" if _often(luck, 0.8) else "Immediate"
    if _often(luck, 0.3):
        key = luck.choice([ZONE, TOPOLOGY, "disk"])
        values = luck.sample("abc", 2) if key != "disk" else ["ssd"]
        found["allowedTopologies"] = [{"matchLabelExpressions": [{"key": key, "values": values}]}]
    return found


def _modes(luck: random.Random, more: int) -> list[str]:
    known = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]
    if _often(luck, 0.12):
        return ["ReadWriteOncePod"]
    return known[: luck.randint(1, more)] if _often(luck, 0.8) else luck.sample(known, 1)


def _volume(luck: random.Random, name: str, classes: Sequence[str], nodes: Sequence[str]) -> Object:
    spec: Object = {
        "capacity": {"storage": f"{luck.randint(1, 3)}Gi"},
        "accessModes": _modes(luck, 3),
        "storageClassName": luck.choice(classes),
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if _often(luck, 0.06):
        spec["volumeMode"] = "Block"
    labels: Object = {}
    if _often(luck, 0.3):
        labels[luck.choice([ZONE, OLD_ZONE])] = luck.choice(["a", "b", "c", "a__b", "a__b__c"])
    kind = luck.random()
    if kind < 0.65:
        spec["csi"] = {"driver": DRIVER, "volumeHandle": luck.choice([name, name, f"{OWN}shared"])}
    elif kind < 0.85:
        disk = f"vol-{name}" if _often(luck, 0.9) else name
        spec["awsElasticBlockStore"] = {"volumeID": luck.choice([f"aws://a/{disk}", disk])}
    else:
        spec["local"] = {"path": "C:\\data"}
        there = luck.choice([*nodes, f"{OWN}lost"])
        spec["nodeAffinity"] = affinity([{"key": "kubernetes.io/hostname", "operator": "In", "values": [there]}])
    if "local" not in spec and _often(luck, 0.5):
        spec["nodeAffinity"] = affinity(*[[_zone_rule(luck)] for _ in range(luck.randint(1, 2))])
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _zone_rule(luck: random.Random) -> Object:
    key = luck.choice([ZONE, ZONE, OLD_ZONE, TOPOLOGY, "disk"])
    if _often(luck, 0.15):
        return {"key": key, "operator": luck.choice(["Exists", "DoesNotExist"])}
    values = luck.sample("abc", luck.randint(1, 2)) if key != "disk" else ["ssd"]
    return {"key": key, "operator": luck.choice(["In", "In", "In", "NotIn"]), "values": values}


def affinity(*terms: list[Object]) -> Object:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}


def _wish(luck: random.Random, classes: Sequence[str]) -> Object:
    spec: Object = {
        "accessModes": _modes(luck, 2),
        "resources": {"requests": {"storage": f"{luck.randint(1, 3)}Gi"}},
        "storageClassName": luck.choice(classes),
    }
    if _often(luck, 0.06):
        spec["volumeMode"] = "Block"
    return spec


def _claim(luck: random.Random, name: str, classes: Sequence[str]) -> Object:
    return {"metadata": {"name": name}, "spec": _wish(luck, classes)}


def _pair(luck: random.Random, volume: Object, claim: Object) -> None:
    """Let a claim and a volume know each other in one of the ways there are; mostly so that they fit."""
    mine, yours = volume["spec"], claim["spec"]
    if _often(luck, 0.85):
        yours["storageClassName"] = mine["storageClassName"]
        yours["accessModes"] = mine["accessModes"][:1]
        yours["resources"] = {"requests": {"storage": "1Gi"}}
        yours.pop("volumeMode", None)
        if "volumeMode" in mine:
            yours["volumeMode"] = mine["volumeMode"]
    how = luck.random()
    reference = {"namespace": f"{OWN}x", "name": claim["metadata"]["name"]}
    if how < 0.6:
        yours["volumeName"] = volume["metadata"]["name"]
    if 0.4 < how < 0.9:
        mine["claimRef"] = reference
    if how >= 0.9:
        mine["claimRef"] = {**reference, "uid": "00000000-0000-0000-0000-000000000001"}


def _attachment(name: str, volume: Object, node: str) -> Object:
    source = {"persistentVolumeName": volume["metadata"]["name"]}
    return {"metadata": {"name": name}, "spec": {"attacher": DRIVER, "nodeName": node, "source": source}}


def _pod(luck: random.Random, name: str, cluster: Cluster, nodes: Sequence[str]) -> Object:
    spec: Object = {
        "nodeSelector": {MARK: f"{OWN}x"},
        "containers": [{"name": "main", "image": "registry.example.com/main:1"}],
        "tolerations": [],
        "volumes": [],
    }
    if _often(luck, 0.25):
        spec["nodeSelector"] |= luck.choice(
            [{"disk": "ssd"}, {"disk": "hdd"}, {ZONE: "a"}, {"kubernetes.io/os": "windows"}]
        )
    for one in ({"key": "os", "value": "Windows", "effect": "NoSchedule"}, {"key": "team", "operator": "Exists"}):
        if _often(luck, 0.4):
            spec["tolerations"].append(one)
    if _often(luck, 0.15):
        spec["tolerations"].append(
            luck.choice(
                [
                    {"operator": "Exists"},
                    {"operator": "Exists", "effect": "NoSchedule"},
                    {"key": "bare", "operator": "Equal"},
                    {"key": "team", "value": "a", "effect": "NoExecute"},
                    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
                ]
            )
        )
    terms = []
    if _often(luck, 0.25):
        terms = [
            {"matchExpressions": [_wanted_rule(luck) for _ in range(luck.randint(1, 2))]}
            for _ in range(luck.randint(1, 2))
        ]
    if _often(luck, 0.35):
        # To one node only: so the prediction for each pair of a pod and a node is tested.
        pin = {"key": "metadata.name", "operator": "In", "values": [luck.choice(nodes)]}
        terms = [{**term, "matchFields": [pin]} for term in terms or [{}]]
    if terms:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if _often(luck, 0.1):
        spec["os"] = {"name": "windows"}
    claims = [one["metadata"]["name"] for one in cluster.claims]
    for claim in luck.sample(claims, min(len(claims), luck.choice([0, 1, 1, 1, 2, 2, 3]))):
        spec["volumes"].append({"name": claim[1:], "persistentVolumeClaim": {"claimName": claim}})
    if _often(luck, 0.15):
        some = [one["metadata"]["name"] for one in cluster.classes]
        template = {"volumeClaimTemplate": {"spec": _wish(luck, some)}}
        spec["volumes"].append({"name": "scratch", "ephemeral": template})
    if _often(luck, 0.08):
        disk = {"volumeID": luck.choice([f"vol-{OWN}i1", f"vol-{OWN}i2"])}
        spec["volumes"].append({"name": "inline", "awsElasticBlockStore": disk})
    if _often(luck, 0.03):
        spec["volumes"].append({"name": "gone", "persistentVolumeClaim": {"claimName": f"{OWN}gone"}})
    _limit(luck, spec)
    # Drawn apart, so that a seed makes what it made before.
    profile = random.Random(f"{cluster.seed} {name}")
    if _often(profile, 0.05):
        gate: Object = {"schedulingGates": [{"name": "oracle.test/gate"}]}
        spec |= profile.choice([{"schedulerName": "other"}, gate])
    elif _often(profile, 0.1):
        # Nothing but a disk or a port of the node decides.
        same: Object = {"name": "same", "awsElasticBlockStore": {"volumeID": f"vol-{OWN}same"}}
        main: Object = {"name": "main", "image": "registry.example.com/main:1"}
        is_port = _often(profile, 0.5)
        spec = {
            "nodeSelector": {MARK: f"{OWN}x", "kubernetes.io/hostname": nodes[0]},
            "containers": [{**main, "ports": [{"containerPort": 80, "hostPort": 8082}]} if is_port else main],
            "tolerations": [{"operator": "Exists"}],
            "volumes": [] if is_port else [same],
        }
    return {"metadata": {"name": name, "labels": {"app": luck.choice("ab")}}, "spec": spec}


def _limit(luck: random.Random, spec: Object) -> None:
    """What keeps a pod from nodes by the pods that are there: requests, ports, spreading, affinity."""
    main = spec["containers"][0]
    if _often(luck, 0.4):
        requests: Object = {"cpu": luck.choice(["500m", "1", "1100m"]), "memory": "64Mi"}
        if _often(luck, 0.15):
            requests["oracle.test/device"] = "1"
        main["resources"] = {"requests": requests, "limits": requests} if _often(luck, 0.5) else {"limits": requests}
        if _often(luck, 0.3):
            init = {"name": "init", "image": "registry.example.com/init:1", "resources": {"requests": {"cpu": "900m"}}}
            spec["initContainers"] = [init | ({"restartPolicy": "Always"} if _often(luck, 0.5) else {})]
    if _often(luck, 0.2):
        port = {"containerPort": 80, "hostPort": luck.choice([8080, 8081])}
        main["ports"] = [port | luck.choice([{}, {}, {"hostIP": "127.0.0.1"}, {"protocol": "UDP"}])]
    if _often(luck, 0.25):
        constraint: Object = {
            "maxSkew": luck.choice([1, 1, 2]),
            "topologyKey": luck.choice(["kubernetes.io/hostname", ZONE, TOPOLOGY]),
            "whenUnsatisfiable": luck.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": _labels(luck),
        }
        if _often(luck, 0.3) and constraint["whenUnsatisfiable"] == "DoNotSchedule":
            constraint["minDomains"] = luck.choice([1, 2, 3])
        if _often(luck, 0.3):
            constraint["nodeTaintsPolicy"] = luck.choice(["Honor", "Ignore"])
        if _often(luck, 0.15):
            constraint["nodeAffinityPolicy"] = luck.choice(["Honor", "Ignore"])
        if _often(luck, 0.15) and "matchLabels" in constraint["labelSelector"]:
            constraint["labelSelector"] = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
            constraint["matchLabelKeys"] = ["app"]
        spec["topologySpreadConstraints"] = [constraint]
    for name in ("podAffinity", "podAntiAffinity"):
        if _often(luck, 0.15):
            key = luck.choice(["kubernetes.io/hostname", ZONE])
            terms = [{"topologyKey": key, "labelSelector": _labels(luck)} for _ in range(luck.choice([1, 1, 2]))]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            spec["affinity"] = {**(spec.get("affinity") or {}), name: required}


def _labels(luck: random.Random) -> Object:
    if _often(luck, 0.3):
        expression: Object = {"key": "app", "operator": luck.choice(["In", "NotIn"]), "values": [luck.choice("ab")]}
        return {"matchExpressions": [luck.choice([expression, {"key": "app", "operator": "Exists"}])]}
    return {"matchLabels": {"app": luck.choice("ab")}}


def _wanted_rule(luck: random.Random) -> Object:
    if _often(luck, 0.3):
        return {"key": "rank", "operator": luck.choice(["Gt", "Lt"]), "values": [luck.choice(["1", "2"])]}
    return _zone_rule(luck)


def list_cuts(cluster: Cluster) -> Iterator[Cut]:
    """What may be left out of a cluster; its last pod stays."""
    for part in ("nodes", "csi_nodes", "classes", "volumes", "claims", "attachments", "pods"):
        things = getattr(cluster, part)
        for number, thing in enumerate(things):
            if part != "pods" or number < len(things) - 1:
                yield part, number, ()
            for path in _removable(thing):
                yield part, number, path


def _removable(thing: Object) -> Iterator[tuple[Any, ...]]:
    spec = thing.get("spec") or {}
    for key in (
        "unschedulable", "nodeAffinity", "affinity", "os", "volumeMode", "claimRef", "volumeName", "initContainers",
        "topologySpreadConstraints",
    ):  # fmt: skip
        if key in spec and not (key == "nodeAffinity" and "local" in spec):
            yield ("spec", key)
    for key in ("taints", "tolerations", "volumes", "drivers"):
        for number in range(len(spec.get(key) or ())):
            yield ("spec", key, number)
    for key in thing["metadata"].get("labels") or ():
        if key != MARK:
            yield ("metadata", "labels", key)
    if "allowedTopologies" in thing:
        yield ("allowedTopologies",)
