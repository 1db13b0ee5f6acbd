# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""OpenShift's lines and the in-tree plugins, and that they agree with the drivers."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree, openshift
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse


@pytest.mark.parametrize(
    ("version", "driver", "expected"),
    [
        ("4.20.3", "vsphere", ["3.5.0"]),
        ("4.19.0-rc.2", "vsphere", ["3.3.1"]),
        ("4.21.1", "aws_ebs", ["1.47.0", "1.48.0"]),
        ("4.12.0", "aws_ebs", ["1.11.3"]),
        ("4.13.40", "azure_file", ["1.25.0"]),
        ("4.12.0", "smb", []),
        ("5.0.1", "vsphere", ["3.7.1"]),
        ("5.0.1", "smb", []),
        ("4.11.9", "vsphere", []),
        ("4.20.3", "other", []),
    ],
)
def test_a_line_names_a_release_or_nothing(version: str, driver: str, expected: list[str]) -> None:
    assert [str(one) for one in openshift.list_shipped_releases(version, driver)] == expected


def test_releases_never_decrease_from_line_to_line() -> None:
    for driver in openshift.DRIVERS:
        assert driver in DRIVERS
        rows = [openshift.list_shipped_releases(f"{line}.0", driver) for line in openshift.list_lines()]
        reported = [row[0] for row in rows if row]
        assert reported, f"no line has a release of {driver}"
        assert reported == sorted(reported)
    assert openshift.parse_line("4.20.3") == "4.20"


def test_a_text_that_is_no_version_is_named() -> None:
    with pytest.raises(ValueError, match="is not a release number"):
        openshift.list_shipped_releases("stable", "vsphere")


def test_drivers_and_in_tree_plugins_agree() -> None:
    for driver in DRIVERS.values():
        replaced = [known.plugin for known in in_tree.PLUGINS if known.driver == driver.name]
        assert replaced == ([driver.in_tree] if driver.in_tree else [])


def test_the_steps_of_a_migration_follow_each_other() -> None:
    for plugin in in_tree.PLUGINS:
        steps = [plugin.beta_on, plugin.ga, plugin.removed]
        reported = [parse(step) for step in steps if step]
        assert reported == sorted(reported), plugin.plugin
    assert in_tree.find_by_name("kubernetes.io/nothing") is None
