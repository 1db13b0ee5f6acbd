# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every Windows Node and every instance is in the inventory, in the place where it belongs, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from unit.plugins.plugin_utils.inventory.clusters import BYOH, OPERATOR, cluster, csi_node, listed, node

WIN1 = node("win-1", ("InternalIP", "10.0.0.11"), ("Hostname", "win-1"))
WIN2 = node("win-2", ("InternalIP", "10.0.0.12"), ("Hostname", "win-2"))
LOST = node("win-3", ("InternalIP", "169.254.7.7"), ("Hostname", "win-3"))


def test_a_node_is_a_host_under_its_name_that_the_plays_will_verify() -> None:
    host = listed(cluster(WIN1))["win-1"]
    assert host.group == "kubewin_windows"
    assert host.variables["kubewin_node_name"] == "win-1"
    assert host.variables["ansible_host"] == "10.0.0.11"


def test_a_node_without_an_address_is_listed_with_what_it_has_and_what_helps() -> None:
    host = listed(cluster(WIN1, LOST))["win-3"]
    assert host.group == "kubewin_unreachable"
    assert "ansible_host" not in host.variables
    because = host.variables["kubewin_unreachable_because"]
    assert "InternalIP 169.254.7.7 (link-local), Hostname win-3 (not used)" in because
    assert "Set ansible_host with the option compose" in because


def test_a_node_without_any_address_is_listed_too() -> None:
    assert "found none" in listed(cluster(node("bare")))["bare"].variables["kubewin_unreachable_because"]


@pytest.mark.parametrize(
    ("kubernetes", "labels", "platform", "owner"),
    [
        ("v1.36.3", {}, "other", "unmanaged"),
        ("v1.33.4-eks-ae9a62a", {}, "eks", "node_image"),
        ("v1.33.4-gke.1134000", {}, "gke", "node_image"),
        ("v1.33.4+rke2r1", {}, "rke2", "rancher_wins"),
        ("v1.33.4", {"kubernetes.azure.com/cluster": "MC_rg"}, "aks", "node_image"),
        ("v1.33.4", {"windowsmachineconfig.openshift.io/configured-with-csi": "true"}, "openshift", "wmco"),
        ("v1.33.4", BYOH, "openshift", "wmco_byoh"),
    ],
)
def test_platform_and_owner_follow_from_the_cluster(
    kubernetes: str, labels: dict[str, str], platform: str, owner: str
) -> None:
    host = listed(cluster(node("win-1", ("InternalIP", "10.0.0.11"), labels=labels), kubernetes=kubernetes))["win-1"]
    assert {f"kubewin_platform_{platform}", f"kubewin_owner_{owner}"} <= set(host.groups)
    assert (host.variables["kubewin_platform"], host.variables["kubewin_owner"]) == (platform, owner)


def test_a_node_of_openshift_belongs_to_the_operator_before_it_is_configured() -> None:
    ready = node("win-1", ("InternalIP", "10.0.0.11"), annotations=OPERATOR)
    assert listed(cluster(ready, WIN2))["win-2"].variables["kubewin_owner"] == "wmco"


def test_builds_and_registered_drivers_are_groups() -> None:
    registered = csi_node("win-1", "csi.vsphere.vmware.com", "example.org/own")
    host = listed(cluster(WIN1, WIN2, csi_nodes=(registered, csi_node("linux-1", "csi.vsphere.vmware.com"))))["win-1"]
    assert {"kubewin_build_20348", "kubewin_driver_vsphere", "kubewin_driver_example.org/own"} <= set(host.groups)
    assert host.variables["kubewin_registered_drivers"] == ["example.org/own", "vsphere"]


def test_a_node_without_csinode_or_drivers_is_in_no_drivers_group() -> None:
    empty: dict[str, Any] = {"metadata": {"name": "win-2"}, "spec": {"drivers": None}}
    for host in listed(cluster(WIN1, WIN2, csi_nodes=(empty,))).values():
        assert not [group for group in host.groups if group.startswith("kubewin_driver")]


