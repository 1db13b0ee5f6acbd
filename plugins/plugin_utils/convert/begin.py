# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first record of a conversion, and which conversions may run at the same time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import Eligibility, Facts, Request
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record, Volume


def begin(facts: Facts, entry: Eligibility, desired: Request, cluster: str, key: str) -> Record:
    """The record of a volume that may be converted. cluster: its uid. key: never given to another record."""
    claim, volume, found = facts.claim, facts.volume, entry.as_csi
    if claim is None or volume is None or found is None:
        raise ValueError("a volume that is refused has no record")
    name = volume["metadata"]["name"]
    new_name = name if desired.variant == "in_place" else (desired.volume_name or f"{name}-csi")
    storage_class = str(claim["spec"].get("storageClassName") or "")
    new_class = desired.storage_class or storage_class
    handles = [handle for handle in dict.fromkeys((found.migrated, entry.handle)) if handle]
    kept: dict[str, Any] = {
        "old": objects.old_volume(volume),
        "new": objects.new_volume(volume, found, entry.handle, new_name, new_class),
        "handles": handles,
        "on_node": [
            *(objects.on_node(found.driver, handle) for handle in handles),
            *((found.on_node,) if found.on_node else ()),
        ],
        "volume_path": found.volume_path,
        "observed": {
            "volume": objects.without_noise(volume),
            "claim": objects.without_noise(claim),
            "storage_class": objects.without_noise(facts.storage_class) if facts.storage_class else None,
            "workloads": [
                objects.without_noise(one)
                for one in facts.sets
                if one["metadata"]["uid"] in {workload.uid for workload in entry.workloads}
            ],
        },
    }
    if desired.variant == "re_claim":
        kept["old_claim"] = objects.claim(claim, name, storage_class)
        kept["new_claim"] = objects.claim(claim, new_name, new_class)
    return Record(
        run=objects.run_name(claim["metadata"]["uid"]),
        key=key,
        cluster=cluster,
        variant=desired.variant,
        namespace=desired.namespace,
        claim=desired.claim,
        claim_uid=claim["metadata"]["uid"],
        old=Volume(name, volume["metadata"]["uid"], found.driver, found.migrated),
        new=Volume(new_name, "", found.driver, entry.handle),
        policy=str(volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"),
        attaches=facts.attaches,
        forgets=bool(found.volume_path),
        workloads=entry.workloads,
        objects=kept,
    )


def groups(records: Sequence[Record]) -> list[list[Record]]:
    """Those that share a workload after one another, what was begun before what was not, all others beside one another."""
    made: list[list[Record]] = []
    for record in sorted(records, key=lambda one: not one.sequence):
        uids = {workload.uid for workload in record.workloads}
        together = [group for group in made if uids & {one.uid for other in group for one in other.workloads}]
        made = [group for group in made if group not in together]
        made.append([*(other for group in together for other in group), record])
    return made
