# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every field of a pod spec, claim, volume, StorageClass and CSIDriver: which file reads it, why it is irrelevant, or what it assumes.

The decoder reads what this table says is read or assumed. A field of a pod spec that is not here is an assumption of each
report. A test holds the table against the schema of the API: https://github.com/kubernetes/kubernetes, api/openapi-spec/v3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Union


@dataclass(frozen=True, slots=True)
class FieldAnswer:
    """What becomes of a field; of one that is present only that is read. text: the files that read it, the reason, or the kind of assumption."""

    answer: Literal["read", "present", "irrelevant", "assumed"]
    text: str


FieldTable = Mapping[str, Union[FieldAnswer, "FieldTable", Sequence["FieldTable"]]]
_Part = FieldTable | Sequence[FieldTable]
_Names = Mapping[str, str]
_NO_NAMES: _Names = MappingProxyType({})
_NO_PARTS: Mapping[str, _Part] = MappingProxyType({})
_OTHER_KEYS = "*"


def _table(
    read: _Names = _NO_NAMES,
    irrelevant: _Names = _NO_NAMES,
    assumed: _Names = _NO_NAMES,
    present: _Names = _NO_NAMES,
    parts: Mapping[str, _Part] | Mapping[str, FieldTable] = _NO_PARTS,
    **own_parts: _Part,
) -> FieldTable:
    """The table of an object: names of fields by what becomes of them, and the tables of its parts, in a list those of a list's items."""
    table: dict[str, FieldAnswer | _Part] = {**parts, **own_parts}
    for text, names in read.items():
        table |= dict.fromkeys(names.split(), FieldAnswer("read", text))
    for text, names in present.items():
        table |= dict.fromkeys(names.split(), FieldAnswer("present", text))
    for text, names in irrelevant.items():
        table |= dict.fromkeys(names.split(), FieldAnswer("irrelevant", text))
    for text, names in assumed.items():
        table |= dict.fromkeys(names.split(), FieldAnswer("assumed", text))
    return table


def _map(read: _Names) -> FieldTable:
    """The table of a map of which these keys are read."""
    return _table(read, {"keys of others": _OTHER_KEYS})


def _list_assumed(*tables: FieldTable) -> dict[str, str]:
    """The fields of these tables that are assumed: the kind of assumption by name."""
    answers = ((name, field_answer) for table in tables for name, field_answer in table.items())
    return {
        name: field_answer.text
        for name, field_answer in answers
        if isinstance(field_answer, FieldAnswer) and field_answer.answer == "assumed"
    }


def find_assumed(entry: Mapping[str, Any], table: FieldTable, path: str) -> Iterator[tuple[str, str]]:
    """The fields of an object that are set and assumed, or not in its table: (kind of assumption, path)."""
    for name, value in entry.items():
        answer = table.get(name) or table.get(_OTHER_KEYS)
        if answer is None:
            yield "field", f"{path}.{name}"
        elif isinstance(answer, FieldAnswer):
            if answer.answer == "assumed" and value:
                yield answer.text, f"{path}.{name}"
        elif value:
            for part in value if isinstance(value, list) else (value,):
                yield from find_assumed(part, answer if isinstance(answer, Mapping) else answer[0], f"{path}.{name}")


_PLACEMENT, _SOURCES, _STORAGE = "facts/placement.py", "facts/sources.py", "facts/storage.py"
_POD_SPEC, _WORKLOADS, _CLUSTER = "facts/pod_spec.py", "facts/workloads.py", "facts/cluster.py"
_SCHEDULING, _ADMISSION, _OF_RESOURCES = "facts/scheduling.py", "facts/admission.py", "facts/resources.py"

_OF_API = "bookkeeping of the API server"
_OF_CONTROLLERS = "a record of controllers that decides nothing"
_OF_APPLICATION = "the application's own once its container starts"
_OF_REFERENCE = "part of the assumption that what is named can be used"
_ON_LINUX = "kubelets on Windows use windowsOptions alone (pkg/kubelet/kuberuntime/kuberuntime_container_windows.go)"
_NO_FILE_MODES = "Windows has no such modes of files"
_TRANSLATED = "passed on to the driver as it is (k8s.io/csi-translation-lib)"

