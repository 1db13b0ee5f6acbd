# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides the next step of handing a driver's Windows nodes over between our node plugin and that of another owner. Pure.

Two node plugins of one driver on a node share the directory of the plugin's socket and the name of the registration
socket. The one that starts takes both paths from the other, and the one that ends removes both paths; the
kubelet then forgets the driver. So on each node the old one leaves first, then the new one starts (or starts anew),
registers, passes the gate, and only then the next node is touched.

Ours to the platform's: our DaemonSet is kept off one more node each time, by a node affinity in it. Nothing of the
platform is written, and until the end taking a node off that list brings ours back to it.

To ours: both DaemonSets usually have the same name and namespace, so the other one is deleted first with its pods
orphaned. Ours adopts them under the update strategy OnDelete, so that a node keeps its plugin until its step. A
ConfigMap keeps the deleted DaemonSet, so that an interrupted run can continue.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...base.decode import read_object
from ...base.stored import restore
from ...catalog.base import Driver
from ...kube.errors import ClusterError
from ...kube.labels import HANDOVER, MANAGED_BY, MANAGER, PART_OF
from ..ownership import Owner, describe_owner
from ..plan_inputs import RECORD_SCHEMA, name_record
from ..uses import explain_fixed_mode

Direction = Literal["to_platform", "to_kubewin"]

# On a pod that our DaemonSet adopted and that is deleted when its node is handed over.
REPLACED = "kubewin.io/replaced"

# On our DaemonSet, beside HANDOVER: the node that it is about.
_WAITING = "kubewin.io/handover-node"

_OURS = Owner("of this collection", "", recreates=False, how="")

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_BY_NAME = "metadata.name"


@dataclass(frozen=True, slots=True)
class HandoverSide:
    """One of the two node plugins.

    mode: how it reaches the host. exclusions: by Node, why its DaemonSet puts no pod there. pods: by Node, the pod's name. owner: whose it is.
    deleting: its DaemonSet or its namespace is being deleted.
    """

    namespace: str
    name: str
    mode: str
    exclusions: Mapping[str, str] = field(default_factory=dict)
    pods: Mapping[str, str] = field(default_factory=dict)
    owner: Owner = _OURS
    deleting: bool = False

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class HandoverState:
    """What a hand-over is decided from.

    ours: None where it is not installed; as it would be where it is still to come. theirs: the others that serve the
    driver. begun: what a hand-over to ours has begun to replace, "namespace/name".
    """

    driver: Driver
    nodes: tuple[str, ...]
    ours: HandoverSide | None
    theirs: tuple[HandoverSide, ...]
    begun: str = ""
    replaced_nodes: tuple[str, ...] = ()
    waiting: str = ""


@dataclass(frozen=True, slots=True)
class Handover:
    """The nodes still to hand over, in their order, or why none is.

    other: the side that is not ours, where it is there. namespace: of our node plugin, empty where it is not installed.
    """

    nodes: tuple[str, ...]
    done: tuple[str, ...]
    other: HandoverSide | None
    refusal: str = ""
    lines: tuple[str, ...] = ()
    namespace: str = ""


def plan_handover(direction: Direction, state: HandoverState, replace: str = "") -> Handover:
    """What is to be done, from what is there. replace: "namespace/name" of the other side."""
    handover = (
        _plan_handover_to_platform(state, replace)
        if direction == "to_platform"
        else _plan_handover_to_kubewin(state, replace)
    )
    return dataclasses.replace(handover, namespace="" if state.ours is None else state.ours.namespace)


