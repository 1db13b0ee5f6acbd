# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Node of a host while csi-proxy changes there: its cordon, and the label that node plugins select.

Both stay when the task is killed. The cordon names its reason, so the next run finds what it has to restore on the Node alone.

A run names itself on the Node in a patch of its own before anything else, and each patch is bound to the Node as it was read. So a
patch of a former run that arrives late is a conflict, and a former run that reads the Node again finds that it is not its own any
more. It reads the Node again under the host's lock before it stops csi-proxy; a run that restores what another left names itself,
then waits for that lock. After a run that had nothing to change, the name of a killed run may arrive; the next run removes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..kube import kinds, quiesce
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.labels import CORDONED, SERVING_LABEL, SERVING_VALUE
from ..kube.modify import modify

CORDON_REASON = "csi-proxy is being replaced"
RUN = "kubewin.io/csi-proxy-run"
"""annotation: the run that changes csi-proxy of the Node"""

Object = dict[str, Any]


def is_labelled(node: Mapping[str, Any]) -> bool:
    """Whether a Node has the label of a csi-proxy that serves."""
    return bool((node["metadata"].get("labels") or {}).get(SERVING_LABEL) == SERVING_VALUE)


def _read_annotation(node: Mapping[str, Any], name: str) -> str:
    return str((node["metadata"].get("annotations") or {}).get(name, ""))


@dataclass(slots=True)
class ClusterNode:
    """One Node. changed: whether this object changed it, with dry_run whether it would. notify: progress callback."""

    client: Client
    name: str
    dry_run: bool
    notify: Callable[[str], None]
    changed: bool = False
    _run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    _owner: str = ""
    """the run that the Node has to name: the one that was read, then this one"""

    def read(self) -> tuple[bool, bool]:
        """Whether the Node has the label, and whether a run that changed csi-proxy left it. ClusterError if it does not exist."""
        node = self.client.get(kinds.NODE, self.name)
        if node is None:
            raise ClusterError(
                f"Node {self.name} does not exist, expected the Node of this host. Run again.", "not_found", 404
            )
        self._owner = _read_annotation(node, RUN)
        return is_labelled(node), bool(self._owner) or _read_annotation(node, CORDONED) == CORDON_REASON

    def take_over(self, *, cordon: bool) -> None:
        """Name this run on the Node, then cordon it on request."""
        self._modify(lambda _node: {"metadata": {"annotations": {RUN: self._run}}})
        if not self.dry_run:
            self._owner = self._run
        if cordon:
            self._modify(lambda node: self._require_run(node, quiesce.plan_cordon(node, CORDON_REASON)))

    def wait_until_idle(self, timeout: int) -> None:
        """Wait until no volume operation is in flight on the Node. ClusterError busy after the timeout in seconds."""
        if self.dry_run:
            return
        if busy := quiesce.wait_until_idle(self.client, self.name, timeout, self.notify):
            raise ClusterError(
                f"Node {self.name}: volume operations did not finish within {timeout} s, and nothing was changed on the "
                f"node: {'; '.join(busy)}. Let them finish, or delete the pods that cannot start, then run again. "
                "For slow operations raise csi_proxy_quiesce_timeout.",
                "busy",
            )

    def confirm(self) -> None:
        """Check that the Node still names this run. ClusterError taken_over if another run took it over."""
        if not self.dry_run:
            self._require_run(self.client.get(kinds.NODE, self.name) or {"metadata": {}}, {})

    def remove_label(self) -> None:
        """Remove the label: the DaemonSet deletes the plugin's pod, and creates one that opens the new pipes once the label is back."""
        self._modify(lambda node: self._require_run(node, {"metadata": {"labels": {SERVING_LABEL: None}}}))

    def restore(self, *, label: bool) -> None:
        """Uncordon the Node if the change of csi-proxy cordoned it, and set the label on request."""
        self._modify(lambda node: self._require_run(node, self._plan_restore(node, label)))

    def _plan_restore(self, node: Object, label: bool) -> Object:
        patch = quiesce.plan_uncordon(node, CORDON_REASON)
        if self._owner:
            patch.setdefault("metadata", {}).setdefault("annotations", {})[RUN] = None
        if label and not is_labelled(node):
            patch.setdefault("metadata", {})["labels"] = {SERVING_LABEL: SERVING_VALUE}
        return patch

    def _require_run(self, node: Object, patch: Object) -> Object:
        if _read_annotation(node, RUN) != self._owner:
            raise ClusterError(
                f"Node {self.name}: another run changes csi-proxy there, so this run leaves the Node to it. Wait for that run, then run again.",
                "taken_over",
            )
        return patch

    def _modify(self, patch: Callable[[Object], Object]) -> None:
        done = modify(self.client, kinds.NODE, self.name, None, patch, dry_run=self.dry_run, required=True)
        self.changed = self.changed or done
