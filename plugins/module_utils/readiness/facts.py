# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What readiness is judged from: the few facts of each object, read once from the API's JSON. Pure.

Each ``from_object`` names the fields it reads, so that a reader decodes no others. Absent fields are what the API says
they mean. What could not be read at all is in ``Snapshot.unread``, and nothing that depends on it is called well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog import in_tree
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.deploy import wanted
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import (
    DaemonSetFacts,
    HostFacts,
    PodFacts,
    Taint,
)

SNAPSHOT_VERSION = 1

WMCO = "windowsmachineconfig.openshift.io/"
NODE_IDS = "csi.volume.kubernetes.io/nodeid"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONERS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIRROR = "kubernetes.io/config.mirror"
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")

PIPE = "\\\\.\\pipe\\csi-proxy-"


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read. resource: "pods". rule: what the account lacks, as text, empty otherwise."""

    resource: str
    why: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node affinity. field: it is about metadata.name, not about a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False


Term = tuple[Requirement, ...]


def terms_of(selector: Mapping[str, Any] | None) -> tuple[Term, ...] | None:
    """Read a core/v1 NodeSelector; None where there is none, which lets every node pass."""
    if selector is None:
        return None
    return tuple(
        tuple(
            Requirement(
                str(one.get("key", "")),
                str(one.get("operator", "")),
                tuple(one.get("values") or ()),
                by == "matchFields",
            )
            for by in ("matchExpressions", "matchFields")
            for one in term.get(by) or ()
        )
        for term in selector.get("nodeSelectorTerms") or ()
    )


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that a pod accepts."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """What says where a pod may run.

    os: spec.os.name. selector: spec.nodeSelector, sorted. terms: required node affinity. runtime_class: whose scheduling
    is merged into pods at admission and does not show in templates. windows_options: a hint only.
    """

    os: str = ""
    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    runtime_class: str = ""
    windows_options: bool = False

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Placement:
        """Read a core/v1 PodSpec.

        Reads os.name, nodeSelector, affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution, tolerations
        (key, operator, value, effect), runtimeClassName, securityContext.windowsOptions.
        """
        told = tuple(map(spec.get, _PLACING))
        if _LAST and told == _LAST[0][0]:
            return _LAST[0][1]
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        made = cls(
            os=str((spec.get("os") or {}).get("name", "")),
            selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
            terms=terms_of(affinity.get("requiredDuringSchedulingIgnoredDuringExecution")),
            tolerations=tuple(
                Toleration(
                    str(one.get("key") or ""),
                    str(one.get("operator") or "Equal"),
                    str(one.get("value") or ""),
                    str(one.get("effect") or ""),
                )
                for one in spec.get("tolerations") or ()
                # Every pod gets these two; they are about a moment, not about a place.
                if one.get("key") not in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ),
            runtime_class=str(spec.get("runtimeClassName") or ""),
            windows_options=bool((spec.get("securityContext") or {}).get("windowsOptions")),
        )
        # Most pods of a cluster say the same here, and those that follow one another nearly always.
        made = _PLACEMENTS.setdefault(made, made)
        _LAST[:] = [(told, made)]
        return made


_PLACEMENTS: dict[Placement, Placement] = {}
_PLACING = ("os", "nodeSelector", "affinity", "tolerations", "runtimeClassName", "securityContext")
_LAST: list[tuple[tuple[Any, ...], Placement]] = []


@dataclass(frozen=True, slots=True)
class Source:
    """Where a volume's bytes are.

    field: the API's name of the kind ("csi", "azureDisk"). driver: of a csi one. handle: what names the disk or share.
    kind: of azureDisk. secret_namespace: of azureFile. policy: a vsphereVolume names a storage policy.
    """

    field: str
    driver: str = ""
    handle: str = ""
    fs_type: str = ""
    kind: str = ""
    secret_namespace: str = ""
    policy: bool = False

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Source:
        """Read the one source of a PersistentVolumeSpec or of an entry of a pod's volumes.

        Reads, of the kind that is there: csi (driver, volumeHandle, fsType), awsElasticBlockStore (volumeID, fsType),
        azureDisk (diskURI, kind, fsType), azureFile (shareName, secretName, secretNamespace), gcePersistentDisk (pdName,
        fsType), cinder (volumeID, fsType), vsphereVolume (volumePath, fsType, storagePolicyName), portworxVolume
        (volumeID, fsType), rbd, cephfs, glusterfs, flocker, quobyte, storageos, scaleIO, nfs, iscsi, fc, local, hostPath,
        flexVolume (only that they are there). The field is empty for any other kind.
        """
        for name in in_tree.FIELDS:
            entry = spec.get(name)
            if entry is not None:
                return cls(
                    field=name,
                    driver=sys.intern(str(entry.get("driver") or "")),
                    handle=_handle(name, entry),
                    fs_type=sys.intern(str(entry.get("fsType") or "")),
                    kind=str(entry.get("kind") or ""),
                    secret_namespace=str(entry.get("secretNamespace") or ""),
                    policy=bool(entry.get("storagePolicyName")),
                )
        return cls(field="")


def _handle(name: str, entry: Mapping[str, Any]) -> str:
    if name == "azureFile":
        return f"{entry.get('secretName', '')}#{entry.get('shareName', '')}"
    for key in ("volumeHandle", "volumeID", "diskURI", "pdName", "volumePath"):
        if key in entry:
            return str(entry[key])
    return ""


@dataclass(frozen=True, slots=True)
class Inline:
    """A volume that a pod names itself."""

    name: str
    source: Source


@dataclass(frozen=True, slots=True)
class Volumes:
    """What a pod's volumes are, as far as storage drivers have to do with them.

    claims: names of claims in the pod's namespace. ephemeral: (volume, storage class) of generic ephemeral volumes, the
    class None for the default one. inline: sources without a claim. pipes: csi-proxy's pipes that it mounts, bare names.
    """

    claims: tuple[str, ...] = ()
    ephemeral: tuple[tuple[str, str | None], ...] = ()
    inline: tuple[Inline, ...] = ()
    pipes: tuple[str, ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Volumes:
        """Read a core/v1 PodSpec.

        Reads of each entry of volumes: name, persistentVolumeClaim.claimName,
        ephemeral.volumeClaimTemplate.spec.storageClassName, hostPath.path, and what Source reads.
        """
        claims: list[str] = []
        ephemeral: list[tuple[str, str | None]] = []
        inline: list[Inline] = []
        pipes: list[str] = []
        for volume in spec.get("volumes") or ():
            if (claim := volume.get("persistentVolumeClaim")) is not None:
                claims.append(str(claim.get("claimName", "")))
            elif (made := volume.get("ephemeral")) is not None:
                template = (made.get("volumeClaimTemplate") or {}).get("spec") or {}
                ephemeral.append((str(volume.get("name", "")), template.get("storageClassName")))
            elif (path := volume.get("hostPath")) is not None:
                text = str(path.get("path", "")).replace("/", "\\").lower()
                if text.startswith(PIPE):
                    pipes.append(text[len(PIPE) - len("csi-proxy-") :])
            else:
                source = Source.from_spec(volume)
                if source.field:
                    inline.append(Inline(str(volume.get("name", "")), source))
        if not (claims or ephemeral or inline or pipes):
            return NO_VOLUMES
        return cls(tuple(claims), tuple(ephemeral), tuple(inline), tuple(pipes))


NO_VOLUMES = Volumes()


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A Node.

    os: of nodeInfo, which the kubelet tells; the label can be edited. build: "20348". in_use, attached: unique volume
    names. node_ids: by driver. annotations: those of the Windows Machine Config Operator only.
    """

    name: str
    os: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    not_ready_because: str = ""
    cordoned: bool = False
    kubelet: str = ""
    build: str = ""
    runtime: str = ""
    node_ids: Mapping[str, str] = field(default_factory=dict)
    in_use: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_object(cls, node: Mapping[str, Any]) -> NodeSeen:
        """Read a core/v1 Node.

        Reads metadata (name, labels, annotations), spec (taints, unschedulable), status (conditions, nodeInfo
        (operatingSystem, kubeletVersion, kernelVersion, containerRuntimeVersion), volumesInUse, volumesAttached (name)).
        """
        metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
        annotations, info = metadata.get("annotations") or {}, status.get("nodeInfo") or {}
        ready: Mapping[str, Any] = next(
            (one for one in status.get("conditions") or () if one.get("type") == "Ready"), {}
        )
        return cls(
            name=str(metadata["name"]),
            os=str(info.get("operatingSystem", "")),
            labels=dict(metadata.get("labels") or {}),
            taints=tuple(
                Taint(str(one.get("key", "")), str(one.get("value") or ""), str(one.get("effect", "")))
                for one in spec.get("taints") or ()
            ),
            ready=ready.get("status") == "True",
            not_ready_because=" ".join(filter(None, [ready.get("reason"), ready.get("message")])),
            cordoned=bool(spec.get("unschedulable")),
            kubelet=sys.intern(str(info.get("kubeletVersion", ""))),
            build=wanted.NodeSeen.from_object(node).build,
            runtime=sys.intern(str(info.get("containerRuntimeVersion", ""))),
            node_ids=_json_map(annotations.get(NODE_IDS)),
            in_use=tuple(str(one) for one in status.get("volumesInUse") or ()),
            attached=tuple(str(one.get("name", "")) for one in status.get("volumesAttached") or ()),
            annotations={key: str(value) for key, value in annotations.items() if key.startswith(WMCO)},
        )

    @property
    def windows(self) -> bool:
        """Whether it is a Windows node: what the kubelet says, else the label."""
        return (self.os or self.labels.get("kubernetes.io/os", "")) == "windows"

    @property
    def of_operator(self) -> bool:
        """Whether the Windows Machine Config Operator prepared it."""
        return bool(self.annotations) or any(key.startswith(WMCO) for key in self.labels)


