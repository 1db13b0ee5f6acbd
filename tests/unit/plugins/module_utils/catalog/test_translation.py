# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes in their drivers' words, as csi-translation-lib has them, with what Windows needs."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.translation import (
    Untranslatable,
    affinity,
    plugin_of,
    translate,
)

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
    ("source", "migrated", "native", "attributes"),
    [
        ({"vsphereVolume": {"volumePath": "[ds] a/b.vmdk"}}, "[ds] a/b.vmdk", "", {}),
        ({"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-0a"}}, "vol-0a", "vol-0a", {}),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-0a", "partition": 1}}, "vol-0a", "vol-0a", {"partition": "1"}),
        (
            {"azureDisk": {"diskURI": URI, "kind": "Managed", "cachingMode": "None"}},
            URI, URI, {"kind": "Managed", "cachingMode": "None", "fsType": "ntfs"},
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
def test_handles_and_attributes(source: dict[str, Any], migrated: str, native: str, attributes: dict[str, str]) -> None:
    found = translate(volume(**source))
    assert (found.migrated, found.handle, dict(found.attributes)) == (migrated, native, attributes)
    share = "azureFile" in source
    assert found.fs_type == ("" if share else "ntfs")
    made = found.source(native or "fcd")
    assert ("nodeStageSecretRef" in made) == share


def test_an_azure_file_handle_names_the_resource_group_of_its_annotation() -> None:
    found = volume(azureFile={"secretName": "mine", "shareName": "s"})
    found["metadata"]["annotations"] = {"kubernetes.io/azure-file-resource-group": "rg"}
    assert translate(found).handle == "rg#mine#s#pv-1#shop"


def test_a_google_disk_needs_its_zone_and_its_project() -> None:
    disk = {"gcePersistentDisk": {"pdName": "d"}}
    zonal = translate(volume({ZONE: "europe-west1-b"}, **disk), "p")
    assert zonal.migrated == "projects/UNSPECIFIED/zones/europe-west1-b/disks/d"
    assert zonal.handle == "projects/p/zones/europe-west1-b/disks/d"
    regional = translate(volume({OLD_ZONE: "europe-west1-b__europe-west1-c"}, **disk), "p")
    assert regional.handle == "projects/p/regions/europe-west1/disks/d"
    for found, project, words in ((volume(**disk), "p", "the zone"), (volume({ZONE: "z"}, **disk), "", "the project")):
        with pytest.raises(Untranslatable, match=words):
            translate(found, project)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"azureDisk": {"diskURI": "https://x/y.vhd", "kind": "Dedicated"}}, "kind Dedicated; expected Managed"),
        ({"azureDisk": {"diskURI": "https://x/y.vhd"}}, "kind Shared; expected Managed"),
        ({"awsElasticBlockStore": {"volumeID": "snap-1"}}, "volumeID snap-1; expected vol-"),
        ({"azureFile": {"secretName": "", "shareName": "s"}}, "names secret none"),
        ({"rbd": {}}, "is rbd; expected one of"),
        ({"nfs": {}}, "no in-tree volume that a CSI driver replaces"),
        ({"vsphereVolume": {"volumePath": "x", "fsType": "xfs"}}, "fsType xfs; expected ntfs"),
    ],
)
def test_what_a_driver_cannot_take_over(source: dict[str, Any], words: str) -> None:
    with pytest.raises(Untranslatable, match=words) as raised:
        translate(volume(**source))
    assert raised.value.remedy


def test_ext4_on_windows_was_ntfs_all_the_time() -> None:
    found = translate(volume(awsElasticBlockStore={"volumeID": "vol-0a", "fsType": "ext4"}))
    assert found.fs_type == "ntfs"
    assert found.notes == ("fsType ext4 becomes ntfs: the in-tree plugin on Windows made NTFS whatever it said",)


@pytest.mark.parametrize(
    ("source", "key", "given", "value"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-0a"}}, "topology.ebs.csi.aws.com/zone", "a", "a"),
        ({"azureDisk": {"diskURI": URI, "kind": "Managed"}}, "topology.disk.csi.azure.com/zone", "1", ""),
        (
            {"azureDisk": {"diskURI": URI, "kind": "Managed"}},
            "topology.disk.csi.azure.com/zone",
            "eastus-1",
            "eastus-1",
        ),
        ({"vsphereVolume": {"volumePath": "x"}}, "topology.csi.vmware.com/zone", "z", "z"),
    ],
)
@pytest.mark.parametrize("old_key", [ZONE, OLD_ZONE])
def test_places_are_told_with_the_drivers_own_key(
    source: dict[str, Any], key: str, given: str, value: str, old_key: str
) -> None:
    found = volume(affinity=[term((old_key, given))], **source)
    wanted = {"required": {"nodeSelectorTerms": [term((key, value))]}}
    assert affinity(found, translate(found)) == wanted
    by_label = volume({old_key: given}, **source)
    assert affinity(by_label, translate(by_label)) == wanted


def test_vsphere_keeps_the_region_and_others_leave_it_to_the_zone() -> None:
    terms = [term((ZONE, "z"), ("topology.kubernetes.io/region", "r"))]
    vsphere = volume(affinity=terms, vsphereVolume={"volumePath": "x"})
    made = affinity(vsphere, translate(vsphere))
    keys = ("topology.csi.vmware.com/zone", "z"), ("topology.csi.vmware.com/region", "r")
    assert made == {"required": {"nodeSelectorTerms": [term(*keys)]}}
    aws = volume(affinity=terms, awsElasticBlockStore={"volumeID": "vol-0a"})
    assert affinity(aws, translate(aws)) == {
        "required": {"nodeSelectorTerms": [term(("topology.ebs.csi.aws.com/zone", "z"))]}
    }


def test_a_region_alone_is_no_place_for_a_driver_of_zones() -> None:
    found = volume(affinity=[term(("topology.kubernetes.io/region", "r"))], awsElasticBlockStore={"volumeID": "vol-0a"})
    with pytest.raises(Untranslatable, match="has no key for"):
        affinity(found, translate(found))


def test_a_volume_without_a_place_has_none() -> None:
    found = volume(vsphereVolume={"volumePath": "x"})
    assert affinity(found, translate(found)) is None


def test_a_native_volume_has_no_plugin() -> None:
    assert plugin_of(volume(csi={"driver": "x"})) is None
