# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node, read once from the API's JSON. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..base.decode import DecodeError, read_object
from ..base.text import join_lines
from ..catalog import wmco

_NODE_IDS = "csi.volume.kubernetes.io/nodeid"
BUILD_LABEL = "node.kubernetes.io/windows-build"
_ACCOUNT = re.compile(r"(?:gce://|azure:///subscriptions/)([^/]+)")
_BUILD = re.compile(r"10\.0\.(\d{5})")


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that may keep pods away."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A Node.

    os: of nodeInfo, which the kubelet reports; the label can be edited. build: "20348", empty when unknown. runtime:
    "containerd://1.7.27". in_use, attached: unique volume names. node_ids: by driver, as the kubelet annotated them.
    annotations: those of the Windows Machine Config Operator only. allocatable: quantities as text. deleting: its object has a
    deletionTimestamp. account: its project of Google or subscription of Azure, in lower case; empty when unknown.
    """

    name: str
    labels: Mapping[str, str]
    os: str = ""
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    not_ready_because: str = ""
    cordoned: bool = False
    kubelet: str = ""
    build: str = ""
    runtime: str = ""
    node_ids: Mapping[str, str] = field(default_factory=dict)
    in_use: tuple[str, ...] = ()
    attached: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    account: str = ""

    @classmethod
    def from_object(cls, node: Mapping[str, Any]) -> ObservedNode:
        """Read a core/v1 Node.

        Reads metadata (name, labels, annotations, deletionTimestamp), spec (taints, unschedulable, providerID), status (conditions, nodeInfo
        (operatingSystem, kubeletVersion, kernelVersion, containerRuntimeVersion), volumesInUse, volumesAttached (name), allocatable).
        """
        metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        info = status.get("nodeInfo") or {}
        ready: Mapping[str, Any] = next(
            (condition for condition in status.get("conditions") or () if condition.get("type") == "Ready"),
            {"message": "no Ready condition"},
        )
        account = _ACCOUNT.match(str(spec.get("providerID") or ""))
        builds = (_BUILD.match(str(text)) for text in (labels.get(BUILD_LABEL), info.get("kernelVersion")))
        return cls(
            name=str(metadata["name"]),
            deleting=bool(metadata.get("deletionTimestamp")),
            account=sys.intern(account[1].lower()) if account is not None else "",
            labels=dict(labels),
            os=str(info.get("operatingSystem", "")),
            taints=tuple(
                Taint(str(taint.get("key", "")), str(taint.get("value") or ""), str(taint.get("effect", "")))
                for taint in spec.get("taints") or ()
            ),
            ready=ready.get("status") == "True",
            not_ready_because=join_lines(" ".join(filter(None, [ready.get("reason"), ready.get("message")]))),
            cordoned=bool(spec.get("unschedulable")),
            kubelet=sys.intern(str(info.get("kubeletVersion", ""))),
            build=next((match[1] for match in builds if match), ""),
            runtime=sys.intern(str(info.get("containerRuntimeVersion", ""))),
            node_ids=read_node_ids(annotations),
            in_use=tuple(str(volume) for volume in status.get("volumesInUse") or ()),
            attached=tuple(str(volume.get("name", "")) for volume in status.get("volumesAttached") or ()),
            annotations={key: str(value) for key, value in annotations.items() if key.startswith(wmco.PREFIX)},
            allocatable=_share(tuple((status.get("allocatable") or {}).items())),
        )

    @property
    def windows(self) -> bool:
        """Whether it is a Windows node: what the kubelet says, else the label."""
        return (self.os or self.labels.get("kubernetes.io/os", "")) == "windows"

    @property
    def of_operator(self) -> bool:
        """Whether the Windows Machine Config Operator prepared it."""
        return bool(self.annotations) or any(key.startswith(wmco.PREFIX) for key in self.labels)


@lru_cache(maxsize=256)
def _share(amounts: tuple[tuple[str, Any], ...]) -> Mapping[str, str]:
    """Most nodes have the same amounts."""
    return {resource: str(amount) for resource, amount in amounts}


def read_node_ids(annotations: Mapping[str, Any]) -> dict[str, str]:
    """By driver, the node ids that a kubelet wrote into its Node's annotations."""
    try:
        node_ids = read_object(annotations.get(_NODE_IDS) or "{}")
    except DecodeError:
        return {}
    return {key: str(value) for key, value in node_ids.items()}