_TYPE = {_OF_API: "apiVersion kind"}
_METADATA = (
    "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation labels "
    "managedFields name namespace ownerReferences resourceVersion selfLink uid"
)


def _metadata(read: _Names, **parts: _Part) -> FieldTable:
    names = {name for text in read.values() for name in text.split()} | parts.keys()
    return _table(read, {_OF_API: " ".join(name for name in _METADATA.split() if name not in names)}, parts=parts)


# Where pods may run

_REQUIREMENT = _table({_PLACEMENT: "key operator values"})
_NODE_SELECTOR = _table(nodeSelectorTerms=[_table(matchExpressions=[_REQUIREMENT], matchFields=[_REQUIREMENT])])
_LABEL_SELECTOR = _table({_SCHEDULING: "matchLabels"}, matchExpressions=[_table({_SCHEDULING: "key operator values"})])
_BETWEEN_PODS = _table(
    irrelevant={"a preference": "preferredDuringSchedulingIgnoredDuringExecution"},
    requiredDuringSchedulingIgnoredDuringExecution=[
        _table(
            {_SCHEDULING: "matchLabelKeys mismatchLabelKeys namespaces topologyKey"},
            labelSelector=_LABEL_SELECTOR,
            namespaceSelector=_LABEL_SELECTOR,
        )
    ],
)
_AFFINITY = _table(
    nodeAffinity=_table(
        irrelevant={"a preference": "preferredDuringSchedulingIgnoredDuringExecution"},
        requiredDuringSchedulingIgnoredDuringExecution=_NODE_SELECTOR,
    ),
    podAffinity=_BETWEEN_PODS,
    podAntiAffinity=_BETWEEN_PODS,
)

# Where volumes are

_PARTITION = {"field": "partition"}
_BY_VOLUME_ID = _table({_SOURCES: "volumeID fsType readOnly"})
_BY_VOLUME_ID_AND_PARTITION = _table({_SOURCES: "volumeID fsType readOnly"}, assumed=_PARTITION)
_IN_TREE: Mapping[str, FieldTable] = {
    "awsElasticBlockStore": _BY_VOLUME_ID_AND_PARTITION,
    "azureDisk": _table({_SOURCES: "diskURI kind fsType readOnly"}, {_TRANSLATED: "cachingMode diskName"}),
    "gcePersistentDisk": _table({_SOURCES: "pdName fsType readOnly"}, assumed=_PARTITION),
    "cinder": _table({_SOURCES: "volumeID fsType readOnly"}, assumed={"Secret": "secretRef"}),
    "vsphereVolume": _table(
        {_SOURCES: "volumePath fsType storagePolicyName"}, {"the name of the policy decides": "storagePolicyID"}
    ),
    "portworxVolume": _BY_VOLUME_ID,
}
_BY_PRESENCE = "rbd cephfs glusterfs flocker quobyte storageos scaleIO nfs iscsi fc flexVolume photonPersistentDisk"
_ATTRIBUTES = _map({_SOURCES: "source Source server protocol fsType fstype secretName secretname shareName sharename"})

# Claims

CLAIM_SPEC = _table(
    {_SOURCES: "storageClassName accessModes volumeMode volumeAttributesClassName volumeName"},
    present={_SOURCES: "selector dataSource dataSourceRef"},
    resources=_table(irrelevant={"nothing enforces it": "limits"}, requests=_map({_SOURCES: "storage"})),
)
_OLD_CLASS = _map({_SOURCES: "volume.beta.kubernetes.io/storage-class"})
CLAIM_TEMPLATE = _table(metadata=_metadata({_SOURCES: "name"}, annotations=_OLD_CLASS), spec=CLAIM_SPEC)
PERSISTENT_VOLUME_CLAIM = _table(
    irrelevant=_TYPE,
    metadata=_metadata(
        {_SOURCES: "namespace name uid creationTimestamp deletionTimestamp"},
        annotations=_map(
            {
                _SOURCES: "volume.kubernetes.io/selected-node volume.beta.kubernetes.io/storage-class",
                "../kube/labels.py": "kubewin.io/convert",
            }
        ),
        ownerReferences=[
            _table({_SOURCES: "kind name controller"}, {_OF_API: "apiVersion blockOwnerDeletion uid"})
        ],
    ),
    spec=CLAIM_SPEC,
    status=_table(
        {_SOURCES: "phase"},
        {
            _OF_CONTROLLERS: "accessModes allocatedResources capacity currentVolumeAttributesClassName modifyVolumeStatus"
        },
        allocatedResourceStatuses=_map({_SOURCES: "storage"}),
        conditions=[
            _table({_SOURCES: "type"}, {_OF_CONTROLLERS: "lastProbeTime lastTransitionTime message reason status"})
        ],
    ),
)  # fmt: skip

