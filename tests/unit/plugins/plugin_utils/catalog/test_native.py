# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Native volumes from in-tree ones: migration's translation, with what Windows needs."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.native import convert_volume
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.translation import TranslationError, find_plugin

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
URI = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d"


def volume(labels: dict[str, str] | None = None, affinity: Any = None, **source: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"claimRef": {"namespace": "shop", "name": "data"}, **source}
    if affinity:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": affinity}}
    return {"metadata": {"name": "pv-1", "labels": labels or {}}, "spec": spec}


def term(*expressions: tuple[str, str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in expressions]}


@pytest.mark.parametrize(
    ("source", "migrated", "handle", "attributes"),
    [
        ({"vsphereVolume": {"volumePath": "[ds] a/b.vmdk"}}, "[ds] a/b.vmdk", "", {}),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-0a"}}, "vol-0a", "vol-0a", {"partition": "0"}),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-0a", "partition": 1}}, "vol-0a", "vol-0a", {"partition": "1"}),
        (
            {"azureDisk": {"diskURI": URI, "kind": "managed", "cachingMode": "None", "fsType": "ext4"}},
            URI, URI, {"kind": "Managed", "cachingmode": "None", "fstype": "ntfs"},
        ),
        (
            {"azureFile": {"secretName": "azure-storage-account-acc-secret", "shareName": "s", "secretNamespace": "n"}},
            "#acc#s#pv-1#n", "#acc#s#pv-1#n", {"sharename": "s"},
        ),
        (
            {"azureFile": {"secretName": "mine", "shareName": "s"}},
            "#mine#s#pv-1#shop", "#mine#s#pv-1#shop", {"sharename": "s"},
        ),
    ],
)  # fmt: skip
def test_handles_and_attributes(source: dict[str, Any], migrated: str, handle: str, attributes: dict[str, str]) -> None:
    found = convert_volume(volume(**source))
    made = found.source(handle or "fcd")
    assert (found.migrated, found.handle, made.get("volumeAttributes", {})) == (migrated, handle, attributes)
    share = "azureFile" in source
    assert made.get("fsType") == (None if share else "ntfs")
    assert made["volumeHandle"] == (handle or "fcd")
    assert ("nodeStageSecretRef" in made) == share


def test_an_azure_file_handle_names_the_resource_group_of_its_annotation() -> None:
    found = volume(azureFile={"secretName": "mine", "shareName": "s"})
    found["metadata"]["annotations"] = {"kubernetes.io/azure-file-resource-group": "rg"}
    assert convert_volume(found).handle == "rg#mine#s#pv-1#shop"


def test_a_google_disk_needs_the_handle_that_only_the_user_knows() -> None:
    disk = volume({ZONE: "europe-west1-b"}, gcePersistentDisk={"pdName": "d"})
    assert convert_volume(disk, "h").migrated == "projects/UNSPECIFIED/zones/europe-west1-b/disks/d"
    with pytest.raises(TranslationError, match="the project of disk d") as raised:
        convert_volume(disk)
    assert "kubewin_convert_volume_handle" in raised.value.remedy


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"azureDisk": {"diskURI": "https://x/y.vhd", "kind": "Dedicated"}}, "kind Dedicated, expected Managed"),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/snap-1"}}, "volumeID aws://z/snap-1, expected vol-"),
        ({"azureFile": {"secretName": "", "shareName": "s"}}, "has no secret, expected one"),
        (
            {"azureFile": {"secretName": "s", "shareName": "s"}, "claimRef": None},
            "has neither secretNamespace nor a claim",
        ),
        ({"cinder": {"volumeID": "x"}}, "is cinder, expected one of awsElasticBlockStore"),
        ({"nfs": {}}, "is nfs, expected one of awsElasticBlockStore"),
        ({"vsphereVolume": {"volumePath": "x", "fsType": "xfs"}}, "fsType xfs, expected ntfs"),
    ],
)
def test_a_volume_that_the_driver_does_not_support_is_refused_with_a_remedy(source: dict[str, Any], words: str) -> None:
    with pytest.raises(TranslationError, match=words) as raised:
        convert_volume(volume(**source))
    assert raised.value.remedy


def test_ext4_on_windows_was_ntfs_all_the_time() -> None:
    found = convert_volume(volume(awsElasticBlockStore={"volumeID": "vol-0a", "fsType": "ext4"}))
    assert found.source("h")["fsType"] == "ntfs"
    assert found.notes == ("fsType ext4 becomes ntfs: the in-tree plugin on Windows always created NTFS",)


def test_read_only_stays_and_google_mounts_once() -> None:
    """Both were lost before: the driver would have written to such a disk, and refused to attach that one."""
    assert (
        convert_volume(volume(awsElasticBlockStore={"volumeID": "vol-0a", "readOnly": True})).source("h")["readOnly"]
        is True
    )
    google = volume({ZONE: "europe-west1-b"}, gcePersistentDisk={"pdName": "d"}, accessModes=["ReadWriteMany"])
    found = convert_volume(google, "h")
    assert found.spec["accessModes"] == ["ReadWriteOnce"]
    assert found.notes == ("accessModes ReadWriteMany become ReadWriteOnce, as in CSI migration",)


def test_a_handle_that_the_user_names_is_taken_as_it_is() -> None:
    """It was asked for in the error, and refused all the same."""
    assert convert_volume(
        volume(gcePersistentDisk={"pdName": "d"}), volume_handle="projects/p/zones/z/disks/d"
    ).handle.endswith("/z/disks/d")
    assert convert_volume(volume(vsphereVolume={"volumePath": "x"}), volume_handle="fcd").handle == "fcd"


@pytest.mark.parametrize(
    ("source", "key"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-0a"}}, "topology.ebs.csi.aws.com/zone"),
        ({"vsphereVolume": {"volumePath": "x"}}, "topology.csi.vmware.com/zone"),
    ],
)
@pytest.mark.parametrize("old_key", [ZONE, OLD_ZONE])
def test_zones_have_the_drivers_own_key(source: dict[str, Any], key: str, old_key: str) -> None:
    wanted = {"required": {"nodeSelectorTerms": [term((key, "z"))]}}
    assert convert_volume(volume(affinity=[term((old_key, "z"))], **source)).affinity == wanted
    assert convert_volume(volume({old_key: "z"}, **source)).affinity == wanted


def test_azure_keeps_the_affinity_that_a_volume_has() -> None:
    azure = {"diskURI": URI, "kind": "Managed"}
    assert convert_volume(volume({ZONE: "eastus-1"}, azureDisk=azure)).affinity is None
    terms = [term((ZONE, "0"))]
    assert convert_volume(volume(affinity=terms, azureDisk=azure)).affinity == {
        "required": {"nodeSelectorTerms": terms}
    }


def test_a_volume_without_a_place_has_none() -> None:
    assert convert_volume(volume(vsphereVolume={"volumePath": "x"})).affinity is None


def test_a_native_volume_has_no_plugin() -> None:
    assert find_plugin(volume(csi={"driver": "x"})) is None
