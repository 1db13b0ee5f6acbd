# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a plan decides and refuses."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import (
    DriverPlan,
    check_mode_change,
    plan_driver,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest, DriverSnapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from unit.operations import is_linear
from unit.plugins.plugin_utils.drivers.worlds import HOME, OURS, VSPHERE, controller, node, observed, snapshot


def blockers(made: DriverPlan) -> set[str]:
    return {finding.id for finding in made.findings if finding.severity == "blocker"}


def namespace(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": HOME, "labels": labels}}


def test_a_cluster_that_is_ready_gets_the_controllers_release() -> None:
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(controllers=(controller("v3.3.1"),)))
    assert made.deployable
    assert str(made.version) == "3.3.1"
    assert made.rule is not None
    assert made.rule.mode == "csi_proxy"
    assert made.refusal == ""


@pytest.mark.parametrize(
    ("desired", "running", "kubernetes", "expected", "contains"),
    [
        pytest.param(DriverRequest(version="3.4.0"), "v3.4.0", "v1.36.3", set(), "", id="the last csi-proxy release"),
        pytest.param(DriverRequest(version="v3.4.0"), "v3.4.0", "v1.20.0", set(), "", id="oldest Kubernetes"),
        pytest.param(DriverRequest(), "v3.4.1-rc.1", "v1.36.3", set(), "", id="pre-release of a proxy minor"),
        pytest.param(DriverRequest(), "v3.5.0", "v1.36.3", set(), "", id="the first HostProcess release"),
        pytest.param(DriverRequest(version="3.7.3"), "v3.7.3", "v1.36.3", set(), "", id="the newest release"),
        pytest.param(
            DriverRequest(version="3.7.3", mode="csi_proxy"),
            "v3.7.3",
            "v1.36.3",
            {"CSI-D02"},
            "up to 3.4",
            id="no proxy mode",
        ),
        pytest.param(
            DriverRequest(version="3.4.0", mode="host_process"),
            "v3.4.0",
            "v1.36.3",
            {"CSI-D02"},
            "3.5.0",
            id="no HostProcess",
        ),
        pytest.param(
            DriverRequest(version="3.4.0"),
            "v3.7.3",
            "v1.36.3",
            {"CSI-D33"},
            "leave version unset to deploy 3.7.3",
            id="skew with the controller",
        ),
        pytest.param(
            DriverRequest(version="3.4.0"),
            "v3.3.1",
            "v1.36.3",
            {"CSI-D33"},
            "leave version unset",
            id="skew that can be avoided",
        ),
        pytest.param(
            DriverRequest(version="3.4.0", allow_version_skew=True),
            "v3.7.3",
            "v1.36.3",
            set(),
            "",
            id="skew that is meant",
        ),
        pytest.param(DriverRequest(version="3.4.0"), "v3.4.0", "v1.19.9", {"CSI-D03"}, "1.20", id="Kubernetes too old"),
        pytest.param(
            DriverRequest(version="latest"),
            "v3.4.0",
            "v1.36.3",
            {"CSI-D01"},
            "expected one such as 3.4.0",
            id="no number",
        ),
        pytest.param(
            DriverRequest(version="3.4"),
            "v3.4.0",
            "v1.36.3",
            {"CSI-D01"},
            "'3.4' is not a complete release number",
            id="half a number",
        ),
        pytest.param(
            DriverRequest(version="True"), "v3.4.0", "v1.36.3", {"CSI-D01"}, "'True' is not a release", id="no text"
        ),
        pytest.param(
            DriverRequest(), "sha256", "v1.36.3", set(), "", id="a digest has no release: the catalog's default"
        ),
    ],
)
def test_release_and_mode(
    desired: DriverRequest, running: str, kubernetes: str, expected: set[str], contains: str
) -> None:
    image = f"quay.io/x/driver@sha256:{'0' * 64}" if running == "sha256" else running
    made = plan_driver(VSPHERE, desired, snapshot(kubernetes=kubernetes, controllers=(controller(image),)))
    assert blockers(made) == expected
    assert made.deployable is (not expected)
    assert contains in made.refusal


