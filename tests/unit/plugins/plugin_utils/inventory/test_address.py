# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The address that is connected to: the operator's first, and never something that is no address."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.listing import choose_address, explain_unusable
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.observation import INSTANCE

HOSTNAME, IPV4, IPV6 = ("Hostname", "win-1"), ("InternalIP", "10.0.0.11"), ("InternalIP", "fd00::11")


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ([HOSTNAME, IPV6, IPV4], "10.0.0.11"),
        ([HOSTNAME, IPV6], "fd00::11"),
        ([IPV4, (INSTANCE, "win-1.corp.example")], "win-1.corp.example"),
        ([IPV4, (INSTANCE, "-oProxyCommand=id")], "10.0.0.11"),
        ([HOSTNAME, ("ExternalIP", "203.0.113.11")], ""),
        ([], ""),
    ],
)
def test_the_operators_address_comes_first_then_ipv4(addresses: list[tuple[str, str]], expected: str) -> None:
    address, because = choose_address(addresses)
    assert address == expected
    assert bool(because) == (not address)


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
        ("fd00::11", ""),
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
    assert explain_unusable(value) == why
