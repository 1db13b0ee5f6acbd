# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last three steps of a walk: attach a volume to a node, stage it there, publish it to the pod. Pure.

What a kubelet and a driver make of a volume is in its verdicts; here they are answers about sets of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from ...base.grouped import group_values
from ...catalog import in_tree
from ...catalog.translation import REGIONS, UNSPECIFIED, ZONES
from ...catalog.versions import parse, parse_image_tag
from ...kube.times import parse_time
from ..admission import refuse_missing_webhooks
from ..facts.placement import Requirement
from ..facts.storage import ObservedAttachment
from ..facts.workloads import ObservedPod
from ..index import BY_NAME, Index, unite
from ..known import create_finding
from ..migration import decide_control_plane
from ..scheduler.volume_restrictions import ALONE
from ..subjects import Subject, Subjects, name_inline, name_subject
from ..usage import Usage, Workload
from ..verdict import ReportFinding, Severity
from ..volumes import VolumesEvaluation
from .claims import Claims
from .steps import PodToStart, Split, StepAnswer

# https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes, the note on sidecars.
_ATTACHES_ALONE = (3, 3, 0)
# After this the attach controller detaches by force.
_DETACHING = timedelta(minutes=6)
# Attachments of every driver are done sooner, or something keeps them from being done.
_ATTACHING = timedelta(minutes=10)
# A pod that is being deleted should be gone by its timestamp; unmounting takes a while on Windows.
_GOING = timedelta(minutes=10)
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, slots=True)
class _Use:
    """The users of a claim, gone through once for all of them.

    holding: of the first two workloads that have a live pod with it on a node, that pod by the workload's key. going: its
    pods that are being deleted. starting: the workloads that start pods, by key, empty while one has a pod on a node.
    """

    holding: Mapping[str, ObservedPod]
    going: tuple[ObservedPod, ...]
    starting: Mapping[str, Workload]


