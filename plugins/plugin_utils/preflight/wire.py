# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API's objects as far as ``facts`` reads them, for a decoder that skips every other field; kinds of few objects are decoded whole.

Names and nesting are the API's own. A field that is missing here is missing in the facts: a test reads whole objects both
ways and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Any, TypedDict

from .facts import fields

# The functional form takes only literals from a type checker.
_typed_dict: Any = TypedDict


def _object(leaves: str = "", **parts: Any) -> Any:
    """An object of which these fields are read: leaves whole, parts as far as they say; null stands for any of the parts."""
    shape = {**dict.fromkeys(leaves.split(), Any), **{name: part | None for name, part in parts.items()}}
    return _typed_dict("Object", shape, total=False)


def _many(item: Any) -> Any:
    return GenericAlias(list, (item,))


def _replace(shape: Any, **parts: Any) -> Any:
    """An object with other parts."""
    return _typed_dict("Object", {**shape.__annotations__, **parts}, total=False)


def _listed(item: Any) -> Any:
    """A page of objects."""
    return _object(metadata=_object("continue resourceVersion"), items=_many(item))


# Parts of several kinds

_OWNERS = _many(_object("kind name controller"))
_CONDITIONS = _many(_object("type status reason message lastTransitionTime"))
_REQUIREMENTS = _many(_object("key operator values"))


def _project(table: fields.FieldTable, *readers: str) -> Any:
    """The shape of an object of which a table of fields says what is read or assumed, or what only these files read."""
    leaves: list[str] = []
    parts: dict[str, Any] = {}
    for name, answer in table.items():
        if isinstance(answer, fields.FieldAnswer):
            if answer.answer != "irrelevant" and (not readers or not set(readers).isdisjoint(answer.text.split())):
                leaves.append(name)
            continue
        part = _project(answer if isinstance(answer, Mapping) else answer[0], *readers)
        if part.__annotations__:
            parts[name] = part if isinstance(answer, Mapping) else _many(part)
    return _object(" ".join(leaves), **parts)


# Pods and what makes them

_READERS = [f"facts/{name}.py" for name in ("placement", "resources", "scheduling", "sources", "workloads")]
_SPEC_OF_PODS = _project(fields.POD_SPEC, *_READERS)
_CONTAINER = _project(fields.CONTAINER, *_READERS)
_CONTAINER_STATE = _object(
    running=_object("startedAt"),
    waiting=_object("reason message"),
    terminated=_object("exitCode reason message finishedAt"),
)
PodList = _listed(
    _object(
        metadata=_object(
            "namespace name uid resourceVersion creationTimestamp deletionTimestamp labels",
            annotations=_object("kubernetes.io/config.mirror"),
            ownerReferences=_OWNERS,
        ),
        spec=_SPEC_OF_PODS,
        status=_object(
            "phase",
            conditions=_CONDITIONS,
            containerStatuses=_many(
                _object("name ready restartCount", state=_CONTAINER_STATE, lastState=_CONTAINER_STATE)
            ),
        ),
    )
)


def make_brief_pod_list() -> Any:
    """What facts read of pods of which needs_details says no.

    Raw is what only their shapes have: most consecutive pods are alike, and PodTable compares them as they came.
    """
    from msgspec import Raw

    containers = _many(_replace(_CONTAINER, ports=Raw, resources=Raw)) | None
    return _listed(
        _object(
            metadata=_object(
                "namespace name deletionTimestamp labels",
                annotations=_object("kubernetes.io/config.mirror"),
                ownerReferences=_OWNERS,
            ),
            spec=_replace(
                _SPEC_OF_PODS,
                nodeSelector=Raw,
                affinity=Raw,
                tolerations=Raw,
                topologySpreadConstraints=Raw,
                containers=containers,
                initContainers=containers,
            ),
            status=_object("phase"),
        )
    )


# Whole, because a field that is skipped here could not be reported as one that no rule reads.
_POD_TEMPLATE = _object("spec", metadata=_object("labels"))
BudgetList = _listed(
    _object(
        metadata=_object("namespace name"),
        spec=_object(selector=_object("matchLabels", matchExpressions=_REQUIREMENTS)),
        status=_object("currentHealthy desiredHealthy expectedPods disruptionsAllowed"),
    )
)
_STRATEGY = _object("type", rollingUpdate=_object("maxUnavailable maxSurge partition"))
_TEMPLATE_METADATA = _object("namespace name generation labels annotations deletionTimestamp", ownerReferences=_OWNERS)
_LIMITS_OF_JOBS = "managedBy backoffLimit backoffLimitPerIndex podFailurePolicy"
# Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job and CronJob
TemplateList = _listed(
    _object(
        metadata=_TEMPLATE_METADATA,
        spec=_object(
            f"paused replicas parallelism completions suspend activeDeadlineSeconds {_LIMITS_OF_JOBS}",
            selector=_object("matchLabels"),
            template=_POD_TEMPLATE,
            jobTemplate=_object(spec=_object("parallelism completions managedBy", template=_POD_TEMPLATE)),
            volumeClaimTemplates=_many(_project(fields.CLAIM_TEMPLATE)),
            ordinals=_object("start"),
            strategy=_STRATEGY,
            updateStrategy=_STRATEGY,
        ),
        status=_object(
            "replicas readyReplicas currentRevision updateRevision availableReplicas desiredNumberScheduled "
            "currentNumberScheduled numberReady observedGeneration active failed succeeded startTime",
            conditions=_CONDITIONS,
        ),
    )
)
# What facts read of templates that have a controller.
BriefTemplateList = _listed(
    _object(
        metadata=_object("namespace name", ownerReferences=_OWNERS),
        spec=_object(_LIMITS_OF_JOBS, template=_object(spec=_object("volumes"))),
        status=_object("failed", conditions=_CONDITIONS),
    )
)

# Nodes

NodeList = _listed(
    _object(
        metadata=_object("name labels annotations deletionTimestamp"),
        spec=_object("unschedulable providerID", taints=_many(_object("key value effect"))),
        status=_object(
            "volumesInUse allocatable",
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

VolumeList = _listed(_project(fields.PERSISTENT_VOLUME))
ClaimList = _listed(_project(fields.PERSISTENT_VOLUME_CLAIM))
AttachmentList = _listed(
    _object(
        metadata=_object("name creationTimestamp deletionTimestamp"),
        spec=_object("attacher nodeName", source=_object("persistentVolumeName")),
        status=_object("attached", attachError=_object("message"), detachError=_object("message")),
    )
)

# Objects of each namespace

NamespaceList = _listed(
    _object(metadata=_object("name labels", annotations=_object("openshift.io/node-selector")), status=_object("phase"))
)
ServiceAccountList = _listed(_object(metadata=_object("namespace name")))
