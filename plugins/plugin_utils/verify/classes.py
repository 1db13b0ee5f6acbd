# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which StorageClass proves a driver on Windows, and why another one does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..catalog.base import Driver

_FSTYPE = ("csi.storage.k8s.io/fstype", "fstype")
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class ClassChoice:
    """A class that fits, or why there is none. keeps: its volumes stay when their claims go."""

    name: str = ""
    keeps: bool = False
    refusal: str = ""


def find_misfit(driver: Driver, storage_class: Mapping[str, Any]) -> str:
    """Return why a Windows pod cannot use a volume of this class and driver, empty if it can."""
    if storage_class.get("provisioner") != driver.name:
        return f"its provisioner is {storage_class.get('provisioner')}, expected {driver.name}"
    parameters = {str(key).lower(): str(value) for key, value in (storage_class.get("parameters") or {}).items()}
    lacking = [key for key in driver.storage_class.required if not parameters.get(key.lower())]
    if lacking:
        return f"parameter {', '.join(lacking)} is missing"
    if not driver.fstypes:
        return ""
    fstype = next((parameters[key] for key in _FSTYPE if key in parameters), "").lower()
    if fstype in driver.fstypes:
        return ""
    file_system = (
        f"its file system is {fstype}" if fstype else "it has no file system, and the driver's default is ext4"
    )
    return f"{file_system}, expected ntfs (parameter csi.storage.k8s.io/fstype)"


def choose_class(driver: Driver, requested: str, classes: Sequence[Mapping[str, Any]]) -> ClassChoice:
    """Choose the requested class; else this collection's own, the cluster's default, or the first by name that fits."""
    by_name = {item["metadata"]["name"]: item for item in classes}
    if requested:
        return _choose_requested(driver, requested, by_name)
    of_driver = [item for item in classes if item.get("provisioner") == driver.name]

    def order(item: Mapping[str, Any]) -> tuple[bool, bool, str]:
        metadata = item["metadata"]
        default = (metadata.get("annotations") or {}).get(_DEFAULT) == "true"
        return metadata["name"] != driver.storage_class.name, not default, metadata["name"]

    fitting = sorted((item for item in of_driver if not find_misfit(driver, item)), key=order)
    if fitting:
        return _to_choice(fitting[0])
    why = "; ".join(f"{item['metadata']['name']}: {find_misfit(driver, item)}" for item in of_driver)
    parameters = [f"{key}: {value}" for key, value in driver.storage_class.parameters.items()]
    parameters += [f"{key}: <yours>" for key in driver.storage_class.required]
    help_text = f" with parameters {{{', '.join(parameters)}}}" if parameters else ""
    return ClassChoice(
        refusal=(
            f"{driver.title}: no StorageClass of provisioner {driver.name} fits Windows ({why or 'there is none'}). "
            f"Create one{help_text}, and name it in storage_classes (kubewin_verify_storage_classes in the playbook): "
            f"{{{driver.key}: <name>}}."
        )
    )


def _choose_requested(driver: Driver, requested: str, by_name: Mapping[str, Mapping[str, Any]]) -> ClassChoice:
    storage_class = by_name.get(requested)
    why = find_misfit(driver, storage_class) if storage_class is not None else "it does not exist"
    if storage_class is not None and not why:
        return _to_choice(storage_class)
    fits = sorted(name for name, item in by_name.items() if not find_misfit(driver, item))
    suggestion = f" Suitable: {', '.join(fits)}." if fits else ""
    return ClassChoice(refusal=f"{driver.title}: StorageClass {requested} does not fit: {why}.{suggestion}")


def _to_choice(storage_class: Mapping[str, Any]) -> ClassChoice:
    return ClassChoice(
        name=storage_class["metadata"]["name"],
        keeps=storage_class.get("reclaimPolicy") == "Retain",
    )
