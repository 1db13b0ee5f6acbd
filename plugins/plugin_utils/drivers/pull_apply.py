# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that pull images: create, read, delete. I/O only, no decisions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import pull
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError, GoneError, UnreachableError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.termination import ignore_signals

# Seconds between two reports if no node completes its pull.
_REPORT = 30.0


class ImagePuller:
    """The pods of one driver's plugin. notify: progress callback. done: nodes that have their images."""

    def __init__(self, client: Client, driver: str, plugin: Mapping[str, Any], notify: Callable[[str], None]) -> None:
        self._client, self._driver, self._plugin, self._notify = client, driver, plugin, notify
        self._namespace = str(plugin["metadata"]["namespace"])
        self._version = ""
        self.done: tuple[str, ...] = ()

    def run(self, lacking: Mapping[str, Sequence[str]], timeout: float) -> None:
        """Pull these images by node. ClusterError pull_failed or timeout; no pod is left, whatever comes of it."""
        self._remove()
        if lacking:
            with self._removed():
                self._pull(lacking, timeout)

    def _pull(self, lacking: Mapping[str, Sequence[str]], timeout: float) -> None:
        began = time.monotonic()
        due = began + _REPORT
        since: dict[str, float] = {}
        while True:
            now = time.monotonic()
            pods = self._pods()
            observed = pull.evaluate_progress(
                pods, lacking, self.done, {node: now - then for node, then in since.items()}
            )
            completed, self.done = set(observed.done) - set(self.done), observed.done
            since = {node: since.get(node, now) for node in observed.why}
            left = timeout - (now - began)
            for pod in pods:
                if pod["spec"].get("nodeName") in completed:
                    self._client.discard(kinds.POD, pod)
            for node in observed.start:
                self._client.create(pull.make_pod(self._plugin, self._driver, node, lacking[node], int(left) + 60))
            if completed or observed.failures or now >= due:
                due = now + _REPORT
                for line in pull.render_progress_lines(observed, now - began, timeout):
                    self._notify(line)
            if error := pull.explain_failure(observed, left):
                raise error
            if not observed.waiting:
                return
            self._wait(min(1.0, left))

    @contextlib.contextmanager
    def _removed(self) -> Iterator[None]:
        """Delete the pods in the end. Why it ended matters more than an error here."""
        try:
            yield
        except BaseException:
            ignore_signals()
            with contextlib.suppress(ClusterError):
                self._remove()
            raise
        self._remove()

    def _pods(self) -> list[dict[str, Any]]:
        """Those that are there and stay."""
        listed = self._client.list(kinds.POD, self._namespace, label_selector=pull.make_selector(self._driver))
        self._version = listed.resource_version
        return [pod for pod in listed.items if not pod["metadata"].get("deletionTimestamp")]

    def _remove(self) -> None:
        """Delete all of them, also those of a run that was killed."""
        for pod in self._pods():
            self._client.discard(kinds.POD, pod)

    def _wait(self, seconds: float) -> None:
        """Until one of them changes, or the time is over."""
        # After a broken watch, read again.
        with contextlib.suppress(GoneError, UnreachableError):
            changes = self._client.watch(
                kinds.POD, self._version, seconds, self._namespace, label_selector=pull.make_selector(self._driver)
            )
            next((None for kind, dummy in changes if kind != "BOOKMARK"), None)
