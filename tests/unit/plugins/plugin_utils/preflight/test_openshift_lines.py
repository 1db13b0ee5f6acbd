# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Preflight on OpenShift 4.12 to 4.21 with vSphere, Azure and AWS matches the plan of the driver."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Target
from situations.base import openshift
from situations.cluster import healthy, install
from unit.plugins.plugin_utils.drivers.test_openshift_lines import DIGEST, DRIVER_OF, LINES, planned


@pytest.mark.parametrize("platform", DRIVER_OF)
@pytest.mark.parametrize("line", LINES)
def test_no_driver_is_refused_and_its_substitute_is_reported(line: str, platform: str) -> None:
    key = DRIVER_OF[platform]
    driver, made, world = DRIVERS[key], planned(line, key), healthy()
    assert made.rule is not None
    if key == "aws_ebs":
        install(world, key, "csi_proxy")
    openshift(world, f"{line}.9", platform)
    for one in world.of("Deployment"):
        for container in one["spec"]["template"]["spec"]["containers"]:
            if container["name"] == driver.controller.container:
                container["image"] = DIGEST
    report = evaluate(world.snapshot(), Options(target=Target(driver=key, mode=made.rule.mode)))
    reported = {one.id: one for one in report.findings}
    assert not [one for one in report.findings if one.severity == "blocker"]
    # The plan of this line has the same finding for a release that cannot be pulled.
    assert ("CSI-D09" in reported) == ("CSI-D09" in {finding.id for finding in made.findings})
    if "CSI-D09" in reported and key != "vsphere":
        assert str(made.version) in reported["CSI-D09"].message
