# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A record is all that a later run has: it round-trips, and an invalid one is refused."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import explain, objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.begin import create_record
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import ConversionRequest, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import (
    STEPS,
    ConversionRecord,
    from_json,
    select_newest,
)
from unit.plugins.plugin_utils.base.by_hand import spoiled_by_hand
from unit.plugins.plugin_utils.convert.world import PATH, facts

REQUEST = ConversionRequest("shop", "data-db-0")


def record() -> ConversionRecord:
    found = facts()
    return create_record(found, evaluate(found, REQUEST), REQUEST, "k1")


def test_it_is_read_as_it_was_written() -> None:
    written = record().advance().prepare_save("2026-11-21T10:00:00Z")
    read = from_json(written.to_json())
    assert read == written
    assert (read.sequence, read.times, read.objects) == (
        1,
        {"forward:rehearse": "2026-11-21T10:00:00Z"},
        written.objects,
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ({"schema": 3}, "its schema version is 3"),
        ({"step": "sideways"}, r"Invalid enum value 'sideways' - at `\$.step`"),
        ({"run": ""}, "run is ''"),
        ({"key": ""}, "key is ''"),
        ({"volume": ""}, "volume is ''"),
        ({"workloads": [{"kind": "StatefulSet"}]}, r"missing required field `namespace` - at `\$.workloads\[0\]`"),
        ({"generation": "2"}, r"Expected `int`, got `str` - at `\$.generation`"),
        ({"objects": {}}, "objects.old is not an object"),
    ],
)
def test_a_text_that_is_not_a_record_is_refused(spoil: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        from_json(json.dumps({**json.loads(record().to_json()), **spoil}))


def test_an_edited_record_is_refused_or_can_continue() -> None:
    """Never a traceback: every value, one after the other, by what it might have become."""
    whole = json.loads(record().advance().prepare_save("2026-11-21T10:00:00Z").to_json())
    number = 0
    for spoiled in spoiled_by_hand({name: value for name, value in whole.items() if name not in ("objects", "schema")}):
        text = json.dumps({**spoiled, "schema": whole["schema"], "objects": whole["objects"]})
        with contextlib.suppress(FormatError):
            read = from_json(text).take_over().roll_back("x")
            explain.describe_steps(read, final=True)
            explain.describe_state(read)
            assert from_json(read.to_json()) == read
        number += 1
    assert number > 100


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"x"'])
def test_a_truncated_record_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        from_json(text)


def test_the_copy_that_was_written_last_counts() -> None:
    first = record().prepare_save("a")
    second = first.advance().prepare_save("b")
    assert select_newest([first, second]) is second


def test_a_run_that_was_taken_over_counts_less_and_one_that_is_over_not_at_all() -> None:
    first = record().prepare_save("a").advance().prepare_save("b")
    later = record().prepare_save("a").take_over().prepare_save("c")
    assert select_newest([first, later]) is later
    again = replace(record(), key="k2", sequence=5)
    assert select_newest([later, again]) is again


def test_the_new_volume_is_the_old_one_with_the_drivers_source() -> None:
    made = objects.define_volume(record(), "new", "claim-uid")
    assert made["metadata"] == {
        "name": "pv-1",
        "labels": {"tier": "data"},
        "annotations": {"team": "shop", "kubewin.io/convert": f"{record().run}/new"},
    }
    assert made["spec"] == {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "mountOptions": ["noatime"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "thin",
        "csi": {
            "driver": "csi.vsphere.vmware.com",
            "volumeHandle": "fcd-1",
            "fsType": "ntfs",
            "volumeAttributes": {"storagepolicyname": "gold"},
        },
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "shop",
            "name": "data-db-0",
            "uid": "claim-uid",
        },
    }


def test_the_old_volume_is_restored_except_its_policy() -> None:
    made = objects.define_volume(record(), "old", "claim-uid")
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["vsphereVolume"] == {"volumePath": PATH, "storagePolicyName": "gold"}
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "kubernetes.io/vsphere-volume"
    assert not {"uid", "resourceVersion", "finalizers", "managedFields"} & set(made["metadata"])
    assert "status" not in made


def test_scratch_names_are_unique() -> None:
    assert objects.define_scratch_volume(record(), "new")["metadata"]["name"] == f"kubewin-convert-{record().run}-new"


def test_every_name_by_which_a_node_may_have_the_disk_is_known() -> None:
    assert record().objects["on_node"] == [
        f"kubernetes.io/csi/csi.vsphere.vmware.com^{PATH}",
        "kubernetes.io/csi/csi.vsphere.vmware.com^fcd-1",
        f"kubernetes.io/vsphere-volume/{PATH}",
    ]


def test_the_steps_are_listed_in_order() -> None:
    reported = [entry["step"] for entry in explain.describe_steps(record(), final=True)]
    assert reported == [step for step in STEPS if step != "done"]
    back = {
        entry["step"]: entry["description"]
        for entry in explain.describe_steps(record().advance().roll_back("asked"), final=False)
    }
    assert "baseline" not in back
    assert back["create_volume"].startswith("create PersistentVolume pv-1 as before (Retain)")


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_until_it_is_final_the_plan_has_the_commands_to_roll_back_and_to_finish(policy: str) -> None:
    found = replace(record(), policy=policy)
    *_before, last = explain.describe_steps(found, final=False)
    assert last["step"] == "finish"
    assert (
        "so that state rolled_back (kubewin_convert_roll_back=true) can roll the conversion back, until you run it again with final"
        in last["description"]
    )
    assert ("restore the policy Delete" in last["description"]) == (policy == "Delete")
    reported = {entry["step"]: entry["description"] for entry in explain.describe_steps(found, final=True)}
    assert "cannot be rolled back" in reported["finish"]
    assert "unlock" in reported


def test_without_a_lock_there_is_nothing_to_roll_back() -> None:
    assert record().roll_back("asked").step == "unlock"
    assert record().advance().roll_back("asked").step == "quiesce"
