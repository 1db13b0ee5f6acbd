# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Node of a host while csi-proxy changes there: its cordon, and the label that node plugins select.

Both stay when the task is killed. The cordon names its owner, so the next run finds what it has to restore on the Node alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds, quiesce
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import CORDONED, SERVING_LABEL, SERVING_VALUE
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify

CORDON_REASON = "csi-proxy is being replaced"


def is_labelled(node: Mapping[str, Any]) -> bool:
    """Whether a Node has the label of a csi-proxy that serves."""
    return bool((node["metadata"].get("labels") or {}).get(SERVING_LABEL) == SERVING_VALUE)


def _without_label(node: Mapping[str, Any]) -> dict[str, Any]:
    labels = node["metadata"].get("labels") or {}
    return {"metadata": {"labels": {SERVING_LABEL: None}}} if SERVING_LABEL in labels else {}


def _restored(node: dict[str, Any], label: bool) -> dict[str, Any]:
    """The patch that lifts the cordon of csi-proxy's change and, on request, sets the label; empty where neither is needed."""
    patch = quiesce.plan_uncordon(node, CORDON_REASON)
    if label and not is_labelled(node):
        patch.setdefault("metadata", {})["labels"] = {SERVING_LABEL: SERVING_VALUE}
    return patch


@dataclass(slots=True)
class ClusterNode:
    """One Node. changed: whether this object changed it, with dry_run whether it would. notify: progress callback."""

    client: Client
    name: str
    dry_run: bool
    notify: Callable[[str], None]
    changed: bool = False

    def read(self) -> tuple[bool, bool]:
        """Whether the Node has the label, and whether the change of csi-proxy cordoned it. ClusterError if it does not exist."""
        node = self.client.get(kinds.NODE, self.name)
        if node is None:
            raise ClusterError(
                f"Node {self.name} does not exist, expected the Node of this host. Run again.", "not_found", 404
            )
        owner = (node["metadata"].get("annotations") or {}).get(CORDONED)
        return is_labelled(node), owner == CORDON_REASON

    def cordon(self, timeout: int) -> None:
        """Cordon the Node and wait until no volume operation is in flight there. ClusterError busy after the timeout in seconds."""
        self._modify(lambda node: quiesce.plan_cordon(node, CORDON_REASON), required=True)
        if self.dry_run:
            return
        if busy := quiesce.wait_until_idle(self.client, self.name, timeout, self.notify):
            raise ClusterError(
                f"Node {self.name}: volume operations did not finish within {timeout} s, and nothing was changed on the "
                f"node: {'; '.join(busy)}. Let them finish and run again, raise the timeout (kubewin_quiesce_timeout), or accept "
                "the risk (kubewin_quiesce=none).",
                "busy",
            )

    def remove_label(self) -> None:
        """Remove the label: the DaemonSet deletes the plugin's pod, and creates one that opens the new pipes once the label is back."""
        self._modify(_without_label)

    def restore(self, *, label: bool) -> None:
        """Uncordon the Node if the change of csi-proxy cordoned it, and set the label on request."""
        self._modify(lambda node: _restored(node, label))

    def _modify(self, patch: Callable[[dict[str, Any]], dict[str, Any]], *, required: bool = False) -> None:
        done = modify(self.client, kinds.NODE, self.name, None, patch, dry_run=self.dry_run, required=required)
        self.changed = self.changed or done
