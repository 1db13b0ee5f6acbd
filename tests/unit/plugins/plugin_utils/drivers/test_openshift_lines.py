# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every OpenShift line from 4.12 to 4.21 on vSphere, Azure and AWS is planned with images that can be pulled, or refused by name."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import openshift, wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import DriverPlan, plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import (
    DriverController,
    DriverRequest,
    DriverSnapshot,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode

PLAIN = DriverRequest()
HOME = "openshift-cluster-csi-drivers"
DIGEST = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:" + "0" * 64
LINES = [f"4.{minor}" for minor in range(12, 22)]
DRIVER_OF = {"VSphere": "vsphere", "Azure": "azure_disk", "AWS": "aws_ebs"}
# What each line's plan has to be: releases of csi-proxy's form up to 4.19 on vSphere, of the controller's minor where one is served.
EXPECTED = {
    "vsphere": "3.2.0 3.2.0 3.1.2 3.1.2 3.1.2 3.2.0 3.3.1 3.3.1 3.5.0 3.6.0",
    "azure_disk": "1.28.9 1.28.9 1.28.9 1.29.7 1.29.7 1.29.7 1.31.1 1.32.0 1.33.1 1.34.2",
    "aws_ebs": "1.18.0 1.18.0 1.18.0 1.24.1 1.26.1 1.31.0 1.33.0 1.39.0 1.45.0 1.47.0",
}


def planned(line: str, key: str, desired: DriverRequest = PLAIN) -> DriverPlan:
    """The plan on such a cluster, whose vSphere map has the switch for Windows from 4.14 on."""
    driver, known = DRIVERS[key], wmco.find_line_of_openshift(f"{line}.9")
    assert known is not None
    states = {"csi-windows-support": "true"} if line not in ("4.12", "4.13") else {"csi-migration": "true"}
    snapshot = DriverSnapshot(
        kubernetes=f"v{known.kubernetes}.4",
        nodes=(
            ObservedNode(
                "win-1", build="20348", labels={"kubewin.io/csi-proxy": "serving"}, runtime="containerd://1.7.27"
            ),
        ),
        controllers=(DriverController(HOME, driver.controller.deployments[-1], DIGEST, 1, 1),),
        daemon_sets=(),
        namespaces={HOME: {"metadata": {"name": HOME}}},
        csi_driver={"spec": dict(driver.csi_driver)},
        feature_states={HOME: states},
        storage_class=None,
        openshift=f"{line}.9",
    )
    return plan_driver(driver, desired, snapshot)


@pytest.mark.parametrize("platform", DRIVER_OF)
@pytest.mark.parametrize("line", LINES)
def test_it_is_planned_with_images_that_can_be_pulled(line: str, platform: str) -> None:
    key = DRIVER_OF[platform]
    made = planned(line, key)
    assert made.version is not None
    assert str(made.version) == dict(zip(LINES, EXPECTED[key].split(), strict=True))[line]
    assert made.deployable, made.refusal
    release = DRIVERS[key].find_release(made.version)
    assert release is not None
    assert made.rule is not None
    assert set(made.settings["images"].values()) <= set(
        release.map_images_of(made.rule.mode if made.rule else "").values()
    )
    # If it differs from what the cluster ships, the plan reports why.
    shipped = openshift.list_shipped_releases(f"{line}.9", key)
    reported = {finding.id for finding in made.findings}
    assert ("CSI-D09" in reported) == (bool(shipped) and made.version not in shipped)
    skewed = bool(shipped) and made.version.minor not in {one.minor for one in shipped}
    assert ("CSI-D33" in reported) == skewed


def test_azure_file_of_4_13_follows_its_controller_and_reports_the_skew() -> None:
    """Its controller is 1.25.0; the plan was the newest release as a HostProcess container, without a finding."""
    made = planned("4.13", "azure_file")
    assert (str(made.version), made.rule and made.rule.mode) == ("1.29.5", "csi_proxy")
    assert {"CSI-D09", "CSI-D33"} <= {finding.id for finding in made.findings}


@pytest.mark.parametrize(
    "desired",
    [
        DriverRequest(image_mirror="registry.example.com"),
        DriverRequest(images={"driver": "registry.example.com/smb:v1"}),
    ],
    ids=["mirror", "image"],
)
def test_an_image_of_the_users_own_has_no_warning(desired: DriverRequest) -> None:
    made = planned("4.12", "smb", desired)
    assert (str(made.version), made.rule and made.rule.mode) == ("1.20.3", "host_process")
    assert "CSI-D09" not in {finding.id for finding in made.findings}


def test_smb_as_a_host_process_is_planned_with_a_warning_that_its_image_may_not_be_published() -> None:
    made = planned("4.12", "smb")
    assert (str(made.version), made.rule and made.rule.mode) == ("1.20.3", "host_process")
    assert "CSI-D09" in {finding.id for finding in made.findings}