def _json_map(text: Any) -> dict[str, str]:
    try:
        found = json.loads(text) if isinstance(text, str) and text else {}
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class DriverEntry:
    """A driver in a CSINode. limit: most volumes, None when it sets none."""

    name: str
    node_id: str
    topology_keys: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CsiNodeSeen:
    """A CSINode. migrated: in-tree plugins for which the kubelet uses CSI, None where it does not tell."""

    name: str
    drivers: tuple[DriverEntry, ...] = ()
    migrated: tuple[str, ...] | None = None

    @classmethod
    def from_object(cls, csi_node: Mapping[str, Any]) -> CsiNodeSeen:
        """Read a storage.k8s.io/v1 CSINode.

        Reads metadata (name, annotations), spec.drivers (name, nodeID, topologyKeys, allocatable.count).
        """
        metadata = csi_node["metadata"]
        told = (metadata.get("annotations") or {}).get(MIGRATED_PLUGINS)
        return cls(
            name=str(metadata["name"]),
            drivers=tuple(
                DriverEntry(
                    sys.intern(str(one.get("name", ""))),
                    str(one.get("nodeID", "")),
                    tuple(one.get("topologyKeys") or ()),
                    (one.get("allocatable") or {}).get("count"),
                )
                for one in (csi_node.get("spec") or {}).get("drivers") or ()
            ),
            migrated=None if told is None else tuple(part.strip() for part in told.split(",") if part.strip()),
        )

    def entry(self, driver: str) -> DriverEntry | None:
        """What it says of a driver, None when it does not name it."""
        return next((one for one in self.drivers if one.name == driver), None)


