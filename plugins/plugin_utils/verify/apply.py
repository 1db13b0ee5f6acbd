# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verifies volumes on Windows nodes: creates the objects, runs the commands, and deletes everything.

The pure files of this folder decide; this one carries out.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..base.grouped import group_values
from ..base.text import join_lines
from ..base.waiting import render_progress, repeat_pauses
from ..kube import kinds
from ..kube.client import Client
from ..kube.errors import ClusterError, StreamError
from ..kube.holder import identify_process
from ..kube.kinds import Kind
from ..kube.lease import Lease, bind_client
from ..kube.pod import PodFacts
from ..kube.streams import CommandResult
from . import explain, objects
from .cleanup import Cleaner, describe_lease
from .nodes import ProofNode, can_reach, explain_unschedulable
from .objects import CONTAINER, RunScope
from .plan import VerifyRequest, VerifyTarget
from .verdict import Proof, VerifyStep, compare_content, settle

# The first check is early, since many steps are quick; then once a second.
_FIRST_LOOK, _LOOK = 0.1, 1.0
# How many steps all verifications together may take.
_STEPS = 12
# Seconds that a helper pod may outlive the whole run: it ends by itself if nothing deletes it.
_GRACE = 60
# One command's time; a longer one is taken for lost and sent again.
_COMMAND = 30.0
# Each has one volume and one pod at a time. More would load the storage, and take as long where it provisions one after the other.
_NODES_AT_ONCE = 4


class VerificationStoppedError(Exception):
    """The run was interrupted, or its time is over."""