@pytest.mark.parametrize(
    ("spoilt", "expected", "contains"),
    [
        pytest.param({"controllers": ()}, "CSI-D30", "vsphere-csi-controller", id="no controller"),
        pytest.param({"controllers": (controller(available=0),)}, "CSI-D31", "0 of 1", id="controller not running"),
        pytest.param({"csi_driver": None}, "CSI-D20", "csi.vsphere.vmware.com", id="no CSIDriver"),
        pytest.param(
            {"csi_driver": {"spec": {"attachRequired": False}}},
            "CSI-D21",
            "attachRequired is false",
            id="CSIDriver wrong",
        ),
        pytest.param({"feature_states": {HOME: None}}, "CSI-D22", "internal-feature-states", id="no feature states"),
        pytest.param(
            {"namespaces": {HOME: namespace(**{"pod-security.kubernetes.io/enforce": "baseline"})}},
            "CSI-D10",
            "kubectl label namespace vmware-system-csi pod-security.kubernetes.io/enforce=privileged",
            id="namespace that refuses privileged pods",
        ),
        pytest.param(
            {"namespaces": {HOME: {**namespace(), "status": {"phase": "Terminating"}}}},
            "CSI-D11",
            "deleted",
            id="going",
        ),
        pytest.param({"missing_access": ("{rule}",)}, "CSI-D60", "{rule}", id="missing permission"),
    ],
)
def test_unmet_prerequisites_block_the_plan(spoilt: dict[str, Any], expected: str, contains: str) -> None:
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(**spoilt))
    assert blockers(made) == {expected}
    assert contains in made.refusal
    assert made.refusal.startswith(f"{expected} ")


def test_missing_permissions_come_with_the_commands_that_bind_them() -> None:
    bind = "kubectl create clusterrolebinding kubewin-csi"
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(missing_access=("{rule}",), access_commands=(bind,)))
    assert f"kubewin-rbac.yaml to it: {bind}. Missing rules: {{rule}}" in made.refusal


def test_a_mistyped_namespace_is_no_list_of_missing_rules() -> None:
    world = snapshot(missing_access=("{rule}",) * 13, namespaces={"vmware-system-cis": None, HOME: namespace()})
    refusal = plan_driver(VSPHERE, DriverRequest(namespace="vmware-system-cis"), world).refusal
    assert refusal.startswith("CSI-D60 Namespace vmware-system-cis: it does not exist")
    assert f"the driver's namespace is {HOME}" in refusal
    assert "{rule}" not in refusal


def test_old_releases_need_their_windows_switch() -> None:
    world = snapshot(controllers=(controller("v3.1.2"),))
    assert blockers(plan_driver(VSPHERE, DriverRequest(), world)) == {"CSI-D23"}
    switched = snapshot(controllers=(controller("v3.1.2"),), feature_states={HOME: {"csi-windows-support": "true"}})
    assert plan_driver(VSPHERE, DriverRequest(), switched).deployable


def test_a_namespace_without_a_level_is_left_to_the_cluster() -> None:
    assert plan_driver(VSPHERE, DriverRequest(), snapshot(namespaces={HOME: namespace()})).deployable


def test_our_own_namespace_is_applied_again() -> None:
    ours = namespace(**OURS, **{"pod-security.kubernetes.io/enforce": "baseline"})
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(namespaces={HOME: ours}))
    assert made.deployable
    assert made.settings["create_namespace"]


def test_a_namespace_of_another_owner_is_never_applied() -> None:
    assert not plan_driver(VSPHERE, DriverRequest(), snapshot()).settings["create_namespace"]


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(observed("vsphere-csi-node-windows"), {"CSI-D41"}, id="upstream's own under our name"),
        pytest.param(observed("other", "elsewhere"), {"CSI-D40"}, id="another provider"),
        pytest.param(observed("vsphere-csi-node-windows", labels=OURS), set(), id="ours"),
        pytest.param(
            observed("vsphere-csi-node", path="/var/lib/kubelet/plugins/csi.vsphere.vmware.com/"), set(), id="Linux's"
        ),
        pytest.param(
            observed("smb", path="C:\\var\\lib\\kubelet\\plugins\\smb.csi.k8s.io\\"), set(), id="another driver"
        ),
    ],
)
def test_second_providers(there: ObservedDaemonSet, expected: set[str]) -> None:
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(daemon_sets=(there,)))
    assert blockers(made) == expected
    assert all(there.name in finding.object for finding in made.findings if finding.severity == "blocker")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("csi.storage.k8s.io/fstype", "ext4", {"CSI-D45"}),
        ("csi.storage.k8s.io/fstype", "ntfs", set()),
        ("fsType", "xfs", {"CSI-D45"}),
        ("type", "io2", set()),
    ],
)
def test_a_file_system_that_windows_cannot_mount_is_refused(key: str, value: str, expected: set[str]) -> None:
    made = plan_driver(DRIVERS["aws_ebs"], DriverRequest(storage_class={"parameters": {key: value}}), snapshot())
    assert blockers(made) & {"CSI-D45"} == expected


