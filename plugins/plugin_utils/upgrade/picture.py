# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of Windows workloads before and after an upgrade: is each still the same one? Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.in_tree import PLUGINS
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import is_of_run
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import list_claims


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim and its volume. source: CSI driver or in-tree plugin. backend: what stands behind it. policy: on deletion."""

    claim: str
    claim_uid: str
    volume: str
    volume_uid: str
    source: str
    backend: str
    policy: str

    @classmethod
    def from_objects(cls, claim: Mapping[str, Any], volume: Mapping[str, Any] | None) -> Claimed:
        """Read a PersistentVolumeClaim and its PersistentVolume."""
        metadata, spec = claim["metadata"], (volume or {}).get("spec") or {}
        source, backend = _source(spec)
        return cls(
            claim=f"{metadata['namespace']}/{metadata['name']}",
            claim_uid=metadata["uid"],
            volume=str((claim.get("spec") or {}).get("volumeName") or ""),
            volume_uid=(volume or {"metadata": {"uid": ""}})["metadata"]["uid"],
            source=source,
            backend=backend,
            policy=str(spec.get("persistentVolumeReclaimPolicy") or ""),
        )


def _source(spec: Mapping[str, Any]) -> tuple[str, str]:
    if "csi" in spec:
        return str(spec["csi"].get("driver")), str(spec["csi"].get("volumeHandle"))
    for plugin in PLUGINS:
        if plugin.field in spec:
            source = json.dumps(
                {key: value for key, value in spec[plugin.field].items() if key != "fsType"}, sort_keys=True
            )
            return plugin.plugin, source
    return "", ""


@dataclass(frozen=True, slots=True)
class NodeWas:
    """A Windows node's releases."""

    kubelet: str
    wmco: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What is compared. volumes: by claim, of pods on Windows nodes. nodes: by name."""

    volumes: Mapping[str, Claimed] = field(default_factory=dict)
    nodes: Mapping[str, NodeWas] = field(default_factory=dict)

    @classmethod
    def from_objects(
        cls, nodes: Mapping[str, NodeWas], pods: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]],
        volumes: Iterable[Mapping[str, Any]], former: Iterable[str] = (),
    ) -> Picture:  # fmt: skip
        """Read the claims of these pods and those of a former picture. Omits what a run of this collection created for itself."""
        used = {
            f"{pod['metadata']['namespace']}/{claim}"
            for pod in pods
            if not is_of_run(pod)
            for claim in list_claims(pod)
        }
        by_name = {volume["metadata"]["name"]: volume for volume in volumes}
        claimed = [
            Claimed.from_objects(claim, by_name.get(str((claim.get("spec") or {}).get("volumeName") or "")))
            for claim in claims
            if not is_of_run(claim)
        ]
        named = used.union(former)
        return cls({one.claim: one for one in sorted(claimed, key=lambda one: one.claim) if one.claim in named}, nodes)


def compare(before: Picture, after: Picture) -> Iterator[Finding]:
    """What is not as it was."""
    for claim, was in sorted(before.volumes.items()):
        now = after.volumes.get(claim)
        name = f"PersistentVolumeClaim {claim}"
        if now is None:
            yield Finding(
                "CSI-U17", "warning", name, f"it no longer exists; its volume was {was.volume} ({was.source}, {was.backend}, {was.policy})",
                "if it was not deleted on purpose, find that volume before you change anything",
            )  # fmt: skip
        elif (now.claim_uid, now.volume_uid, now.source, now.backend) != (
            was.claim_uid,
            was.volume_uid,
            was.source,
            was.backend,
        ):
            yield Finding(
                "CSI-U17", "blocker", name,
                f"its volume changed: was {was.volume} ({was.source}, {was.backend}, {was.policy}), is "
                f"{now.volume or 'none'} ({now.source}, {now.backend})",
                "stop the workload and find the former volume, unless you converted it meanwhile (convert_volumes.yml)",
            )  # fmt: skip


def lines(before: Picture, after: Picture) -> list[str]:
    """As text: each node, then the volumes."""
    lines = []
    for name, was in sorted(before.nodes.items()):
        now = after.nodes.get(name, NodeWas("gone", ""))
        parts = (
            [f"kubelet {was.kubelet} -> {now.kubelet}"] if was.kubelet != now.kubelet else [f"kubelet {now.kubelet}"]
        )
        if was.wmco or now.wmco:
            parts.append(f"WMCO {was.wmco} -> {now.wmco}" if was.wmco != now.wmco else f"WMCO {now.wmco}")
        lines.append(f"{name}: {', '.join(parts)}")
    changed = {finding.object for finding in compare(before, after)}
    same = len(before.volumes) - len(changed)
    return [*lines, f"{same} of {len(before.volumes)} volumes of Windows workloads are unchanged"]
