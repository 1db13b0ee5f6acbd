# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a claim's volume through the pod that uses it, or through our own if it is unused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_lines
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.waiting import Awaited, Waits, report_progress
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import compare, objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.choice import Limits, sample
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.listing import UNSPEAKABLE, Listing
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import How, Manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.read import Location, Reader
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify import explain
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import ProofNode, place

_LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Request:
    """image, node: of the pod that reads, empty to choose. patience: seconds until it runs, and until it is gone."""

    image: str
    node: str
    tolerations: tuple[Mapping[str, Any], ...]
    growing: tuple[str, ...]
    patience: float


@dataclass(frozen=True, slots=True)
class Found:
    """A claim that can be read. using: a pod that has it mounted, None if it is unused."""

    claim: Mapping[str, Any]
    volume: Mapping[str, Any]
    using: objects.Use | None

    @property
    def how(self) -> How:
        return "content" if self.using is None else "listing"


class VolumeReader:
    """Takes manifests of claims in one namespace. notify: progress callback."""

    def __init__(
        self, client: Client, namespace: str, desired: Request, limits: Limits, notify: Callable[[str], None]
    ) -> None:
        self._client, self._namespace, self._desired, self._limits = client, namespace, desired, limits
        self._notify = notify

    def find(self, name: str) -> Found:
        """Raises ClusterError not_found, not_bound, or in_use when it is used and none of its pods can list it."""
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
        using = tuple(objects.uses(self._client.list(kinds.POD, self._namespace).items, name))
        able = [one for one in using if one.running and one.mounts]
        if using and not able:
            names = ", ".join(one.pod for one in using)
            raise ClusterError(
                f"PersistentVolumeClaim {qualified} is used by {names}, which do not run or mount only a part of it, so "
                "it cannot be listed now. Wait until one runs, or scale its workload to 0 to have its content read "
                "too.",
                "in_use",
            )
        return Found(claim, volume, able[0] if able else None)

    def take(self, found: Found, before: Manifest | None) -> Manifest:
        """What is on the volume. before: what it is to be compared with, which says what has to be read."""
        title = f"{self._namespace}/{found.claim['metadata']['name']}"
        if found.using is not None:
            container, folder = found.using.mounts[0]
            reader = self._reader(found.using.pod, container, folder, found.using.image)
            self._notify(f"{title}: listing it through pod {self._namespace}/{found.using.pod}, which uses it")
            with report_progress(self._notify, lambda: f"{title}: {reader.standing}"):
                return self._manifest(found, "listing", reader.listing())
        with self._helper(found) as (pod, image):
            reader = self._reader(pod, objects.CONTAINER, objects.MOUNT, image)
            self._notify(f"{title}: listing it")
            with report_progress(self._notify, lambda: f"{title}: {reader.standing}"):
                listed = reader.listing()
            files = [one for one in listed.entries if one.kind == "file"]
            heads = compare.heads(before, self._desired.growing) if before is not None else {}
            chosen = sample(files, self._limits.total, self._limits.seed)
            if before is not None and before.how == "content" and before.files and len(chosen) < len(files):
                # What cannot be compared need not be read.
                read = {one.path for one in before.files if one.sha256}
                chosen = sample([one for one in files if one.path in read], self._limits.total, self._limits.seed)
            size = sum(one.size for one in files if one.path in chosen)
            self._notify(f"{title}: reading {len(chosen)} of {len(files)} listed files, {size / (1 << 20):.1f} MiB")
            with report_progress(self._notify, lambda: f"{title}: {reader.standing}"):
                return self._manifest(found, "content", reader.contents(listed, chosen, heads))

    def _reader(self, pod: str, container: str, folder: str, image: str) -> Reader:
        if UNSPEAKABLE & set(folder):
            raise ClusterError(
                f"the volume is mounted at {folder} in pod {self._namespace}/{pod}, expected a path without "
                f"{''.join(sorted(UNSPEAKABLE))}, which cmd interprets. Mount it elsewhere, or scale the workload to "
                "0.",
                "not_comparable",
            )
        return Reader(self._client, Location(self._namespace, pod, container, folder), self._limits, image)

    def _manifest(self, found: Found, how: How, listed: Listing) -> Manifest:
        return Manifest(
            namespace=self._namespace,
            claim=found.claim["metadata"]["name"],
            volume=found.volume["metadata"]["name"],
            how=how,
            taken=self._client.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            entries=listed.entries,
            gaps=listed.gaps,
        )

    # The pod that reads

    @contextmanager
    def _helper(self, found: Found) -> Iterator[tuple[str, str]]:
        name = objects.helper_name(found.claim["metadata"]["uid"])
        self._remove(name)
        node = self._node(found)
        image = self._desired.image or node.image()
        tolerations = node.tolerations(self._desired.tolerations)
        made = self._client.create_new(
            kinds.POD, objects.helper(found.claim, node.name, image, tolerations, self._limits.seconds), dry_run=False
        )
        try:
            what = f"pod {self._namespace}/{name}, which reads {self._namespace}/{found.claim['metadata']['name']}, runs on {node.name}"
            self._until(lambda: self._runs(name, made), what, lambda: self._trouble(name, node.name))
            yield name, image
        finally:
            self._remove(name)

    def _node(self, found: Found) -> ProofNode:
        """Where it runs: on a node that the volume can go to and that has its driver."""
        csi_nodes = {item["metadata"]["name"]: item for item in self._client.list(kinds.CSI_NODE).items}
        driver = (found.volume["spec"].get("csi") or {}).get("driver", "")
        nodes = (
            ProofNode.from_objects(item, csi_nodes.get(item["metadata"]["name"]))
            for item in self._client.list_windows_nodes()
        )
        desired = self._desired
        node, whys = place(nodes, found.volume, driver, desired.image, desired.tolerations, desired.node)
        if node is None:
            raise ClusterError(
                f"no Windows node accepts the pod that reads {self._namespace}/{found.claim['metadata']['name']}: "
                f"{whys or 'there is none'}.",
                "no_node",
            )
        return node

    def _runs(self, name: str, made: Mapping[str, Any]) -> bool:
        live = self._client.get(kinds.POD, name, self._namespace)
        if live is None or live["metadata"]["uid"] != made["metadata"]["uid"]:
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
        why = explain.waiting_for(live, explain.warnings(events))
        return ClusterError(
            f"pod {self._namespace}/{name}, which reads the volume, does not run on {node} after "
            f"{self._desired.patience:g} s: {why}. {explain.remedy(why, node, f'-n {self._namespace} {name}')}",
            "helper_failed",
        )

    def _remove(self, name: str) -> None:
        """Also what a run left that died."""
        live = self._client.get(kinds.POD, name, self._namespace)
        if live is None:
            return
        if not objects.is_ours(live):
            raise ClusterError(
                f"pod {self._namespace}/{name} exists and belongs to another owner. Delete or rename it.", "conflict"
            )
        uid = live["metadata"]["uid"]
        self._client.discard(kinds.POD, live)

        def gone() -> bool:
            now = self._client.get(kinds.POD, name, self._namespace)
            return now is None or now["metadata"]["uid"] != uid

        self._until(gone, f"pod {self._namespace}/{name} ends", lambda: ClusterError(
            f"pod {self._namespace}/{name} does not end within {self._desired.patience:g} s. Check that its node unmounts the volume.",
            "left_behind",
        ))  # fmt: skip

    def _until(self, probe: Callable[[], bool], what: str, trouble: Callable[[], ClusterError]) -> None:
        began, waits = time.monotonic(), Waits(self._notify)
        while not probe():
            waited = time.monotonic() - began
            if waited > self._desired.patience:
                raise trouble()
            waits.report(Awaited(f"waiting until {what}", waited, self._desired.patience))
            # Between two reads; the deadline is above.
            time.sleep(_LOOK)
