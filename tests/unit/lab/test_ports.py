# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of several labs do not meet."""

from __future__ import annotations

import socket

import pytest
from lab import ports
from lab.ports import NoPortError, Ports


@pytest.fixture
def one_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The range of the labs is a single free port, outside of the real one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    monkeypatch.setattr(ports, "FIRST", number)
    monkeypatch.setattr(ports, "LAST", number)
    monkeypatch.setattr(ports, "ATTEMPTS", 3)
    return number


def test_same_name_same_port(one_port: int) -> None:
    held = Ports()
    assert held.take("api") == one_port == held.take("api")
    held.close()


def test_port_of_another_lab_is_passed_over(one_port: int) -> None:
    first, second = Ports(), Ports()
    first.take("api")
    with pytest.raises(NoPortError, match=f"no free port between {one_port}"):
        second.take("api")
    first.close()
    assert second.take("api") == one_port
    second.close()


def test_port_of_a_stranger_is_passed_over(one_port: int) -> None:
    held = Ports()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", one_port))
        stranger.listen()
        with pytest.raises(NoPortError):
            held.take("api")
    assert held.take("api") == one_port
    held.close()


def test_port_must_be_free_on_every_address(one_port: int) -> None:
    held = Ports()
    with socket.socket() as stranger:
        stranger.bind(("127.0.11.7", one_port))
        stranger.listen()
        with pytest.raises(NoPortError):
            held.take("kubelet", ["127.0.0.1", "127.0.11.7"])
        assert held.take("kubelet", ["127.0.0.1"]) == one_port
    held.close()


def test_renewed_port_is_another_one() -> None:
    held = Ports(seed=1)
    old = held.take("etcd")
    new = held.renew("etcd")
    assert new != old
    assert held.taken == {"etcd": new}
    held.close()
