# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Healthy clusters are ready, whatever deployed the node plugin, and have only findings that their users can act on."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from situations.deployed import deployed
from situations.platforms import OF_OPERATORS, OPENSHIFTS, built_in, managed, shipped
from unit.roles.manifests import Case, cases

OURS = list(cases(1))


def reported(report: Report) -> str:
    return "\n".join(
        [
            *(f"{one.id} {one.severity} {one.object}: {one.message}" for one in report.findings),
            *(f"{one.workload}: {one.starts_again} {one.because}" for one in report.workloads),
        ]
    )


def test_there_is_one_for_each_driver_and_mode() -> None:
    assert len(OURS) == 11


@pytest.mark.parametrize("case", OURS, ids=[one.name for one in OURS])
def test_the_plugins_of_our_templates_are_ready(case: Case) -> None:
    report = evaluate(deployed(case).snapshot())
    assert not report.findings, reported(report)
    assert report.verdict == "ready", reported(report)
    assert {one.starts_again for one in report.workloads} == {"yes"}
    assert {one.ok for one in report.volumes} == {"yes"}


MANAGED = [(case, name) for case in OURS for name in case.driver.platform_daemonsets]
BUILT_IN = list(shipped())


@pytest.mark.parametrize(("case", "platform"), MANAGED, ids=[f"{name}-{one.name}" for one, name in MANAGED])
def test_a_driver_of_a_managed_platform_is_ready(case: Case, platform: str) -> None:
    report = evaluate(managed(case, platform).snapshot())
    assert not report.findings, reported(report)
    assert report.verdict == "ready", reported(report)
    assert {one.starts_again for one in report.workloads} == {"yes"}


def test_there_is_one_for_each_openshift_and_operator() -> None:
    assert {(version, one.driver.name) for one, version in BUILT_IN} == {
        (version, name) for version in OPENSHIFTS for name in OF_OPERATORS
    }


@pytest.mark.parametrize(("case", "version"), BUILT_IN, ids=[f"{version}-{one.name}" for one, version in BUILT_IN])
def test_the_plugins_of_openshifts_operators_are_ready(case: Case, version: str) -> None:
    report = evaluate(built_in(case, version).snapshot())
    assert not report.findings, reported(report)
    assert report.verdict == "ready", reported(report)
    assert {one.starts_again for one in report.workloads} == {"yes"}


SHARES = [one for one in OURS if not one.driver.csi_driver["attachRequired"]]


@pytest.mark.parametrize("sidecar", [True, False])
@pytest.mark.parametrize("case", SHARES, ids=[one.name for one in SHARES])
def test_a_share_with_attachments_needs_the_attacher(case: Case, sidecar: bool) -> None:
    """Azure File's chart has controller.attachRequired, which brings an attacher with it."""
    world = deployed(case)
    world.get("CSIDriver", case.driver.name)["spec"]["attachRequired"] = True
    pod = world.get("Deployment", case.driver.controller.deployments[0], case.driver.namespace)["spec"]["template"][
        "spec"
    ]
    if sidecar:
        pod["containers"].append({"name": "csi-attacher", "image": "registry.k8s.io/sig-storage/csi-attacher:v4.9.0"})
    report = evaluate(world.snapshot())
    blockers = {one.id for one in report.findings if one.severity == "blocker"}
    assert blockers == (set() if sidecar else {"CSI-C14"}), reported(report)


def test_a_disk_without_attachments_is_blocked() -> None:
    world = deployed(next(one for one in OURS if one.driver.csi_driver["attachRequired"]))
    next(world.of("CSIDriver"))["spec"]["attachRequired"] = False
    report = evaluate(world.snapshot())
    assert "CSI-D21" in {one.id for one in report.findings if one.severity == "blocker"}, reported(report)


@pytest.mark.parametrize("mirrored", ["", "registry.example.com:5000/mirror/"])
@pytest.mark.parametrize("case", OURS, ids=[one.name for one in OURS])
def test_a_controller_with_a_name_of_its_own_is_found_by_its_image(case: Case, mirrored: str) -> None:
    """A Helm release may name it anything, and has no controller by its values."""
    world, driver = deployed(case), case.driver
    deployment = world.get("Deployment", driver.controller.deployments[0], driver.namespace)
    deployment["metadata"].update(name="storage-controller")
    containers = deployment["spec"]["template"]["spec"]["containers"]
    containers[0]["name"] = "main"
    for one in containers:
        one["image"] = f"{mirrored}{one['image'].partition('/')[2]}" if mirrored else one["image"]
    report = evaluate(world.snapshot())
    assert report.verdict == "ready", reported(report)
    assert not report.findings, reported(report)
    # The node plugin runs the driver's image as well, and no provisioner.
    deployment["spec"]["template"]["spec"]["containers"] = containers[:1]
    assert "CSI-D30" in {one.id for one in evaluate(world.snapshot()).findings}
