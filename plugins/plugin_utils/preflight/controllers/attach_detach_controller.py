# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fourth step: does each volume of a pod get to each node. Pure.

Source: https://github.com/kubernetes/kubernetes, pkg/controller/volume/attachdetach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ...base.cached import cached_method
from ...base.grouped import group_values
from ...catalog import in_tree
from ...catalog.translation import REGIONS, UNSPECIFIED, ZONES
from ...catalog.versions import parse
from ..facts.workloads import ObservedPod
from ..findings import create_finding
from ..index import BY_NAME, GOING, Index, unite
from ..migration import decide_control_plane
from ..usage import Usage, Workload, list_disks
from ..verdict import ReportFinding, Severity
from ..walk.steps import NodeToStatus, PodToStart, StepAnswer
from ..windows_volumes import WindowsVolume, WindowsVolumes
from .external_attacher import check_attacher_release, find_attachment_faults, is_mounted, refuse_deleted_volume

_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, slots=True)
class _VolumeUsers:
    """The users of a claim, gone through once for all of them.

    holding: of the first two workloads that have a live pod with it on a node, that pod by the workload's key. going: its
    pods that are being deleted. starting: the workloads that start pods, by key, empty while one has a pod on a node.
    """

    holding: Mapping[str, ObservedPod]
    going: tuple[ObservedPod, ...]
    starting: Mapping[str, Workload]


