# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing a DaemonSet whose pods are replaced one by one, and deleting those pods. Talks, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.apply import Applier
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.deploy import hold
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.hold import Rolling
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import (
    PodFacts,
    hash_of,
    kept_template,
    own_revisions,
    revision_of,
)


class Roller:
    """One DaemonSet while it changes. definition: as it is to be in the end. run: who we are, see Rolling."""

    def __init__(self, client: Client, definition: Mapping[str, Any], run: str, *, force: bool) -> None:
        self._client = client
        self._definition = definition
        self._run = run
        self._force = force
        self.name = str(definition["metadata"]["name"])
        self.namespace = str(definition["metadata"]["namespace"])

    def live(self) -> dict[str, Any] | None:
        """The DaemonSet as it is."""
        return self._client.get(kinds.DAEMON_SET, self.name, self.namespace)

    def state(self) -> Rolling | None:
        """Where the change stands, None when there is none."""
        live = self.live()
        return None if live is None else hold.rolling(live)

    def held(self, live: Mapping[str, Any]) -> dict[str, Any]:
        """The definition as it is applied to begin, or to go on."""
        revisions = self._revisions(live)
        return hold.held(self._definition, hold.begun(live, revision_of(live, revisions), self._run))

    def replace(self, pods: Sequence[PodFacts]) -> None:
        """Delete these pods and no others: one that was made anew under the same name meanwhile stays."""
        for pod in pods:
            try:
                self._client.delete(kinds.POD, pod.name, self.namespace, pod.uid, dry_run=False, policy="Background")
            except ClusterError as error:
                if error.status != 409:
                    raise

    def taken_over(self) -> str:
        """Who else is at this change now; empty when nobody is."""
        state = self.state()
        if state is not None and state.run == self._run:
            return ""
        return (
            f"another run has taken over the change of DaemonSet {self.namespace}/{self.name}; this one leaves it to that. "
            "Let one run at a time change a driver"
        )

    def back(self, node: str, because: str) -> str:
        """Bring the former template back, with its pods still in place; what keeps from it, or nothing."""
        live = self.live()
        state = None if live is None else hold.rolling(live)
        found = None if live is None or state is None else self._former(live, state)
        if state is None or found is None:
            return "the template from before is not kept in the cluster any more, so it cannot be brought back"
        failed = replace(state, failed=node, because=because)
        self._apply(hold.held(hold.former(self._definition, state, found), failed))
        return ""

    def finish(self) -> bool:
        """Give the DaemonSet its strategy back, with the template that all of its pods have; whether that was a write."""
        live = self.live()
        state = None if live is None else hold.rolling(live)
        if live is None or state is None or not state.goes_back:
            return self._apply(self._definition)
        found = self._former(live, state)
        return False if found is None else self._apply(hold.former(self._definition, state, found))

    def _apply(self, definition: Mapping[str, Any]) -> bool:
        # A former template holds fields that others wrote into it then; it comes back whole.
        force = self._force or definition["spec"]["template"] is not self._definition["spec"]["template"]
        return Applier(self._client, force=force).apply([definition]).changed

    def _former(self, live: Mapping[str, Any], state: Rolling) -> dict[str, Any] | None:
        kept = (one for one in self._revisions(live) if hash_of(one) == state.former)
        return next((kept_template(one) for one in own_revisions(live, kept)), None)

    def _revisions(self, live: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        labels = live["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return self._client.list(kinds.CONTROLLER_REVISION, self.namespace, label_selector=selector).items