class StepError(Exception):
    """A step failed. events: the cluster's warnings meanwhile."""

    def __init__(self, message: str, remedy: str = "", events: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.events = tuple(events)


class Prover:
    """Runs a verification. notify: progress callback. mounted: (driver, node) that had a volume mounted in this run."""

    def __init__(self, client: Client, scope: RunScope, desired: VerifyRequest, notify: Callable[[str], None]) -> None:
        self.scope, self.desired, self.notify = scope, desired, notify
        self.time_limit = _STEPS * desired.timeout
        self._lease = Lease(client, describe_lease(scope), identify_process(os.getpid()), notify)
        # Its objects carry its name. A run that finds its lease expired deletes the lease, and with it the right to make more.
        self.unbound, self.client = client, bind_client(client, self._lease.confirm)
        self.stopped = threading.Event()
        self._began = time.monotonic()
        # Only ever added to, which threads may.
        self.mounted: set[tuple[str, str]] = set()
        self.cleaner = Cleaner(client, scope, notify)

    def run(self, targets: Sequence[VerifyTarget]) -> list[Proof]:
        """Prove every target. The caller runs the cleaner afterwards in any case."""
        try:
            if self.scope.owns_namespace:
                self.unbound.apply(self.scope.define_namespace(), dry_run=False)
            # Without it another run counts this one as ended, and deletes its objects.
            self._lease.take()
            _TargetProver(self, targets[0]).rehearse()
            return self._prove_all(targets)
        finally:
            # Interrupted or not: no pod writes from here on.
            self.stopped.set()
            self._lease.stop()

    def _prove_all(self, targets: Sequence[VerifyTarget]) -> list[Proof]:
        by_node = group_values((target.node, target) for target in targets)
        pool = ThreadPoolExecutor(max_workers=_NODES_AT_ONCE)
        try:
            futures = [pool.submit(self._prove_node, targets_of_node) for targets_of_node in by_node.values()]
            wait(futures, return_when=FIRST_EXCEPTION)
            return settle([proof for future in futures for proof in future.result()])
        finally:
            self.stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _prove_node(self, targets: Sequence[VerifyTarget]) -> list[Proof]:
        return [_TargetProver(self, target).prove() for target in targets]

    # Time

    @property
    def is_over(self) -> bool:
        return self.stopped.is_set() or time.monotonic() - self._began > self.time_limit

    def check_time(self) -> None:
        """Raise VerificationStoppedError if the run was terminated or its time is over."""
        if self.stopped.is_set():
            raise VerificationStoppedError("the run was terminated")
        if self.is_over:
            raise VerificationStoppedError(f"the timeout of the whole run ({self.time_limit} s) was exceeded")

    def compute_deadline(self) -> float:
        """The end of a step that begins now."""
        return min(time.monotonic() + self.desired.timeout, self._began + self.time_limit)


class _TargetProver:
    """Proves one driver on one node."""

    def __init__(self, run: Prover, target: VerifyTarget) -> None:
        self._run, self._target = run, target
        self._client, self._scope = run.client, run.scope
        self._title = f"{target.driver} on {target.node}"
        self._claim = run.scope.name(target)
        self._proof = Proof(target.driver, target.node, target.storage_class, "not_run")

    def rehearse(self) -> None:
        """Let the server check a claim and a pod without making them: quotas, pod security, policies."""
        node = self._observe(self._target.node)
        self._client.apply(self._scope.define_claim(self._target), dry_run=True)
        self._client.apply(self._define_pod(1, node), dry_run=True)

    def prove(self) -> Proof:
        """Return the proof, also of a target that failed or was not tried."""
        target = self._target
        if self._run.is_over:
            return self._proof
        text = objects.format_content(target, secrets.token_hex(8), self._client.now())
        begun = False
        try:
            with self._step("claim", target.node):
                begun = True
                self._client.create(self._scope.define_claim(target))
            pod = self._start(1, target.node, "start")
            self._write(pod, text)
            self._delete(pod, "restart")
            pod = self._start(2, target.node, "restart")
            self._read(pod, target.node, text)
            self._move(pod, text)
        except VerificationStoppedError as error:
            self._note(error=str(error))
        except (ClusterError, StepError) as error:
            self._run.notify(f"{self._title}: failed: {error}")
            self._note(verdict="failed", error=str(error))
            if isinstance(error, StepError):
                self._note(remedy=error.remedy, events=error.events)
        else:
            self._note(verdict="proven")
            proof = self._proof
            self._run.notify(
                f"{self._title}: proven in {proof.seconds:g} s, read back on {' and '.join(proof.read_on)}"
            )
        if begun and not self._run.stopped.is_set():
            self._run.cleaner.delete_target(target)
        return self._proof

    def _move(self, pod: str, text: str) -> None:
        target, proof = self._target, self._proof
        if not target.elsewhere:
            self._note(note=target.stays)
            return
        volume = self._client.get(kinds.PERSISTENT_VOLUME, proof.volume) or {}
        nodes = {name: self._observe(name) for name in target.elsewhere}
        possible = [
            name for name, node in nodes.items() if can_reach(node, volume) and not self._explain_unschedulable(node)
        ]
        if not possible:
            places = ", ".join(target.elsewhere)
            self._note(note=f"volume {proof.volume} is not accessible from {places} (its topology)")
            return
        # Where this driver has mounted something in this run first; a node in trouble is left to its own proof.
        node_name = next((name for name in possible if (target.driver, name) in self._run.mounted), possible[0])
        self._delete(pod, "move")
        if target.attaches:
            self._wait_until_detached(volume)
        try:
            pod = self._start(3, node_name, "move")
        except StepError as error:
            self._note(not_on=(node_name, str(error), error.remedy))
            return
        self._read(pod, node_name, text)

    def _note(self, **fields: Any) -> None:
        self._proof = replace(self._proof, **fields)

    @contextmanager
    def _step(self, name: str, node: str) -> Iterator[list[str]]:
        """Record a step of the proof. Yields a list for details."""
        began = time.monotonic()
        details: list[str] = []

        def end(ok: bool, text: str) -> None:
            step = VerifyStep(name, node, round(time.monotonic() - began, 1), ok, text)
            self._note(steps=(*self._proof.steps, step))

        try:
            yield details
        except (ClusterError, StepError, VerificationStoppedError) as error:
            end(False, str(error))
            raise
        end(True, "; ".join(details))

    # Pods

    def _observe(self, name: str) -> ProofNode:
        node = self._client.get(kinds.NODE, name)
        if node is None:
            raise StepError(f"Node {name} does not exist")
        return ProofNode.from_objects(node, self._client.get(kinds.CSI_NODE, name))

    def _explain_unschedulable(self, node: ProofNode) -> str:
        # Registration may change with the plugin: a mount shows more than reading it.
        return explain_unschedulable(node, self._run.desired.image, self._run.desired.tolerations)

    def _define_pod(self, number: int, node: ProofNode) -> dict[str, Any]:
        seconds = self._run.time_limit + _GRACE
        return self._scope.define_pod(self._target, number, node, self._run.desired, seconds)

    def _start(self, number: int, name: str, step: str) -> str:
        """Create a pod on a node, wait until it runs, and return its name."""
        namespace = self._scope.namespace
        with self._step(step, name) as details:
            node = self._observe(name)
            if why := self._explain_unschedulable(node):
                raise StepError(f"Node {name}: {why}")
            definition = self._define_pod(number, node)
            pod = definition["metadata"]["name"]
            self._run.notify(f"{self._title}: {step}, pod {namespace}/{pod} on {name}")
            self._client.create(definition)
            created = self._client.get(kinds.POD, pod, namespace)
            if created is None:
                raise StepError(
                    f"pod {pod} on {name} was deleted by another client. Check whether the node was drained"
                )
            self._wait_until(
                kinds.POD, pod, lambda live: self._is_running(live, created, name),
                lambda live: self._explain_pod(live, pod, name), f"pod on {name}",
            )  # fmt: skip
            claim = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, self._claim, namespace) or {}
            volume = str((claim.get("spec") or {}).get("volumeName") or self._proof.volume)
            self._note(volume=volume)
            self._run.cleaner.record_volume(volume, self._claim)
            details.append(f"volume {volume}")
            self._run.mounted.add((self._target.driver, name))
        return str(pod)

    def _is_running(self, live: Mapping[str, Any] | None, created: Mapping[str, Any], node: str) -> bool:
        if live is None or live["metadata"]["uid"] != created["metadata"]["uid"]:
            raise StepError(
                f"pod {created['metadata']['name']} on {node} was deleted by another client. Check whether the node was drained"
            )
        pod, status = PodFacts.from_object(live), live.get("status") or {}
        if pod.ended:
            why = join_lines(str(status.get("message") or "")) or status.get("reason") or "its command ended"
            raise StepError(f"pod {created['metadata']['name']} on {node} is {pod.phase}: {why}")
        return pod.works

    def _explain_pod(self, live: Mapping[str, Any] | None, pod: str, node: str) -> StepError:
        namespace = self._scope.namespace
        claim = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, self._claim, namespace)
        events = [
            event
            for thing in (live, claim)
            if thing is not None
            for event in self._client.list(
                kinds.EVENT, namespace, field_selector=f"involvedObject.uid={thing['metadata']['uid']}"
            ).items
        ]
        warnings = explain.select_warnings(events)
        why = explain.explain_waiting(live, warnings)
        described = [f"{reason}: {message}" for reason, message in warnings]
        return StepError(why, explain.choose_remedy(why, node, f"-n {namespace} {pod}"), described)

    def _delete(self, pod: str, step: str) -> None:
        namespace = self._scope.namespace
        live = self._client.get(kinds.POD, pod, namespace)
        if live is None:
            return
        node = str((live.get("spec") or {}).get("nodeName", ""))
        uid = str(live["metadata"]["uid"])
        with self._step(f"{step}: delete", node):
            # Of this run alone, and its uid says which.
            self._run.unbound.delete(kinds.POD, pod, namespace, uid, dry_run=False, policy="Background")
            self._wait_until(
                kinds.POD, pod, lambda live_pod: live_pod is None or live_pod["metadata"]["uid"] != uid,
                lambda _live_pod: StepError(
                    f"pod {pod} on {node} does not end",
                    f"check that its volume is unmounted there: kubectl describe node {node}, and the node plugin's log",
                ),
                f"end of pod {pod} on {node}",
            )  # fmt: skip

    def _wait_until_detached(self, volume: Mapping[str, Any]) -> None:
        target, volume_name = self._target, self._proof.volume
        handle = str(((volume.get("spec") or {}).get("csi") or {}).get("volumeHandle", ""))
        name = objects.name_attachment(target.provisioner, handle, target.node)
        with self._step("move: detach", target.node):
            self._wait_until(
                kinds.VOLUME_ATTACHMENT, name, lambda live_attachment: live_attachment is None,
                lambda _live_attachment: StepError(
                    f"volume {volume_name} is not detached from {target.node}",
                    f"kubectl describe volumeattachment {name}, and the log of the driver's attacher",
                ),
                f"detach of {volume_name}",
            )  # fmt: skip

    def _wait_until(
        self, kind: Kind, name: str, done: Callable[[dict[str, Any] | None], bool],
        trouble: Callable[[dict[str, Any] | None], StepError], subject: str,
    ) -> None:  # fmt: skip
        """Poll until it is true; after the step's timeout, raise the cause."""
        namespace = self._scope.namespace if kind.namespaced else None
        began, ends, pause = time.monotonic(), self._run.compute_deadline(), _FIRST_LOOK
        report_pauses = repeat_pauses()
        due = began + next(report_pauses)
        while True:
            live = self._client.get(kind, name, namespace)
            if done(live):
                return
            uptime = time.monotonic()
            if uptime >= ends:
                failure = trouble(live)
                raise StepError(f"{failure} (waited {uptime - began:.0f} s)", failure.remedy, failure.events)
            self._run.check_time()
            if uptime >= due:
                due = uptime + next(report_pauses)
                progress = render_progress(uptime - began, ends - began)
                self._run.notify(f"{self._title}: {subject}, {progress}: {trouble(live)}")
            self._run.stopped.wait(min(pause, max(0.0, ends - uptime)))
            pause = min(pause * 1.3, _LOOK)

    # Files

    def _write(self, pod: str, text: str) -> None:
        with self._step("write", self._target.node) as details:
            done = self._execute(pod, objects.render_write(text), details)
            if done.code != 0:
                answer = join_lines(done.stderr or done.stdout)
                raise StepError(
                    f"writing {objects.FILE} ended with exit code {done.code}: {answer or 'no output'}",
                    "the volume is mounted but cannot be written: check its free space, and permissions on a share",
                )
            self._check_content(pod, text, details)

    def _read(self, pod: str, node: str, text: str) -> None:
        with self._step("read", node) as details:
            self._check_content(pod, text, details)
            self._note(read_on=(*self._proof.read_on, node))

    def _check_content(self, pod: str, text: str, details: list[str]) -> None:
        done = self._execute(pod, objects.render_read(), details)
        if done.code != 0:
            answer = join_lines(done.stderr or done.stdout)
            raise StepError(
                f'reading {objects.FILE} ended with exit code {done.code}: {answer or "no output"}; "{text}" had been '
                "written",
                "the volume lost its data: do not use the driver until you know the cause",
            )
        if wrong := compare_content(text, done.stdout):
            raise StepError(wrong, "the volume has other data: do not use the driver until you know the cause")
        details.append(text)

    def _execute(self, pod: str, command: Sequence[str], details: list[str]) -> CommandResult:
        """Run a command that is safe to repeat, again after each lost connection."""
        ends = self._run.compute_deadline()
        cuts = 0
        while True:
            self._run.check_time()
            try:
                seconds = min(_COMMAND, max(1.0, ends - time.monotonic()))
                done = self._client.execute(self._scope.namespace, pod, CONTAINER, command, seconds)
            except ClusterError as error:
                busy = error.status == 429 or error.status >= 500
                if not isinstance(error, StreamError) and not busy:
                    raise
                if time.monotonic() >= ends:
                    raise StepError(
                        f"no command could be run in pod {pod}: {error}",
                        "the API server cannot reach that node's kubelet (port 10250), or something between cuts "
                        "the connection; the volume itself may be fine",
                    ) from error
                cuts += 1
                self._run.stopped.wait(min(0.2 * cuts, 2.0))
                continue
            if cuts:
                details.append(f"run again after {cuts} lost connection{'s' if cuts > 1 else ''}")
            return done