class AttachDetachController:
    def __init__(
        self,
        index: Index,
        usage: Usage,
        volumes: WindowsVolumes,
        driver_findings: Mapping[str, tuple[ReportFinding, ...]],
        plugin_answers: Mapping[str, Sequence[StepAnswer]],
    ) -> None:
        self._index, self._usage, self._volumes = index, usage, volumes
        self._unusable_drivers = {
            name: tuple(finding for finding in findings if finding.severity == "blocker")
            for name, findings in driver_findings.items()
        }
        self._plugin_answers = plugin_answers
        self._control = {plugin.field: decide_control_plane(index, plugin) for plugin in in_tree.PLUGINS}
        required = {name: driver.csi_driver.get("attachRequired", True) for name, driver in BY_NAME.items()}
        live = {driver.name: driver.spec.get("attachRequired", True) for driver in index.csi_drivers.values()}
        attachable = {**required, **live} if "csidrivers" in index.unread else live
        self._unattached = frozenset(name for name, needed in attachable.items() if not needed)
        attaching = {attachment.attacher for attachment in index.snapshot.attachments if attachment.attached}
        self._declared = frozenset(attachable).intersection(BY_NAME) | attaching

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Whether each volume gets to each node."""
        answers: list[StepAnswer] = []
        for name, volume in self._volumes.list_volumes(pod):
            statuses = NodeToStatus(
                "attach", nodes, volume.title if volume else pod.workload, f"used by {pod.workload}", name
            )
            if volume is not None and volume.driver:
                self._check_attaching(pod, volume, statuses, name)
            answers += statuses.list_answers()
        return answers

    def _check_attaching(self, pod: PodToStart, volume: WindowsVolume, statuses: NodeToStatus, name: str) -> None:
        """Note where the volume cannot be attached, whatever its driver does on the node."""
        nodes, key = statuses.nodes, volume.key
        by_csi = nodes if volume.plugin is None else nodes & self._volumes.paths[volume.source.field].csi
        # A sidecar that does not know an in-tree kind attaches the other volumes.
        lacks = tuple(
            finding
            for finding in self._unusable_drivers.get(volume.driver, ())
            if finding.id != "CSI-C17" or volume.plugin
        )
        if lacks:
            statuses.note("no", by_csi, lacks)
        for answer in self._plugin_answers.get(volume.driver, ()):
            statuses.note(answer.answer, answer.nodes & by_csi, answer.findings)
        for word, place, outside in self._list_nodes_outside(volume):
            message = f"its handle names {word} {place}, and no node of another {word} can attach it"
            remedy = f"set spec.nodeAffinity of the volume to {word} {place}, so that the scheduler avoids other nodes"
            if word == "account":
                remedy = "move the data to a disk in the project or subscription of the nodes"
            statuses.block(outside, "CSI-V31", message, remedy)
        if volume.driver in self._unattached:
            return
        # An attachment of an inline volume does not name it: it may belong to any inline volume of the driver.
        for attachment in self._index.attachments_of.get(volume.driver if volume.inline else key, ()):
            if attachment.attach_error or attachment.detach_error or attachment.deleting or attachment.waits_since:
                findings = tuple(find_attachment_faults(self._index, attachment))
                if findings:
                    is_sure = findings[0].severity == "blocker" and not volume.inline
                    statuses.note("no" if is_sure else "unknown", nodes, findings)
                    return
        refuse_deleted_volume(self._index, volume, statuses, by_csi)
        self._check_place(volume, statuses)
        if volume.driver not in self._declared and not volume.inline:
            message = f"kubelets wait for an attachment by {volume.driver}, and none was ever made"
            remedy = "check that the driver's external-attacher runs, and that its CSIDriver exists"
            usable_nodes = unite(answer.nodes for answer in volume.answers if answer.answer == "yes")
            statuses.doubt(by_csi & usable_nodes, "CSI-V32", message, remedy)
        self._check_migration(volume, statuses)
        check_attacher_release(self._index, volume, statuses, by_csi)
        if _is_for_one_node(volume):
            self._check_one_node(pod, volume, statuses, name)

    def _list_nodes_outside(self, volume: WindowsVolume) -> Iterator[tuple[str, str, int]]:
        """The nodes that say that they are elsewhere than a volume by its handle: what the handle names, its value, and these nodes."""
        handle, driver, index = volume.handle, BY_NAME.get(volume.driver), self._index
        zones = (*ZONES, *(driver.topology_keys if driver is not None else ()))
        for word, place, keys in (("zone", handle.zone, zones), ("region", handle.region, REGIONS)):
            if place not in ("", UNSPECIFIED):
                labelled = unite(map(index.find_nodes_with_label, keys))
                yield word, place, labelled & ~unite(index.find_labelled(key, place) for key in keys)
        if handle.account not in ("", UNSPECIFIED):
            nodes = unite(nodes for account, nodes in index.accounts.items() if account != handle.account.lower())
            yield "account", handle.account, nodes

    def _check_place(self, volume: WindowsVolume, statuses: NodeToStatus) -> None:
        """A disk of which nothing says in which zone it is, so that the scheduler takes any node."""
        persistent_volume = volume.persistent_volume
        if persistent_volume is None and (not volume.inline or volume.plugin is None):
            # One that is yet to be made is made for a node.
            return
        # A driver names the places of what it makes, unless every node reaches it (accessible_topology of CSI's spec.md).
        if persistent_volume is not None and (
            persistent_volume.terms is not None
            or persistent_volume.provisioner == volume.driver
            or any(key in ZONES for key, _zone in persistent_volume.places)
        ):
            return
        paths = self._volumes.paths.get(volume.source.field)
        in_tree = paths.in_tree if paths is not None else 0
        nodes = statuses.nodes & (self._find_registered(volume.driver) | in_tree)
        if volume.handle.zone not in ("", UNSPECIFIED) or not nodes & (nodes - 1):
            return
        if labels := self._index.find_differing_labels(nodes, volume.driver):
            message = f"neither nodeAffinity nor a label says where it is, and nodes differ in {', '.join(labels)}"
            remedy = "set spec.nodeAffinity of the volume to its zone, so that the scheduler avoids other nodes"
            statuses.doubt(statuses.nodes, "CSI-V32", message, remedy)

    @cached_method
    def _find_registered(self, driver: str) -> int:
        """The nodes with a driver's topology keys; others have no labels of it yet, and findings about the driver stop them."""
        entries = ((name, csi_node.find_entry(driver)) for name, csi_node in self._index.csi_nodes.items())
        return self._index.find_nodes(name for name, entry in entries if entry is not None and entry.topology_keys)

    def _check_migration(self, volume: WindowsVolume, statuses: NodeToStatus) -> None:
        """Where kubelet and control plane go different ways, the one waits for what the other does not do."""
        plugin, paths = volume.plugin, self._volumes.paths.get(volume.source.field)
        if plugin is None or paths is None:
            return
        control, version = self._control[plugin.field], self._index.snapshot.cluster.kubernetes
        if control == "in_tree":
            message = f"kubelets use CSI for {plugin.plugin} and the control plane attaches its volumes in-tree"
            remedy = f"turn on CSIMigration{plugin.gate} in kube-controller-manager, or off in these kubelets"
            statuses.block(paths.csi, "CSI-V50", message, remedy)
        elif control == "unknown":
            message = f"kubelets use CSI for {plugin.plugin}, and whether the control plane {version} does is unknown"
            remedy = f"check CSIMigration{plugin.gate} in the flags of kube-controller-manager"
            statuses.doubt(paths.csi, "CSI-V51", message, remedy)
        kubernetes = self._index.kubernetes
        if control == "csi" and kubernetes is not None and kubernetes.minor >= parse(plugin.removed).minor:
            message = (
                f"kubelets mount {plugin.field} in-tree, and control plane {version} no longer attaches it that way"
            )
            remedy = "deploy the driver on these nodes, then upgrade their kubelets"
            statuses.block(paths.in_tree, "CSI-V50", message, remedy)

    def _check_one_node(self, pod: PodToStart, volume: WindowsVolume, statuses: NodeToStatus, name: str) -> None:
        """A volume that is attached to one node at a time: its holder, and the number of pods that need it."""
        nodes = statuses.nodes
        for attachment in self._index.attachments_of.get(volume.key, ()):
            node = self._index.nodes.get(attachment.node)
            if node is None or node.ready or any(taint.key == _OUT_OF_SERVICE for taint in node.taints):
                continue
            message = (
                f"the volume is attached to node {node.name}, which is not ready ({node.not_ready_because}), so nothing "
                "detaches it"
            )
            remedy = f"repair the node, or, if it is shut down: kubectl taint nodes {node.name} {_OUT_OF_SERVICE}=nodeshutdown:NoExecute"
            statuses.block(nodes & ~self._index.bit[node.name], "CSI-V52", message, remedy)
            return
        if (stuck := self._find_stuck_pod(volume)) is not None:
            message = f"pod {stuck.key} on node {stuck.node} still has it, and should have ended by {stuck.gone_by}"
            remedy = f"check the kubelet's log on {stuck.node}: the volume is detached once the pod has ended"
            statuses.doubt(nodes & ~self._index.bit.get(stuck.node, 0), "CSI-V53", message, remedy)
            return
        if stray := self._find_stray_mount(volume):
            message = f"node {stray} has it mounted, and no pod there uses it, so nothing detaches it"
            remedy = (
                f"run preflight again in a few minutes; if this stays, check the node plugin on {stray}, which unmounts it, then restart "
                "the node"
            )
            statuses.doubt(nodes & ~self._index.bit.get(stray, 0), "CSI-V53", message, remedy)
            return
        holder, is_for_several = self._find_holder(pod, volume), pod.count > 1 or pod.kind == "DaemonSet"
        if holder is not None:
            other_nodes = nodes & ~self._index.bit.get(holder.node, 0)
            message = (
                f"pod {holder.key} uses the volume on node {holder.node}, and only one node at a time can attach it"
            )
            remedy = "run both workloads on one node by nodeSelector, or give each a volume of its own"
            severity: Severity | None = "blocker" if other_nodes == nodes else None
            evidence = (f"Pod {holder.key} spec.nodeName: {holder.node}",)
            finding = create_finding("CSI-V53", volume.title, message, evidence, remedy, severity)
            # Where no node is left, the pod surely waits.
            statuses.note("no", other_nodes, (replace(finding, doubt=severity is None),))
        elif rival := self._find_rival(pod, volume, nodes):
            message = f"{rival} names it too, it is attached to one node at a time, and nothing keeps both on one node"
            remedy = "keep both workloads on one node by nodeSelector, or give each a volume of its own"
            statuses.doubt(nodes, "CSI-V53", message, remedy)
        elif nodes & (nodes - 1) and (name in pod.shared or (volume.inline and is_for_several)):
            users = f"its {pod.count} pods" if pod.count > 1 else "several pods"
            message = f"{users} share the volume, only one node at a time can attach it, and the scheduler may spread the pods"
            remedy = "run the pods on one node by nodeSelector kubernetes.io/hostname, or give each a volume of its own"
            statuses.doubt(nodes, "CSI-V53", message, remedy)

    def _find_holder(self, pod: PodToStart, volume: WindowsVolume) -> ObservedPod | None:
        """A pod of another workload that has the volume and does not go."""
        findings = (finding.id for answer in volume.answers for finding in answer.findings)
        if "CSI-V19" in findings:
            return None
        return next((holder for key, holder in self._find_users(volume).holding.items() if key != pod.workload), None)

    @cached_property
    def _placed(self) -> Mapping[str, list[tuple[str, ObservedPod]]]:
        """By disk, the pods on nodes that use it, each with its workload's key."""
        on_nodes = ((user.key, pod) for user in self._usage.workloads for pod in user.pods if pod.node)
        return group_values(
            (disk, (key, pod))
            for key, pod in on_nodes
            for disk in list_disks(
                self._index, (f"{pod.namespace}/{name}" for name in pod.volumes.claims), pod.volumes.inline
            )
        )

    def _find_stray_mount(self, volume: WindowsVolume) -> str:
        """A node that has the volume mounted for no pod, empty for none."""
        used = {pod.node for _key, pod in self._placed.get(self._name_disk(volume), ()) if not pod.finished}
        attachments = () if "pods" in self._index.unread else self._index.attachments_of.get(volume.key, ())
        unused = (entry for entry in attachments if entry.attached and entry.node not in used)
        return next((entry.node for entry in unused if is_mounted(self._index, entry)), "")

    def _name_disk(self, volume: WindowsVolume) -> str:
        if volume.claim is None:
            return volume.source.disk
        return next(list_disks(self._index, (volume.claim.key,), ()))

    def _find_users(self, volume: WindowsVolume) -> _VolumeUsers:
        claim = volume.claim.key if volume.claim is not None else ""
        return self._find_users_of_disk(self._name_disk(volume), claim)

    @cached_method
    def _find_users_of_disk(self, disk: str, claim: str) -> _VolumeUsers:
        # Workloads on Linux are known only where they share a claim.
        users = self._usage.users.get(disk, ())
        workloads = [user for user in users if user.on_windows or claim in user.claims]
        keys = {user.key for user in workloads}
        placed = [pair for pair in self._placed.get(disk, ()) if pair[0] in keys]
        holding: dict[str, ObservedPod] = {}
        starting: dict[str, Workload] = {}
        if len(workloads) > 1:
            live = (pair for pair in placed if not pair[1].finished and not pair[1].gone_by)
            while len(holding) < 2 and (pair := next(live, None)) is not None:
                holding.setdefault(*pair)
            if not any(pod.node and not pod.finished for user in workloads for pod in user.pods):
                starting = {user.key: user for user in workloads if user.template is not None and user.template.runs}
        return _VolumeUsers(holding, tuple(pod for dummy, pod in placed if pod.gone_by), starting)

    def _find_stuck_pod(self, volume: WindowsVolume) -> ObservedPod | None:
        """A pod with the volume that is being deleted and does not go."""
        going = self._find_users(volume).going
        return next((pod for pod in going if self._index.count_minutes(pod.gone_by, GOING) is not None), None)

    def _find_rival(self, pod: PodToStart, volume: WindowsVolume, nodes: int) -> str:
        """A workload that starts with the same volume, maybe on another node, while no pod of either is on a node."""
        starting = self._find_users(volume).starting
        if pod.workload not in starting:
            return ""
        several = bool(nodes & (nodes - 1))
        rivals = (user for key, user in starting.items() if key != pod.workload)
        return next((rival.key for rival in rivals if several or rival.eligible != nodes), "")


def _is_for_one_node(volume: WindowsVolume) -> bool:
    """As isMultiAttachForbidden of pkg/volume/util/util.go of kubernetes/kubernetes; a pod's own disks likewise."""
    if volume.inline:
        return volume.plugin is not None
    modes = volume.persistent_volume.access_modes if volume.persistent_volume is not None else ()
    return bool(modes) and "ReadWriteMany" not in modes and "ReadOnlyMany" not in modes