@dataclass(frozen=True, slots=True)
class VolumeSeen:
    """A PersistentVolume. claim: "namespace/name" it is for, empty otherwise. terms: its node affinity. block: raw."""

    name: str
    source: Source
    uid: str = ""
    claim: str = ""
    policy: str = ""
    storage_class: str = ""
    provisioned_by: str = ""
    migrated_to: str = ""
    phase: str = ""
    deleting: bool = False
    access_modes: tuple[str, ...] = ()
    block: bool = False
    terms: tuple[Term, ...] | None = None
    created: str = ""

    @classmethod
    def from_object(cls, volume: Mapping[str, Any]) -> VolumeSeen:
        """Read a core/v1 PersistentVolume.

        Reads metadata (name, uid, annotations, creationTimestamp, deletionTimestamp), spec (claimRef (namespace, name),
        persistentVolumeReclaimPolicy, storageClassName, accessModes, volumeMode, nodeAffinity.required, and what
        Source reads), status.phase.
        """
        metadata, spec = volume["metadata"], volume.get("spec") or {}
        annotations, claim = metadata.get("annotations") or {}, spec.get("claimRef") or {}
        return cls(
            name=str(metadata["name"]),
            source=Source.from_spec(spec),
            uid=str(metadata.get("uid") or ""),
            claim=f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
            policy=sys.intern(str(spec.get("persistentVolumeReclaimPolicy") or "")),
            storage_class=sys.intern(str(spec.get("storageClassName") or "")),
            provisioned_by=sys.intern(str(annotations.get(PROVISIONED_BY) or "")),
            migrated_to=sys.intern(str(annotations.get(MIGRATED_TO) or "")),
            phase=sys.intern(str((volume.get("status") or {}).get("phase") or "")),
            deleting=bool(metadata.get("deletionTimestamp")),
            access_modes=tuple(spec.get("accessModes") or ()),
            block=spec.get("volumeMode") == "Block",
            terms=terms_of((spec.get("nodeAffinity") or {}).get("required")),
            created=str(metadata.get("creationTimestamp") or ""),
        )


