# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What keeps a pod from a node before its volumes are attached, each beside a twin that is ready and differs in one field.

A case spoils a healthy cluster in which pod shop/web waits for node win-1 with claim web-data, whose volume has no zone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread

from situations.cluster import SHOP, attach, claim_of, csi, healthy, pod, pod_spec, unregister, volume
from situations.cluster import register as register_on
from situations.world import Object, World, uid

VSPHERE, EBS = DRIVERS["vsphere"], DRIVERS["aws_ebs"]
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
TOPOLOGY = "topology.csi.vmware.com/k8s-zone"
Plant = Callable[[World], None]


@dataclass(frozen=True)
class Case:
    """Two clusters that differ in one field. word: the step's answer for the one that is not ready, with a finding."""

    name: str
    step: str
    word: str
    finding: str
    plant: Plant
    ready: Plant


def waiting() -> World:
    """The healthy cluster, with a pod that waits for nothing."""
    world = healthy()
    volume(world, "pv-web", csi(VSPHERE.name, "fcd-web"), "web-data")
    world.add("StorageClass", "disks", provisioner=VSPHERE.name, volumeBindingMode="WaitForFirstConsumer")
    pod(world, "web", pod_spec("web-data"))
    return world


def spec(world: World) -> Object:
    """Of the pod."""
    found: Object = world.get("Pod", "web", SHOP)["spec"]
    return found


def claim(world: World) -> Object:
    """The pod's claim."""
    return world.get("PersistentVolumeClaim", "web-data", SHOP)


def disk(world: World) -> Object:
    """The spec of its volume."""
    found: Object = world.get("PersistentVolume", "pv-web")["spec"]
    return found


def node(world: World) -> Object:
    """Node win-1."""
    return world.get("Node", "win-1")


def unbound(storage_class: str | None = "disks", **more: Any) -> Plant:
    """The claim has no volume, and what makes one of its class."""

    def plant(world: World) -> None:
        world.remove("PersistentVolume", "pv-web")
        world.remove("PersistentVolumeClaim", "web-data", SHOP)
        claim_of(world, "web-data", storage_class=storage_class)["spec"].update(more)

    return plant


