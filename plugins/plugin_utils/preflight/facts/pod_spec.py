# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod spec depends on and no rule reads, field by field. Pure.

Each field of the API is read by a rule, or irrelevant for a pod that starts with its volumes, or a dependency. A field in none
of the tables, as of a newer Kubernetes, is a dependency too.
Source: https://github.com/kubernetes/kubernetes, api/openapi-spec/v3/api__v1_openapi.json, PodSpec, Container and Volume.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree

Kind = Literal[
    "affinity between pods",
    "ConfigMap",
    "device",
    "field",
    "host path",
    "host port",
    "image",
    "PriorityClass",
    "Secret",
    "SecretProviderClass",
    "ServiceAccount",
    "topology spread",
]


@dataclass(frozen=True, slots=True)
class Dependency:
    """Something that a pod needs and that the report does not read. name: "namespace/name" of an object in a namespace."""

    kind: Kind
    name: str


def _fields(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Read by facts/placement.py and facts/sources.py, or below.
POD_READ = _fields(
    "affinity containers ephemeralContainers hostNetwork initContainers nodeName nodeSelector os priorityClassName "
    "resourceClaims runtimeClassName schedulerName schedulingGates serviceAccount serviceAccountName tolerations "
    "topologySpreadConstraints volumes"
)
# The kubelet sets these up by itself, they act on a pod that runs, or admission alone cares for them, which is an assumption of
# every pod. A missing pull secret is ignored (pkg/kubelet/kubelet_pods.go, getPullSecretsForPod), and the pull itself is assumed.
POD_IRRELEVANT = _fields(
    "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC hostPID "
    "hostUsers hostname hostnameOverride imagePullSecrets overhead preemptionPolicy priority readinessGates resources "
    "restartPolicy securityContext setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds"
)
CONTAINER_READ = _fields("env envFrom image name ports resources volumeDevices")
CONTAINER_IRRELEVANT = _fields(
    "args command imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy restartPolicy restartPolicyRules "
    "securityContext startupProbe stdin stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty "
    "volumeMounts workingDir"
)
VOLUME_READ = frozenset({"configMap", "ephemeral", "hostPath", "image", "persistentVolumeClaim", "projected", "secret"})
VOLUME_READ |= {*in_tree.FIELDS, *in_tree.UNSURE}
VOLUME_IRRELEVANT = frozenset({"downwardAPI", "emptyDir", "name"})
PROJECTED_READ = frozenset({"configMap", "secret"})
PROJECTED_IRRELEVANT = frozenset({"downwardAPI", "serviceAccountToken"})
AFFINITY_READ = frozenset({"nodeAffinity", "podAffinity", "podAntiAffinity"})
VARIABLE_READ = frozenset({"configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"})
# Kubernetes makes these in every cluster and namespace.
_GIVEN = frozenset({"", "default", "system-cluster-critical", "system-node-critical"})
# What the scheduler counts on every node, see the assumption about room.
_COUNTED = frozenset({"cpu", "ephemeral-storage", "memory"})
# The kubelet refuses the volume if the path is not there (pkg/volume/hostpath/host_path.go, checkTypeInternal).
_MUST_EXIST = frozenset({"BlockDevice", "CharDevice", "Directory", "File", "Socket"})


def find_dependencies(spec: Mapping[str, Any], namespace: str) -> tuple[Dependency, ...]:
    """Read a whole core/v1 PodSpec: what it depends on, each once."""
    pairs = dict.fromkeys(_of_pod(spec, namespace))
    return _made(tuple((kind, sys.intern(name)) for kind, name in pairs))


@lru_cache(maxsize=4096)
def _made(pairs: tuple[tuple[Kind, str], ...]) -> tuple[Dependency, ...]:
    """Most templates of a cluster depend on the same."""
    return tuple(Dependency(kind, name) for kind, name in pairs)


def _of_pod(spec: Mapping[str, Any], namespace: str) -> Iterator[tuple[Kind, str]]:
    yield from _unknown("spec", spec, POD_READ | POD_IRRELEVANT)
    account = str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "")
    if account not in _GIVEN:
        yield "ServiceAccount", f"{namespace}/{account}"
    if (priority := str(spec.get("priorityClassName") or "")) not in _GIVEN:
        yield "PriorityClass", priority
    for claim in spec.get("resourceClaims") or ():
        yield "device", str(claim.get("resourceClaimTemplateName") or claim.get("resourceClaimName") or "")
    affinity = spec.get("affinity") or {}
    yield from _unknown("spec.affinity", affinity, AFFINITY_READ)
    for name in ("podAffinity", "podAntiAffinity"):
        if (affinity.get(name) or {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            yield "affinity between pods", name
    for constraint in spec.get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable") != "ScheduleAnyway":
            yield "topology spread", str(constraint.get("topologyKey"))
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            yield from _of_container(container, namespace, field, bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        yield from _of_volume(volume, namespace)


def _of_container(
    container: Mapping[str, Any], namespace: str, field: str, on_host: bool
) -> Iterator[tuple[Kind, str]]:
    yield from _unknown(f"spec.{field}", container, CONTAINER_READ | CONTAINER_IRRELEVANT)
    yield "image", str(container.get("image") or "")
    for port in container.get("ports") or ():
        if number := port.get("hostPort") or (on_host and port.get("containerPort")):
            yield "host port", str(number)
    resources = container.get("resources") or {}
    yield from (("device", str(claim.get("name"))) for claim in resources.get("claims") or ())
    for name in (resources.get("limits") or {}) | (resources.get("requests") or {}):
        if name not in _COUNTED:
            yield "device", str(name)
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield from _reference(source, namespace, configMapKeyRef="ConfigMap", secretKeyRef="Secret")
        yield from _unknown(f"spec.{field}.env.valueFrom", source, VARIABLE_READ)
    for source in container.get("envFrom") or ():
        yield from _reference(source, namespace, configMapRef="ConfigMap", secretRef="Secret")


def _of_volume(volume: Mapping[str, Any], namespace: str) -> Iterator[tuple[Kind, str]]:
    yield from _unknown("spec.volumes", volume, VOLUME_READ | VOLUME_IRRELEVANT)
    yield from _reference(volume, namespace, configMap="ConfigMap")
    secret = volume.get("secret") or {}
    if secret and not secret.get("optional"):
        yield "Secret", f"{namespace}/{secret.get('secretName')}"
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _reference(source, namespace, configMap="ConfigMap", secret="Secret")
        yield from _unknown("spec.volumes.projected", source, PROJECTED_READ | PROJECTED_IRRELEVANT)
    csi = volume.get("csi") or {}
    yield from _reference(csi, namespace, nodePublishSecretRef="Secret")
    attributes = csi.get("volumeAttributes") or {}
    if provider := attributes.get("secretProviderClass"):
        yield "SecretProviderClass", f"{namespace}/{provider}"
    shared = attributes.get("secretName") or (volume.get("azureFile") or {}).get("secretName")
    if shared:
        yield "Secret", f"{attributes.get('secretNamespace') or namespace}/{shared}"
    if reference := (volume.get("image") or {}).get("reference"):
        yield "image", str(reference)
    path = volume.get("hostPath") or {}
    if path.get("type") in _MUST_EXIST:
        yield "host path", str(path.get("path"))


def _reference(holder: Mapping[str, Any], namespace: str, **fields: Kind) -> Iterator[tuple[Kind, str]]:
    for field, kind in fields.items():
        if (one := holder.get(field)) and not one.get("optional"):
            yield kind, f"{namespace}/{one.get('name')}"


def _unknown(where: str, entry: Mapping[str, Any], known: frozenset[str]) -> Iterator[tuple[Kind, str]]:
    return (("field", f"{where}.{name}") for name in entry if name not in known)