@dataclass(frozen=True, slots=True)
class ClaimSeen:
    """A PersistentVolumeClaim. storage_class: None takes the default one, empty means none. pod: that it was made for."""

    namespace: str
    name: str
    uid: str = ""
    volume: str = ""
    storage_class: str | None = None
    phase: str = ""
    deleting: bool = False
    provisioner: str = ""
    migrated_to: str = ""
    selected_node: str = ""
    pod: str = ""

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    @classmethod
    def from_object(cls, claim: Mapping[str, Any]) -> ClaimSeen:
        """Read a core/v1 PersistentVolumeClaim.

        Reads metadata (namespace, name, uid, annotations, deletionTimestamp, ownerReferences (kind, name, controller)),
        spec (volumeName, storageClassName), status.phase.
        """
        metadata, spec, status = claim["metadata"], claim.get("spec") or {}, claim.get("status") or {}
        annotations = metadata.get("annotations") or {}
        return cls(
            namespace=sys.intern(str(metadata["namespace"])),
            name=str(metadata["name"]),
            uid=str(metadata.get("uid") or ""),
            volume=str(spec.get("volumeName") or ""),
            storage_class=spec.get("storageClassName"),
            phase=sys.intern(str(status.get("phase") or "")),
            deleting=bool(metadata.get("deletionTimestamp")),
            provisioner=sys.intern(next((str(annotations[key]) for key in PROVISIONERS if annotations.get(key)), "")),
            migrated_to=sys.intern(str(annotations.get(MIGRATED_TO) or "")),
            selected_node=str(annotations.get(SELECTED_NODE) or ""),
            pod=next(
                (str(one["name"]) for one in metadata.get("ownerReferences") or () if one.get("kind") == "Pod"), ""
            ),
        )


@dataclass(frozen=True, slots=True)
class AttachmentSeen:
    """A VolumeAttachment. volume: the PersistentVolume's name; empty for one of an inline volume. deleting: since when."""

    name: str
    attacher: str
    node: str
    volume: str = ""
    attached: bool = False
    attach_error: str = ""
    detach_error: str = ""
    deleting: str = ""

    @classmethod
    def from_object(cls, attachment: Mapping[str, Any]) -> AttachmentSeen:
        """Read a storage.k8s.io/v1 VolumeAttachment.

        Reads metadata (name, deletionTimestamp), spec (attacher, nodeName, source.persistentVolumeName), status
        (attached, attachError.message, detachError.message).
        """
        metadata, spec, status = attachment["metadata"], attachment.get("spec") or {}, attachment.get("status") or {}
        return cls(
            name=str(metadata["name"]),
            attacher=sys.intern(str(spec.get("attacher", ""))),
            node=sys.intern(str(spec.get("nodeName", ""))),
            volume=str((spec.get("source") or {}).get("persistentVolumeName") or ""),
            attached=bool(status.get("attached")),
            attach_error=_error(status.get("attachError")),
            detach_error=_error(status.get("detachError")),
            deleting=str(metadata.get("deletionTimestamp") or ""),
        )