class Mounts:
    """The three steps, about volumes that were evaluated."""

    def __init__(
        self,
        index: Index,
        claims: Claims,
        use: Usage,
        subjects: Subjects,
        evaluated: VolumesEvaluation,
        of_drivers: Mapping[str, tuple[ReportFinding, ...]],
        of_plugins: Mapping[str, Sequence[StepAnswer]],
    ) -> None:
        self._claims = claims
        # A pod is asked about by one step after the other.
        self._last: tuple[PodToStart | None, Sequence[tuple[str, str]]] = (None, ())
        self._uses: dict[str, _Use] = {}
        self._index, self._use, self._subjects, self._evaluated = index, use, subjects, evaluated
        self._unusable_drivers = {
            name: tuple(finding for finding in findings if finding.severity == "blocker")
            for name, findings in of_drivers.items()
        }
        self._of_plugins = of_plugins
        self._control = {plugin.field: decide_control_plane(index, plugin) for plugin in in_tree.PLUGINS}
        required = {name: driver.csi_driver.get("attachRequired", True) for name, driver in BY_NAME.items()}
        live = {driver.name: driver.spec.get("attachRequired", True) for driver in index.csi_drivers.values()}
        attachable = {**required, **live} if "csidrivers" in index.unread else live
        self._unattached = frozenset(name for name, needed in attachable.items() if not needed)
        attaching = {attachment.attacher for attachment in index.snapshot.attachments if attachment.attached}
        self._declared = frozenset(attachable).intersection(BY_NAME) | attaching

    def attach(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Whether each volume gets to each node."""
        answers: list[StepAnswer] = []
        for volume, key in self._list_keys(pod):
            subject = self._subjects.subjects.get(key)
            split = Split(
                "attach", nodes, subject.title if subject else pod.workload, f"used by {pod.workload}", volume
            )
            if subject is not None and subject.driver:
                self._check_attaching(pod, subject, split, volume)
            answers += split.list_answers("nothing keeps it from the node")
        return answers

    def stage(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """What kubelet and driver make of each volume on each node."""
        return [
            StepAnswer("stage", answer.answer, nodes_here, volume, answer.because, _explain(pod, volume, answer))
            for volume, key in self._list_keys(pod)
            for answer in self._list_answers(key)
            if (nodes_here := answer.nodes & nodes)
        ]

    def publish(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Whether the pod gets each volume there: none with a file system that a container takes as a raw device."""
        answers: list[StepAnswer] = []
        for volume, key in self._list_keys(pod):
            subject = self._subjects.subjects.get(key)
            if volume not in pod.devices or (subject is not None and subject.is_block):
                answers.append(StepAnswer("publish", "yes", nodes, volume, "the pod takes it as it is"))
                continue
            message = "a container lists it in volumeDevices, but its volumeMode is Filesystem"
            object_name, evidence = (
                subject.title if subject is not None else pod.workload,
                f"{pod.workload}: volumeDevices",
            )
            finding = create_finding("CSI-V15", object_name, message, (evidence,), "mount it with volumeMounts instead")
            answers.append(StepAnswer.from_findings("publish", "no", nodes, (finding,), volume))
        return answers

    def _list_keys(self, pod: PodToStart) -> Sequence[tuple[str, str]]:
        """Each volume as answers call it, with the key of its subject."""
        if self._last[0] is not pod:
            keys = [name_subject(request, pod.workload) for request in self._claims.list_requests(pod)]
            keys += [name_inline(inline, pod.workload) for inline in pod.inline]
            self._last = (pod, [*zip(pod.volumes, keys, strict=True)])
        return self._last[1]

    def _find_usable_nodes(self, key: str) -> int:
        """Where nothing else keeps a volume from its pod."""
        return unite(answer.nodes for answer in self._list_answers(key) if answer.answer == "yes")

    def _list_answers(self, key: str) -> tuple[StepAnswer, ...]:
        return self._evaluated.answers.get(key, ())

    def _check_attaching(self, pod: PodToStart, subject: Subject, split: Split, volume: str) -> None:
        """Note where the volume cannot be attached, whatever its driver does on the node."""
        nodes, key = split.nodes, subject.key
        by_csi = nodes if subject.plugin is None else nodes & self._subjects.paths[subject.source.field].csi
        # A sidecar that does not know an in-tree kind attaches the other volumes.
        lacks = tuple(
            finding
            for finding in self._unusable_drivers.get(subject.driver, ())
            if finding.id != "CSI-C17" or subject.plugin
        )
        if lacks:
            split.note("no", by_csi, lacks)
        for answer in self._of_plugins.get(subject.driver, ()):
            split.note(answer.answer, answer.nodes & by_csi, answer.findings)
        for word, place, outside in self._list_nodes_outside(subject):
            message = f"its handle names {word} {place}, and no node of another {word} can attach it"
            remedy = f"set spec.nodeAffinity of the volume to {word} {place}, so that the scheduler avoids other nodes"
            if word == "account":
                remedy = "move the data to a disk in the project or subscription of the nodes"
            split.block(outside, "CSI-V31", message, remedy)
        if subject.driver in self._unattached:
            return
        # Which of a driver's volumes that pods name themselves an attachment is of is not read.
        for attachment in self._index.attachments_of.get(subject.driver if subject.inline else key, ()):
            if attachment.attach_error or attachment.detach_error or attachment.deleting or attachment.waits_since:
                findings = tuple(_find_attachment_faults(self._index, attachment))
                if findings:
                    is_sure = findings[0].severity == "blocker" and not subject.inline
                    split.note("no" if is_sure else "unknown", nodes, findings)
                    return
        if subject.volume is not None and subject.volume.deleting:
            # As csiAttach of pkg/controller/csi_handler.go of https://github.com/kubernetes-csi/external-attacher.
            attachments = self._index.attachments_of.get(key, ())
            attached = unite(self._index.bit.get(entry.node, 0) for entry in attachments if entry.attached)
            message = "it is being deleted, and its attacher attaches it to no other node"
            remedy = "set persistentVolumeReclaimPolicy to Retain, scale its workload to 0, then recreate volume and claim for its disk"
            split.block(by_csi & ~attached, "CSI-V24", message, remedy)
        if subject.driver not in self._declared and not subject.inline:
            message = f"kubelets wait for an attachment by {subject.driver}, and none was ever made"
            remedy = "check that the driver's external-attacher runs, and that its CSIDriver exists"
            split.doubt(by_csi & self._find_usable_nodes(key), "CSI-V32", message, remedy)
        refuse_missing_webhooks(self._index, "volumeattachments", split, by_csi, {}, None)
        self._check_migration(subject, split)
        self._check_attacher(subject, split, by_csi)
        if _is_for_one_node(subject):
            self._check_one_node(pod, subject, split, volume)

    def _list_nodes_outside(self, subject: Subject) -> Iterator[tuple[str, str, int]]:
        """The nodes that say that they are elsewhere than a volume by its handle: what the handle names, its value, and these nodes."""
        handle, driver, index = subject.handle, BY_NAME.get(subject.driver), self._index
        zones = (*ZONES, *(driver.topology_keys if driver is not None else ()))
        for word, place, keys in (("zone", handle.zone, zones), ("region", handle.region, REGIONS)):
            if place not in ("", UNSPECIFIED):
                labelled = index.find_matching(tuple((Requirement(key, "Exists"),) for key in keys), exact=True)
                yield word, place, labelled & ~unite(index.find_labelled(key, place) for key in keys)
        if handle.account not in ("", UNSPECIFIED):
            nodes = unite(nodes for account, nodes in index.accounts.items() if account != handle.account.lower())
            yield "account", handle.account, nodes

    def _check_migration(self, subject: Subject, split: Split) -> None:
        """Where kubelet and control plane go different ways, the one waits for what the other does not do."""
        plugin, paths = subject.plugin, self._subjects.paths.get(subject.source.field)
        if plugin is None or paths is None:
            return
        control, version = self._control[plugin.field], self._index.snapshot.cluster.kubernetes
        if control == "in_tree":
            message = f"kubelets use CSI for {plugin.plugin} and the control plane attaches its volumes in-tree"
            remedy = f"turn on CSIMigration{plugin.gate} in kube-controller-manager, or off in these kubelets"
            split.block(paths.csi, "CSI-V50", message, remedy)
        elif control == "unknown":
            message = f"kubelets use CSI for {plugin.plugin}, and whether the control plane {version} does is unknown"
            remedy = f"check CSIMigration{plugin.gate} in the flags of kube-controller-manager"
            split.doubt(paths.csi, "CSI-V51", message, remedy)
        kubernetes = self._index.kubernetes
        if control == "csi" and kubernetes is not None and kubernetes.minor >= parse(plugin.gone).minor:
            message = (
                f"kubelets mount {plugin.field} in-tree, and control plane {version} no longer attaches it that way"
            )
            remedy = "deploy the driver on these nodes, then upgrade their kubelets"
            split.block(paths.in_tree, "CSI-V50", message, remedy)

    def _check_attacher(self, subject: Subject, split: Split, nodes: int) -> None:
        """An external-attacher that refuses to attach a volume for one pod alone."""
        driver = BY_NAME.get(subject.driver)
        controller = self._index.find_controller(driver) if driver is not None else None
        modes = subject.asked.access_modes if subject.asked is not None else ()
        if controller is None or ALONE not in modes:
            return
        images = (image for name, image in controller.images if "attacher" in f"{name} {image}")
        version = next((parse_image_tag(image) for image in images), None)
        if version is not None and version.release < _ATTACHES_ALONE:
            deployment = f"Deployment {controller.observed.namespace}/{controller.observed.name}"
            message = f"access mode {ALONE} needs external-attacher 3.3.0 or later, and {deployment} has {version}"
            split.block(nodes, "CSI-V31", message, "upgrade the driver's installation")

    def _check_one_node(self, pod: PodToStart, subject: Subject, split: Split, volume: str) -> None:
        """A volume that is attached to one node at a time: its holder, and the number of pods that need it."""
        nodes = split.nodes
        for attachment in self._index.attachments_of.get(subject.key, ()):
            node = self._index.nodes.get(attachment.node)
            if node is None or node.ready or any(taint.key == _OUT_OF_SERVICE for taint in node.taints):
                continue
            message = (
                f"the volume is attached to node {node.name}, which is not ready ({node.not_ready_because}), so nothing "
                "detaches it"
            )
            remedy = f"repair the node, or, if it is shut down: kubectl taint nodes {node.name} {_OUT_OF_SERVICE}=nodeshutdown:NoExecute"
            split.block(nodes & ~self._index.bit[node.name], "CSI-V52", message, remedy)
            return
        if (stuck := self._find_stuck_pod(subject)) is not None:
            message = f"pod {stuck.key} on node {stuck.node} still has it, and should have ended by {stuck.gone_by}"
            remedy = f"check the kubelet's log on {stuck.node}: the volume is detached once the pod has ended"
            split.doubt(nodes & ~self._index.bit.get(stuck.node, 0), "CSI-V53", message, remedy)
            return
        holder = self._find_holder(pod, subject)
        if holder is not None:
            other_nodes = nodes & ~self._index.bit.get(holder.node, 0)
            message = (
                f"pod {holder.key} uses the volume on node {holder.node}, and only one node at a time can attach it"
            )
            remedy = "run both workloads on one node by nodeSelector, or give each a volume of its own"
            severity: Severity | None = "blocker" if other_nodes == nodes else None
            evidence = (f"Pod {holder.key} spec.nodeName: {holder.node}",)
            finding = create_finding("CSI-V53", subject.title, message, evidence, remedy, severity)
            # Where no node is left, the pod surely waits.
            split.note("no", other_nodes, (replace(finding, doubt=severity is None),))
        elif rival := self._find_rival(pod, subject, nodes):
            message = f"{rival} names it too, it is attached to one node at a time, and nothing keeps both on one node"
            remedy = "keep both workloads on one node by nodeSelector, or give each a volume of its own"
            split.doubt(nodes, "CSI-V53", message, remedy)
        elif nodes & (nodes - 1) and volume in (*pod.shared, *self._list_shared_inline(pod)):
            users = f"its {pod.count} pods" if pod.count > 1 else "several pods"
            message = f"{users} share the volume, only one node at a time can attach it, and the scheduler may spread the pods"
            remedy = "run the pods on one node by nodeSelector kubernetes.io/hostname, or give each a volume of its own"
            split.doubt(nodes, "CSI-V53", message, remedy)

    def _list_shared_inline(self, pod: PodToStart) -> tuple[str, ...]:
        several = pod.count > 1 or pod.workload.startswith("DaemonSet ")
        return tuple(f"inline {inline.name}" for inline in pod.inline) if several else ()

    def _find_holder(self, pod: PodToStart, subject: Subject) -> ObservedPod | None:
        """A pod of another workload that has the volume and does not go."""
        findings = (finding.id for answer in self._list_answers(subject.key) for finding in answer.findings)
        if "CSI-V19" in findings:
            return None
        return next((holder for key, holder in self._find_users(subject).holding.items() if key != pod.workload), None)

    @cached_property
    def _placed(self) -> Mapping[str, list[tuple[str, ObservedPod]]]:
        """By claim, the pods on nodes that name it, each with its workload's key."""
        on_nodes = ((user.key, pod) for user in self._use.workloads for pod in user.pods if pod.node)
        return group_values(
            (f"{pod.namespace}/{name}", (key, pod)) for key, pod in on_nodes for name in pod.volumes.claims
        )

    def _find_users(self, subject: Subject) -> _Use:
        claim = subject.claim.key if subject.claim is not None else ""
        if claim not in self._uses:
            workloads, placed = self._use.users.get(claim, ()), self._placed.get(claim, ())
            holding: dict[str, ObservedPod] = {}
            starting: dict[str, Workload] = {}
            if len(workloads) > 1:
                live = (pair for pair in placed if not pair[1].finished and not pair[1].deleting)
                while len(holding) < 2 and (pair := next(live, None)) is not None:
                    holding.setdefault(*pair)
                if not any(pod.node and not pod.finished for user in workloads for pod in user.pods):
                    starting = {
                        user.key: user for user in workloads if user.template is not None and user.template.runs
                    }
            self._uses[claim] = _Use(holding, tuple(pod for dummy, pod in placed if pod.gone_by), starting)
        return self._uses[claim]

    def _find_stuck_pod(self, subject: Subject) -> ObservedPod | None:
        """A pod with the volume that is being deleted and does not go."""
        for pod in self._find_users(subject).going:
            since = parse_time(pod.gone_by)
            if since is not None and self._index.snapshot.taken_at - since > _GOING:
                return pod
        return None

    def _find_rival(self, pod: PodToStart, subject: Subject, nodes: int) -> str:
        """A workload that starts with the same volume, maybe on another node, while no pod of either is on a node."""
        starting = self._find_users(subject).starting
        if pod.workload not in starting:
            return ""
        several = bool(nodes & (nodes - 1))
        rivals = (user for key, user in starting.items() if key != pod.workload)
        return next((rival.key for rival in rivals if several or rival.eligible != nodes), "")


def _explain(pod: PodToStart, volume: str, answer: StepAnswer) -> tuple[ReportFinding, ...]:
    """The findings of an answer, where there is none one that stands for a volume of which nothing says why it is not ready."""
    if answer.answer == "yes" or answer.findings:
        return answer.findings if answer.answer != "yes" else ()
    remedy = "use a kind of volume that this collection supports, or suppress this finding"
    evidence = (f"used by {pod.workload}",)
    return (create_finding("CSI-W09", pod.workload, f"{volume}: {answer.because}", evidence, remedy),)


def _is_for_one_node(subject: Subject) -> bool:
    """As isMultiAttachForbidden of pkg/volume/util/util.go of kubernetes/kubernetes; a pod's own disks likewise."""
    if subject.inline:
        return subject.plugin is not None
    modes = subject.volume.access_modes if subject.volume is not None else ()
    return bool(modes) and "ReadWriteMany" not in modes and "ReadOnlyMany" not in modes


def _find_attachment_faults(index: Index, attachment: ObservedAttachment) -> Iterator[ReportFinding]:
    """That an attachment failed, or hangs."""
    snapshot, csi_node = index.snapshot, index.csi_nodes.get(attachment.node)
    object_name = f"Node {attachment.node}, driver {attachment.attacher}"
    description = f"volume {attachment.volume}" if attachment.volume else "an inline volume"
    error, mount = attachment.attach_error or attachment.detach_error, ""
    volume, node = index.volumes.get(attachment.volume), index.nodes.get(attachment.node)
    if volume is not None and node is not None and attachment.deleting:
        is_mounted = f"kubernetes.io/csi/{attachment.attacher}^{volume.source.handle}" in node.in_use
        description += f", which the kubelet of {attachment.node} {'still has mounted' if is_mounted else 'does not have mounted'},"
        mount = (
            f"check csi-proxy and the node plugin on {attachment.node}, which unmount it; if that does not help"
            if is_mounted
            else "Windows or the platform keeps the disk; if it is not detached in ten minutes"
        ) + f", drain and restart the node: kubectl drain {attachment.node} --ignore-daemonsets"
    # Until the driver is registered, the attacher repeats this, and the checks of the driver on the node find why. Afterwards it
    # attaches within minutes, or it hangs.
    waits = (
        csi_node is not None
        and csi_node.find_entry(attachment.attacher) is None
        and "does not contain driver" in attachment.attach_error
    )
    if error and not waits:
        did, remedy = "attached", f"kubectl describe volumeattachment {attachment.name}; check the controller's log"
        if not attachment.attach_error:
            did, remedy = "detached", mount or remedy
        evidence = (f"VolumeAttachment {attachment.name}: {error}",)
        yield create_finding("CSI-N34", object_name, f"{description} could not be {did}: {error}", evidence, remedy)
    since = parse_time(attachment.waits_since)
    if since is not None and not attachment.deleting and not error and snapshot.taken_at - since > _ATTACHING:
        minutes = int((snapshot.taken_at - since).total_seconds() // 60)
        evidence = (f"VolumeAttachment {attachment.name} status.attached: false since {attachment.waits_since}",)
        message = f"attaching {description} has taken {minutes} minutes"
        remedy = f"kubectl describe volumeattachment {attachment.name}; check that the driver's attacher runs"
        yield create_finding("CSI-N34", object_name, message, evidence, remedy)
    since = parse_time(attachment.deleting)
    if since is not None and snapshot.taken_at - since > _DETACHING:
        minutes = int((snapshot.taken_at - since).total_seconds() // 60)
        evidence = (f"VolumeAttachment {attachment.name} metadata.deletionTimestamp: {attachment.deleting}",)
        message = f"detaching {description} has taken {minutes} minutes"
        yield create_finding(
            "CSI-N35", object_name, message, evidence, mount or f"kubectl describe volumeattachment {attachment.name}"
        )
