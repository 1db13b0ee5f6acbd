# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CSI migration's translation: what an in-tree volume, and the file system of an in-tree StorageClass, is to the CSI driver. Pure.

Exactly as plugins/*.go of https://github.com/kubernetes/csi-translation-lib v0.36.3, which kubelets, controllers and the
scheduler run in memory; tests/integration/test_translation.py compares the two on random objects. What a native volume for
Windows additionally needs is a later, separate step (catalog/native.py). An absent value is an empty one, as in the API.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from .in_tree import FIELDS, PLUGINS, InTree

Object = Mapping[str, Any]

# Labels of old volumes stand for the newer ones.
ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGIONS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_BETWEEN_ZONES = "__"
FS_TYPE = "csi.storage.k8s.io/fstype"
UNSPECIFIED = "UNSPECIFIED"

# By in-tree plugin, the key of the driver's zones. Azure's plugins keep the affinity that a volume has.
_ZONE_KEYS = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/vsphere-volume": "topology.csi.vmware.com/zone",
}
_VSPHERE_REGION = "topology.csi.vmware.com/region"

_ACCOUNT = re.compile(r"azure-storage-account-(.+)-secret")
_RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group"
_EBS = re.compile(r"aws://[A-Za-z0-9._~-]*(?P<path>/[^?#]*)?(\?[^#]*)?(?P<fragment>#.*)?")
# No URL may have these: control characters, and a percent sign without its two digits.
_BAD_URL = re.compile(r"[\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})")


class TranslationError(ValueError):
    """The driver cannot take this volume or class over. remedy: what helps."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def find_plugin(volume: Object) -> InTree | None:
    """The in-tree plugin whose field a PersistentVolume has; None for any other, such as a native CSI one."""
    spec = volume.get("spec") or {}
    return next((entry for entry in PLUGINS if entry.field in spec), None)


def require_plugin(volume: Object) -> InTree:
    """The in-tree plugin of a PersistentVolume that a driver of this collection takes over. Raises TranslationError."""
    plugin, spec = find_plugin(volume), volume.get("spec") or {}
    if plugin is None or plugin.field not in _SOURCES:
        kind = next((field for field in FIELDS if field in spec), "of an unknown kind")
        name = str(volume["metadata"].get("name") or "")
        message = f"PersistentVolume {name} is {kind}, expected one of {', '.join(sorted(_SOURCES))}"
        raise TranslationError(message, "Copy the data instead.")
    return plugin


def translate_volume(volume: Object) -> dict[str, Any]:
    """The PersistentVolume that CSI migration makes of one, as of require_plugin. Raises TranslationError."""
    plugin = require_plugin(volume)
    metadata, spec = volume["metadata"], volume.get("spec") or {}
    name = str(metadata.get("name") or "")
    source = spec[plugin.field] or {}
    try:
        csi = _SOURCES[plugin.field](volume, source)
    except TranslationError as error:
        raise TranslationError(f"PersistentVolume {name} {error}", error.remedy) from None
    translated = {key: value for key, value in spec.items() if key != plugin.field}
    translated["csi"] = {"driver": plugin.driver, **csi}
    if plugin.field == "gcePersistentDisk" and spec.get("accessModes") is not None:
        translated["accessModes"] = [choose_google_mode(spec["accessModes"])]
    required = translate_topology(
        plugin, metadata.get("labels") or {}, (spec.get("nodeAffinity") or {}).get("required")
    )
    if required is not None:
        translated["nodeAffinity"] = {**(spec.get("nodeAffinity") or {}), "required": required}
    return {**volume, "spec": translated}


def find_file_system(plugin: InTree | None, parameters: Mapping[str, str]) -> str:
    """The file system of new volumes of a class; empty where it names none. plugin: None for a class of a CSI driver.

    Source: pkg/controller/controller.go of https://github.com/kubernetes-csi/external-provisioner. Migration drops parameters that the
    in-tree plugin of vSphere did not know.
    """
    names = ("fstype",) if plugin is not None and plugin.field == "vsphereVolume" else ("fstype", FS_TYPE)
    return next((value for key, value in parameters.items() if key.lower() in names), "")


# Where a volume is


def translate_topology(plugin: InTree, labels: Mapping[str, str], required: Object | None) -> dict[str, Any] | None:
    """spec.nodeAffinity.required as the scheduler reads it on nodes that migrate this plugin; None when there is none.

    labels: the volume's own, which stand for a zone that its affinity does not name.
    """
    zone_key = _ZONE_KEYS.get(plugin.plugin)
    terms = [dict(term) for term in (required or {}).get("nodeSelectorTerms") or []]
    if zone_key is None:
        return {**(required or {}), "nodeSelectorTerms": terms} if required is not None else None
    named = {str(entry["key"]) for entry in _list_expressions(terms)}
    generations = [number for number, key in enumerate(ZONES) if key in named]
    generations = generations or [number for number, key in enumerate(ZONES) if key in labels] or [0]
    zone, region = ZONES[generations[0]], REGIONS[generations[0]]
    if _list_values(terms, zone):
        terms = _rename_key(terms, zone, zone_key)
    elif zone in labels:
        vsphere = plugin.field == "vsphereVolume"
        terms = _add_zones(terms, zone_key, [labels[zone]] if vsphere else labels[zone].split(_BETWEEN_ZONES))
    if plugin.field == "vsphereVolume":
        if _list_values(terms, region):
            terms = _rename_key(terms, region, _VSPHERE_REGION)
        elif region in labels:
            terms = _add_zones(terms, _VSPHERE_REGION, [labels[region]])
    elif region == REGIONS[1] and _list_values(terms, region):
        terms = _rename_key(terms, region, REGIONS[0])
    if not terms and required is None:
        return None
    return {**(required or {}), "nodeSelectorTerms": terms}


def _list_expressions(terms: Sequence[Object]) -> Iterator[Object]:
    return (entry for term in terms for entry in term.get("matchExpressions") or [])


def _list_values(terms: Sequence[Object], key: str) -> list[str]:
    return [value for entry in _list_expressions(terms) if entry["key"] == key for value in entry.get("values") or []]


def _rename_key(terms: Sequence[Object], old: str, new: str) -> list[dict[str, Any]]:
    return [
        {
            **term,
            "matchExpressions": [
                {**entry, "key": new} if entry["key"] == old else entry for entry in term.get("matchExpressions") or []
            ],
        }
        for term in terms
    ]


def _add_zones(terms: list[dict[str, Any]], key: str, values: Iterable[str]) -> list[dict[str, Any]]:
    zones = sorted({value.strip() for value in values} - {""})
    if not zones:
        return terms
    entry = {"key": key, "operator": "In", "values": zones}
    return [{**term, "matchExpressions": [*(term.get("matchExpressions") or []), entry]} for term in terms or [{}]]


# The source: one function a plugin


def _build_disk(source: Object, handle: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "volumeHandle": handle,
        "readOnly": bool(source.get("readOnly")),
        "fsType": str(source.get("fsType") or ""),
        "volumeAttributes": dict(attributes),
    }


def _translate_aws_ebs(_volume: Object, source: Object) -> dict[str, Any]:
    partition = str(source.get("partition") or 0)
    return _build_disk(source, parse_ebs_id(str(source.get("volumeID") or "")), {"partition": partition})


def parse_ebs_id(volume_id: str) -> str:
    """AWS' own id of a volume: of vol-1, aws:///vol-1 and aws://zone/vol-1. Raises TranslationError."""
    if not volume_id.startswith("aws://"):
        return volume_id
    match = _EBS.fullmatch(volume_id)
    parts = "" if match is None else f"{match['path'] or ''}{match['fragment'] or ''}"
    volume_name = "" if match is None or _BAD_URL.search(parts) else unquote(match["path"] or "").strip("/")
    if not volume_name.startswith("vol-") or "/" in volume_name:
        message = f"has volumeID {volume_id}, expected vol-... or aws://zone/vol-..."
        raise TranslationError(message, "Find the volume in AWS.")
    return volume_name


def _translate_azure_disk(_volume: Object, source: Object) -> dict[str, Any]:
    kind = source.get("kind")
    if kind is not None and str(kind).lower() != "managed":
        message = f"is an Azure disk of kind {kind}, expected Managed"
        raise TranslationError(
            message, "Copy the blob into a managed disk, and create a PersistentVolume for that disk."
        )
    attributes = {"kind": "Managed"}
    if source.get("cachingMode") is not None:
        attributes["cachingmode"] = str(source["cachingMode"])
    if source.get("fsType") is not None:
        attributes["fstype"] = str(source["fsType"])
    return _build_disk(source, str(source.get("diskURI") or ""), attributes)


def _translate_azure_file(volume: Object, source: Object) -> dict[str, Any]:
    metadata, spec = volume["metadata"], volume["spec"]
    namespace = source.get("secretNamespace")
    if namespace is None:
        namespace = (spec.get("claimRef") or {}).get("namespace")
    if not namespace:
        message = "has neither secretNamespace nor a claim, expected one of them"
        raise TranslationError(message, "Set azureFile.secretNamespace.")
    group = str((metadata.get("annotations") or {}).get(_RESOURCE_GROUP) or "")
    secret, share = str(source.get("secretName") or ""), str(source.get("shareName") or "")
    match = _ACCOUNT.search(secret)
    account = match[1] if match else secret
    return {
        "volumeHandle": f"{group}#{account}#{share}#{metadata.get('name') or ''}#{namespace}",
        "readOnly": bool(source.get("readOnly")),
        "volumeAttributes": {"sharename": share},
        "nodeStageSecretRef": {"name": secret, "namespace": str(namespace)},
    }


def _translate_gce_pd(volume: Object, source: Object) -> dict[str, Any]:
    location = build_google_location(volume["metadata"].get("labels") or {})
    partition = str(source.get("partition") or "")
    disk = str(source.get("pdName") or "")
    return _build_disk(source, f"projects/{UNSPECIFIED}/{location}/disks/{disk}", {"partition": partition})


def build_google_location(labels: Mapping[str, str]) -> str:
    """The part of a disk's handle that says where it is, by the volume's labels. Raises TranslationError."""
    label = str(labels.get(ZONES[1]) or labels.get(ZONES[0]) or "")
    zones = label.split(_BETWEEN_ZONES)
    return f"zones/{zones[0] or UNSPECIFIED}" if len(zones) == 1 else f"regions/{find_google_region(zones)}"


def find_google_region(zones: Iterable[str]) -> str:
    """The one region of zones of Google Cloud, "europe-west1-b". Raises TranslationError."""
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:2]) for part in parts}
    if len(regions) != 1 or any(len(part) != 3 for part in parts):
        message = f"is in zones {', '.join('-'.join(part) for part in parts)}, expected zones of one region"
        raise TranslationError(message, f"Correct its label {ZONES[0]}.")
    return regions.pop()


def choose_google_mode(modes: Iterable[str]) -> str:
    """The one access mode that is left: in-tree disks took ReadWriteMany for ReadWriteOnce, and so does migration."""
    distinct = set(modes)
    return (
        "ReadOnlyMany"
        if "ReadOnlyMany" in distinct and not distinct & {"ReadWriteOnce", "ReadWriteMany"}
        else "ReadWriteOnce"
    )


def _translate_vsphere(_volume: Object, source: Object) -> dict[str, Any]:
    policy = str(source.get("storagePolicyName") or "")
    csi = _build_disk(source, str(source.get("volumePath") or ""), {"storagepolicyname": policy} if policy else {})
    return {**csi, "readOnly": False}


_SOURCES: dict[str, Callable[[Object, Object], dict[str, Any]]] = {
    "awsElasticBlockStore": _translate_aws_ebs,
    "azureDisk": _translate_azure_disk,
    "azureFile": _translate_azure_file,
    "gcePersistentDisk": _translate_gce_pd,
    "vsphereVolume": _translate_vsphere,
}