def _error(entry: Mapping[str, Any] | None) -> str:
    return "" if entry is None else str(entry.get("message") or "no message")


@dataclass(frozen=True, slots=True)
class ClassSeen:
    """A StorageClass."""

    name: str
    provisioner: str
    default: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    binding_mode: str = "Immediate"
    policy: str = "Delete"

    @classmethod
    def from_object(cls, storage_class: Mapping[str, Any]) -> ClassSeen:
        """Read a storage.k8s.io/v1 StorageClass.

        Reads metadata (name, annotations), provisioner, parameters, volumeBindingMode, reclaimPolicy.
        """
        metadata = storage_class["metadata"]
        annotations = metadata.get("annotations") or {}
        return cls(
            name=str(metadata["name"]),
            provisioner=str(storage_class.get("provisioner", "")),
            default=any(annotations.get(key) == "true" for key in DEFAULT_CLASS),
            parameters=dict(storage_class.get("parameters") or {}),
            binding_mode=str(storage_class.get("volumeBindingMode") or "Immediate"),
            policy=str(storage_class.get("reclaimPolicy") or "Delete"),
        )


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod. owner: "Kind/name" of its controller. mirror: of a static pod. plugin: only of pods of DaemonSets, for gates.

    images: by container, likewise. host_process: it runs on the host itself.
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = "Running"
    owner: str = ""
    deleting: bool = False
    mirror: bool = False
    placement: Placement = Placement()
    volumes: Volumes = NO_VOLUMES
    host_process: bool = False
    images: tuple[tuple[str, str], ...] = ()
    plugin: PodFacts | None = None

    @property
    def key(self) -> str:
        """ "namespace/name"."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Whether its containers will not run again."""
        return self.phase in ("Succeeded", "Failed")

    @classmethod
    def from_object(cls, pod: Mapping[str, Any]) -> PodSeen:
        """Read a core/v1 Pod.

        Reads metadata (namespace, name, annotations, labels, deletionTimestamp, ownerReferences (kind, name,
        controller)), spec (nodeName, what Placement and Volumes read, securityContext.windowsOptions.hostProcess), status
        (phase); and of pods that a DaemonSet owns also spec.containers (name, image), status.conditions (type, status,
        lastTransitionTime, message) and status.containerStatuses (name, ready, restartCount, state, lastState).
        """
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        owner = controller_of(metadata)
        options = (spec.get("securityContext") or {}).get("windowsOptions") or {}
        of_daemon_set = owner.startswith("DaemonSet/")
        return cls(
            namespace=sys.intern(str(metadata["namespace"])),
            name=str(metadata["name"]),
            node=sys.intern(str(spec.get("nodeName") or "")),
            phase=sys.intern(str((pod.get("status") or {}).get("phase") or "")),
            owner=sys.intern(owner),
            deleting=bool(metadata.get("deletionTimestamp")),
            mirror=MIRROR in (metadata.get("annotations") or {}),
            placement=Placement.from_spec(spec),
            volumes=Volumes.from_spec(spec),
            host_process=bool(options.get("hostProcess")),
            images=_images(spec) if of_daemon_set else (),
            plugin=PodFacts.from_object(pod) if of_daemon_set else None,
        )


def controller_of(metadata: Mapping[str, Any]) -> str:
    """ "Kind/name" of the object that controls this one, empty when none does."""
    for one in metadata.get("ownerReferences") or ():
        if one.get("controller"):
            return f"{one.get('kind', '')}/{one.get('name', '')}"
    return ""


def _images(spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(one.get("name", "")), str(one.get("image", ""))) for one in spec.get("containers") or ())


def pod_is_judged(pod: Mapping[str, Any], windows_nodes: frozenset[str] | set[str]) -> bool:
    """Whether a core/v1 Pod has to do with what is judged, so that the many that have not cost nothing.

    It has a claim, an inline volume of a storage driver or a pipe of csi-proxy; or a DaemonSet put it on a Windows node.
    """
    spec = pod.get("spec") or {}
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume or "ephemeral" in volume:
            return True
        if not in_tree.FIELD_SET.isdisjoint(volume) and "hostPath" not in volume:
            return True
        if "hostPath" in volume and "pipe" in str((volume["hostPath"] or {}).get("path", "")):
            return True
    return spec.get("nodeName") in windows_nodes and controller_of(pod["metadata"]).startswith("DaemonSet/")