def test_a_class_that_only_the_user_can_complete_is_omitted_and_reported() -> None:
    made = plan_driver(DRIVERS["smb"], DriverRequest(), snapshot(controllers=()))
    assert not made.settings["storage_class"]["create"]
    assert "CSI-D46" in {one.id for one in made.findings}
    given = plan_driver(
        DRIVERS["smb"], DriverRequest(storage_class={"parameters": {"source": "//nas/share"}}), snapshot()
    )
    assert given.settings["storage_class"]["create"]
    assert "CSI-D46" not in {one.id for one in given.findings}


def test_a_hostprocess_provider_mounts_nothing_and_is_found_by_its_arguments() -> None:
    observed = ObservedDaemonSet.from_object(
        {
            "metadata": {"name": "hp", "namespace": "x"},
            "status": {"numberReady": 1},
            "spec": {
                "selector": {},
                "template": {
                    "spec": {
                        "nodeSelector": {"kubernetes.io/os": "windows"},
                        "containers": [
                            {
                                "name": "c",
                                "env": [
                                    {
                                        "name": "CSI_ENDPOINT",
                                        "value": r"unix://C:\\var\\lib\\kubelet\\plugins\\csi.vsphere.vmware.com\\csi.sock",
                                    }
                                ],
                            }
                        ],
                    }
                },
            },
        }
    )
    assert blockers(plan_driver(VSPHERE, DriverRequest(), snapshot(daemon_sets=(observed,)))) == {"CSI-D40"}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param({}, set(), id="as we would make it"),
        pytest.param({"allowVolumeExpansion": False}, set(), id="what can be changed is no obstacle"),
        pytest.param({"parameters": {}}, {"CSI-D42"}, id="other parameters"),
        pytest.param({"provisioner": "other"}, {"CSI-D42"}, id="another driver's"),
        pytest.param({"reclaimPolicy": "Retain"}, {"CSI-D42"}, id="other reclaim policy"),
        pytest.param({"volumeBindingMode": "Immediate"}, {"CSI-D42"}, id="other binding mode"),
    ],
)
def test_a_storage_class_that_cannot_become_ours(live: dict[str, Any], expected: set[str]) -> None:
    same = {
        "provisioner": VSPHERE.name,
        "parameters": {"csi.storage.k8s.io/fstype": "ntfs"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    world = snapshot(storage_class={**same, **live})
    assert blockers(plan_driver(VSPHERE, DriverRequest(), world)) == expected
    assert plan_driver(VSPHERE, DriverRequest(storage_class={"create": False}), world).deployable


def test_creating_the_objects_is_opt_in_and_reported() -> None:
    world = snapshot(controllers=(), csi_driver=None, feature_states={HOME: None}, namespaces={HOME: None})
    made = plan_driver(VSPHERE, DriverRequest(create_cluster_objects=True), world)
    assert made.deployable
    assert {finding.id for finding in made.findings if finding.severity == "warning"} == {"CSI-D30"}
    assert any("will be created" in line for line in made.summary())


@pytest.mark.parametrize(
    ("nodes", "finding"),
    [
        pytest.param((), "CSI-D50", id="no Windows node"),
        pytest.param((node(build="26100"),), "CSI-D51", id="no image for this Windows"),
        pytest.param((node(**{"kubewin.io/csi-proxy": "no"}),), "CSI-D53", id="csi-proxy not serving yet"),
    ],
)
def test_nodes_are_reported_and_never_block(nodes: tuple[Any, ...], finding: str) -> None:
    made = plan_driver(VSPHERE, DriverRequest(), snapshot(nodes=nodes))
    assert made.deployable
    assert finding in {one.id for one in made.findings}


def test_a_skipped_node_blocks_no_other() -> None:
    old = ObservedNode("win-old", build="20348", labels={"pool": "old"}, runtime="containerd://1.5.18")
    new = ObservedNode("win-new", build="20348", labels={"pool": "new"}, runtime="containerd://1.7.27")
    smb = DRIVERS["smb"]
    chosen = {
        pool: plan_driver(
            smb, DriverRequest(mode="host_process", node_selector={"pool": pool}), snapshot(nodes=(old, new))
        )
        for pool in ("old", "new")
    }
    assert "CSI-D05" in blockers(chosen["old"])
    assert "CSI-D05" not in blockers(chosen["new"])
    assert chosen["new"].nodes == ("win-old", "win-new")
    virtual = ObservedNode("win-virtual", build="14393", labels={"type": "virtual-kubelet"})
    made = plan_driver(DRIVERS["azure_disk"], DriverRequest(mode="csi_proxy"), snapshot(nodes=(new, virtual)))
    assert not [one for one in made.findings if "win-virtual" in one.object]
    nowhere = plan_driver(smb, DriverRequest(node_selector={"pool": "none"}), snapshot(nodes=(old, new)))
    assert "kubernetes.io/os=windows and pool=none" in "\n".join(nowhere.summary())


def test_the_work_for_each_node_does_not_grow_with_their_number() -> None:
    def plan(count: int) -> None:
        nodes = tuple(node(f"win-{number}") for number in range(count))
        assert not plan_driver(VSPHERE, DriverRequest(), snapshot(nodes=nodes)).unselected_nodes

    assert is_linear(plan)


def test_the_namespace_is_the_controllers() -> None:
    home = "openshift-cluster-csi-drivers"
    world = snapshot(
        controllers=(controller(namespace=home),),
        feature_states={home: {}},
        namespaces={home: {"metadata": {"name": home}}},
    )
    assert plan_driver(VSPHERE, DriverRequest(), world).namespace == home


def test_unknown_releases_of_a_known_mode_are_derived_and_reported() -> None:
    made = plan_driver(VSPHERE, DriverRequest(version="3.3.9"), snapshot(controllers=(controller("v3.3.1"),)))
    assert made.settings["images"]["driver"].endswith("driver:v3.3.9")
    assert made.settings["images"]["registrar"].endswith(":v2.10.0")
    assert "CSI-D04" in {one.id for one in made.findings}


SMB, DISK = DRIVERS["smb"], DRIVERS["azure_disk"]


def running(driver: Driver, mode: str, managed_by: str = "kubewin.csi", **spoilt: Any) -> DriverSnapshot:
    observed = ObservedDaemonSet(driver.namespace, driver.daemonset, managed_by=managed_by, mode=mode)
    return snapshot(daemon_sets=(observed,), **spoilt)


def found(driver: Driver, observed: DriverSnapshot, mode: str) -> list[Finding]:
    rule = next(rule for rule in driver.modes if rule.mode == mode)
    return list(check_mode_change(driver, rule, observed, driver.namespace))


def test_the_same_mode_a_first_installation_and_another_owners_plugin_are_no_change() -> None:
    assert found(DISK, running(DISK, "csi_proxy"), "csi_proxy") == []
    assert found(DISK, snapshot(), "csi_proxy") == []
    assert found(DISK, running(DISK, "csi_proxy", managed_by="Helm"), "host_process") == []
    assert found(DISK, running(DISK, ""), "host_process") == []
    assert list(check_mode_change(DISK, None, running(DISK, "csi_proxy"), DISK.namespace)) == []


def test_a_mode_that_takes_volumes_along_changes_under_them() -> None:
    (reported,) = found(DISK, running(DISK, "csi_proxy"), "host_process")
    assert (reported.id, reported.severity) == ("CSI-D71", "note")
    assert "csi-proxy stays" in reported.message
    (reported,) = found(DISK, running(DISK, "host_process"), "csi_proxy")
    assert "only where csi-proxy serves" in reported.message


def test_smb_does_not_return_to_csi_proxy() -> None:
    (refused,) = found(SMB, running(SMB, "host_process"), "csi_proxy")
    assert (refused.id, refused.severity) == ("CSI-D70", "blocker")
    assert refused.object == f"DaemonSet {SMB.namespace}/{SMB.daemonset}"
    assert "smb_csi_mode to host_process" in refused.remedy
    assert "as the guide of SMB says" in refused.remedy
    assert "kubewin.csi.remove -e kubewin_drivers=smb" in refused.remedy
    assert "reference counts of host_process" in refused.message
    # A DaemonSet that was applied without a mode.
    assert found(SMB, running(SMB, ""), "csi_proxy") == []
    assert [finding.id for finding in found(SMB, running(SMB, "csi_proxy"), "host_process")] == ["CSI-D71"]
