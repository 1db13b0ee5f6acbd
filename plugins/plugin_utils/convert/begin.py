# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first record of a conversion. Pure."""

from __future__ import annotations

from typing import Any

from . import objects
from .eligibility import ConversionFacts, ConversionRequest, Eligibility
from .record import ConversionRecord


def create_record(facts: ConversionFacts, entry: Eligibility, desired: ConversionRequest, key: str) -> ConversionRecord:
    """Create the record of an eligible volume. key: never given to another record."""
    claim, volume, native = facts.claim, facts.volume, entry.as_csi
    if claim is None or volume is None or native is None:
        raise ValueError("a volume that is refused has no record")
    storage_class = str(claim["spec"].get("storageClassName") or "")
    handles = [handle for handle in dict.fromkeys((native.migrated, entry.handle)) if handle]
    kept: dict[str, Any] = {
        "old": objects.define_in_tree_volume(volume),
        "new": objects.define_native_volume(volume, native, entry.handle, storage_class),
        "handles": handles,
        "on_node": [
            *(objects.name_on_node(native.driver, handle) for handle in handles),
            *((native.on_node,) if native.on_node else ()),
        ],
        "volume_path": native.volume_path,
        "observed": {
            "volume": objects.strip_managed_fields(volume),
            "claim": objects.strip_managed_fields(claim),
            "storage_class": objects.strip_managed_fields(facts.storage_class) if facts.storage_class else None,
            "workloads": [
                objects.strip_managed_fields(workload)
                for workload in facts.sets
                if workload["metadata"]["uid"] in {workload.uid for workload in entry.workloads}
            ],
        },
    }
    return ConversionRecord(
        run=objects.name_run(claim["metadata"]["uid"]),
        key=key,
        namespace=desired.namespace,
        claim=desired.claim,
        claim_uid=claim["metadata"]["uid"],
        volume=volume["metadata"]["name"],
        volume_uid=volume["metadata"]["uid"],
        driver=native.driver,
        old_handle=native.migrated,
        new_handle=entry.handle,
        policy=str(volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"),
        attaches=facts.attaches,
        forgets=bool(native.volume_path),
        workloads=entry.workloads,
        objects=kept,
    )