@dataclass(frozen=True, slots=True)
class PluginTemplate:
    """A DaemonSet as far as it may be a driver's node plugin.

    seen: what deploying knows of DaemonSets; gate: what the gate does, its pod spec cut down to selector, affinity and
    tolerations. selector: labels of its pods.
    """

    seen: wanted.DaemonSetSeen
    gate: DaemonSetFacts
    images: tuple[tuple[str, str], ...] = ()
    host_process: bool = False
    selector: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A claim that a StatefulSet makes for each of its pods."""

    name: str
    storage_class: str | None = None


@dataclass(frozen=True, slots=True)
class TemplateSeen:
    """Something that makes pods: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob.

    owner: its controller, "Kind/name", whose template says the same; of one with an owner no more is kept. replicas: None where pods follow nodes
    or completions. finished: a Job that is done. first: the first ordinal of a StatefulSet.
    """

    kind: str
    namespace: str
    name: str
    owner: str = ""
    replicas: int | None = None
    finished: bool = False
    placement: Placement = Placement()
    volumes: Volumes = NO_VOLUMES
    claim_templates: tuple[ClaimTemplate, ...] = ()
    first: int = 0
    plugin: PluginTemplate | None = None

    @property
    def key(self) -> str:
        """ "Kind namespace/name"."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @classmethod
    def from_object(cls, kind: str, item: Mapping[str, Any]) -> TemplateSeen:
        """Read a Deployment, StatefulSet, DaemonSet or ReplicaSet (apps/v1), ReplicationController (v1), Job or CronJob (batch/v1).

        Reads metadata (namespace, name, ownerReferences (kind, name, controller)); without a controller also
        spec.replicas, spec.volumeClaimTemplates (metadata.name, spec.storageClassName), spec.ordinals.start,
        status.conditions (type, status), and below spec.template.spec (of a CronJob spec.jobTemplate.spec.template.spec)
        what Placement and Volumes read; and of a DaemonSet besides metadata (labels, annotations, generation),
        spec.selector.matchLabels, there
        containers (name, image, args, command, env (value)), hostNetwork, securityContext.windowsOptions.hostProcess, and
        status (desiredNumberScheduled, currentNumberScheduled, numberReady, observedGeneration).
        """
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        namespace, name, owner = sys.intern(str(metadata["namespace"])), str(metadata["name"]), controller_of(metadata)
        if owner and kind != "DaemonSet":
            return cls(kind, namespace, name, owner)
        outer = ((spec.get("jobTemplate") or {}).get("spec") or {}) if kind == "CronJob" else spec
        pod = (outer.get("template") or {}).get("spec") or {}
        counted = kind not in ("DaemonSet", "Job", "CronJob")
        return cls(
            kind=kind,
            namespace=namespace,
            name=name,
            owner=owner,
            replicas=int(1 if spec.get("replicas") is None else spec["replicas"]) if counted else None,
            finished=kind == "Job"
            and any(
                one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
                for one in status.get("conditions") or ()
            ),
            placement=Placement.from_spec(pod),
            volumes=Volumes.from_spec(pod),
            claim_templates=tuple(
                ClaimTemplate(str(one["metadata"]["name"]), (one.get("spec") or {}).get("storageClassName"))
                for one in spec.get("volumeClaimTemplates") or ()
            ),
            first=int((spec.get("ordinals") or {}).get("start") or 0),
            plugin=_plugin(item, pod) if kind == "DaemonSet" else None,
        )


def _plugin(item: Mapping[str, Any], pod: Mapping[str, Any]) -> PluginTemplate:
    options = (pod.get("securityContext") or {}).get("windowsOptions") or {}
    placing = {key: pod[key] for key in ("nodeSelector", "affinity", "tolerations") if key in pod}
    return PluginTemplate(
        seen=wanted.DaemonSetSeen.from_object(item),
        gate=replace(DaemonSetFacts.from_object(item), pod_spec=placing),
        images=_images(pod),
        host_process=bool(options.get("hostProcess")),
        selector=tuple(sorted(((item["spec"].get("selector") or {}).get("matchLabels") or {}).items())),
    )


