# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API's objects as far as ``facts`` reads them, for a decoder that skips every other field.

Names and nesting are the API's own. A field that is missing here is missing in the facts: a test reads whole objects both
ways and compares. ``There`` stands for what matters only by being there.
"""

from __future__ import annotations

from typing import Any, TypedDict


class There(TypedDict, total=False):
    """Something whose content does not matter."""


ListMetadata = TypedDict("ListMetadata", {"continue": str, "resourceVersion": str}, total=False)


# Parts of several kinds


class Owner(TypedDict, total=False):
    kind: str
    name: str
    controller: bool


class Condition(TypedDict, total=False):
    type: str
    status: str


class Requirement(TypedDict, total=False):
    key: str
    operator: str
    values: list[str] | None


class NodeSelectorTerm(TypedDict, total=False):
    matchExpressions: list[Requirement] | None
    matchFields: list[Requirement] | None


class NodeSelector(TypedDict, total=False):
    nodeSelectorTerms: list[NodeSelectorTerm] | None


class NodeAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector | None


class Affinity(TypedDict, total=False):
    nodeAffinity: NodeAffinity | None


class Toleration(TypedDict, total=False):
    key: str
    operator: str
    value: str
    effect: str


class PodOS(TypedDict, total=False):
    name: str


class WindowsOptions(TypedDict, total=False):
    hostProcess: bool | None
    runAsUserName: str | None
    gmsaCredentialSpecName: str | None
    gmsaCredentialSpec: str | None


class SecurityContext(TypedDict, total=False):
    windowsOptions: WindowsOptions | None


# Where volumes are


class CsiAttributes(TypedDict, total=False):
    source: str
    Source: str
    server: str
    protocol: str
    fsType: str
    fstype: str
    secretName: str
    secretname: str


class SecretReference(TypedDict, total=False):
    name: str


class Csi(TypedDict, total=False):
    driver: str
    volumeHandle: str
    fsType: str
    readOnly: bool | None
    volumeAttributes: CsiAttributes | None
    nodeStageSecretRef: SecretReference | None


class ByVolumeId(TypedDict, total=False):
    volumeID: str
    fsType: str
    readOnly: bool | None


class AzureDisk(TypedDict, total=False):
    diskURI: str
    kind: str | None
    fsType: str | None
    readOnly: bool | None


class AzureFile(TypedDict, total=False):
    shareName: str
    secretName: str
    secretNamespace: str | None
    readOnly: bool | None


class GcePersistentDisk(TypedDict, total=False):
    pdName: str
    fsType: str
    readOnly: bool | None


class VsphereVolume(TypedDict, total=False):
    volumePath: str
    fsType: str
    storagePolicyName: str


class HostPath(TypedDict, total=False):
    path: str


class Sources(TypedDict, total=False):
    csi: Csi | None
    awsElasticBlockStore: ByVolumeId | None
    azureDisk: AzureDisk | None
    azureFile: AzureFile | None
    gcePersistentDisk: GcePersistentDisk | None
    cinder: ByVolumeId | None
    vsphereVolume: VsphereVolume | None
    portworxVolume: ByVolumeId | None
    hostPath: HostPath | None
    rbd: There | None
    cephfs: There | None
    glusterfs: There | None
    flocker: There | None
    quobyte: There | None
    storageos: There | None
    scaleIO: There | None
    nfs: There | None
    iscsi: There | None
    fc: There | None
    local: There | None
    flexVolume: There | None


class ClaimVolume(TypedDict, total=False):
    claimName: str


class Storage(TypedDict, total=False):
    storage: str


class ClaimResources(TypedDict, total=False):
    requests: Storage | None


class ClaimSpec(TypedDict, total=False):
    volumeName: str
    storageClassName: str | None
    accessModes: list[str] | None
    volumeMode: str | None
    resources: ClaimResources | None
    selector: There | None
    dataSource: There | None
    dataSourceRef: There | None
    volumeAttributesClassName: str | None


class EphemeralTemplate(TypedDict, total=False):
    spec: ClaimSpec


class Ephemeral(TypedDict, total=False):
    volumeClaimTemplate: EphemeralTemplate | None


class PodVolume(Sources, total=False):
    name: str
    persistentVolumeClaim: ClaimVolume | None
    ephemeral: Ephemeral | None
    image: There | None
    gitRepo: There | None
    photonPersistentDisk: There | None


# Pods and what makes them


class Device(TypedDict, total=False):
    name: str


class Container(TypedDict, total=False):
    name: str
    image: str
    volumeDevices: list[Device] | None


class PodSpec(TypedDict, total=False):
    nodeName: str
    os: PodOS | None
    nodeSelector: dict[str, str] | None
    affinity: Affinity | None
    tolerations: list[Toleration] | None
    runtimeClassName: str | None
    securityContext: SecurityContext | None
    schedulerName: str
    schedulingGates: list[There] | None
    volumes: list[PodVolume] | None
    containers: list[Container]
    initContainers: list[Container] | None


class Running(TypedDict, total=False):
    startedAt: str | None


class Waiting(TypedDict, total=False):
    reason: str
    message: str


class Terminated(TypedDict, total=False):
    exitCode: int
    reason: str
    message: str
    finishedAt: str | None


class ContainerState(TypedDict, total=False):
    running: Running | None
    waiting: Waiting | None
    terminated: Terminated | None


class ContainerStatus(TypedDict, total=False):
    name: str
    ready: bool
    restartCount: int
    state: ContainerState
    lastState: ContainerState


class PodCondition(TypedDict, total=False):
    type: str
    status: str
    message: str
    lastTransitionTime: str | None


class PodStatus(TypedDict, total=False):
    phase: str
    conditions: list[PodCondition] | None
    containerStatuses: list[ContainerStatus] | None


PodLabels = TypedDict("PodLabels", {"pod-template-generation": str, "controller-revision-hash": str}, total=False)
PodAnnotations = TypedDict("PodAnnotations", {"kubernetes.io/config.mirror": str}, total=False)


class PodMetadata(TypedDict, total=False):
    namespace: str
    name: str
    uid: str
    labels: PodLabels
    annotations: PodAnnotations
    deletionTimestamp: str | None
    ownerReferences: list[Owner] | None


class Pod(TypedDict, total=False):
    metadata: PodMetadata
    spec: PodSpec
    status: PodStatus


class PodList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Pod] | None


class TemplateMetadata(TypedDict, total=False):
    namespace: str
    name: str
    generation: int
    labels: dict[str, str] | None
    annotations: dict[str, str] | None
    ownerReferences: list[Owner] | None


class EnvironmentVariable(TypedDict, total=False):
    name: str
    value: str


class Port(TypedDict, total=False):
    containerPort: int
    hostPort: int | None


class TemplateContainer(TypedDict, total=False):
    name: str
    image: str
    args: list[str] | None
    command: list[str] | None
    env: list[EnvironmentVariable] | None
    ports: list[Port] | None
    volumeDevices: list[Device] | None


class TemplatePodSpec(TypedDict, total=False):
    nodeName: str
    os: PodOS | None
    nodeSelector: dict[str, str] | None
    affinity: Affinity | None
    tolerations: list[Toleration] | None
    runtimeClassName: str | None
    securityContext: SecurityContext | None
    schedulerName: str
    schedulingGates: list[There] | None
    hostNetwork: bool
    volumes: list[PodVolume] | None
    containers: list[TemplateContainer] | None
    initContainers: list[Container] | None


class PodTemplate(TypedDict, total=False):
    spec: TemplatePodSpec


class ClaimTemplateMetadata(TypedDict, total=False):
    name: str


class ClaimTemplate(TypedDict, total=False):
    metadata: ClaimTemplateMetadata
    spec: ClaimSpec


class Ordinals(TypedDict, total=False):
    start: int


class JobSpec(TypedDict, total=False):
    parallelism: int | None
    completions: int | None
    template: PodTemplate


class JobTemplate(TypedDict, total=False):
    spec: JobSpec


class Selector(TypedDict, total=False):
    matchLabels: dict[str, str] | None


class RollingUpdate(TypedDict, total=False):
    maxUnavailable: int | str | None
    maxSurge: int | str | None


class Strategy(TypedDict, total=False):
    type: str
    rollingUpdate: RollingUpdate | None


class TemplateSpec(TypedDict, total=False):
    replicas: int | None
    parallelism: int | None
    completions: int | None
    selector: Selector | None
    template: PodTemplate | None
    jobTemplate: JobTemplate
    volumeClaimTemplates: list[ClaimTemplate] | None
    ordinals: Ordinals | None
    strategy: Strategy | None
    updateStrategy: Strategy | None


class TemplateStatus(TypedDict, total=False):
    availableReplicas: int
    desiredNumberScheduled: int
    currentNumberScheduled: int
    numberReady: int
    observedGeneration: int
    conditions: list[Condition] | None


class Template(TypedDict, total=False):
    """Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job or CronJob."""

    metadata: TemplateMetadata
    spec: TemplateSpec
    status: TemplateStatus


class TemplateList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Template] | None


class Revision(TypedDict, total=False):
    metadata: TemplateMetadata
    revision: int


class RevisionList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Revision] | None


# Nodes


class Taint(TypedDict, total=False):
    key: str
    value: str
    effect: str


class NodeSpec(TypedDict, total=False):
    taints: list[Taint] | None
    unschedulable: bool


class NodeCondition(TypedDict, total=False):
    type: str
    status: str
    reason: str
    message: str


class NodeInfo(TypedDict, total=False):
    operatingSystem: str
    kubeletVersion: str
    kernelVersion: str
    containerRuntimeVersion: str


class AttachedVolume(TypedDict, total=False):
    name: str


class NodeStatus(TypedDict, total=False):
    conditions: list[NodeCondition] | None
    nodeInfo: NodeInfo
    volumesInUse: list[str] | None
    volumesAttached: list[AttachedVolume] | None


class NodeMetadata(TypedDict, total=False):
    name: str
    labels: dict[str, str] | None
    annotations: dict[str, str] | None


class Node(TypedDict, total=False):
    metadata: NodeMetadata
    spec: NodeSpec
    status: NodeStatus


class NodeList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Node] | None


class Allocatable(TypedDict, total=False):
    count: int | None


class CsiNodeDriver(TypedDict, total=False):
    name: str
    nodeID: str
    topologyKeys: list[str] | None
    allocatable: Allocatable | None


class CsiNodeSpec(TypedDict, total=False):
    drivers: list[CsiNodeDriver] | None


CsiNodeAnnotations = TypedDict("CsiNodeAnnotations", {"storage.alpha.kubernetes.io/migrated-plugins": str}, total=False)


class CsiNodeMetadata(TypedDict, total=False):
    name: str
    annotations: CsiNodeAnnotations | None


class CsiNode(TypedDict, total=False):
    metadata: CsiNodeMetadata
    spec: CsiNodeSpec


class CsiNodeList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[CsiNode] | None


# Volumes, claims and what belongs to them


class ClaimReference(TypedDict, total=False):
    namespace: str
    name: str
    uid: str


class VolumeNodeAffinity(TypedDict, total=False):
    required: NodeSelector | None


class VolumeSpec(Sources, total=False):
    claimRef: ClaimReference | None
    persistentVolumeReclaimPolicy: str
    storageClassName: str
    volumeAttributesClassName: str | None
    accessModes: list[str] | None
    volumeMode: str | None
    capacity: Storage | None
    nodeAffinity: VolumeNodeAffinity | None


class Phase(TypedDict, total=False):
    phase: str


VolumeAnnotations = TypedDict(
    "VolumeAnnotations",
    {
        "pv.kubernetes.io/provisioned-by": str,
        "pv.kubernetes.io/migrated-to": str,
        "volume.beta.kubernetes.io/storage-class": str,
    },
    total=False,
)
VolumeLabels = TypedDict(
    "VolumeLabels",
    {
        "topology.kubernetes.io/zone": str,
        "failure-domain.beta.kubernetes.io/zone": str,
        "topology.kubernetes.io/region": str,
        "failure-domain.beta.kubernetes.io/region": str,
    },
    total=False,
)


class VolumeMetadata(TypedDict, total=False):
    name: str
    uid: str
    annotations: VolumeAnnotations | None
    labels: VolumeLabels | None
    creationTimestamp: str | None
    deletionTimestamp: str | None


class Volume(TypedDict, total=False):
    metadata: VolumeMetadata
    spec: VolumeSpec
    status: Phase


class VolumeList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Volume] | None


ClaimAnnotations = TypedDict(
    "ClaimAnnotations",
    {
        "volume.kubernetes.io/storage-provisioner": str,
        "volume.beta.kubernetes.io/storage-provisioner": str,
        "pv.kubernetes.io/migrated-to": str,
        "volume.kubernetes.io/selected-node": str,
        "volume.beta.kubernetes.io/storage-class": str,
    },
    total=False,
)


class ClaimMetadata(TypedDict, total=False):
    namespace: str
    name: str
    uid: str
    annotations: ClaimAnnotations | None
    creationTimestamp: str | None
    deletionTimestamp: str | None
    ownerReferences: list[Owner] | None


class ClaimStatus(TypedDict, total=False):
    phase: str


class Claim(TypedDict, total=False):
    metadata: ClaimMetadata
    spec: ClaimSpec
    status: ClaimStatus


class ClaimList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Claim] | None


class AttachmentMetadata(TypedDict, total=False):
    name: str
    creationTimestamp: str | None
    deletionTimestamp: str | None


class AttachmentSource(TypedDict, total=False):
    persistentVolumeName: str | None


class AttachmentSpec(TypedDict, total=False):
    attacher: str
    nodeName: str
    source: AttachmentSource


class VolumeError(TypedDict, total=False):
    message: str


class AttachmentStatus(TypedDict, total=False):
    attached: bool
    attachError: VolumeError | None
    detachError: VolumeError | None


class Attachment(TypedDict, total=False):
    metadata: AttachmentMetadata
    spec: AttachmentSpec
    status: AttachmentStatus


class AttachmentList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Attachment] | None


# A few objects of each cluster; they are read whole where that is as short


class ClassMetadata(TypedDict, total=False):
    name: str
    annotations: dict[str, str] | None
    creationTimestamp: str | None


class TopologyRequirement(TypedDict, total=False):
    key: str
    values: list[str] | None


class Topology(TypedDict, total=False):
    matchLabelExpressions: list[TopologyRequirement] | None


class StorageClass(TypedDict, total=False):
    metadata: ClassMetadata
    provisioner: str
    parameters: dict[str, str] | None
    volumeBindingMode: str | None
    reclaimPolicy: str | None
    allowedTopologies: list[Topology] | None


class StorageClassList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[StorageClass] | None


class LabelSelector(TypedDict, total=False):
    matchLabels: dict[str, str] | None
    matchExpressions: list[Requirement] | None


class Capacity(TypedDict, total=False):
    nodeTopology: LabelSelector | None
    storageClassName: str
    capacity: str | None
    maximumVolumeSize: str | None


class CapacityList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Capacity] | None


class NameAndLabels(TypedDict, total=False):
    namespace: str
    name: str
    labels: dict[str, str] | None


class CsiDriver(TypedDict, total=False):
    metadata: NameAndLabels
    spec: dict[str, Any]


class CsiDriverList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[CsiDriver] | None


class Namespace(TypedDict, total=False):
    metadata: NameAndLabels
    status: Phase


class NamespaceList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[Namespace] | None


class Scheduling(TypedDict, total=False):
    nodeSelector: dict[str, str] | None
    tolerations: list[Toleration] | None


class RuntimeClass(TypedDict, total=False):
    metadata: NameAndLabels
    scheduling: Scheduling | None


class RuntimeClassList(TypedDict, total=False):
    metadata: ListMetadata
    items: list[RuntimeClass] | None