# Volumes

_CSI_VOLUME = _table(
    {_SOURCES: "driver volumeHandle fsType readOnly"},
    {"of the driver's controller": "controllerExpandSecretRef"},
    assumed={"Secret": "controllerPublishSecretRef nodeExpandSecretRef nodePublishSecretRef"},
    volumeAttributes={**_ATTRIBUTES, **_map({_STORAGE: "storage.kubernetes.io/csiProvisionerIdentity"})},
    nodeStageSecretRef=_table({_SOURCES: "name namespace"}),
)
# A kubelet makes no path of a local volume, and of a hostPath only where its type says so (pkg/volume/local, pkg/volume/hostpath).
_LOCAL = _table(irrelevant={"of a device of Linux": "fsType"}, assumed={"host path": "path"})
_HOST_PATH = _table(irrelevant={"that it exists is assumed": "type"}, assumed={"host path": "path"})
_PERSISTENT_VOLUME_SPEC = _table(
    {
        _STORAGE: "accessModes persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName volumeMode"
    },
    assumed={"mount option": "mountOptions"},
    present={_SOURCES: _BY_PRESENCE},
    local=_LOCAL,
    hostPath=_HOST_PATH,
    capacity=_map({_STORAGE: "storage"}),
    claimRef=_table(
        {_STORAGE: "namespace name uid"}, {_OF_API: "apiVersion fieldPath kind resourceVersion"}
    ),
    nodeAffinity=_table(required=_NODE_SELECTOR),
    csi=_CSI_VOLUME,
    azureFile=_table({_SOURCES: "shareName secretName secretNamespace readOnly"}),
    parts=_IN_TREE,
)  # fmt: skip
PERSISTENT_VOLUME = _table(
    irrelevant=_TYPE,
    metadata=_metadata(
        {_STORAGE: "name creationTimestamp deletionTimestamp"},
        annotations=_map(
            {
                _STORAGE: "pv.kubernetes.io/provisioned-by pv.kubernetes.io/migrated-to",
                _SOURCES: "volume.beta.kubernetes.io/storage-class",
            }
        ),
        labels=_map(
            {
                "../catalog/translation.py": "topology.kubernetes.io/zone failure-domain.beta.kubernetes.io/zone "
                "topology.kubernetes.io/region failure-domain.beta.kubernetes.io/region"
            }
        ),
    ),
    spec=_PERSISTENT_VOLUME_SPEC,
    status=_table({_STORAGE: "phase"}, {_OF_CONTROLLERS: "lastPhaseTransitionTime message reason"}),
)  # fmt: skip
STORAGE_CLASS = _table(
    {_STORAGE: "provisioner parameters volumeBindingMode"},
    {"of volumes that exist": "allowVolumeExpansion reclaimPolicy", **_TYPE},
    assumed={"mount option": "mountOptions"},
    metadata=_metadata({_STORAGE: "name annotations creationTimestamp"}),
    allowedTopologies=[_table(matchLabelExpressions=[_table({_STORAGE: "key values"})])],
)
_CSI_DRIVER_SPEC = _table(
    {
        "controllers/attach_detach_controller.py": "attachRequired",
        "controllers/external_provisioner.py": "storageCapacity",
        "volumes.py": "podInfoOnMount volumeLifecycleModes",
    },
    {
        _ON_LINUX: "fsGroupPolicy seLinuxMount",
        "only adds to the volume context of the driver": "tokenRequests",
        "of pods that run": "requiresRepublish",
        "attachable counts are read as they are": "nodeAllocatableUpdatePeriodSeconds",
        "a node without the driver is refused by a later step": "preventPodSchedulingIfMissing",
    },
    assumed={"field": "serviceAccountTokenInSecrets"},
)
CSI_DRIVER = _table(
    irrelevant=_TYPE,
    metadata=_metadata({_CLUSTER: "name labels"}),
    spec=_CSI_DRIVER_SPEC,
)

