# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every catalog entry must hold together, so that a new one is right when these pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import csi_proxy
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import IMAGE_ROLES, Driver, Mode
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse, parse_image_tag

ROOT = Path(__file__).parents[5]
drivers = pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS.keys())


def test_the_registry_names_every_file_of_the_folder() -> None:
    folder = ROOT / "plugins" / "plugin_utils" / "catalog" / "drivers"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(DRIVERS)


@drivers
def test_every_release_has_a_mode_and_its_images(driver: Driver) -> None:
    for release in driver.releases:
        version = parse(release.version)
        assert driver.list_mode_rules(version), f"{release.version} has no mode"
        for rule in driver.list_mode_rules(version):
            images = release.map_images_of(rule.mode)
            assert set(images) <= set(IMAGE_ROLES)
            assert parse_image_tag(images["driver"]) == version
            assert all(parse_image_tag(image) is not None for image in images.values())
            assert images["driver"].endswith("-windows-hp") == rule.any_windows


@drivers
def test_the_default_is_known_and_deployable(driver: Driver) -> None:
    version = parse(driver.default_version)
    assert driver.find_release(version) is not None
    assert driver.list_mode_rules(version)


@drivers
def test_guides_recommend_only_listed_releases(driver: Driver) -> None:
    pages = [*(ROOT / "docs" / "docsite" / "rst").glob("*.rst"), *(ROOT / "roles").glob("*/README.md")]
    releases = re.findall(
        rf'{driver.key}_csi_version: "?([0-9.]+)', "\n".join(page.read_text("utf-8") for page in pages)
    )
    assert {release for release in releases if driver.find_release(parse(release)) is None} == set()


def test_every_mode_has_its_template() -> None:
    folder = ROOT / "roles" / "csi_driver" / "templates" / "drivers"
    named = {rule.template for driver in DRIVERS.values() for rule in driver.modes}
    assert {path.name for path in folder.glob("*.j2")} == named


@drivers
def test_modes_are_named_as_their_templates_and_proxy_ones_have_pipes(driver: Driver) -> None:
    for rule in driver.modes:
        assert rule.mode in get_args(Mode)
        assert rule.template in (f"{driver.key}.yaml.j2", f"{driver.key}_{rule.mode}.yaml.j2")
        assert (rule.mode == "csi_proxy") == bool(rule.pipes)
        assert (rule.mode == "host_process") == (rule.min_containerd == "1.6")


@drivers
def test_no_two_drivers_share_what_must_be_their_own(driver: Driver) -> None:
    others = [one for one in DRIVERS.values() if one is not driver]
    for attribute in ("key", "name", "daemonset", "service_account", "app_label"):
        assert getattr(driver, attribute) not in [getattr(one, attribute) for one in others]


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("registry.k8s.io/csi-vsphere/driver:v3.4.0", "3.4.0"),
        ("mirror:5000/a/b/driver:3.4.0", "3.4.0"),
        ("x/smbplugin:v1.20.3-windows-hp", "1.20.3"),
        ("x/aws:v2.17.0-eksbuild.5", "2.17.0"),
        ("x/driver:v3.7.2-build20260101", "3.7.2"),
        ("x/driver:v3.4.1-rc.1", "3.4.1-rc.1"),
        ("x/driver:v3.4.0@sha256:aa", "3.4.0"),
        ("x/driver@sha256:aa", None),
        ("registry:5000/driver", None),
        ("x/driver:latest", None),
    ],
)
def test_a_tag_names_the_release(image: str, release: str | None) -> None:
    found = parse_image_tag(image)
    assert (str(found) if found else None) == release


def test_pre_releases_come_before_their_release() -> None:
    order = ["3.3.9", "3.4.0-rc.1", "3.4.0", "3.4.1-rc.1"]
    assert sorted(order, key=parse) == order


@pytest.mark.parametrize("text", ["", "3", "three.four", "v", "3.x"])
def test_a_text_that_is_no_release_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a release number"):
        parse(text)


@drivers
def test_every_pipe_is_served_by_the_lowest_csi_proxy_that_is_allowed(driver: Driver) -> None:
    for rule in driver.modes:
        assert set(rule.all_pipes) <= set(csi_proxy.PIPES)


def test_no_two_drivers_listen_on_the_same_port_but_vsphere_and_ebs() -> None:
    taken: dict[int, set[str]] = {}
    for driver in DRIVERS.values():
        for rule in driver.modes:
            for port in rule.ports.values():
                taken.setdefault(port, set()).add(driver.key)
    # Both have it from livenessprobe; no node is on vSphere and on AWS.
    assert {port: keys for port, keys in taken.items() if len(keys) > 1} == {9808: {"vsphere", "aws_ebs"}}


@drivers
def test_the_storage_class_names_a_file_system_that_works(driver: Driver) -> None:
    named = [value for key, value in driver.storage_class.parameters.items() if key.lower().endswith("fstype")]
    assert all(value in driver.fstypes for value in named)
    assert bool(driver.fstypes) == bool(named)


@drivers
def test_windows_builds_are_known_from_a_release_on(driver: Driver) -> None:
    assert set(driver.windows_since) <= set(driver.windows_builds)
    assert driver.windows_builds[0] not in driver.windows_since, "the oldest build is there from the beginning"


@pytest.mark.parametrize("key", ["vsphere", "aws_ebs", "azure_disk", "azure_file", "gce_pd", "smb"])
def test_the_catalog_has_three_releases_of_every_mode(key: str) -> None:
    driver = DRIVERS[key]
    for rule in driver.modes:
        assert len([known for known in driver.releases if rule.supports(parse(known.version))]) >= 3
