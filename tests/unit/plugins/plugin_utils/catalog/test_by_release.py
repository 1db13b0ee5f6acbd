# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What upstream installs differs from release to release: CSIDriver objects and feature states; and lines of the operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import DriverPlan, plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.prerequisites import check_issues, check_objects
from unit.plugins.plugin_utils.drivers.worlds import HOME, snapshot

AUDIENCE = "api://AzureADTokenExchange"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("1.29.5", {}),
        ("1.30.5", {}),
        ("1.31.0", {"tokenRequests": [{"audience": AUDIENCE}]}),
        ("1.34.1", {"tokenRequests": [{"audience": AUDIENCE}]}),
        ("1.35.0", {"tokenRequests": [{"audience": AUDIENCE, "expirationSeconds": 3600}], "requiresRepublish": True}),
    ],
)
def test_azure_files_csi_driver_is_that_of_its_release(release: str, expected: dict[str, Any]) -> None:
    spec = DRIVERS["azure_file"].find_csi_driver_spec(parse(release))
    assert {key: spec[key] for key in ("tokenRequests", "requiresRepublish") if key in spec} == expected
    assert spec["fsGroupPolicy"] == "ReadWriteOnceWithFSType"


def test_smb_has_inline_volumes_from_1_17_on() -> None:
    assert "volumeLifecycleModes" not in DRIVERS["smb"].find_csi_driver_spec(parse("1.16.0"))
    assert "Ephemeral" in DRIVERS["smb"].find_csi_driver_spec(parse("1.17.0"))["volumeLifecycleModes"]


@pytest.mark.parametrize("release", ["1.29.5", "1.31.0", "1.34.1", "1.35.7"])
def test_upstreams_installation_makes_no_finding(release: str) -> None:
    driver, version = DRIVERS["azure_file"], parse(release)
    # The API server fills in what upstream leaves out.
    spec = {"requiresRepublish": False, **driver.find_csi_driver_spec(version)}
    observed = replace(snapshot(), csi_driver={"spec": spec})
    assert [one.id for one in check_objects(driver, DriverRequest(), observed, version, HOME)] == []


def test_feature_states_are_created_for_releases_that_require_none() -> None:
    def plan(release: str) -> DriverPlan:
        desired = DriverRequest(version=release, create_cluster_objects=True, allow_version_skew=True)
        return plan_driver(DRIVERS["vsphere"], desired, snapshot(csi_driver=None, feature_states={HOME: None}))

    assert len(plan("3.2.0").settings["feature_states_data"]) == 2
    (refused,) = [finding for finding in plan("3.1.2").findings if finding.severity == "blocker"]
    assert refused.id == "CSI-D22"
    assert "create_cluster_objects" not in refused.remedy


@pytest.mark.parametrize(
    ("now", "then", "expected"),
    [
        ("9.0.0", "10.18.0", ("10.15", "10.16", "10.17")),
        ("10.15.0", "10.18.0", ("10.16", "10.17")),
        ("10.16.0", "11.0.0", ("10.17", "10.18", "10.19", "10.20", "10.21", "10.22")),
        ("9.0.0", "10.15.0", ()),
        ("10.22.1", "11.0.0", ()),
        ("10.18.0", "10.18.1", ()),
        ("10.18.0", "9.0.0", ()),
        ("3.0.0", "9.0.0", ()),
    ],
)
def test_lines_of_the_operator_that_are_leapt_over(now: str, then: str, expected: tuple[str, ...]) -> None:
    assert wmco.list_skipped_lines(parse(now), parse(then)) == expected


@pytest.mark.parametrize(
    ("key", "release", "expected"),
    [
        ("azure_file", "1.28.9", ["CVE-2024-3744"]),
        ("azure_file", "1.29.3", ["CVE-2024-3744"]),
        ("azure_file", "1.29.4", []),
        ("azure_file", "1.30.0", ["CVE-2024-3744"]),
        ("azure_file", "1.30.1", []),
        ("azure_file", "1.31.0", []),
        ("smb", "1.20.0", ["CVE-2026-3865"]),
        ("smb", "1.20.1", []),
    ],
)
def test_an_advisory_warns_below_the_fixed_releases(key: str, release: str, expected: list[str]) -> None:
    driver, version = DRIVERS[key], parse(release)
    assert [one.name for one in driver.advisories if one.matches(version)] == expected
    observed = snapshot(csi_driver={"spec": dict(driver.find_csi_driver_spec(version))})
    reported = [one for one in check_objects(driver, DriverRequest(), observed, version, HOME) if one.id == "CSI-D24"]
    assert [one.severity for one in reported] == ["warning"] * len(expected)
    assert all(name in reported[0].message for name in expected)


@pytest.mark.parametrize(
    ("key", "release", "mode", "expected"),
    [
        ("smb", "1.20.3", "host_process", "csi-driver-smb/pull/1219"),
        ("smb", "1.20.3", "csi_proxy", ""),
        ("smb", "1.20.4", "host_process", ""),
        ("azure_file", "1.35.7", "host_process", "azurefile-csi-driver/pull/3416"),
        ("azure_file", "1.35.8", "host_process", ""),
        ("vsphere", "3.7.3", "host_process", ""),
    ],
)
def test_an_error_without_a_released_fix_is_noted_with_the_release_to_wait_for(
    key: str, release: str, mode: str, expected: str
) -> None:
    rule = DRIVERS[key].rule(mode)
    assert rule is not None
    reported = list(check_issues(DRIVERS[key], rule, parse(release)))
    assert [one.id for one in reported] == (["CSI-D25"] if expected else [])
    for one in reported:
        assert expected in one.message
        assert f"wait for the first release after {release}" in one.remedy


@pytest.mark.parametrize("key", DRIVERS)
def test_the_default_release_has_no_known_weakness(key: str) -> None:
    driver = DRIVERS[key]
    assert not [one for one in driver.advisories if one.matches(parse(driver.default_version))]
    assert all(one.source.startswith("https://") for one in driver.advisories)


@pytest.mark.parametrize(
    ("kubernetes", "namespace", "priority_class", "expected"),
    [
        ("v1.33.5-gke.1125000", None, None, ""),
        ("v1.33.5-gke.1125000", "kube-system", None, "system-node-critical"),
        ("v1.33.5-gke.1125000", None, "storage-critical", "storage-critical"),
        ("v1.33.5", None, None, "system-node-critical"),
    ],
)
def test_gke_gets_no_system_priority_outside_kube_system(
    kubernetes: str, namespace: str | None, priority_class: str | None, expected: str
) -> None:
    driver = DRIVERS["gce_pd"]
    observed = snapshot(kubernetes=kubernetes, csi_driver={"spec": dict(driver.csi_driver)})
    made = plan_driver(driver, DriverRequest(namespace=namespace, priority_class=priority_class), observed)
    assert made.settings["priority_class"] == expected
    assert ("CSI-D35" in {one.id for one in made.findings}) == (not expected)
