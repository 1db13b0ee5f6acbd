# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API's objects as far as ``facts`` reads them, for a decoder that skips every other field.

Names and nesting are the API's own. A field that is missing here is missing in the facts: a test reads whole objects both
ways and compares.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any, TypedDict

# The functional form takes only literals from a type checker.
_typed_dict: Any = TypedDict


def _object(leaves: str = "", **parts: Any) -> Any:
    """An object of which these fields are read: leaves whole, parts as far as they say; null stands for any of the parts."""
    fields = {**dict.fromkeys(leaves.split(), Any), **{name: part | None for name, part in parts.items()}}
    return _typed_dict("Object", fields, total=False)


def _many(item: Any) -> Any:
    return GenericAlias(list, (item,))


def _listed(item: Any) -> Any:
    """A page of objects."""
    return _object(metadata=_object("continue resourceVersion"), items=_many(item))


# What matters only by being there
_THERE = _object()

# Parts of several kinds

_OWNERS = _many(_object("kind name controller"))
_CONDITIONS = _many(_object("type status reason message lastTransitionTime"))
_REQUIREMENTS = _many(_object("key operator values"))
_NODE_SELECTOR = _object(nodeSelectorTerms=_many(_object(matchExpressions=_REQUIREMENTS, matchFields=_REQUIREMENTS)))
_TOLERATIONS = _many(_object("key operator value effect tolerationSeconds"))
_NAME_AND_LABELS = _object("namespace name labels")

# Where volumes are

_BY_VOLUME_ID = _object("volumeID fsType readOnly")
_SOURCES = {
    "csi": _object(
        "driver volumeHandle fsType readOnly",
        volumeAttributes=_object("source Source server protocol fsType fstype secretName secretname"),
        nodeStageSecretRef=_object("name"),
    ),
    "awsElasticBlockStore": _BY_VOLUME_ID,
    "azureDisk": _object("diskURI kind fsType readOnly"),
    "azureFile": _object("shareName secretName secretNamespace readOnly"),
    "gcePersistentDisk": _object("pdName fsType readOnly"),
    "cinder": _BY_VOLUME_ID,
    "vsphereVolume": _object("volumePath fsType storagePolicyName"),
    "portworxVolume": _BY_VOLUME_ID,
    "hostPath": _object("path"),
    **dict.fromkeys(
        ("rbd", "cephfs", "glusterfs", "flocker", "quobyte", "storageos", "scaleIO", "nfs", "iscsi", "fc", "local", "flexVolume"),
        _THERE,
    ),
}  # fmt: skip
_CLAIM_SPEC = _object(
    "volumeName storageClassName accessModes volumeMode volumeAttributesClassName",
    resources=_object(requests=_object("storage")),
    selector=_THERE,
    dataSource=_THERE,
    dataSourceRef=_THERE,
)
_CLAIM_TEMPLATE = _object(
    metadata=_object("name", annotations=_object("volume.beta.kubernetes.io/storage-class")), spec=_CLAIM_SPEC
)
_POD_VOLUME = _object(
    "name",
    **_SOURCES,
    persistentVolumeClaim=_object("claimName"),
    ephemeral=_object(volumeClaimTemplate=_CLAIM_TEMPLATE),
    image=_THERE,
    gitRepo=_THERE,
    photonPersistentDisk=_THERE,
)

# Pods and what makes them

_DEVICES = _many(_object("name"))
_CONTAINER = _object("name image", volumeDevices=_DEVICES)


def _pod_spec(container: Any) -> Any:
    return _object(
        "nodeName nodeSelector runtimeClassName schedulerName",
        os=_object("name"),
        affinity=_object(nodeAffinity=_object(requiredDuringSchedulingIgnoredDuringExecution=_NODE_SELECTOR)),
        tolerations=_TOLERATIONS,
        securityContext=_object(windowsOptions=_object("hostProcess")),
        schedulingGates=_many(_THERE),
        volumes=_many(_POD_VOLUME),
        containers=_many(container),
        initContainers=_many(_CONTAINER),
    )


_CONTAINER_STATE = _object(
    running=_object("startedAt"),
    waiting=_object("reason message"),
    terminated=_object("exitCode reason message finishedAt"),
)
PodList = _listed(
    _object(
        metadata=_object(
            "namespace name uid resourceVersion creationTimestamp deletionTimestamp",
            labels=_object("pod-template-generation controller-revision-hash app.kubernetes.io/managed-by"),
            annotations=_object("kubernetes.io/config.mirror"),
            ownerReferences=_OWNERS,
        ),
        spec=_pod_spec(_CONTAINER),
        status=_object(
            "phase",
            conditions=_CONDITIONS,
            containerStatuses=_many(
                _object("name ready restartCount", state=_CONTAINER_STATE, lastState=_CONTAINER_STATE)
            ),
        ),
    )
)

