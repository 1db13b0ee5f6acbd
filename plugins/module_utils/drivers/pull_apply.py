# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that pull images: create, read, delete. I/O only, no decisions."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pull import selector
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import GoneError, UnreachableError


class Pulls:
    """The pods of one driver."""

    def __init__(self, client: Client, driver: str, namespace: str) -> None:
        self._client = client
        self._selector = selector(driver)
        self._namespace = namespace
        self._version = ""

    def pods(self) -> list[dict[str, Any]]:
        """Those that are there and stay."""
        listed = self._client.list(kinds.POD, self._namespace, label_selector=self._selector)
        self._version = listed.resource_version
        return [pod for pod in listed.items if not pod["metadata"].get("deletionTimestamp")]

    def create(self, pod: Mapping[str, Any]) -> None:
        """Make one."""
        self._client.create(pod)

    def delete(self, node: str, pods: Sequence[Mapping[str, Any]]) -> None:
        """Take that of a node away."""
        for pod in pods:
            if pod["spec"].get("nodeName") == node:
                self._client.discard(kinds.POD, pod)

    def remove(self) -> None:
        """Take all of them away, also those of a run that was killed."""
        for pod in self.pods():
            self._client.discard(kinds.POD, pod)

    def wait(self, seconds: float) -> None:
        """Until one of them changes, or the time is over."""
        # After a broken watch, read again.
        with contextlib.suppress(GoneError, UnreachableError):
            changes = self._client.watch(
                kinds.POD, self._version, seconds, self._namespace, label_selector=self._selector
            )
            next((None for kind, dummy in changes if kind != "BOOKMARK"), None)
