# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a verification: a StorageClass for each driver, a target for each node. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import TaskError
from ..catalog.base import Driver
from ..catalog.registry import DRIVERS, refuse_unknown_driver
from ..drivers.options import TOLERATION, is_toleration
from .nodes import ProofNode, explain_unfit

# Of each claim: the least that all of the catalog's drivers provision, some only this much or more.
SIZE = "10Gi"
_FSTYPE = ("csi.storage.k8s.io/fstype", "fstype")
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """The requested verification. nodes: empty for every Windows node. storage_classes: by driver. image: empty for own.

    verify_reattach: read the file also on another node, if there is one. namespace: of the pods, empty for a new one. timeout: seconds for a step.
    """

    drivers: tuple[Driver, ...]
    nodes: tuple[str, ...] = ()
    storage_classes: Mapping[str, str] = field(default_factory=dict)
    verify_reattach: bool = True
    image: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    namespace: str = ""
    timeout: int = 300


def parse_request(options: Mapping[str, Any]) -> VerifyRequest:
    """Check the options, as far as that needs no cluster. Raises TaskError."""
    if not options["drivers"]:
        raise TaskError(
            f"drivers (kubewin_drivers) is empty; name one or more of {', '.join(sorted(DRIVERS))}.", "refused"
        )
    for name in (*options["drivers"], *options["storage_classes"]):
        if name not in DRIVERS:
            # Not by choices, which documentation would have to repeat for every new driver.
            raise TaskError(refuse_unknown_driver(name), "refused")
    if options["timeout"] < 1:
        raise TaskError(f"timeout is {options['timeout']}, expected at least 1.", "refused")
    for toleration in options["tolerations"]:
        if not is_toleration(toleration):
            raise TaskError(f"tolerations has {toleration}, {TOLERATION}.", "refused")
    return VerifyRequest(
        drivers=tuple(DRIVERS[name] for name in dict.fromkeys(options["drivers"])),
        nodes=tuple(dict.fromkeys(options["nodes"])),
        storage_classes={str(key): str(value) for key, value in options["storage_classes"].items()},
        image=options["image"],
        tolerations=tuple(options["tolerations"]),
        namespace=options["namespace"],
        timeout=options["timeout"],
    )


@dataclass(frozen=True, slots=True)
class VerifyTarget:
    """One driver on one node.

    keeps: the volume stays when its claim goes. elsewhere: where it is tried next, in this order; the volume decides itself.
    stays: why it is tried nowhere else; empty when that was not asked for.
    """

    driver: str
    provisioner: str
    node: str
    storage_class: str
    access_mode: str
    keeps: bool
    attaches: bool
    elsewhere: tuple[str, ...]
    stays: str = ""


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """The targets in order, omitted nodes with the reason, and refusals."""

    targets: tuple[VerifyTarget, ...]
    left_out: tuple[tuple[str, str, str], ...]
    refusals: tuple[str, ...]

    def describe_steps(self) -> list[str]:
        return [
            f"{target.driver} on {target.node}: a claim of {SIZE} ({target.storage_class}, "
            f"{target.access_mode}), written by one pod, read back by another"
            + (f", and read on another node ({' or '.join(target.elsewhere)})" if target.elsewhere else "")
            + (f"; the volume is kept, because {target.storage_class} retains volumes" if target.keeps else "")
            for target in self.targets
        ]


def plan_verification(
    desired: VerifyRequest, nodes: Sequence[ProofNode], classes: Sequence[Mapping[str, Any]], attach: Mapping[str, bool]
) -> VerifyPlan:
    """Plan a verification. attach: by CSI name, whether its volumes are attached to nodes first."""
    by_name = {node.name: node for node in nodes}
    refusals = [
        f"Node {name} is not a Windows node of this cluster, expected one of {', '.join(sorted(by_name)) or 'none'}."
        for name in desired.nodes
        if name not in by_name
    ]
    candidates = [by_name[name] for name in desired.nodes or sorted(by_name) if name in by_name]
    targets: list[VerifyTarget] = []
    left_out: list[tuple[str, str, str]] = []
    for driver in desired.drivers:
        chosen = choose_class(driver, desired.storage_classes.get(driver.key, ""), classes)
        if chosen.refusal:
            refusals.append(chosen.refusal)
        reasons = {
            node.name: explain_unfit(node, driver.name, desired.image, desired.tolerations) for node in candidates
        }
        usable = [name for name, why in reasons.items() if not why]
        for name, why in reasons.items():
            if why and desired.nodes:
                refusals.append(f"{driver.title} on Node {name}: {why}.")
            elif why:
                left_out.append((driver.key, name, why))
        if not usable and not desired.nodes:
            listed = "; ".join(f"{name}: {why}" for name, why in reasons.items() if why)
            refusals.append(f"{driver.title}: no Windows node to verify it on ({listed or 'there is none'}).")
        for index, name in enumerate(usable):
            other_nodes = usable[index + 1 :] + usable[:index]
            targets.append(
                VerifyTarget(
                    driver=driver.key,
                    provisioner=driver.name,
                    node=name,
                    storage_class=chosen.name,
                    # Drivers of shares list no file systems; a share may be used on many nodes at once.
                    access_mode="ReadWriteOnce" if driver.fstypes else "ReadWriteMany",
                    keeps=chosen.keeps,
                    attaches=attach.get(driver.name, True),
                    elsewhere=tuple(other_nodes) if desired.verify_reattach else (),
                    stays="there is no other node to read it on" if desired.verify_reattach and not other_nodes else "",
                )
            )
    # Node by node: a failing node shows with its first driver.
    order = {node.name: index for index, node in enumerate(candidates)}
    targets.sort(key=lambda target: order[target.node])
    return VerifyPlan(tuple(targets), tuple(left_out), tuple(refusals))


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
