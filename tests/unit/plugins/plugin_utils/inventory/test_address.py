# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The address that is connected to: by the user's order, and never something that is no address."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.address import (
    Candidate,
    check_origins,
    choose,
    explain_unusable,
)
from unit.plugins.plugin_utils.inventory.clusters import cluster, listed, node

BOTH = ("ipv4", "ipv6")
DUAL = [
    Candidate("InternalIP", "fd00::11"),
    Candidate("InternalIP", "10.0.0.11"),
    Candidate("ExternalIP", "203.0.113.11"),
    Candidate("Hostname", "win-1"),
]


@pytest.mark.parametrize(
    ("origins", "families", "expected"),
    [
        (("InternalIP",), BOTH, "10.0.0.11"),
        (("InternalIP",), ("ipv6", "ipv4"), "fd00::11"),
        (("InternalIP",), ("ipv6",), "fd00::11"),
        (("ExternalIP", "InternalIP"), BOTH, "203.0.113.11"),
        # The order of addresses goes before that of families.
        (("ExternalIP", "InternalIP"), ("ipv6", "ipv4"), "203.0.113.11"),
        (("ExternalIP", "InternalIP"), ("ipv6",), "fd00::11"),
        (("InternalDNS", "Hostname"), BOTH, "win-1"),
        (("ExternalDNS",), BOTH, ""),
    ],
)
def test_the_first_usable_one_in_the_users_order(
    origins: tuple[str, ...], families: tuple[str, ...], expected: str
) -> None:
    assert choose(DUAL, origins, families).value == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("10.0.0.11", ""),
        ("win-1.corp.example", ""),
        ("WIN_1", ""),
        ("127.0.11.1", ""),
        ("169.254.12.3", "link-local"),
        ("fe80::1", "link-local"),
        ("0.0.0.0", "not an address of a machine"),
        ("ff02::1", "not an address of a machine"),
        ("fd00::11", "ipv6, which ip_family excludes"),
        ("fd00::11%eth0; id", "neither an IP address nor a host name"),
        ("-oProxyCommand=id", "neither an IP address nor a host name"),
        ("win-1 -F /tmp/x", "neither an IP address nor a host name"),
        ("{{ lookup('pipe', 'id') }}", "neither an IP address nor a host name"),
        ("win-1\n", "neither an IP address nor a host name"),
        ("a" * 254, "neither an IP address nor a host name"),
        ("https://win-1", "neither an IP address nor a host name"),
        ("", "neither an IP address nor a host name"),
    ],
)
def test_a_value_counts_only_when_it_is_an_address_and_nothing_else(value: str, why: str) -> None:
    assert explain_unusable(value, ("ipv4",)) == why


def test_annotations_and_labels_can_name_the_address() -> None:
    win = node(
        "win-1",
        ("InternalIP", "10.0.0.11"),
        annotations={"example.com/management": "192.0.2.11"},
        labels={"example.com/short": "win-1-mgmt"},
    )
    observed = cluster(win, annotations=("example.com/management",))
    by_annotation = listed(observed, address=("annotation:example.com/management", "InternalIP"))["win-1"].variables
    assert by_annotation["ansible_host"] == "192.0.2.11"
    assert by_annotation["kubewin_address_from"] == "annotation:example.com/management"
    assert listed(observed, address=("label:example.com/short",))["win-1"].variables["ansible_host"] == "win-1-mgmt"
    without = listed(observed, address=("annotation:other", "label:other"))["win-1"].variables
    assert without["kubewin_unreachable_because"].startswith(
        "no address to connect to: found InternalIP 10.0.0.11 (not requested), expected one of annotation:other, label:other"
    )


@pytest.mark.parametrize("bad", ["InternalIp", "annotation:", "ansible_host", ""])
def test_an_order_with_a_word_that_means_nothing_is_refused(bad: str) -> None:
    assert not check_origins(["windows_instance", "ExternalDNS", "annotation:a", "label:b"])
    assert f"found {bad}, expected windows_instance, InternalIP" in check_origins(["InternalIP", bad])
