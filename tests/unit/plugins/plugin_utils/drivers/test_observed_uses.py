# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until a DaemonSet and its pods are deleted, with progress."""

from __future__ import annotations

import time
from typing import Any, cast

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.observed_uses import wait_until_gone
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client

LIVE: dict[str, Any] = {
    "metadata": {"name": "node", "namespace": "drivers", "uid": "u1", "resourceVersion": "7"},
    "status": {"currentNumberScheduled": 2},
}


class Cluster:
    """The DaemonSet exists for that many reads."""

    def __init__(self, reads: int) -> None:
        self.reads = reads

    def get(self, *_what: Any) -> dict[str, Any] | None:
        self.reads -= 1
        return LIVE if self.reads >= 0 else None


def gone(reads: int, seconds: float) -> tuple[bool, list[str]]:
    messages: list[str] = []
    done = wait_until_gone(cast(Client, Cluster(reads)), LIVE, time.monotonic() + seconds, messages.append)
    return done, messages


def test_waiting_reports_its_cause() -> None:
    done, messages = gone(reads=2, seconds=60)
    assert done
    assert "waiting until the pods of DaemonSet drivers/node end, 2 left" in messages[0]


def test_an_immediate_deletion_reports_nothing() -> None:
    assert gone(reads=0, seconds=60) == (True, [])


def test_waiting_ends_at_the_deadline() -> None:
    assert not gone(reads=10, seconds=0)[0]