def _plan_handover_to_platform(state: HandoverState, replace: str) -> Handover:
    driver, own_side = state.driver, state.ours
    if state.begun:
        return _refuse(
            f"a hand-over from {state.begun} to this collection's node plugin is not finished. Finish it first, with "
            f"kubewin_handover=to_kubewin and kubewin_replace={state.begun}",
        )
    named = [side for side in state.theirs if replace in ("", side.path)]
    if own_side is None:
        return Handover((), (), named[0] if named else None, lines=("this collection's node plugin is not installed",))
    if not named:
        reason = f"{replace} does not provide" if replace else "nothing else provides"
        return _refuse(
            f"{reason} {driver.name} on Windows nodes, and without a node plugin no volume can be mounted or "
            "unmounted there. Enable it on the platform, then run again",
        )
    if len(named) > 1:
        listed = ", ".join(f"DaemonSet {side.path}" for side in named)
        return _refuse(
            f"several DaemonSets provide {driver.name}: {listed}. Name the one to take over with kubewin_replace"
        )
    other_side = named[0]
    # A node that waits for it is finished first, or gets its former plugin back.
    if other_side.deleting and state.waiting not in state.nodes:
        return _refuse(
            f"DaemonSet {other_side.path} is being deleted, and its pods with it: nodes that it takes over would be without a node plugin. "
            "Enable it on the platform again, then run again",
        )
    nodes = tuple(name for name in state.nodes if name in own_side.pods or name not in own_side.exclusions)
    if state.waiting in state.nodes:
        # A run was interrupted there; this node is finished before any other one is changed.
        nodes = (state.waiting, *(name for name in nodes if name != state.waiting))
    uncovered_nodes = [f"{name} ({other_side.exclusions[name]})" for name in nodes if name in other_side.exclusions]
    if uncovered_nodes:
        return _refuse(
            f"DaemonSet {other_side.path} has no pod on {', '.join(uncovered_nodes)}: these nodes would be without a node plugin. "
            "Extend it to them, or move workloads with volumes away from them and exclude them from this collection's "
            "DaemonSet",
        )
    if refusal := explain_fixed_mode(driver, own_side.mode, other_side.mode):
        return _refuse(
            f"DaemonSet {own_side.path}: {refusal}. Remove it first, once no volume of {driver.name} is in use"
        )
    done = tuple(name for name in state.nodes if name not in nodes and name not in other_side.exclusions)
    line = f"from {own_side.path} of this collection to DaemonSet {other_side.path}, {describe_owner(other_side.owner)}"
    return Handover(nodes, done, other_side, lines=(line,))


def _plan_handover_to_kubewin(state: HandoverState, replace: str) -> Handover:
    driver, own_side = state.driver, state.ours
    if not replace:
        return _refuse(
            "no DaemonSet to replace is named. Set kubewin_replace=namespace/name" + _describe_candidates(state),
        )
    if state.begun and state.begun != replace:
        return _refuse(
            f"a hand-over from {state.begun} is not finished. Finish it first, with kubewin_replace={state.begun}",
        )
    named = next((side for side in state.theirs if side.path == replace), None)
    if named is None and not state.begun:
        if own_side is not None and own_side.pods:
            return Handover(
                (),
                tuple(own_side.pods),
                None,
                lines=(f"{replace} no longer exists; this collection's node plugin is installed",),
            )
        return _refuse(
            f"DaemonSet {replace} does not provide {driver.name} on Windows nodes{_describe_candidates(state)}"
        )
    # Once begun, the run itself deletes it and keeps its pods.
    if named is not None and named.deleting and not state.begun:
        return _refuse(
            f"DaemonSet {replace} is being deleted, and its pods with it, so nodes lose them before their turn. Wait until it is gone, then "
            f"run enable_csi with kubewin_drivers={driver.key}",
        )
    if named is not None and named.owner.recreates:
        return _refuse(
            f"DaemonSet {replace} is {describe_owner(named.owner)} and would be recreated. First: {named.owner.how}"
        )
    other_providers = [f"DaemonSet {side.path}" for side in state.theirs if side is not named]
    if other_providers:
        return _refuse(f"{', '.join(other_providers)} also provides {driver.name}. Remove one of them first")
    if own_side is None:
        raise ValueError("a hand-over to this collection needs the DaemonSet to install")
    namespace = replace.split("/", 1)[0]
    if namespace != own_side.namespace:
        return _refuse(
            f"{replace} is in another namespace than this collection's DaemonSet ({own_side.namespace}), which cannot "
            f"adopt its pods. Set the role's namespace to {namespace}",
        )
    nodes = state.replaced_nodes if named is None else tuple(name for name in state.nodes if name in named.pods)
    uncovered_nodes = [f"{name} ({own_side.exclusions[name]})" for name in nodes if name in own_side.exclusions]
    if uncovered_nodes:
        return _refuse(
            f"this collection's DaemonSet would have no pod on {', '.join(uncovered_nodes)}: these nodes would be without a "
            "node plugin. If the label kubewin.io/csi-proxy is missing, first run enable_csi with the tag proxy for "
            "their hosts",
        )
    if named is not None and (refusal := explain_fixed_mode(driver, named.mode, own_side.mode)):
        return _refuse(f"DaemonSet {replace}: {refusal}. Set {driver.key}_csi_mode to {named.mode}")
    done = tuple(name for name in state.nodes if name not in nodes and name not in own_side.exclusions)
    owner_text = f", {describe_owner(named.owner)}" if named is not None else " (begun before)"
    line = f"from DaemonSet {replace}{owner_text} to {own_side.path} of this collection"
    return Handover(nodes, done, named, lines=(line,))