@dataclass(frozen=True, slots=True)
class DriverSeen:
    """A CSIDriver. spec: as the API tells it."""

    name: str
    spec: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_object(cls, driver: Mapping[str, Any]) -> DriverSeen:
        """Read a storage.k8s.io/v1 CSIDriver: metadata.name, spec (whole)."""
        return cls(name=str(driver["metadata"]["name"]), spec=dict(driver.get("spec") or {}))


_CONTROLLERS = {name: driver for driver in DRIVERS.values() for name in driver.controller.deployments}


@dataclass(frozen=True, slots=True)
class ControllerSeen:
    """A driver's Linux controller. driver: its key in the catalog. images: by container, sidecars included."""

    driver: str
    seen: wanted.ControllerSeen
    images: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_object(cls, deployment: Mapping[str, Any]) -> ControllerSeen | None:
        """Read an apps/v1 Deployment; None when its name is no driver's controller's.

        Reads metadata (namespace, name), spec (replicas, template.spec.containers (name, image)), status.availableReplicas.
        """
        driver = _CONTROLLERS.get(str(deployment["metadata"]["name"]))
        if driver is None:
            return None
        seen = wanted.ControllerSeen.from_object(deployment, driver.controller.container)
        return cls(driver=driver.key, seen=seen, images=_images(deployment["spec"]["template"]["spec"]))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that operators tell of themselves."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


def conditions_of(entries: Sequence[Mapping[str, Any]] | None) -> tuple[Condition, ...]:
    """Read a list of conditions: type, status, reason, message."""
    return tuple(
        Condition(
            str(one.get("type", "")),
            str(one.get("status", "")),
            str(one.get("reason", "")),
            str(one.get("message", "")),
        )
        for one in entries or ()
    )


@dataclass(frozen=True, slots=True)
class OperatorConditionSeen:
    """An OperatorCondition. overrides win over status."""

    namespace: str
    name: str
    status: tuple[Condition, ...] = ()
    overrides: tuple[Condition, ...] = ()

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> OperatorConditionSeen:
        """Read an operators.coreos.com/v2 OperatorCondition: metadata, spec.overrides, status.conditions (as conditions_of)."""
        metadata = item["metadata"]
        return cls(
            namespace=str(metadata["namespace"]),
            name=str(metadata["name"]),
            status=conditions_of((item.get("status") or {}).get("conditions")),
            overrides=conditions_of((item.get("spec") or {}).get("overrides")),
        )


@dataclass(frozen=True, slots=True)
class NamespaceSeen:
    """A Namespace. labels: those of Pod Security and of OpenShift's label sync only."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Active"

    @classmethod
    def from_object(cls, namespace: Mapping[str, Any]) -> NamespaceSeen:
        """Read a core/v1 Namespace: metadata (name, labels), status.phase."""
        labels = namespace["metadata"].get("labels") or {}
        kept = ("pod-security.kubernetes.io/", "security.openshift.io/", "app.kubernetes.io/managed-by")
        return cls(
            name=str(namespace["metadata"]["name"]),
            labels={key: str(value) for key, value in labels.items() if key.startswith(kept)},
            phase=str((namespace.get("status") or {}).get("phase") or "Active"),
        )


@dataclass(frozen=True, slots=True)
class ConfigMapSeen:
    """A ConfigMap that is judged: windows-services-*, admin-gates, admin-acks, a driver's feature states."""

    namespace: str
    name: str
    data: Mapping[str, str] = field(default_factory=dict)
    immutable: bool = False

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> ConfigMapSeen:
        """Read a core/v1 ConfigMap: metadata (namespace, name), data, immutable."""
        metadata = item["metadata"]
        data = {key: str(value) for key, value in (item.get("data") or {}).items()}
        return cls(str(metadata["namespace"]), str(metadata["name"]), data, bool(item.get("immutable")))