# Pod specs


def _reference(irrelevant: str, name: str = "name") -> FieldTable:
    """A reference to a ConfigMap or Secret."""
    return _table({_POD_SPEC: f"{name} optional"}, {_OF_REFERENCE: irrelevant})


_SECRET = _table({_POD_SPEC: "name"})
_OF_FILES = {_NO_FILE_MODES: "defaultMode"}
_VOLUME = _table(
    {_SOURCES: "name"},
    {"from the pod itself": "downwardAPI", "kubelets make a directory of it": "emptyDir"},
    present={_SOURCES: f"{_BY_PRESENCE} gitRepo"},
    azureFile=_table({f"{_POD_SPEC} {_SOURCES}": "secretName", _SOURCES: "shareName readOnly"}),
    configMap=_reference("items defaultMode"),
    csi=_table(
        {_SOURCES: "driver fsType readOnly"},
        nodePublishSecretRef=_SECRET,
        volumeAttributes=_ATTRIBUTES,
    ),
    ephemeral=_table(volumeClaimTemplate=CLAIM_TEMPLATE),
    hostPath=_table({_POD_SPEC: "path type"}),
    image=_table({f"{_POD_SPEC} {_SOURCES}": "reference"}, {_OF_REFERENCE: "pullPolicy"}),
    persistentVolumeClaim=_table({_SOURCES: "claimName"}, assumed={"field": "readOnly"}),
    projected=_table(
        irrelevant=_OF_FILES,
        sources=[
            _table(
                irrelevant={"from the pod itself": "downwardAPI", "from the API server": "serviceAccountToken"},
                assumed={"field": "clusterTrustBundle podCertificate"},
                configMap=_reference("items"),
                secret=_reference("items"),
            )
        ],
    ),
    secret=_reference("items defaultMode", "secretName"),
    parts=_IN_TREE,
)  # fmt: skip
_WINDOWS_OPTIONS = _table(
    {_WORKLOADS: "hostProcess"}, assumed={"user account": "gmsaCredentialSpec gmsaCredentialSpecName runAsUserName"}
)
_RESOURCES = _table(
    {_OF_RESOURCES: "limits requests"}, claims=[_table({_POD_SPEC: "name"}, {_OF_REFERENCE: "request"})]
)
_ON_WINDOWS = _table(
    irrelevant={
        _ON_LINUX: "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem "
        "runAsGroup runAsUser seLinuxOptions seccompProfile"
    },
    assumed={"user account": "runAsNonRoot"},
    windowsOptions=_WINDOWS_OPTIONS,
)
CONTAINER = _table(
    {
        f"{_POD_SPEC} ../drivers/installed.py": "image",
        "../drivers/installed.py": "name",
        f"{_SCHEDULING} {_OF_RESOURCES}": "restartPolicy",
    },
    {
        _OF_APPLICATION: "args command lifecycle livenessProbe readinessProbe resizePolicy "
        "startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty workingDir",
        _OF_REFERENCE: "imagePullPolicy",
    },
    env=[
        _table(
            irrelevant={_OF_APPLICATION: "name value"},
            valueFrom=_table(
                irrelevant={"from the pod itself": "fieldRef resourceFieldRef"},
                assumed={"field": "fileKeyRef"},
                configMapKeyRef=_reference("key"),
                secretKeyRef=_reference("key"),
            ),
        )
    ],
    envFrom=[_table(irrelevant={_OF_APPLICATION: "prefix"}, configMapRef=_reference(""), secretRef=_reference(""))],
    ports=[_table({_SCHEDULING: "containerPort hostIP hostPort protocol"}, {_OF_APPLICATION: "name"})],
    resources=_RESOURCES,
    securityContext=_ON_WINDOWS,
    restartPolicyRules=[_table(irrelevant={_OF_APPLICATION: "exitCodes"}, assumed={"field": "action"})],
    volumeDevices=[_table({_SOURCES: "name"}, {_OF_APPLICATION: "devicePath"})],
    volumeMounts=[
        _table(
            irrelevant={
                _OF_APPLICATION: "mountPath",
                "the API server checks it": "name",
                "driver and runtime decide by the volume": "readOnly",
                "containerd on Windows ignores it (internal/cri/opts/spec_windows_opts.go)": "mountPropagation",
            },
            assumed={"field": "recursiveReadOnly", "path in a volume": "subPath subPathExpr"},
        )
    ],
)
POD_SPEC = _table(
    {
        _PLACEMENT: "nodeSelector schedulerName",
        f"{_PLACEMENT} {_POD_SPEC}": "runtimeClassName",
        _WORKLOADS: "nodeName",
        _ADMISSION: "preemptionPolicy serviceAccount serviceAccountName",
        f"{_ADMISSION} {_SCHEDULING}": "priority priorityClassName",
        f"{_ADMISSION} {_OF_RESOURCES}": "overhead",
        _SCHEDULING: "hostNetwork",
    },
    {
        "ends or restarts a pod that has started": "activeDeadlineSeconds restartPolicy terminationGracePeriodSeconds",
        "names and addresses inside the pod": "dnsConfig dnsPolicy enableServiceLinks hostAliases hostname hostnameOverride "
        "setHostnameAsFQDN subdomain",
        "the API server refuses it in templates": "ephemeralContainers",
        "a missing one is a warning; that images can be pulled is assumed": "imagePullSecrets",
        "the token comes from the API server": "automountServiceAccountToken",
        _ON_LINUX: "hostIPC hostPID hostUsers shareProcessNamespace",
    },
    # A StatefulSet and a budget wait for what another controller sets.
    assumed={"field": "readinessGates schedulingGroup"},
    present={_PLACEMENT: "schedulingGates"},
    affinity=_AFFINITY,
    containers=[CONTAINER],
    initContainers=[CONTAINER],
    os=_table({_PLACEMENT: "name"}),
    resourceClaims=[
        _table({_POD_SPEC: "resourceClaimName resourceClaimTemplateName"}, {"names it for containers": "name"})
    ],
    resources=_RESOURCES,
    securityContext=_table(
        {_ADMISSION: "supplementalGroupsPolicy"},
        {
            _ON_LINUX: "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsUser seLinuxChangePolicy seLinuxOptions "
            "seccompProfile supplementalGroups"
        },
        assumed={"user account": "runAsNonRoot"},
        sysctls=[_table({_ADMISSION: "name"}, {"kubelets on Windows reject each": "value"})],
        windowsOptions=_WINDOWS_OPTIONS,
    ),
    tolerations=[_table({_PLACEMENT: "effect key operator tolerationSeconds value"})],
    topologySpreadConstraints=[
        _table(
            {
                _SCHEDULING: "matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable"
            },
            labelSelector=_LABEL_SELECTOR,
        )
    ],
    volumes=[_VOLUME],
)  # fmt: skip
# Of the spec of a PersistentVolume and of its source, and of a CSIDriver: the kind of assumption by field.
ASSUMED_OF_VOLUMES = _list_assumed(_PERSISTENT_VOLUME_SPEC, _CSI_VOLUME, _LOCAL, *_IN_TREE.values())
ASSUMED_OF_DRIVERS = _list_assumed(_CSI_DRIVER_SPEC)
TABLES: Mapping[str, FieldTable] = {
    "PodSpec": POD_SPEC,
    "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIM,
    "PersistentVolume": PERSISTENT_VOLUME,
    "StorageClass": STORAGE_CLASS,
    "CSIDriver": CSI_DRIVER,
}
