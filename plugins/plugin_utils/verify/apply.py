# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proving volumes on Windows nodes: makes the objects, runs the commands, and takes everything away again.

The pure files of this folder decide; this one carries out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_lines
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import render_progress, repeat_pauses
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError, StreamError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import About, Lease, bind_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.streams import Executed
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify import explain, objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.cleanup import Cleaner
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import ProofNode, closed, reachable
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import Room
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import Request, Target
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.verdict import Proof, Step, compared, settle

# The first check is early, since many steps are quick; then once a second.
_FIRST_LOOK, _LOOK = 0.1, 1.0
# Seconds that a helper pod may outlive the whole run: it ends by itself if nothing deletes it.
_GRACE = 60
# One command's time; a longer one is taken for lost and sent again.
_COMMAND = 30.0


class StoppedError(Exception):
    """The run ends: it was interrupted, or its time is over."""


class StepError(Exception):
    """A step failed. events: the cluster's warnings meanwhile."""

    def __init__(self, message: str, remedy: str = "", events: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.events = tuple(events)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for a step and for all proofs together; nodes at once."""

    step: float
    whole: float
    parallel: int


class _Journal:
    """What is known of one proof so far."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.proof = Proof(target.driver, target.node, target.storage_class, "not_run")

    def add(self, **known: Any) -> None:
        """Add these fields of the proof."""
        self.proof = replace(self.proof, **known)


class Prover:
    """One run. token: a new random word for each file; notify: progress callback."""

    def __init__(
        self, client: Client, room: Room, desired: Request, limits: Limits, token: Callable[[], str],
        notify: Callable[[str], None], holder: str,
    ) -> None:  # fmt: skip
        self._room, self._desired, self._limits = room, desired, limits
        self._token, self._notify = token, notify
        what = f"the verification in namespace {room.namespace}"
        about = About(room.namespace, f"{objects.PREFIX}-{room.run}", room.labels(), what)
        self._lease = Lease(client, about, holder, notify)
        # Its objects carry its name. A run that finds its lease expired deletes the lease, and with it the right to make more.
        self._unbound, self._client = client, bind_client(client, self._lease.confirm)
        self._stop = threading.Event()
        self._began = time.monotonic()
        # (driver, node) that had a volume mounted in this run. Only ever added to, which threads may.
        self._mounted: set[tuple[str, str]] = set()
        self.cleaner = Cleaner(client, room, notify)

    def run(self, targets: Sequence[Target]) -> list[Proof]:
        """Prove every target; the cleaner has to follow, whatever comes of this."""
        try:
            if self._room.own:
                self._unbound.apply(self._room.space(), dry_run=False)
            # Without it another run counts this one as ended, and deletes its objects.
            self._lease.take()
            self._rehearse(targets[0])
            return self._all(targets)
        finally:
            # Interrupted or not: no pod writes from here on.
            self._stop.set()
            self._lease.stop()

    def _all(self, targets: Sequence[Target]) -> list[Proof]:
        by_node = group_values((target.node, target) for target in targets)
        pool = ThreadPoolExecutor(max_workers=self._limits.parallel)
        try:
            futures = [pool.submit(self._node, one) for one in by_node.values()]
            wait(futures, return_when=FIRST_EXCEPTION)
            return settle([proof for future in futures for proof in future.result()])
        finally:
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _node(self, targets: Sequence[Target]) -> list[Proof]:
        return [self._prove(target) for target in targets]

    def _rehearse(self, target: Target) -> None:
        """Let the server check a claim and a pod without making them: quotas, pod security, policies."""
        node = self._observe(target.node)
        self._client.apply(self._room.claim(target), dry_run=True)
        self._client.apply(self._pod(target, 1, node), dry_run=True)

    # One proof

    def _prove(self, target: Target) -> Proof:
        journal = _Journal(target)
        if self._over():
            return journal.proof
        text = objects.content(target, self._token(), self._client.now())
        begun = False
        try:
            with self._step(journal, "claim", target.node):
                begun = True
                self._client.create(self._room.claim(target))
            pod = self._start(journal, 1, target.node, "start")
            self._write(journal, pod, text)
            self._delete(pod, "restart", journal)
            pod = self._start(journal, 2, target.node, "restart")
            self._read(journal, pod, target.node, text)
            self._move(journal, pod, text)
        except StoppedError as error:
            journal.add(error=str(error))
        except (ClusterError, StepError) as error:
            self._notify(f"{target.driver} on {target.node}: failed: {error}")
            journal.add(verdict="failed", error=str(error))
            if isinstance(error, StepError):
                journal.add(remedy=error.remedy, events=error.events)
        else:
            journal.add(verdict="proven")
            where = " and ".join(journal.proof.read_on)
            self._notify(
                f"{target.driver} on {target.node}: proven in {journal.proof.seconds:g} s, read back on {where}"
            )
        if begun and not self._stop.is_set():
            self.cleaner.target(target)
        return journal.proof

    def _move(self, journal: _Journal, pod: str, text: str) -> None:
        target = journal.target
        if not target.elsewhere:
            journal.add(note=target.stays)
            return
        name = journal.proof.volume
        volume = self._client.get(kinds.PERSISTENT_VOLUME, name) or {}
        nodes = {name: self._observe(name) for name in target.elsewhere}
        possible = [
            name for name in target.elsewhere if reachable(nodes[name], volume) and not self._closed(nodes[name])
        ]
        if not possible:
            journal.add(note=f"volume {name} is not accessible from {', '.join(target.elsewhere)} (its topology)")
            return
        # Where this driver has mounted something in this run first; a node in trouble is left to its own proof.
        node = next((name for name in possible if (target.driver, name) in self._mounted), possible[0])
        self._delete(pod, "move", journal)
        if target.attaches:
            self._detached(journal, volume)
        try:
            pod = self._start(journal, 3, node, "move")
        except StepError as error:
            journal.add(not_on=(node, str(error), error.remedy))
            return
        self._read(journal, pod, node, text)

    @contextmanager
    def _step(self, journal: _Journal, name: str, node: str) -> Iterator[list[str]]:
        """A step of the proof. Gives a list that takes details."""
        began = time.monotonic()
        details: list[str] = []

        def note(ok: bool, text: str) -> None:
            step = Step(name, node, round(time.monotonic() - began, 1), ok, text)
            journal.add(steps=(*journal.proof.steps, step))

        try:
            yield details
        except (ClusterError, StepError, StoppedError) as error:
            note(False, str(error))
            raise
        note(True, "; ".join(details))

    # Pods

    def _observe(self, name: str) -> ProofNode:
        node = self._client.get(kinds.NODE, name)
        if node is None:
            raise StepError(f"Node {name} does not exist")
        return ProofNode.from_objects(node, self._client.get(kinds.CSI_NODE, name))

    def _closed(self, node: ProofNode) -> str:
        # Registration may change with the plugin: a mount shows more than reading it.
        return closed(node, self._desired.image, self._desired.tolerations)

    def _pod(self, target: Target, number: int, node: ProofNode) -> dict[str, Any]:
        image = self._desired.image or node.image()
        tolerations = node.tolerations(self._desired.tolerations)
        return self._room.pod(target, number, node.name, image, tolerations, int(self._limits.whole) + _GRACE)

    def _start(self, journal: _Journal, number: int, name: str, step: str) -> str:
        """Make a pod on a node and wait until it runs; answers its name."""
        target = journal.target
        with self._step(journal, step, name) as details:
            node = self._observe(name)
            if why := self._closed(node):
                raise StepError(f"Node {name}: {why}")
            definition = self._pod(target, number, node)
            pod = definition["metadata"]["name"]
            self._notify(f"{target.driver} on {target.node}: {step}, pod {self._room.namespace}/{pod} on {name}")
            self._client.create(definition)
            made = self._client.get(kinds.POD, pod, self._room.namespace)
            if made is None:
                raise StepError(
                    f"pod {pod} on {name} was deleted by another client. Check whether the node was drained"
                )
            self._until(
                kinds.POD, pod, lambda live: self._runs(live, made, name),
                lambda live: self._trouble(live, made, target, name), f"{target.driver} on {target.node}: pod on {name}",
            )  # fmt: skip
            claim = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, self._room.name(target), self._room.namespace) or {}
            volume = str((claim.get("spec") or {}).get("volumeName") or journal.proof.volume)
            journal.add(volume=volume)
            self.cleaner.note(volume, self._room.name(target))
            details.append(f"volume {volume}")
            self._mounted.add((target.driver, name))
        return str(pod)

    def _runs(self, live: Mapping[str, Any] | None, made: Mapping[str, Any], node: str) -> bool:
        if live is None or live["metadata"]["uid"] != made["metadata"]["uid"]:
            raise StepError(
                f"pod {made['metadata']['name']} on {node} was deleted by another client. Check whether the node was drained"
            )
        pod, status = PodFacts.from_object(live), live.get("status") or {}
        if pod.ended:
            why = join_lines(str(status.get("message") or "")) or status.get("reason") or "its command ended"
            raise StepError(f"pod {made['metadata']['name']} on {node} is {pod.phase}: {why}")
        return pod.works

    def _trouble(self, live: Mapping[str, Any] | None, made: Mapping[str, Any], target: Target, node: str) -> StepError:
        namespace, pod = self._room.namespace, str(made["metadata"]["name"])
        claim = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, self._room.name(target), namespace)
        found = [
            event
            for thing in (live, claim)
            if thing is not None
            for event in self._client.list(
                kinds.EVENT, namespace, field_selector=f"involvedObject.uid={thing['metadata']['uid']}"
            ).items
        ]
        warnings = explain.warnings(found)
        why = explain.waiting_for(live, warnings)
        events = [f"{reason}: {message}" for reason, message in warnings]
        return StepError(why, explain.remedy(why, node, f"-n {namespace} {pod}"), events)

    def _delete(self, pod: str, step: str, journal: _Journal) -> None:
        target, namespace = journal.target, self._room.namespace
        live = self._client.get(kinds.POD, pod, namespace)
        if live is None:
            return
        node = str((live.get("spec") or {}).get("nodeName", ""))
        uid = str(live["metadata"]["uid"])
        with self._step(journal, f"{step}: delete", node):
            # Of this run alone, and its uid says which.
            self._unbound.delete(kinds.POD, pod, namespace, uid, dry_run=False, policy="Background")
            self._until(
                kinds.POD, pod, lambda now: now is None or now["metadata"]["uid"] != uid,
                lambda now: StepError(
                    f"pod {pod} on {node} does not end",
                    f"check that its volume is unmounted there: kubectl describe node {node}, and the node plugin's log",
                ),
                f"{target.driver} on {target.node}: end of pod {pod} on {node}",
            )  # fmt: skip

    def _detached(self, journal: _Journal, volume: Mapping[str, Any]) -> None:
        """Wait until the volume has left its node: a pod elsewhere would only wait for that, less patiently."""
        target = journal.target
        handle = str(((volume.get("spec") or {}).get("csi") or {}).get("volumeHandle", ""))
        name = objects.attachment(target.provisioner, handle, target.node)
        with self._step(journal, "move: detach", target.node):
            self._until(
                kinds.VOLUME_ATTACHMENT, name, lambda now: now is None,
                lambda now: StepError(
                    f"volume {journal.proof.volume} is not detached from {target.node}",
                    f"kubectl describe volumeattachment {name}, and the log of the driver's attacher",
                ),
                f"{target.driver} on {target.node}: detach of {journal.proof.volume}",
            )  # fmt: skip

    # Files

    def _write(self, journal: _Journal, pod: str, text: str) -> None:
        with self._step(journal, "write", journal.target.node) as details:
            done = self._execute(pod, objects.write(text), details)
            if done.code != 0:
                answer = join_lines(done.stderr or done.stdout)
                raise StepError(
                    f"writing {objects.FILE} ended with exit code {done.code}: {answer or 'no output'}",
                    "the volume is mounted but cannot be written: check its free space, and permissions on a share",
                )
            self._same(pod, text, details)
            details.append(text)

    def _read(self, journal: _Journal, pod: str, node: str, text: str) -> None:
        with self._step(journal, "read", node) as details:
            self._same(pod, text, details)
            details.append(text)
            journal.add(read_on=(*journal.proof.read_on, node))

    def _same(self, pod: str, text: str, details: list[str]) -> None:
        done = self._execute(pod, objects.read(), details)
        if done.code != 0:
            answer = join_lines(done.stderr or done.stdout)
            raise StepError(
                f'reading {objects.FILE} ended with exit code {done.code}: {answer or "no output"}; "{text}" had been '
                "written",
                "the volume lost its data: do not use the driver until you know the cause",
            )
        if wrong := compared(text, done.stdout):
            raise StepError(wrong, "the volume has other data: do not use the driver until you know the cause")

    def _execute(self, pod: str, command: Sequence[str], details: list[str]) -> Executed:
        """Run a command that may be run twice; a connection that is cut is no answer, and it is run again."""
        ends = self._deadline()
        cuts = 0
        while True:
            self._check()
            try:
                left = min(_COMMAND, max(1.0, ends - time.monotonic()))
                done = self._client.execute(self._room.namespace, pod, objects.CONTAINER, command, left)
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
                self._stop.wait(min(0.2 * cuts, 2.0))
                continue
            if cuts:
                details.append(f"run again after {cuts} lost connection{'s' if cuts > 1 else ''}")
            return done

    # Time

    def _over(self) -> bool:
        return self._stop.is_set() or time.monotonic() - self._began > self._limits.whole

    def _check(self) -> None:
        if self._stop.is_set():
            raise StoppedError("the run was terminated")
        if self._over():
            raise StoppedError(f"the timeout of the whole run ({self._limits.whole:.0f} s) was exceeded")

    def _deadline(self) -> float:
        return min(time.monotonic() + self._limits.step, self._began + self._limits.whole)

    def _until(
        self, kind: Kind, name: str, done: Callable[[dict[str, Any] | None], bool],
        trouble: Callable[[dict[str, Any] | None], StepError], what: str,
    ) -> None:  # fmt: skip
        """Poll until it is true; after the step's timeout, raise the cause."""
        namespace = self._room.namespace if kind.namespaced else None
        began, ends, pause = time.monotonic(), self._deadline(), _FIRST_LOOK
        again = repeat_pauses()
        due = began + next(again)
        while True:
            live = self._client.get(kind, name, namespace)
            if done(live):
                return
            now = time.monotonic()
            if now >= ends:
                found = trouble(live)
                raise StepError(f"{found} (waited {now - began:.0f} s)", found.remedy, found.events)
            self._check()
            if now >= due:
                due = now + next(again)
                self._notify(f"{what}, {render_progress(now - began, ends - began)}: {trouble(live)}")
            self._stop.wait(min(pause, max(0.0, ends - now)))
            pause = min(pause * 1.3, _LOOK)