@dataclass(frozen=True, slots=True)
class RuntimeClassSeen:
    """A RuntimeClass: what it adds to the placement of its pods."""

    name: str
    placement: Placement = Placement()

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> RuntimeClassSeen:
        """Read a node.k8s.io/v1 RuntimeClass: metadata.name, scheduling (nodeSelector, tolerations)."""
        return cls(str(item["metadata"]["name"]), Placement.from_spec(item.get("scheduling") or {}))


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """What holds for the cluster as a whole.

    kubernetes: the API server's gitVersion. openshift: the last completed version, empty elsewhere. updating_to: the
    version that an update is bringing, empty when none runs. conditions: of the ClusterVersion. infrastructure: the
    platform's name as OpenShift's Infrastructure "cluster" tells it (Azure, VSphere). storage_driver:
    spec.vsphereStorageDriver of storages.operator.openshift.io "cluster", None when that object was not there. wmco: the
    operator's version where its ClusterServiceVersion was read, else empty; what its nodes say is with the nodes.
    """

    kubernetes: str
    openshift: str = ""
    updating_to: str = ""
    conditions: tuple[Condition, ...] = ()
    infrastructure: str = ""
    storage_driver: str | None = None
    wmco: str = ""
    operator_conditions: tuple[OperatorConditionSeen, ...] = ()

    @staticmethod
    def openshift_versions(cluster_version: Mapping[str, Any]) -> tuple[str, str]:
        """(openshift, updating_to) of a config.openshift.io/v1 ClusterVersion: status.history (state, version), status.desired.version."""
        status = cluster_version.get("status") or {}
        history = status.get("history") or []
        done = next((str(one.get("version", "")) for one in history if one.get("state") == "Completed"), "")
        desired = str((status.get("desired") or {}).get("version") or "")
        return done or desired, desired if done and desired != done else ""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """What csi_proxy_info saw on a node's host.

    facts: as the gate takes them. managed_by: who owns csi-proxy there. findings: of that module, passed on.
    """

    facts: HostFacts
    managed_by: str = ""
    findings: tuple[Mapping[str, str], ...] = ()

    @property
    def node(self) -> str:
        """The Node that this host is."""
        return self.facts.node

    @classmethod
    def from_option(cls, given: Mapping[str, Any]) -> HostSeen:
        """Read what the gate's option hosts takes, with managed_by and findings besides."""
        return cls(
            facts=HostFacts.from_option(given),
            managed_by=str(given.get("managed_by") or ""),
            findings=tuple({key: str(value) for key, value in one.items()} for one in given.get("findings") or ()),
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster as it was looked at. taken_at: by the cluster's clock. unread: what could not be read, and so is not known.

    hosts_at: by the controller's clock, which dated what hosts saw.
    """

    taken_at: datetime
    cluster: ClusterSeen
    name: str = ""
    hosts_at: datetime | None = None
    nodes: tuple[NodeSeen, ...] = ()
    csi_nodes: tuple[CsiNodeSeen, ...] = ()
    volumes: tuple[VolumeSeen, ...] = ()
    claims: tuple[ClaimSeen, ...] = ()
    attachments: tuple[AttachmentSeen, ...] = ()
    classes: tuple[ClassSeen, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    templates: tuple[TemplateSeen, ...] = ()
    drivers: tuple[DriverSeen, ...] = ()
    controllers: tuple[ControllerSeen, ...] = ()
    namespaces: tuple[NamespaceSeen, ...] = ()
    config_maps: tuple[ConfigMapSeen, ...] = ()
    runtime_classes: tuple[RuntimeClassSeen, ...] = ()
    hosts: tuple[HostSeen, ...] = ()
    unread: tuple[Unread, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For a file; what from_dict reads."""
        import msgspec

        found: dict[str, Any] = msgspec.to_builtins(self)
        return {"snapshot_version": SNAPSHOT_VERSION, **found}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Snapshot:
        """Read what as_dict wrote; ValueError says what is wrong with it."""
        import msgspec

        version = data.get("snapshot_version")
        if version != SNAPSHOT_VERSION:
            raise ValueError(
                f"snapshot_version is {version}, expected {SNAPSHOT_VERSION}: take the snapshot again with this release"
            )
        try:
            return msgspec.convert({key: value for key, value in data.items() if key != "snapshot_version"}, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is no snapshot: {error}") from error
