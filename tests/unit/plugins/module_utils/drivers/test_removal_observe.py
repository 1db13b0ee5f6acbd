# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until a DaemonSet and its pods are gone, told meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import wait_until_gone
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client

LIVE: dict[str, Any] = {
    "metadata": {"name": "node", "namespace": "drivers", "uid": "u1", "resourceVersion": "7"},
    "status": {"currentNumberScheduled": 2},
}


class Cluster:
    """The DaemonSet is there for as many looks, then it is not."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def get(self, *_what: Any) -> dict[str, Any] | None:
        self.looks -= 1
        return LIVE if self.looks >= 0 else None

    def watch(self, *_what: Any, **_how: Any) -> Iterator[tuple[str, Any]]:
        return iter(())


def gone(looks: int, seconds: float) -> tuple[bool, list[str]]:
    said: list[str] = []
    done = wait_until_gone(cast(Client, Cluster(looks)), LIVE, time.monotonic() + seconds, said.append)
    return done, said


def test_what_is_waited_for_is_reported() -> None:
    done, said = gone(looks=2, seconds=60)
    assert done
    assert "waiting until the pods of DaemonSet drivers/node end, 2 left" in said[0]


def test_what_is_gone_at_once_needs_no_word() -> None:
    assert gone(looks=0, seconds=60) == (True, [])


def test_waiting_ends_at_the_deadline() -> None:
    assert not gone(looks=10, seconds=0)[0]