def _describe_candidates(state: HandoverState) -> str:
    candidates = [f"{side.path} ({describe_owner(side.owner)})" for side in state.theirs]
    return f"; there is {', '.join(candidates)}" if candidates else f"; nothing provides {state.driver.name} there"


def _refuse(why: str) -> Handover:
    return Handover((), (), None, refusal=why)


@dataclass(frozen=True, slots=True)
class WaitingNode:
    """A node that ours has left and where the other plugin is not proven yet.

    stale: runs of its pod, as uid and number of restarts, that went on beside ours: their sockets are gone.
    """

    node: str
    stale: frozenset[tuple[str, int]]

    def text(self) -> str:
        """For an annotation."""
        return json.dumps({"node": self.node, "stale": sorted(self.stale)})

    @classmethod
    def from_object(cls, daemon_set: Mapping[str, Any]) -> WaitingNode | None:
        """What our DaemonSet's annotation says, None without one. Raises ClusterError when it is unreadable."""
        text = (daemon_set["metadata"].get("annotations") or {}).get(_WAITING)
        if not text:
            return None
        try:
            waiting: WaitingNode = restore(cls, read_object(text))
        except ValueError as error:
            metadata = daemon_set["metadata"]
            raise ClusterError(
                f"DaemonSet {metadata.get('namespace')}/{metadata['name']}: annotation {_WAITING} is unreadable ({error}), "
                "expected the node in progress. Verify that node's volumes, remove the annotation, and run again.",
                "invalid",
            ) from error
        return waiting


def list_excluded_nodes(daemon_set: Mapping[str, Any]) -> tuple[str, ...]:
    """The Nodes that our DaemonSet is kept off, by name."""
    names = []
    for term in _read_affinity_terms(daemon_set):
        for entry in term.get("matchFields") or []:
            if entry.get("key") == _BY_NAME and entry.get("operator") == "NotIn":
                names += [str(value) for value in entry.get("values") or []]
    return tuple(dict.fromkeys(names))


def make_exclusion_patch(
    daemon_set: Mapping[str, Any], nodes: Sequence[str], waiting: WaitingNode | None
) -> dict[str, Any]:
    """A merge patch that keeps our DaemonSet off exactly these Nodes.

    waiting: noted with it, in the same write. The pods on all other nodes stay, as ours always has OnDelete.
    """
    terms = copy.deepcopy(_read_affinity_terms(daemon_set)) or [{}]
    for term in terms:
        fields = [
            entry
            for entry in term.get("matchFields") or []
            if not (entry.get("key") == _BY_NAME and entry.get("operator") == "NotIn")
        ]
        # The API takes one name an entry there.
        fields += [{"key": _BY_NAME, "operator": "NotIn", "values": [name]} for name in nodes]
        term.pop("matchFields", None)
        if fields:
            term["matchFields"] = fields
    required = {"nodeSelectorTerms": [term for term in terms if term]}
    affinity = {"nodeAffinity": {_REQUIRED: required if required["nodeSelectorTerms"] else None}}
    return {
        "metadata": {"annotations": {HANDOVER: "to_platform", _WAITING: None if waiting is None else waiting.text()}},
        "spec": {"template": {"spec": {"affinity": affinity}}},
    }


def _read_affinity_terms(daemon_set: Mapping[str, Any]) -> list[dict[str, Any]]:
    affinity = (daemon_set["spec"]["template"]["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return list((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [])


def make_record(driver: Driver, namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name_record(driver),
            "namespace": namespace,
            "labels": {MANAGED_BY: MANAGER, PART_OF: driver.name},
        },
        "data": {**data, "schema": str(RECORD_SCHEMA)},
    }
