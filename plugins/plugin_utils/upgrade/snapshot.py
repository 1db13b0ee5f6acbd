# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The volumes of Windows workloads before and after an upgrade, and whether each is the same. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..base.findings import Finding
from ..catalog.in_tree import PLUGINS
from ..kube.labels import is_of_run
from ..kube.pod import list_claims


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """A claim and its volume. source: CSI driver or in-tree plugin. backend: the disk or share. policy: the reclaim policy."""

    claim: str
    claim_uid: str
    volume: str
    volume_uid: str
    source: str
    backend: str
    policy: str

    @classmethod
    def from_objects(cls, claim: Mapping[str, Any], volume: Mapping[str, Any] | None) -> ClaimedVolume:
        metadata, spec = claim["metadata"], (volume or {}).get("spec") or {}
        source, backend = _read_source(spec)
        return cls(
            claim=f"{metadata['namespace']}/{metadata['name']}",
            claim_uid=metadata["uid"],
            volume=str((claim.get("spec") or {}).get("volumeName") or ""),
            volume_uid=(volume or {"metadata": {"uid": ""}})["metadata"]["uid"],
            source=source,
            backend=backend,
            policy=str(spec.get("persistentVolumeReclaimPolicy") or ""),
        )


def _read_source(spec: Mapping[str, Any]) -> tuple[str, str]:
    if "csi" in spec:
        return str(spec["csi"].get("driver")), str(spec["csi"].get("volumeHandle"))
    for plugin in PLUGINS:
        if plugin.field in spec:
            source = json.dumps(
                {key: value for key, value in spec[plugin.field].items() if key != "fsType"}, sort_keys=True
            )
            return plugin.plugin, source
    return "", ""


def read_volumes(
    pods: Iterable[Mapping[str, Any]], claims: Iterable[Mapping[str, Any]], volumes: Iterable[Mapping[str, Any]],
    former: Iterable[str] = (),
) -> dict[str, ClaimedVolume]:  # fmt: skip
    """Read the volumes of these pods' claims and of former claims, by claim. Omits what a run of this collection created for itself."""
    used = {
        f"{pod['metadata']['namespace']}/{claim}" for pod in pods if not is_of_run(pod) for claim in list_claims(pod)
    }
    by_name = {volume["metadata"]["name"]: volume for volume in volumes}
    claimed = [
        ClaimedVolume.from_objects(claim, by_name.get(str((claim.get("spec") or {}).get("volumeName") or "")))
        for claim in claims
        if not is_of_run(claim)
    ]
    named = used.union(former)
    return {
        volume.claim: volume for volume in sorted(claimed, key=lambda volume: volume.claim) if volume.claim in named
    }


def compare_volumes(before: Mapping[str, ClaimedVolume], after: Mapping[str, ClaimedVolume]) -> Iterator[Finding]:
    """Return a finding for each volume that changed."""
    for claim, was in sorted(before.items()):
        current = after.get(claim)
        name = f"PersistentVolumeClaim {claim}"
        if current is None:
            yield Finding(
                "CSI-U17", "warning", name, f"it no longer exists; its volume was {was.volume} ({was.source}, {was.backend}, {was.policy})",
                "if it was not deleted on purpose, find that volume before you change anything",
            )  # fmt: skip
        elif (current.claim_uid, current.volume_uid, current.source, current.backend) != (
            was.claim_uid,
            was.volume_uid,
            was.source,
            was.backend,
        ):
            yield Finding(
                "CSI-U17", "blocker", name,
                f"its volume changed: was {was.volume} ({was.source}, {was.backend}, {was.policy}), is "
                f"{current.volume or 'none'} ({current.source}, {current.backend})",
                "stop the workload and find the former volume, unless you converted it meanwhile (convert_volumes.yml)",
            )  # fmt: skip
