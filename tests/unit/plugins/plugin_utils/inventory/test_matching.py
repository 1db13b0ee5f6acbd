"""A host is one Node or no Node, and the message has the reason."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.matching import Host, Node, match_hosts

WIN1 = Node("win-1", ("win-1",), ("10.0.0.11",))
WIN2 = Node("win-2.corp.example", ("win-2", "win-2.corp.example"), ("10.0.0.12", "fd00::12"))
NODES = (WIN1, WIN2)


def host(name: str, address: str, claimed: str | None = None) -> Host:
    return Host("inventory-name", (name,), (address,), claimed)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(host("WIN-1", "10.0.0.11"), "win-1", id="Windows names are upper case"),
        pytest.param(host("WIN-2", "10.0.0.12"), "win-2.corp.example", id="a Node named by its DNS name"),
        pytest.param(host("win-2.corp.example", "fd00:0:0::12"), "win-2.corp.example", id="IPv6 in another spelling"),
        pytest.param(host("other", "10.0.0.11"), "win-1", id="the address alone is enough"),
        pytest.param(host("other", "10.0.0.11", "win-1"), "win-1", id="named by the user and confirmed by address"),
        pytest.param(
            host("WIN-1", "192.168.1.5", "win-1"), "win-1", id="named by the user, behind address translation"
        ),
    ],
)
def test_a_host_that_agrees_with_one_node_is_that_node(given: Host, expected: str) -> None:
    result = match_hosts([given], NODES)
    assert result.matched == {"inventory-name": expected}
    assert not result.errors


@pytest.mark.parametrize(
    ("given", "contains"),
    [
        pytest.param(host("stranger", "10.9.9.9"), "expected those of a Windows Node", id="no Node"),
        pytest.param(
            host("WIN-1", "10.0.0.12"),
            "By name it is Node win-1, by address Node win-2.corp.example",
            id="name of one, address of another",
        ),
        pytest.param(
            host("WIN-1", "192.168.1.5"), "By name it is Node win-1, by address Node none", id="a namesake elsewhere"
        ),
        pytest.param(
            host("WIN-1", "10.0.0.11", "win-9"),
            "expected those of Node win-9 (kubewin_node_name), which is no Windows Node. By name it is Node win-1, by address Node "
            "win-1. Correct kubewin_node_name of the host, or remove it",
            id="claimed Node unknown",
        ),
        pytest.param(
            host("stranger", "10.9.9.9", "win-1"),
            "expected those of Node win-1 (kubewin_node_name)",
            id="claim not confirmed",
        ),
        pytest.param(
            host("WIN-1", "10.0.0.12", "win-1"),
            "by address Node win-2.corp.example",
            id="claim contradicted by address",
        ),
    ],
)
def test_a_host_that_is_no_node_for_sure_is_refused_with_the_reason(given: Host, contains: str) -> None:
    result = match_hosts([given], NODES)
    assert result.matched == {}
    assert contains in result.errors["inventory-name"]


def test_an_address_shared_by_two_nodes_is_refused() -> None:
    result = match_hosts([host("x", "10.0.0.11")], (WIN1, Node("twin", (), ("10.0.0.11",))))
    assert "by address Node win-1, twin" in result.errors["inventory-name"]


def test_two_hosts_that_are_one_node_are_both_refused() -> None:
    result = match_hosts([Host("a", ("win-1",), ("10.0.0.11",)), Host("b", ("win-1",), ("10.0.0.11",))], NODES)
    assert result.matched == {}
    assert set(result.errors) == {"a", "b"}
    assert "one host per Node" in result.errors["a"]
