# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The tables of what drivers take on Windows are whole, and what they do not mention is unknown."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import capability
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.capability import Cell, RequestedVolume, check_support
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse

# Features that every table has to answer.
FEATURES = (
    *capability.ACCESS_MODES, capability.BLOCK, capability.READ_ONLY, capability.INLINE, capability.EXPANSION,
    "file system", "file system ntfs", "file system zfs",
)  # fmt: skip

drivers = pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS)


@drivers
def test_every_cell_has_its_source_and_every_refusal_its_reason(driver: Driver) -> None:
    for feature, cells in driver.capabilities.items():
        for cell in cells:
            assert cell.source, feature
            assert cell.allowed or cell.why, feature
            for release in filter(None, (cell.first, cell.last)):
                parse(release)


@drivers
def test_every_feature_is_answered_for_every_known_release_and_mode(driver: Driver) -> None:
    for release in driver.releases:
        version = parse(release.version)
        for rule in driver.list_mode_rules(version):
            for feature in FEATURES:
                assert capability.find_cell(driver.capabilities, feature, version, rule.mode), (
                    feature,
                    release.version,
                )


@drivers
def test_a_class_of_the_catalog_makes_volumes_that_are_taken(driver: Driver) -> None:
    for fs_type in driver.fstypes:
        # The node plugin of vSphere takes ext4 for NTFS, which is why a class may name it.
        assert check_support(driver.capabilities, RequestedVolume(("ReadWriteOnce",), fs_type=fs_type)).word == "yes"


def test_a_feature_without_a_cell_is_unknown() -> None:
    assert check_support({}, RequestedVolume()).word == "unknown"
    assert check_support({"file system": (Cell(True, "s"),)}, RequestedVolume()).word == "yes"
    assert check_support({"file system": (Cell(True, "s"),)}, RequestedVolume(("ReadWriteSome",))).word == "unknown"
    assert check_support({"file system": (Cell(None, "s", "does not say"),)}, RequestedVolume()).why == "does not say"


def test_not_ready_outranks_unknown() -> None:
    table = {"file system": (Cell(None, "s", "may"),), "ReadWriteMany": (Cell(False, "t", "does not"),)}
    assert check_support(table, RequestedVolume(("ReadWriteMany",))) == capability.VolumeSupport(
        "no", "ReadWriteMany", "does not", "t"
    )


@pytest.mark.parametrize(
    ("release", "mode", "word"),
    [
        ("1.16.0", "csi_proxy", "no"),
        ("1.17.0", "csi_proxy", "yes"),
        ("1.17.0", "host_process", "yes"),
        ("", "", "unknown"),
    ],
)
def test_a_release_decides_whether_smb_has_inline_volumes(release: str, mode: str, word: str) -> None:
    version = parse(release) if release else None
    assert check_support(DRIVERS["smb"].capabilities, RequestedVolume(inline=True), version, mode).word == word


def test_a_mode_decides_only_where_it_is_known() -> None:
    table = {"file system": (Cell(True, "s", mode="host_process"), Cell(False, "s", "not so", mode="csi_proxy"))}
    version = parse("1.0.0")
    assert check_support(table, RequestedVolume(), version, "host_process").word == "yes"
    assert check_support(table, RequestedVolume(), version, "csi_proxy").word == "no"
    assert check_support(table, RequestedVolume(), version).word == "unknown"


@pytest.mark.parametrize("server", ["smb.shop.svc.cluster.local", "smb.shop.svc", "SMB.shop.SVC.corp.example"])
def test_names_of_services_are_recognised(server: str) -> None:
    assert check_support(DRIVERS["smb"].capabilities, RequestedVolume(server=server)).feature == capability.CLUSTER_NAME


@pytest.mark.parametrize(
    "server", ["", "10.0.0.7", "files.example.com", "svc.example.com", "smb.svc-files.example.com"]
)
def test_other_names_are_taken(server: str) -> None:
    assert check_support(DRIVERS["smb"].capabilities, RequestedVolume(server=server)).word == "yes"
