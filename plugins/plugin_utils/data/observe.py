# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a claim's volume through the pod that uses it, or through our own if it is unused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ..base.text import join_lines
from ..base.waiting import report_progress, wait_until_clear
from ..kube import kinds
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.holder import identify_process
from ..kube.lease import Lease, LeaseSubject
from ..kube.pod import PodFacts
from ..verify import explain
from ..verify.nodes import choose_node
from ..verify.objects import CONTAINER, MOUNT
from ..verify.observe import read_nodes
from . import compare, objects
from .listing import UNSPEAKABLE, DirectoryListing
from .manifest import How, Manifest
from .read import ContainerFolder, Reader, ReadLimits

_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class ReadableClaim:
    """A claim that can be read. using: a pod that has it mounted, None if it is unused."""

    claim: Mapping[str, Any]
    volume: Mapping[str, Any]
    using: objects.ClaimUse | None

    @property
    def how(self) -> How:
        return "content" if self.using is None else "listing"


class VolumeReader:
    """Reads manifests of claims in one namespace. options: of volume_data. notify: progress callback."""

    def __init__(
        self, client: Client, namespace: str, options: Mapping[str, Any], limits: ReadLimits, notify: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._client, self._namespace, self._options, self._limits = client, namespace, options, limits
        self._notify, self._timeout = notify, options["step_timeout"]

    def find(self, name: str) -> ReadableClaim:
        """Find a claim and the pod that uses it. Raises ClusterError not_found, not_bound, or in_use when it is used and none of its pods can list it."""
        qualified = f"{self._namespace}/{name}"
        claim = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, name, self._namespace)
        if claim is None:
            raise ClusterError(f"PersistentVolumeClaim {qualified} does not exist; correct its name.", "not_found")
        bound = (claim.get("spec") or {}).get("volumeName") or ""
        volume = self._client.get(kinds.PERSISTENT_VOLUME, bound) if bound else None
        if volume is None or (claim.get("status") or {}).get("phase") != "Bound":
            phase = (claim.get("status") or {}).get("phase", "Pending")
            raise ClusterError(f"PersistentVolumeClaim {qualified} is {phase}, expected Bound.", "not_bound")
        if volume["spec"].get("volumeMode") == "Block":
            raise ClusterError(
                f"PersistentVolumeClaim {qualified} is a raw block device, expected a file system.", "not_comparable"
            )
        using = tuple(objects.find_uses(self._client.list(kinds.POD, self._namespace).items, name))
        able = [use for use in using if use.running and use.mounts]
        if using and not able:
            names = ", ".join(use.pod for use in using)
            raise ClusterError(
                f"PersistentVolumeClaim {qualified} is used by {names}, which do not run or mount only a part of it, so "
                "it cannot be listed now. Wait until one runs, or scale its workload to 0 to have its content read "
                "too.",
                "in_use",
            )
        return ReadableClaim(claim, volume, able[0] if able else None)

    def take(self, target: ReadableClaim, before: Manifest | None) -> Manifest:
        """Read the manifest of a volume. before: the manifest to compare with, which decides what is read."""
        title = f"{self._namespace}/{target.claim['metadata']['name']}"
        if target.using is not None:
            container, folder = target.using.mounts[0]
            reader = self._create_reader(target.using.pod, container, folder, target.using.image)
            self._notify(f"{title}: listing it through pod {self._namespace}/{target.using.pod}, which uses it")
            with report_progress(self._notify, lambda: f"{title}: {reader.standing}"):
                return self._manifest(target, "listing", reader.read_listing())
        with self._run_helper(target) as (pod, image):
            reader = self._create_reader(pod, CONTAINER, MOUNT, image)
            self._notify(f"{title}: listing it")
            with report_progress(self._notify, lambda: f"{title}: {reader.standing}"):
                listed = reader.read_listing()
            files = [entry for entry in listed.entries if entry.kind == "file"]
            heads = compare.find_head_sizes(before, self._options["append_only"]) if before is not None else {}
            size = sum(file.size for file in files)
            self._notify(f"{title}: reading {len(files)} files, {size / (1 << 20):.1f} MiB")
            with report_progress(self._notify, lambda: f"{title}: {reader.standing}"):
                return self._manifest(target, "content", reader.read_contents(listed, heads))

    def _create_reader(self, pod: str, container: str, folder: str, image: str) -> Reader:
        if UNSPEAKABLE & set(folder):
            raise ClusterError(
                f"the volume is mounted at {folder} in pod {self._namespace}/{pod}, expected a path without "
                f"{''.join(sorted(UNSPEAKABLE))}, which cmd interprets. Mount it elsewhere, or scale the workload to "
                "0.",
                "not_comparable",
            )
        return Reader(self._client, ContainerFolder(self._namespace, pod, container, folder), self._limits, image)

    def _manifest(self, target: ReadableClaim, how: How, listed: DirectoryListing) -> Manifest:
        return Manifest(
            namespace=self._namespace,
            claim=target.claim["metadata"]["name"],
            volume=target.volume["metadata"]["name"],
            how=how,
            taken=self._client.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            entries=listed.entries,
            gaps=listed.gaps,
        )

    # The pod that reads

    @contextmanager
    def _run_helper(self, target: ReadableClaim) -> Iterator[tuple[str, str]]:
        name, title = objects.name_helper(target.claim["metadata"]["uid"]), target.claim["metadata"]["name"]
        qualified = f"{self._namespace}/{title}"
        subject = LeaseSubject(self._options["record_namespace"], name, objects.LABELS, f"the data of {qualified}")
        lease = Lease(self._client, subject, identify_process(os.getpid()), self._notify)
        lease.take()
        with ExitStack() as cleanup:
            cleanup.callback(lease.end)
            self._remove(name)
            image, tolerations = self._options["image"], self._options["tolerations"]
            # Of a volume without a CSI source, no driver need be registered.
            driver = (target.volume["spec"].get("csi") or {}).get("driver", "")
            node = choose_node(read_nodes(self._client), qualified, target.volume, driver, image, tolerations)
            definition = objects.define_helper(target.claim, node, image, tolerations, self._limits.seconds)
            created = self._client.create_new(kinds.POD, definition, dry_run=False)
            cleanup.callback(self._remove, name)
            condition = f"pod {self._namespace}/{name}, which reads {qualified}, runs on {node.name}"
            self._wait_until(lambda: self._is_running(name, created), condition, lambda: self._trouble(name, node.name))
            yield name, definition["spec"]["containers"][0]["image"]

    def _is_running(self, name: str, created: Mapping[str, Any]) -> bool:
        live = self._client.get(kinds.POD, name, self._namespace)
        if live is None or live["metadata"]["uid"] != created["metadata"]["uid"]:
            raise ClusterError(f"pod {self._namespace}/{name} was deleted by another client. Run again.", "interrupted")
        pod = PodFacts.from_object(live)
        if pod.ended:
            why = join_lines(str((live.get("status") or {}).get("message") or "")) or "its command ended"
            raise ClusterError(f"pod {self._namespace}/{name} is {pod.phase}: {why}", "not_comparable")
        return pod.phase == "Running"

    def _trouble(self, name: str, node: str) -> ClusterError:
        live = self._client.get(kinds.POD, name, self._namespace)
        uid = live["metadata"]["uid"] if live else ""
        events: Sequence[Mapping[str, Any]] = self._client.list(
            kinds.EVENT, self._namespace, field_selector=f"involvedObject.uid={uid}"
        ).items
        why = explain.explain_waiting(live, explain.select_warnings(events))
        return ClusterError(
            f"pod {self._namespace}/{name}, which reads the volume, does not run on {node} after "
            f"{self._timeout:g} s: {why}. {explain.choose_remedy(why, node, f'-n {self._namespace} {name}')}",
            "helper_failed",
        )

    def _remove(self, name: str) -> None:
        """Delete the helper pod, also that of a killed run."""
        live = self._client.get(kinds.POD, name, self._namespace)
        if live is None:
            return
        if not objects.is_ours(live):
            raise ClusterError(
                f"pod {self._namespace}/{name} exists and belongs to another owner. Delete or rename it.", "conflict"
            )
        uid = live["metadata"]["uid"]
        self._client.discard(kinds.POD, live)

        def is_deleted() -> bool:
            current = self._client.get(kinds.POD, name, self._namespace)
            return current is None or current["metadata"]["uid"] != uid

        self._wait_until(is_deleted, f"pod {self._namespace}/{name} ends", lambda: ClusterError(
            f"pod {self._namespace}/{name} does not end within {self._timeout:g} s. Check that its node unmounts the volume.",
            "left_behind",
        ))  # fmt: skip

    def _wait_until(self, probe: Callable[[], bool], condition: str, trouble: Callable[[], ClusterError]) -> None:
        awaited = [f"waiting until {condition}"]
        if wait_until_clear(lambda: [] if probe() else awaited, self._timeout, self._notify, _LOOK):
            raise trouble()
