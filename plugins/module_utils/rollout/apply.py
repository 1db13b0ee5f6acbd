# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing a DaemonSet whose pods are replaced one by one, and deleting those pods. Talks, and decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.compare import Change, change
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError, is_overtaken
from ansible_collections.kubewin.csi.plugins.module_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import selector_of
from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout import hold
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.advance import permitted, still_away
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import (
    hash_of,
    kept_template,
    own_revisions,
    revision_of,
)
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.hold import Rolling

# Other clients, above all its controller while pods come and go, and other slices, write the DaemonSet between two requests.
_ATTEMPTS = 40
# Seconds after which a pod that a run announced is deleted, unless that run was killed.
_SETTLED = 5.0


def _ready(pods: Sequence[PodFacts]) -> dict[str, str]:
    """Uids of the Ready pods by node."""
    return {pod.node: pod.uid for pod in pods if pod.ready and not pod.deleting}


def _pinned(definition: dict[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """A definition that is applied to the object as it was read, and to no later state of it."""
    return {
        **definition,
        "metadata": {**definition["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]},
    }


class Roller:
    """One DaemonSet while it changes. definition: as it is to be in the end."""

    def __init__(
        self, client: Client, definition: Mapping[str, Any], *, force: bool,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._client, self._sleep = client, sleep
        self._definition = definition
        self._run = hold.run_of(definition)
        self._force = force
        self.name = str(definition["metadata"]["name"])
        self.namespace = str(definition["metadata"]["namespace"])

    def live(self) -> dict[str, Any] | None:
        """The DaemonSet as it is."""
        return self._client.get(kinds.DAEMON_SET, self.name, self.namespace)

    def state(self) -> Rolling | None:
        """Where the change stands, None when there is none."""
        return hold.rolling(self.live())

    def held(self, live: Mapping[str, Any]) -> dict[str, Any]:
        """The definition as it is applied to begin or continue the change."""
        ready = _ready(self._pods(live))
        state = hold.begun(live, revision_of(live, self._revisions(live)), self._run, ready)
        return hold.held(self._definition, state)

    def begin(self) -> Change:
        """Begin or continue the change, or join runs over other nodes that make it: what they recorded stays."""
        attempts, settled = _ATTEMPTS, False
        while True:
            live = self.live()
            if live is None:
                name = f"{self.namespace}/{self.name}"
                raise ClusterError(f"DaemonSet {name} was deleted while it was read. Run again.", "not_found", 404)
            if not settled and self._announces(live):
                self._sleep(_SETTLED)
                settled = True
                continue
            attempts -= 1
            held = self.held(live)
            try:
                answer = self._client.apply(_pinned(held, live), dry_run=False, force=self._force)
            except ClusterError as error:
                if attempts and is_overtaken(error):
                    continue
                raise
            return change(held, live, answer.body)

    def _announces(self, live: Mapping[str, Any]) -> bool:
        """Whether a pod that a run announced is still Ready: a live run has yet to delete it, a killed one never does."""
        state = hold.rolling(live)
        return state is not None and not state.taken.items().isdisjoint(_ready(self._pods(live)).items())

    def replace(self, pods: Sequence[PodFacts], expected: Sequence[str], allowed: int) -> Sequence[PodFacts]:
        """Delete these pods and no others: one that was made anew under the same name meanwhile stays.

        Runs over other nodes make the same change at the same time. Each announces its pods in the DaemonSet first, as it was when
        the pods were counted, so that all of them together leave no more nodes without a plugin than may be.
        """
        for _attempt in range(_ATTEMPTS):
            live = self.live()
            state = hold.rolling(live)
            if live is None or state is None or state.run != self._run:
                return ()
            now = self._pods(live)
            chosen = permitted(pods, now, state.taken, expected, allowed)
            if not chosen:
                return ()
            taken = {**still_away(_ready(now), state.taken, expected), **{pod.node: pod.uid for pod in chosen}}
            if self._announced(live, replace(state, taken=taken)):
                self._delete(chosen)
                return chosen
        # Other runs write all the time; the next window tries again.
        return ()

    def _announced(self, live: Mapping[str, Any], state: Rolling) -> bool:
        found = self._former(live, state) if state.goes_back else None
        body = self._definition if found is None else hold.former(self._definition, state, found)
        try:
            self._client.apply(
                _pinned(hold.held(body, state), live), dry_run=False, force=self._force or found is not None
            )
        except ClusterError as error:
            if is_overtaken(error):
                return False
            raise
        return True

    def _delete(self, pods: Sequence[PodFacts]) -> None:
        for pod in pods:
            try:
                self._client.delete(kinds.POD, pod.name, self.namespace, pod.uid, dry_run=False, policy="Background")
            except ClusterError as error:
                if error.status != 409:
                    raise

    def taken_over(self) -> str:
        """The other run that makes this change now; empty if there is none."""
        state = self.state()
        if state is not None and state.run == self._run:
            return ""
        return (
            f"another run changes DaemonSet {self.namespace}/{self.name} to another template; this run stops. Use "
            "the same variables in both, or run one after the other"
        )

    def back(self, node: str, because: str) -> str:
        """Bring the former template back, with its pods still in place; what keeps from it, or nothing."""

        def former(live: Mapping[str, Any], state: Rolling) -> dict[str, Any] | None:
            found = self._former(live, state)
            failed = replace(state, failed=node, because=because)
            return None if found is None else hold.held(hold.former(self._definition, state, found), failed)

        if self._write(former):
            return ""
        return self.taken_over() or "the former template is no longer kept in the cluster, so it cannot be restored"

    def finish(self) -> bool:
        """Give the DaemonSet its strategy back, with the template that all of its pods have; whether that was a write."""

        def finished(live: Mapping[str, Any], state: Rolling) -> dict[str, Any] | None:
            found = self._former(live, state) if state.goes_back else None
            if found is None:
                return None if state.goes_back else dict(self._definition)
            return hold.former(self._definition, state, found)

        return self._write(finished)

    def _write(self, body_of: Callable[[Mapping[str, Any], Rolling], dict[str, Any] | None]) -> bool:
        """Apply what `body_of` makes of the DaemonSet as it is; whether that was a write.

        A DaemonSet that another run finished, or changes to another template, is left to that run; the gate compares the template.
        """
        for left in reversed(range(_ATTEMPTS)):
            live = self.live()
            state = hold.rolling(live)
            body = None if live is None or state is None or state.run != self._run else body_of(live, state)
            if live is None or body is None:
                return False
            # A former template has fields that others wrote into it then; it is restored whole.
            force = self._force or body["spec"]["template"] != self._definition["spec"]["template"]
            try:
                self._client.apply(_pinned(body, live), dry_run=False, force=force)
            except ClusterError as error:
                if left and is_overtaken(error):
                    continue
                raise
            return True
        return False

    def _former(self, live: Mapping[str, Any], state: Rolling) -> dict[str, Any] | None:
        kept = (one for one in self._revisions(live) if hash_of(one) == state.former)
        return next((kept_template(one) for one in own_revisions(live, kept)), None)

    def _pods(self, live: Mapping[str, Any]) -> list[PodFacts]:
        return [PodFacts.from_object(pod) for pod in self._listed(kinds.POD, live)]

    def _revisions(self, live: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        return self._listed(kinds.CONTROLLER_REVISION, live)

    def _listed(self, kind: Kind, live: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Objects with the labels that the DaemonSet selects its pods by."""
        return self._client.list(kind, self.namespace, label_selector=selector_of(live)).items