# Whole, because a field that is skipped here could not be reported as one that no rule reads.
_POD_TEMPLATE = _object("spec")
_STRATEGY = _object("type", rollingUpdate=_object("maxUnavailable maxSurge partition"))
_TEMPLATE_METADATA = _object("namespace name generation labels annotations", ownerReferences=_OWNERS)
# Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job and CronJob
TemplateList = _listed(
    _object(
        metadata=_TEMPLATE_METADATA,
        spec=_object(
            "paused replicas parallelism completions",
            selector=_object("matchLabels"),
            template=_POD_TEMPLATE,
            jobTemplate=_object(spec=_object("parallelism completions", template=_POD_TEMPLATE)),
            volumeClaimTemplates=_many(_CLAIM_TEMPLATE),
            ordinals=_object("start"),
            strategy=_STRATEGY,
            updateStrategy=_STRATEGY,
        ),
        status=_object(
            "replicas currentRevision updateRevision availableReplicas desiredNumberScheduled currentNumberScheduled numberReady observedGeneration",
            conditions=_CONDITIONS,
        ),
    )
)
RevisionList = _listed(_object("revision", metadata=_TEMPLATE_METADATA))

# Nodes

NodeList = _listed(
    _object(
        metadata=_object("name labels annotations"),
        spec=_object("unschedulable", taints=_many(_object("key value effect"))),
        status=_object(
            "volumesInUse",
            conditions=_many(_object("type status reason message")),
            nodeInfo=_object("operatingSystem kubeletVersion kernelVersion containerRuntimeVersion"),
            volumesAttached=_many(_object("name")),
        ),
    )
)
CsiNodeList = _listed(
    _object(
        metadata=_object("name", annotations=_object("storage.alpha.kubernetes.io/migrated-plugins")),
        spec=_object(drivers=_many(_object("name nodeID topologyKeys", allocatable=_object("count")))),
    )
)

# Volumes, claims and what belongs to them

VolumeList = _listed(
    _object(
        metadata=_object(
            "name creationTimestamp deletionTimestamp",
            annotations=_object(
                "pv.kubernetes.io/provisioned-by pv.kubernetes.io/migrated-to volume.beta.kubernetes.io/storage-class"
            ),
            labels=_object(
                "topology.kubernetes.io/zone failure-domain.beta.kubernetes.io/zone "
                "topology.kubernetes.io/region failure-domain.beta.kubernetes.io/region"
            ),
        ),
        spec=_object(
            "persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName accessModes volumeMode",
            **_SOURCES,
            claimRef=_object("namespace name uid"),
            capacity=_object("storage"),
            nodeAffinity=_object(required=_NODE_SELECTOR),
        ),
        status=_object("phase"),
    )
)
ClaimList = _listed(
    _object(
        metadata=_object(
            "namespace name uid creationTimestamp deletionTimestamp",
            annotations=_object(
                "volume.kubernetes.io/storage-provisioner volume.beta.kubernetes.io/storage-provisioner "
                "pv.kubernetes.io/migrated-to volume.kubernetes.io/selected-node volume.beta.kubernetes.io/storage-class"
            ),
            ownerReferences=_OWNERS,
        ),
        spec=_CLAIM_SPEC,
        status=_object("phase"),
    )
)
AttachmentList = _listed(
    _object(
        metadata=_object("name creationTimestamp deletionTimestamp"),
        spec=_object("attacher nodeName", source=_object("persistentVolumeName")),
        status=_object("attached", attachError=_object("message"), detachError=_object("message")),
    )
)

# A few objects of each cluster; they are read whole where that is as short

StorageClassList = _listed(
    _object(
        "provisioner parameters volumeBindingMode reclaimPolicy",
        metadata=_object("name annotations creationTimestamp"),
        allowedTopologies=_many(_object(matchLabelExpressions=_many(_object("key values")))),
    )
)
CapacityList = _listed(
    _object(
        "storageClassName capacity maximumVolumeSize",
        nodeTopology=_object("matchLabels", matchExpressions=_REQUIREMENTS),
    )
)
CsiDriverList = _listed(_object("spec", metadata=_NAME_AND_LABELS))
NamespaceList = _listed(_object(metadata=_NAME_AND_LABELS, status=_object("phase")))
RuntimeClassList = _listed(
    _object(metadata=_NAME_AND_LABELS, scheduling=_object("nodeSelector", tolerations=_TOLERATIONS))
)
