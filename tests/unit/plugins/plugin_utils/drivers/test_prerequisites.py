# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The prerequisites of a deployment: names, OpenShift's own rules, other node plugins, interrupted hand-overs, ports."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from unit.plugins.plugin_utils.drivers.worlds import HOME, OURS, VSPHERE, controller, observed, snapshot

OPERATOR: dict[str, Any] = {"annotations": {"operator.openshift.io/spec-hash": "5f3c0a"}}


def found(number: str, desired: DriverRequest | None = None, **spoilt: Any) -> list[Finding]:
    """The findings of one id."""
    made = plan_driver(VSPHERE, desired or DriverRequest(), snapshot(**spoilt))
    return [finding for finding in made.findings if finding.id == number]


@pytest.mark.parametrize(("privileged", "expected"), [(True, []), (False, ["blocker"]), (None, ["warning"])])
def test_the_scc_is_checked_on_openshift_only(privileged: bool | None, expected: list[str]) -> None:
    found_one = found("CSI-D12", openshift="4.20.3", privileged=privileged)
    assert [one.severity for one in found_one] == expected
    assert all(
        one.remedy == f"oc adm policy add-scc-to-user privileged -z {VSPHERE.service_account} -n {HOME}"
        for one in found_one
    )
    assert found("CSI-D12", privileged=privileged) == []


def space(name: str = HOME, **labels: str) -> dict[str, Any]:
    return {name: {"metadata": {"name": name, "labels": labels}}}


@pytest.mark.parametrize(
    ("namespaces", "expected"),
    [
        pytest.param(space(), 1, id="not set"),
        pytest.param(space(**{"security.openshift.io/scc.podSecurityLabelSync": "true"}), 1, id="on"),
        pytest.param(space(**{"security.openshift.io/scc.podSecurityLabelSync": "false"}), 0, id="off"),
        pytest.param(space(**OURS), 0, id="ours is applied with it"),
        pytest.param({}, 0, id="still to be made"),
    ],
)
def test_openshift_may_set_the_level_of_a_namespace_back(namespaces: dict[str, Any], expected: int) -> None:
    assert len(found("CSI-D13", openshift="4.20.3", namespaces=namespaces)) == expected


def test_openshifts_own_namespaces_are_left_alone_by_its_label_sync() -> None:
    name = "openshift-cluster-csi-drivers"
    reported = found("CSI-D13", openshift="4.20.3", controllers=(controller(namespace=name),), namespaces=space(name))
    assert reported == []


def test_theirs_beside_ours_gets_a_handover_or_is_removed() -> None:
    there = (observed(VSPHERE.daemonset, labels=OURS), observed("theirs", "elsewhere", **OPERATOR))
    (found_one,) = found("CSI-D43", daemon_sets=there)
    assert found_one.severity == "blocker"
    assert f"beside {HOME}/{VSPHERE.daemonset} of this collection" in found_one.message
    assert "-e kubewin_handover=to_platform" in found_one.remedy
    assert "oc patch clustercsidriver" in found_one.remedy


def test_a_named_daemonset_is_replaced_unless_its_owner_recreates_it() -> None:
    desired = DriverRequest(replace=f"{HOME}/{VSPHERE.daemonset}")
    (found_one,) = found("CSI-D49", desired, daemon_sets=(observed(VSPHERE.daemonset),))
    assert found_one.severity == "warning"
    assert found("CSI-D41", desired, daemon_sets=(observed(VSPHERE.daemonset),)) == []
    (kept,) = found("CSI-D41", desired, daemon_sets=(observed(VSPHERE.daemonset, **OPERATOR),))
    assert "first disable it at its source: oc patch" in kept.remedy


def test_the_remedy_for_a_plugin_that_a_user_installed_is_the_hand_over_to_ours() -> None:
    (found_one,) = found("CSI-D40", daemon_sets=(observed("theirs"),))
    assert f"-e kubewin_handover=to_kubewin -e kubewin_replace={HOME}/theirs" in found_one.remedy


def test_an_interrupted_handover_comes_first() -> None:
    (found_one,) = found("CSI-D47", replacing="a/b")
    assert (found_one.severity, found_one.object) == ("blocker", "DaemonSet a/b")
    assert "-e kubewin_handover=to_kubewin -e kubewin_replace=a/b" in found_one.remedy
    assert found("CSI-D47", DriverRequest(replace="a/b"), replacing="a/b") == []

    leaving = observed(VSPHERE.daemonset, labels=OURS, annotations={"kubewin.io/handover": "to_platform"})
    (found_one,) = found("CSI-D47", daemon_sets=(leaving,))
    assert found_one.remedy.endswith("-e kubewin_handover=to_platform")


def test_a_plugin_of_ours_that_is_being_deleted_is_waited_for_and_not_applied_to() -> None:
    there, leaving = (
        observed(VSPHERE.daemonset, labels=OURS),
        observed(VSPHERE.daemonset, labels=OURS, deletionTimestamp="2026-01-01T00:00:00Z"),
    )
    assert found("CSI-D14", daemon_sets=(there,)) == []
    (reported,) = found("CSI-D14", daemon_sets=(leaving,))
    assert reported.severity == "blocker"
    assert "kubewin.csi.remove -e kubewin_drivers=vsphere" in reported.remedy
