# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last three steps of a walk: attach a volume to a node, stage it there, publish it to the pod. Pure.

What a kubelet and a driver make of a volume is in its verdicts; here they are answers about sets of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.module_utils.readiness.index import Index
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.known import unread
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.nodes import attachment_findings
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.volumes import VolumesJudged
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.walk.words import STEPS, Answer, PodToStart, Step

_ATTACH = STEPS.index("attach")


class Mounts:
    """The three steps, about volumes that were judged."""

    def __init__(self, index: Index, judged: VolumesJudged) -> None:
        self._index, self._judged = index, judged
        # What explains an answer that depends on a list, where nothing else does.
        self._unread = unread(index.snapshot.unread)

    def attach(self, pod: PodToStart, nodes: int) -> list[Answer]:
        """Whether each volume gets to each node."""
        found: list[Answer] = []
        for volume, key in self._keys(pod):
            left = nodes
            for answer in self._held(volume, key, nodes):
                found.append(answer)
                left &= ~answer.nodes
            found += self._of("attach", volume, key, left)
        return found

    def stage(self, pod: PodToStart, nodes: int) -> list[Answer]:
        """Whether the driver prepares each volume on each node."""
        return [answer for volume, key in self._keys(pod) for answer in self._of("stage", volume, key, nodes)]

    def publish(self, pod: PodToStart, nodes: int) -> list[Answer]:
        """Whether the pod gets each volume there."""
        found: list[Answer] = []
        for volume, key in self._keys(pod):
            refusal = self._judged.forbidden.get(key)
            if refusal is None:
                found += self._of("publish", volume, key, nodes)
            else:
                found.append(Answer("publish", "blocked", nodes, volume, refusal.message, refusal.evidence, (refusal,)))
        return found

    def _keys(self, pod: PodToStart) -> Iterator[tuple[str, str]]:
        """Each volume as answers call it, with the key of its subject."""
        names = iter(pod.volumes)
        for claim in pod.claims:
            seen = self._index.claims.get(claim)
            yield next(names), seen.volume if seen is not None and seen.volume in self._index.volumes else claim
        for made in pod.made:
            yield next(names), f"new claim {pod.namespace}/{made.name} of {pod.workload}"
        for inline in pod.inline:
            yield next(names), f"inline {inline.source.field} {inline.name} of {pod.workload}"

    def _of(self, step: Step, volume: str, key: str, nodes: int) -> Iterator[Answer]:
        """What the verdicts of a volume say of a step; those about earlier steps are answered when it is to be attached."""
        place = STEPS.index(step)
        for told in self._judged.told.get(key, ()):
            at = told.nodes & nodes
            if at:
                stops = told.word != "ok" and max(STEPS.index(told.step), _ATTACH) == place
                word = told.word if stops else "ok"
                findings = (told.findings or self._unread) if stops else ()
                yield Answer(step, word, at, volume, told.verdict.because, told.verdict.evidence, findings)

    def _held(self, volume: str, key: str, nodes: int) -> Iterator[Answer]:
        """Where an attachment of the volume failed it goes nowhere."""
        for one in self._index.attachments_of.get(key, ()):
            if one.attach_error or one.detach_error:
                told = tuple(attachment_findings(self._index.snapshot, one))
                yield Answer("attach", "blocked", nodes, volume, told[0].message, told[0].evidence, told)
                return