@pytest.mark.parametrize(
    ("connection", "platform", "expected"),
    [
        ("auto", {}, {"ansible_connection": "winrm"}),
        ("auto", BYOH, {"ansible_connection": "ssh", "ansible_shell_type": "cmd"}),
        ("psrp", BYOH, {"ansible_connection": "psrp"}),
        ("none", {}, {}),
    ],
)
def test_the_connection_is_what_the_platforms_nodes_are_known_to_have(
    connection: str, platform: dict[str, str], expected: dict[str, str]
) -> None:
    observed = cluster(node("win-1", ("InternalIP", "10.0.0.11"), labels=platform))
    variables = listed(observed, connection=connection)["win-1"].variables
    assert {k: v for k, v in variables.items() if k in ("ansible_connection", "ansible_shell_type")} == expected
    assert "ansible_port" not in variables


def test_users_and_passwords_are_never_set() -> None:
    observed = cluster(WIN1, instances={"10.0.0.11": "username=Administrator"})
    for host in listed(observed).values():
        assert not [name for name in host.variables if "user" in name and name.startswith("ansible_")]
        assert host.variables["kubewin_instance_user"] == "Administrator"


# WMCO's instances


@pytest.mark.parametrize(
    "key", ["10.0.0.11", "win-1", "WIN-1.corp.example"], ids=["by address", "by name", "by DNS name"]
)
def test_an_instance_and_its_node_are_one_host_at_the_address_that_the_operator_uses(key: str) -> None:
    found = listed(cluster(WIN1, WIN2, instances={key: "username=Administrator"}))
    assert set(found) == {"win-1", "win-2"}
    assert found["win-1"].variables["ansible_host"] == key
    assert found["win-1"].variables["kubewin_owner"] == "wmco_byoh"
    assert "kubewin_instance" not in found["win-2"].variables


@pytest.mark.parametrize("key", ["alias.corp.example", "10.0.0.99", "-oProxyCommand"])
def test_an_instance_that_is_no_node_is_no_host(key: str) -> None:
    found = listed(cluster(WIN1, instances={key: "username=core"}))
    assert set(found) == {"win-1"}
    assert found["win-1"].variables["ansible_host"] == "10.0.0.11"
    assert "kubewin_instance" not in found["win-1"].variables


def test_two_entries_for_one_machine_are_none() -> None:
    found = listed(cluster(WIN1, instances={"10.0.0.11": "username=a", "win-1.corp.example": "username=a"}))
    assert set(found) == {"win-1"}
    assert "kubewin_instance" not in found["win-1"].variables


def test_an_instance_called_exactly_as_a_node_is_that_node_also_when_another_is_called_alike() -> None:
    alike = node("win-1.corp.example", ("InternalIP", "10.0.0.21"))
    found = listed(cluster(WIN1, alike, instances={"win-1.corp.example": "username=a"}))
    assert {name: host.group for name, host in found.items()} == dict.fromkeys(
        ("win-1", "win-1.corp.example"), "kubewin_windows"
    )
    assert found["win-1.corp.example"].variables["kubewin_instance"] == "win-1.corp.example"


@pytest.mark.parametrize("value", ["password=hunter2", "hunter2", "username=", ""])
def test_an_entry_that_the_operator_would_refuse_counts_for_nothing(value: str) -> None:
    host = listed(cluster(WIN1, instances={"10.0.0.11": value}))["win-1"]
    assert host == listed(cluster(WIN1, instances={}))["win-1"]


# What the user's own expressions make of it


def test_an_address_that_was_composed_makes_a_host_reachable() -> None:
    host = listed(cluster(LOST))["win-3"].merge_composed({"ansible_host": "win-3.corp.example", "x": 1})
    assert host.group == "kubewin_windows"
    assert "kubewin_unreachable_because" not in host.variables
    assert host.variables["x"] == 1


@pytest.mark.parametrize("given", ["", None, "-oProxyCommand=id", "10.0.0.1; id"])
def test_an_address_that_was_composed_and_is_none_makes_a_host_unreachable(given: Any) -> None:
    host = listed(cluster(WIN1))["win-1"].merge_composed({"ansible_host": given})
    assert host.group == "kubewin_unreachable"
    assert "ansible_host" not in host.variables
    assert "compose set" in host.variables["kubewin_unreachable_because"]


def test_other_variables_that_were_composed_move_nothing() -> None:
    found = listed(cluster(WIN1, LOST))
    assert found["win-1"].merge_composed({"x": 1}).group == "kubewin_windows"
    assert found["win-3"].merge_composed({"x": 1}).group == "kubewin_unreachable"
