# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod spec depends on and no rule reads: objects that it names, and fields that the table of fields assumes or does not have. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ...base.cached import share
from .fields import POD_SPEC, find_assumed

# Something that a pod needs and that the report does not read: its kind, of an object as in the API or of a field as in the
# table of fields, and its name, "namespace/name" of an object in a namespace.
Dependency = tuple[str, str]

# The kubelet refuses the volume if the path is not there (pkg/volume/hostpath/host_path.go, checkTypeInternal). Nothing makes
# a pipe either; those of csi-proxy are evaluated with the node.
_MUST_EXIST = frozenset({"BlockDevice", "CharDevice", "Directory", "File", "Socket"})


def find_dependencies(spec: Mapping[str, Any], namespace: str) -> tuple[Dependency, ...]:
    """Read a whole core/v1 PodSpec: what it depends on, each once."""
    dependencies = dict.fromkeys(_list_of_pod(spec, namespace))
    return share(tuple((kind, sys.intern(name)) for kind, name in dependencies))


def _list_of_pod(spec: Mapping[str, Any], namespace: str) -> Iterator[Dependency]:
    yield from find_assumed(spec, POD_SPEC, "spec")
    for claim in spec.get("resourceClaims") or ():
        yield "device", str(claim.get("resourceClaimTemplateName") or claim.get("resourceClaimName") or "")
    if runtime_class := spec.get("runtimeClassName"):
        yield "runtime handler", str(runtime_class)
    yield from _list_of_resources(spec)
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            yield from _list_of_container(container, namespace)
    for volume in spec.get("volumes") or ():
        yield from _list_of_volume(volume, namespace)


def _list_of_container(container: Mapping[str, Any], namespace: str) -> Iterator[Dependency]:
    yield "image", str(container.get("image") or "")
    yield from _list_of_resources(container)
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield from _reference(source, namespace, configMapKeyRef="ConfigMap", secretKeyRef="Secret")
    for source in container.get("envFrom") or ():
        yield from _reference(source, namespace, configMapRef="ConfigMap", secretRef="Secret")


def _list_of_resources(holder: Mapping[str, Any]) -> Iterator[Dependency]:
    resources = holder.get("resources") or {}
    yield from (("device", str(claim.get("name"))) for claim in resources.get("claims") or ())


def _list_of_volume(volume: Mapping[str, Any], namespace: str) -> Iterator[Dependency]:
    yield from _reference(volume, namespace, configMap="ConfigMap")
    secret = volume.get("secret") or {}
    if secret and not secret.get("optional"):
        yield "Secret", f"{namespace}/{secret.get('secretName')}"
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from _reference(source, namespace, configMap="ConfigMap", secret="Secret")
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
    place = str(path.get("path"))
    is_pipe = place.replace("/", "\\").startswith("\\\\.\\pipe\\") and "csi-proxy" not in place
    if path.get("type") in _MUST_EXIST or is_pipe:
        yield "host path", place


def _reference(holder: Mapping[str, Any], namespace: str, **fields: str) -> Iterator[Dependency]:
    for field, kind in fields.items():
        if (reference := holder.get(field)) and not reference.get("optional"):
            yield kind, f"{namespace}/{reference.get('name')}"
