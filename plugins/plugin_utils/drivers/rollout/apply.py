# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roll a DaemonSet under OnDelete: replace the canary's pod, then the others in batches; restore the template if the canary fails.

One run at a time holds the Lease of the DaemonSet and replaces the pods of its own Nodes. Kubernetes' own RollingUpdate cannot do this: a
Ready plugin pod on Windows is not a registered driver, and the controller picks the order.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.decide import RollOptions, RollStep
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateRules
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.facts import hash_template, list_own_revisions
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.observe import RolloutView
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.roll import (
    FAILED,
    FailedTemplate,
    Notify,
    RollResult,
    choose_former,
    roll_pods,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.fencing import Reference
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, MODE, build_selector
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import Lease, LeaseSubject, bind_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts

# Annotations of a DaemonSet that describe its template, which has them too.
_OF_TEMPLATE = (MODE, "kubewin.io/driver-version")
# Seconds between two tries to take the Lease.
_NEXT_TRY = 2.0


@contextmanager
def hold_lease(client: Client, namespace: str, name: str, notify: Notify, patience: float) -> Iterator[Client]:
    """The Lease of a DaemonSet, as a client that writes only while it is held.

    Another run that holds it is waited for, at most `patience` seconds: ClusterError locked.
    """
    about = LeaseSubject(
        namespace, f"kubewin-roll-{name}", {MANAGED_BY: MANAGER}, f"the update of DaemonSet {namespace}/{name}"
    )
    reported: set[str] = set()

    def report(text: str) -> None:
        if not reported:
            notify(text)
        reported.add(text)

    def late() -> Iterator[Reference]:
        """Name what a rolling update writes: the DaemonSet and its pods."""
        yield Reference(kinds.DAEMON_SET, name, namespace)
        daemon_set = client.get(kinds.DAEMON_SET, name, namespace)
        pods = client.list(kinds.POD, namespace, label_selector=build_selector(daemon_set)).items if daemon_set else ()
        for pod in pods:
            yield Reference(kinds.POD, pod["metadata"]["name"], namespace)

    lease = Lease(client, about, identify_process(os.getpid()), report, late=late)
    ends = time.monotonic() + patience
    while True:
        try:
            lease.take()
            break
        except ClusterError as error:
            if error.reason != "locked" or time.monotonic() > ends:
                raise
            time.sleep(_NEXT_TRY)
    bound = bind_client(client, lease.confirm)
    try:
        yield bound
    finally:
        lease.end(unanswered=bound.has_unanswered_writes)


class Roller:
    """Rolls one DaemonSet, and restores its former template if the canary fails.

    client: of the Lease's holder. observe: makes a View. definition: the DaemonSet as applied. kept: see Executor.find_kept.
    """

    def __init__(
        self, client: Client, observe: Callable[[], RolloutView], definition: Mapping[str, Any], options: RollOptions,
        kept: Callable[[], Mapping[str, str]], notify: Notify,
    ) -> None:  # fmt: skip
        self._client, self._observe, self._definition = client, observe, definition
        self._options, self._notify = options, notify
        self._kept: Callable[[], Mapping[str, str]] = kept
        self._name = str(definition["metadata"]["name"])
        self._namespace = str(definition["metadata"]["namespace"])

    def find_kept(self) -> Mapping[str, str]:
        """See Executor."""
        return self._kept()

    def delete(self, pods: Sequence[PodFacts]) -> Sequence[PodFacts]:
        """See Executor."""
        return [pod for pod in pods if self._delete(pod)]

    def _delete(self, pod: PodFacts) -> bool:
        try:
            self._client.delete(
                kinds.POD, pod.name, self._namespace, pod.uid, dry_run=False, policy="Background", version=pod.version
            )
        except ClusterError as error:
            if error.status != 409:
                raise
            return False
        return True

    def run(self, applied: Mapping[str, Any]) -> RollResult:
        """Replace the pods of this run's Nodes. applied: the DaemonSet as the API server returned it."""
        result = roll_pods(
            self._observe(), self, self._options, GateRules(template=hash_template(applied)), self._notify
        )
        if result.step.kind == "restore":
            return self._restore(result, hash_template(applied))
        if result.replaced and result.step.kind == "finish":
            self._annotate(None)
        return result

    def _restore(self, result: RollResult, template: str) -> RollResult:
        """Apply the former template again, and replace the canary's pod with it."""
        (node,) = result.step.nodes
        failed = FailedTemplate(template, node, result.step.message)
        self._notify(f"  {node}: {failed.message}; restoring the former plugin")
        # First, so that no run without this Node tries the template, also if this run is killed here.
        self._annotate(failed)
        former = self._find_former()
        if former is None:
            message = "the former template is no longer kept in the cluster, so it cannot be restored"
            return replace(result, step=RollStep("stop", nodes=(node,), message=message), failed=failed)
        outcome = Applier(self._client, force=True).apply([former])
        self._kept = dict
        restored = roll_pods(
            self._observe(),
            self,
            replace(self._options, nodes=(node,), restores=True),
            GateRules(template=hash_template(outcome.changes[0].after)),
            self._notify,
        )
        return replace(restored, failed=failed, replaced=(*result.replaced, *restored.replaced))

    def _annotate(self, failed: FailedTemplate | None) -> None:
        """Record the template that failed, or that none did."""

        def patch(live: dict[str, Any]) -> dict[str, Any]:
            if failed is None and FAILED not in (live["metadata"].get("annotations") or {}):
                return {}
            return {"metadata": {"annotations": {FAILED: failed and failed.text()}}}

        modify(self._client, kinds.DAEMON_SET, self._name, self._namespace, patch)

    def _find_former(self) -> dict[str, Any] | None:
        """The DaemonSet with the newest template, beside the one that failed, that Ready pods have, or any pod, or none."""
        live = self._client.get(kinds.DAEMON_SET, self._name, self._namespace)
        if live is None:
            return None
        selector = build_selector(live)
        pods = self._client.list(kinds.POD, self._namespace, label_selector=selector).items
        revisions = list_own_revisions(
            live, self._client.list(kinds.CONTROLLER_REVISION, self._namespace, label_selector=selector).items
        )
        former = choose_former(revisions, [PodFacts.from_object(pod) for pod in pods])
        if former is None:
            return None
        restored = copy.deepcopy(dict(self._definition))
        annotations = restored["metadata"].setdefault("annotations", {})
        described = (former["metadata"].get("annotations") or {}).items()
        annotations.update({key: value for key, value in described if key in _OF_TEMPLATE})
        restored["spec"]["template"] = former
        return restored
