# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A proof uses a class that a Windows pod can use, or reports what is wrong with the existing ones."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import choose_class, find_misfit
from unit.plugins.plugin_utils.verify.clusters import storage_class

VSPHERE, EBS, SMB = (DRIVERS[key] for key in ("vsphere", "aws_ebs", "smb"))


@pytest.mark.parametrize(
    ("driver", "parameters", "why"),
    [
        ("vsphere", {}, ""),
        ("vsphere", {"fstype": "NTFS"}, ""),
        ("vsphere", {"fstype": "ext4"}, ""),
        ("vsphere", {"fstype": "xfs"}, "its file system is xfs, expected ntfs"),
        ("aws_ebs", {"fstype": "ntfs"}, ""),
        ("aws_ebs", {}, "it has no file system, and the driver's default is ext4, expected ntfs"),
        ("gce_pd", {"fstype": "ext4"}, "its file system is ext4, expected ntfs"),
        ("azure_disk", {"fsType": "ntfs"}, ""),
        ("azure_disk", {"fsType": "ext4"}, "its file system is ext4"),
        ("azure_file", {}, ""),
        ("smb", {"source": "//server/share"}, ""),
        ("smb", {}, "parameter source is missing"),
    ],
)
def test_an_unfit_storage_class_has_a_reason(driver: str, parameters: dict[str, str], why: str) -> None:
    found = find_misfit(DRIVERS[driver], storage_class("one", DRIVERS[driver].name, parameters))
    assert found.startswith(why) if why else not found


def chosen(*classes: dict[str, Any]) -> str:
    return choose_class(VSPHERE, "", classes).name


def test_ours_comes_first_then_the_default_then_the_first_by_name() -> None:
    ours = storage_class(VSPHERE.storage_class.name, VSPHERE.name)
    default, other = storage_class("z", VSPHERE.name, default=True), storage_class("b", VSPHERE.name)
    assert chosen(other, default, ours) == VSPHERE.storage_class.name
    assert chosen(other, default) == "z"
    assert chosen(storage_class("c", VSPHERE.name), other) == "b"


def test_a_class_that_does_not_fit_is_passed_over() -> None:
    unfitting = storage_class(EBS.storage_class.name, EBS.name)
    assert choose_class(EBS, "", [unfitting, storage_class("windows", EBS.name, {"fstype": "ntfs"})]).name == "windows"


def test_none_that_fits_is_refused_with_what_is_wrong_with_each_and_what_to_make() -> None:
    refusal = choose_class(EBS, "", [storage_class("gp3", EBS.name), storage_class("x", VSPHERE.name)]).refusal
    assert "gp3: it has no file system" in refusal
    assert "x:" not in refusal
    assert "csi.storage.k8s.io/fstype: ntfs" in refusal
    assert "{aws_ebs: <name>}" in refusal
    assert "there is none" in choose_class(SMB, "", []).refusal
    assert "source: <yours>" in choose_class(SMB, "", []).refusal


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("none", "StorageClass none does not fit: it does not exist. Suitable: fits."),
        ("other", f"StorageClass other does not fit: its provisioner is {VSPHERE.name}, expected {EBS.name}."),
        ("linux", "StorageClass linux does not fit: its file system is ext4"),
    ],
)
def test_the_requested_class_is_used_or_refused(requested: str, expected: str) -> None:
    classes = [
        storage_class("fits", EBS.name, {"fstype": "ntfs"}),
        storage_class("linux", EBS.name, {"fstype": "ext4"}),
        storage_class("other", VSPHERE.name),
    ]
    assert choose_class(EBS, "fits", classes).name == "fits"
    assert expected in choose_class(EBS, requested, classes).refusal


def test_it_is_known_whether_a_class_keeps_its_volumes() -> None:
    kept = {**storage_class("kept", VSPHERE.name), "reclaimPolicy": "Retain"}
    assert choose_class(VSPHERE, "", [kept]).keeps
    assert not choose_class(VSPHERE, "", [storage_class("gone", VSPHERE.name)]).keeps
