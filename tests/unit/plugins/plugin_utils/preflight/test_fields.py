# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of fields says the truth about who reads what. That it has every field of the API, a test with a real API server shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import facts
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.fields import TABLES, FieldAnswer, FieldTable
from situations.base import VSPHERE
from situations.cluster import SHOP, csi, healthy, volume, workload
from situations.cluster import pod_spec as spec_of
from situations.world import World

PREFLIGHT = Path(facts.__file__ or "").parents[1]


def list_readers(table: FieldTable) -> Iterator[tuple[str, str]]:
    """(field, file) of each that is read."""
    for name, known in table.items():
        if not isinstance(known, FieldAnswer):
            yield from list_readers(known if isinstance(known, Mapping) else known[0])
        elif known.answer in ("read", "present"):
            yield from ((name, reader) for reader in known.text.split())


@pytest.mark.parametrize("kind", TABLES)
def test_each_field_is_named_in_the_files_that_read_it(kind: str) -> None:
    for name, reader in set(list_readers(TABLES[kind])):
        text = (PREFLIGHT / reader).read_text(encoding="utf-8")
        # Names of volume sources are listed once, in the catalog.
        text += (PREFLIGHT / "../catalog/in_tree.py").read_text(encoding="utf-8") if "sources" in reader else ""
        assert re.search(rf"(?<![\w.]){re.escape(name)}\b", text), f"{kind}: {name} in {reader}"


def plant_mount_options(world: World) -> None:
    world.get("PersistentVolume", "pv-x")["spec"]["mountOptions"] = ["vers=3.0"]


def plant_secret_of_attacher(world: World) -> None:
    world.get("PersistentVolume", "pv-x")["spec"]["csi"]["controllerPublishSecretRef"] = {"name": "a", "namespace": "b"}


def plant_pending_growth(world: World) -> None:
    world.get("PersistentVolumeClaim", "x", SHOP)["status"]["conditions"] = [
        {"type": "FileSystemResizePending", "status": "True"}
    ]


def plant_growth_that_failed(world: World) -> None:
    world.get("PersistentVolumeClaim", "x", SHOP)["status"]["allocatedResourceStatuses"] = {
        "storage": "NodeResizeInfeasible"
    }


def plant_token_in_secrets(world: World) -> None:
    world.get("CSIDriver", VSPHERE.name)["spec"]["serviceAccountTokenInSecrets"] = True


@pytest.mark.parametrize(
    ("plant", "kind", "message"),
    [
        (plant_mount_options, "fields", "1 mount option (mountOptions of PersistentVolume pv-x)"),
        (plant_secret_of_attacher, "references", "controllerPublishSecretRef of PersistentVolume pv-x"),
        (plant_pending_growth, "fields", "1 file system to grow (status.conditions of PersistentVolume pv-x)"),
        (plant_growth_that_failed, "fields", "1 file system to grow (status.conditions of PersistentVolume pv-x)"),
        (plant_token_in_secrets, "fields", f"1 field (serviceAccountTokenInSecrets of CSIDriver {VSPHERE.name})"),
    ],
)
def test_a_field_of_a_volume_that_no_rule_reads_is_an_assumption(plant: Any, kind: str, message: str) -> None:
    world = healthy().copy()
    volume(world, "pv-x", csi(VSPHERE.name, "x"), "x")
    workload(world, "Deployment", "x", spec_of("x"), replicas=1, strategy={"type": "Recreate"})
    before = {one.kind: one.message for one in evaluate(world.snapshot()).assumptions}
    assert message not in before.get(kind, "")
    plant(world)
    assert message in {one.kind: one.message for one in evaluate(world.snapshot()).assumptions}[kind]