def free(**more: Any) -> Plant:
    """A class without a provisioner, a claim of it, and one free volume."""

    def plant(world: World) -> None:
        unbound("local")(world)
        mode = "WaitForFirstConsumer"
        world.add("StorageClass", "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode=mode)
        volume(world, "pv-free", csi(VSPHERE.name, "fcd-free"), storage_class="local", **more)

    return plant


def reserved(*modes: str) -> Plant:
    """A class that makes volumes, a claim of it, and a volume of it that names the claim."""

    def plant(world: World) -> None:
        unbound()(world)
        made = volume(world, "pv-free", csi(VSPHERE.name, "fcd-free"), storage_class="disks", accessModes=[*modes])
        made["spec"]["claimRef"] = {"namespace": SHOP, "name": "web-data"}

    return plant


def asking(**more: Any) -> Plant:
    """The claim names a volume that is free, and is not bound yet."""

    def plant(world: World) -> None:
        unbound("")(world)
        volume(world, "pv-free", csi(VSPHERE.name, "fcd-free"))
        claim(world)["spec"].update({"volumeName": "pv-free", **more})

    return plant


def used_by(mode: str) -> Plant:
    """Another pod has the claim already."""

    def plant(world: World) -> None:
        claim(world)["spec"]["accessModes"] = disk(world)["accessModes"] = [mode]
        pod(world, "other", pod_spec("web-data"), on="win-2")

    return plant


def affine(value: str, key: str = "kubernetes.io/hostname") -> Plant:
    """The volume's node affinity."""

    def plant(world: World) -> None:
        expression = {"key": key, "operator": "In", "values": [value]}
        disk(world)["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}

    return plant


def labelled(key: str, value: str, name: str = "pv-web") -> Plant:
    """The volume's label of a zone; nodes have the newer label only."""

    def plant(world: World) -> None:
        for one in world.of("Node"):
            one["metadata"]["labels"][ZONE] = "a"
            one["metadata"]["labels"].pop(OLD_ZONE, None)
        world.get("PersistentVolume", name)["metadata"]["labels"] = {key: value}

    return plant


def two_zones(second: str) -> Plant:
    """The pod has a second volume, and each is in one zone."""

    def plant(world: World) -> None:
        labelled(ZONE, "a")(world)
        made = volume(world, "pv-more", csi(VSPHERE.name, "fcd-more"), "more-data")
        made["metadata"]["labels"] = {ZONE: second}
        spec(world)["volumes"].append({"name": "more", "persistentVolumeClaim": {"claimName": "more-data"}})

    return plant


def limited(count: int) -> Plant:
    """How many volumes of the driver a node takes that holds one of another pod."""

    def plant(world: World) -> None:
        for name in ("win-1", "win-2"):
            unregister(world, VSPHERE, name)
            register_on(world, VSPHERE, name, limit=count)
        volume(world, "pv-other", csi(VSPHERE.name, "fcd-other"), "other-data")
        pod(world, "other", pod_spec("other-data"), on="win-1")

    return plant


def migrated(count: int) -> Plant:
    """How many volumes of AWS a node takes that holds an in-tree one."""

    def plant(world: World) -> None:
        register_on(world, EBS, "win-1", limit=count)
        volume(world, "pv-old", {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}}, "old-data")
        pod(world, "old", pod_spec("old-data"), on="win-1")
        disk(world)["csi"] = csi(EBS.name, "vol-2")["csi"]

    return plant


def let_go(count: int) -> Plant:
    """How many volumes a node takes that has one attached which none of its pods has."""

    def plant(world: World) -> None:
        register_on(world, EBS, "win-1", limit=count)
        volume(world, "pv-left", csi(EBS.name, "vol-1"), "left-data")
        attach(world, "pv-left", "win-1", EBS.name, "vol-1")
        disk(world)["csi"] = csi(EBS.name, "vol-2")["csi"]

    return plant


def translated(zone: str) -> Plant:
    """An in-tree volume of zone a, and the zone that the driver gives the node, whose kubelet has migrated."""

    def plant(world: World) -> None:
        labelled(ZONE, "a")(world)
        affine("a", ZONE)(world)
        del disk(world)["csi"]
        disk(world)["awsElasticBlockStore"] = {"volumeID": "vol-1"}
        node(world)["metadata"]["labels"]["topology.ebs.csi.aws.com/zone"] = zone
        annotation = "storage.alpha.kubernetes.io/migrated-plugins"
        annotations = world.get("CSINode", "win-1")["metadata"].setdefault("annotations", {})
        annotations[annotation] = "kubernetes.io/aws-ebs"

    return plant


def selected(name: str) -> Plant:
    """The scheduler has chosen a node for the pod, and the volume is being made."""

    def plant(world: World) -> None:
        unbound()(world)
        claim(world)["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = name

    return plant


def allowed(zone: str) -> Plant:
    """The class makes volumes in one zone."""

    def plant(world: World) -> None:
        unbound()(world)
        for one in world.of("Node"):
            one["metadata"]["labels"][ZONE] = "a"
        terms = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
        world.get("StorageClass", "disks")["allowedTopologies"] = terms

    return plant


def immediate(second: str, *allowed_zones: str) -> Plant:
    """The class makes volumes before pods are placed, in these zones, with nodes in one zone or in two."""

    def plant(world: World) -> None:
        unbound()(world)
        storage_class = world.get("StorageClass", "disks")
        storage_class["volumeBindingMode"] = "Immediate"
        if allowed_zones:
            expression = {"key": TOPOLOGY, "values": [*allowed_zones]}
            storage_class["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
        for number, one in enumerate(world.of("CSINode")):
            for entry in one["spec"]["drivers"]:
                entry["topologyKeys"] = [TOPOLOGY]
            labels = world.get("Node", one["metadata"]["name"])["metadata"]["labels"]
            labels[TOPOLOGY] = second if number else "a"
        for one in world.of("Node"):
            one["metadata"]["labels"].setdefault(TOPOLOGY, "a")

    return plant


def inline(mine: Object, other: Object) -> Plant:
    """The pod names a disk itself, as another pod on win-1 does."""

    def plant(world: World) -> None:
        spec(world)["volumes"].append({"name": "disk", **mine})
        beside = pod(world, "other", pod_spec(), on="win-1")
        beside["spec"]["volumes"] = [{"name": "disk", **other}]

    return plant


def ebs(volume_id: str, **more: Any) -> Object:
    """An in-tree disk of AWS."""
    return {"awsElasticBlockStore": {"volumeID": volume_id, **more}}


def unread(resource: str) -> Plant:
    """A list that may not be read."""
    return lambda world: world.unread.append(Unread(resource, "may not be read", "rule"))


def both(*plants: Plant) -> Plant:
    """One after the other."""

    def plant(world: World) -> None:
        for one in plants:
            one(world)

    return plant


def put(of: Callable[[World], Object], key: str, value: Any) -> Plant:
    """One field of an object."""
    return lambda world: of(world).update({key: value})


def taint(key: str, effect: str, **more: str) -> Plant:
    """A taint more on win-1."""
    return lambda world: node(world)["spec"].setdefault("taints", []).append({"key": key, "effect": effect, **more})


def runtime(selector: str) -> Plant:
    """A RuntimeClass that the pod names."""

    def plant(world: World) -> None:
        spec(world)["runtimeClassName"] = "windows"
        world.add("RuntimeClass", "windows", handler="h", scheduling={"nodeSelector": {"kubernetes.io/os": selector}})

    return plant


def required(operator: str) -> Plant:
    """A node affinity of the pod."""
    expression = {"key": "kubernetes.io/os", "operator": operator, "values": ["windows"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return put(spec, "affinity", affinity)


def nothing(world: World) -> None:
    """As it is."""


def released(claim_uid: str) -> Plant:
    """The claim asks for a volume that was bound to a claim with this uid."""

    def plant(world: World) -> None:
        asking()(world)
        found = world.get("PersistentVolume", "pv-free")
        found["spec"]["claimRef"] = {"namespace": SHOP, "name": "web-data", "uid": claim_uid}
        found["status"]["phase"] = "Released" if claim_uid else "Available"

    return plant


def controller_with(available: int) -> Plant:
    """The driver's controller has so many replicas."""

    def plant(world: World) -> None:
        unbound()(world)
        for one in world.of("Deployment"):
            if one["metadata"]["name"] == "vsphere-csi-controller":
                one["status"]["availableReplicas"] = available

    return plant


def made_by(driver: str) -> Plant:
    """An unknown driver provisions volumes of the class, and has provisioned one or not."""

    def plant(world: World) -> None:
        unbound()(world)
        world.get("StorageClass", "disks")["provisioner"] = "disk.example.com"
        volume(world, "pv-made", csi("disk.example.com", "m-1"), "made-data", provisioned_by=driver)

    return plant


CASES = {
    case.name: case
    for case in (
        Case("claim missing", "bind", "no", "CSI-V27",
             lambda world: world.remove("PersistentVolumeClaim", "web-data", SHOP), nothing),
        Case("claim lost", "bind", "no", "CSI-V23", lambda world: claim(world)["status"].update(phase="Lost"), nothing),
        Case("volume gone", "bind", "no", "CSI-V23", lambda world: world.remove("PersistentVolume", "pv-web"), nothing),
        Case("volume bound to an earlier claim of that name", "bind", "no", "CSI-V40",
             lambda world: disk(world)["claimRef"].update(uid="0-0"), nothing),
        Case("claim being deleted", "bind", "no", "CSI-V24",
             lambda world: claim(world)["metadata"].update(deletionTimestamp=world.ago(hours=1)), nothing),
        Case("volume released by an earlier claim", "bind", "no", "CSI-V40", released("0-0"), released("")),
        Case("volume of another claim", "bind", "no", "CSI-V40",
             both(asking(), lambda world: world.get("PersistentVolume", "pv-free")["spec"].update(
                 claimRef={"namespace": SHOP, "name": "theirs", "uid": uid("PersistentVolumeClaim", "theirs", SHOP)})),
             asking()),
        Case("volume too small", "bind", "no", "CSI-V40", asking(resources={"requests": {"storage": "11Gi"}}), asking()),
        Case("volume of the other mode", "bind", "no", "CSI-V40", asking(volumeMode="Block"), asking()),
        Case("volume without the access mode", "bind", "no", "CSI-V40", asking(accessModes=["ReadWriteMany"]), asking()),
        Case("volume of another class", "bind", "no", "CSI-V40", asking(storageClassName="disks"), asking()),
        Case("class missing", "bind", "no", "CSI-V26", unbound("gone"), unbound("disks")),
        Case("no class and no default one", "bind", "no", "CSI-V26",
             both(unbound(None), lambda world: [one["metadata"].pop("annotations", None) for one in world.of("StorageClass")]),
             unbound("disks")),
        Case("free volume too small", "bind", "no", "CSI-V26", free(capacity={"storage": "9Gi"}), free()),
        Case("free volume of the other mode", "bind", "no", "CSI-V26", free(volumeMode="Block"), free()),
        Case("free volume without the access mode", "bind", "no", "CSI-V26", free(accessModes=["ReadOnlyMany"]), free()),
        Case("free volume on another node", "bind", "no", "CSI-V26",
             both(free(), lambda world: world.get("PersistentVolume", "pv-free")["spec"].update(
                 nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [
                     {"key": "kubernetes.io/hostname", "operator": "In", "values": ["win-2"]}]}]}})),
             free()),
        Case("free volume with the label of a zone", "bind", "unknown", "CSI-V41", both(free(), labelled(ZONE, "a", "pv-free")), free()),
        Case("reserved volume without the access mode", "bind", "unknown", "CSI-V41",
             reserved("ReadOnlyMany"), reserved("ReadOnlyMany", "ReadWriteOnce")),
        Case("unknown binding mode", "bind", "unknown", "CSI-V41",
             both(unbound(), lambda world: world.get("StorageClass", "disks").update(volumeBindingMode="New")), unbound()),
        Case("claim with a selector", "bind", "unknown", "CSI-V41", unbound(selector={"matchLabels": {"a": "b"}}), unbound()),
        Case("claim for one pod, and another has it", "schedule", "no", "CSI-V42",
             used_by("ReadWriteOncePod"), used_by("ReadWriteOnce")),
        Case("zones that the class leaves out", "provision", "no", "CSI-V26", allowed("b"), allowed("a")),
        Case("controller without a replica", "provision", "no", "CSI-D31", controller_with(0), controller_with(1)),
        Case("driver that made nothing yet", "provision", "unknown", "CSI-V41", made_by(""), made_by("disk.example.com")),
        Case("node selector", "schedule", "no", "CSI-W20",
             put(spec, "nodeSelector", {"kubernetes.io/os": "linux"}), put(spec, "nodeSelector", {"kubernetes.io/os": "windows"})),
        Case("required affinity", "schedule", "no", "CSI-W20", required("NotIn"), required("In")),
        Case("taint of the system", "schedule", "no", "CSI-W20",
             taint("node.kubernetes.io/os", "NoSchedule", value="windows"),
             taint("node.kubernetes.io/os", "PreferNoSchedule", value="windows")),
        Case("taint not-ready", "schedule", "no", "CSI-W20",
             taint("node.kubernetes.io/not-ready", "NoSchedule"), taint("node.kubernetes.io/not-ready", "NoExecute")),
        Case("taint that also evicts", "schedule", "no", "CSI-W20",
             taint("team", "NoExecute", value="a"), taint("team", "PreferNoSchedule", value="a")),
        Case("cordoned", "schedule", "no", "CSI-W20",
             lambda world: node(world)["spec"].update(unschedulable=True),
             lambda world: node(world)["spec"].update(unschedulable=False)),
        Case("spec.os of the other system", "schedule", "no", "CSI-W20",
             put(spec, "os", {"name": "linux"}), put(spec, "os", {"name": "windows"})),
        Case("runtime class of the other system", "schedule", "no", "CSI-W20", runtime("linux"), runtime("windows")),
        Case("runtime class missing", "bind", "no", "CSI-W20",
             both(runtime("windows"), put(spec, "runtimeClassName", "gone")), runtime("windows")),
        Case("bound to another node", "schedule", "no", "CSI-W20",
             put(spec, "nodeName", "win-2"), put(spec, "nodeName", "win-1")),
        Case("another scheduler", "schedule", "unknown", "CSI-W21",
             put(spec, "schedulerName", "own"), put(spec, "schedulerName", "default-scheduler")),
        Case("scheduling gates", "schedule", "unknown", "CSI-W21",
             put(spec, "schedulingGates", [{"name": "example.com/quota"}]), put(spec, "schedulingGates", [])),
        Case("volume's affinity", "schedule", "no", "CSI-W20", affine("win-2"), affine("win-1")),
        Case("disk of a lost node", "schedule", "no", "CSI-W20", affine("lost"), affine("win-1")),
        Case("volume's label of another zone", "schedule", "no", "CSI-W20", labelled(ZONE, "b"), labelled(ZONE, "a")),
        Case("volume's older label of another zone", "schedule", "no", "CSI-W20",
             labelled(OLD_ZONE, "b"), labelled(OLD_ZONE, "a")),
        Case("volumes in two zones", "schedule", "no", "CSI-W20", two_zones("b"), two_zones("a")),
        Case("attach limit", "schedule", "no", "CSI-W20", limited(1), limited(59)),
        Case("attach limit, with a migrated volume", "schedule", "no", "CSI-W20", migrated(1), migrated(2)),
        Case("attach limit, with a volume that no pod has", "schedule", "no", "CSI-W20", let_go(1), let_go(2)),
        Case("disk that another pod there names too", "schedule", "unknown", "CSI-W21",
             inline(ebs("vol-1"), ebs("vol-1", fsType="ntfs", readOnly=True)), inline(ebs("vol-1"), ebs("vol-2"))),
        Case("disk of a kind whose name is not read", "schedule", "unknown", "CSI-W21",
             inline({"iscsi": {"iqn": "a"}}, {"iscsi": {"iqn": "a"}}), inline({"iscsi": {"iqn": "a"}}, ebs("vol-1"))),
        Case("zone of a migrated volume", "schedule", "no", "CSI-W20", translated("b"), translated("a")),
        Case("volume made for another node", "bind", "unknown", "CSI-V41", selected("win-2"), selected("win-9")),
        Case("made before the pod is placed, in two zones", "schedule", "unknown", "CSI-W21", immediate("b"), immediate("a")),
        Case("made before the pod is placed, in a zone of no node", "schedule", "unknown", "CSI-W21", immediate("a", "a", "b"), immediate("a", "a")),
    )
}  # fmt: skip
