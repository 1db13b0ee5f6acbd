# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of each volume on each Windows node that may mount it. Pure.

A volume with CSI migration keeps its in-tree spec forever, so the spec decides nothing: what counts is the
node's own kubelet, by its version and its CSINode, whether the driver works there, and whether the driver can mount what
the volume holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from ..base.cached import share
from ..base.grouped import group_values
from ..catalog import capability, in_tree
from ..catalog.base import Driver
from ..catalog.capability import RequestedVolume, VolumeSupport
from ..catalog.translation import TranslationError, build_google_location, choose_google_mode
from ..catalog.versions import Version
from ..kube import kinds
from .facts.cluster import ENFORCED_LEVEL, PROFILE
from .facts.placement import describe_terms
from .facts.storage import ObservedVolume
from .findings import create_finding, report_unread_lists
from .index import BY_NAME, Index, version_of
from .migration import Paths, decide_control_plane, explain_untranslatable
from .nodes import DriverState
from .verdict import Answer, ReportFinding, VolumeVerdict
from .walk.steps import StepAnswer
from .windows_volumes import LINUX_FILE_SYSTEMS, WindowsVolume, WindowsVolumes

# From the one that allows least to the one that allows most, as Pod Security has them.
_PROFILES = ("restricted", "baseline", "privileged")
_REMEDY = "use another volume, or run the workload on Linux"
_BLOCK = ("CSI-V15", "its volumeMode is Block", "use a volume with volumeMode Filesystem")
# The source of a PersistentVolume cannot be changed.
_RECREATE = "set persistentVolumeReclaimPolicy to Retain, then recreate the PersistentVolume"
_REMEDIES = {
    "ReadOnlyMany": "use a disk with ReadWriteOnce, or a share (SMB, Azure File) if several nodes read",
    "ReadWriteMany": "use a disk with ReadWriteOnce, or a share (SMB, Azure File) if several nodes write",
    capability.READ_ONLY: f"{_RECREATE} without readOnly, and set readOnly in the container's volumeMounts",
    capability.INLINE: "use a claim for this volume",
    f"{capability.PROTOCOL} nfs": "use an SMB share for Windows",
    capability.CLUSTER_NAME: f"{_RECREATE} with an address as server, or a name that the nodes resolve",
    capability.NO_SERVER: f"{_RECREATE} with source //server/share",
    capability.NO_SECRET: f"{_RECREATE} with a Secret that has username and password",
}


@lru_cache(maxsize=4096)
def _check_support(driver: str, request: RequestedVolume, version: Version | None, mode: str) -> VolumeSupport:
    """What a driver says of a volume; most volumes of a cluster ask the same."""
    return capability.check_support(BY_NAME[driver].capabilities, request, version, mode)


def evaluate(
    index: Index, volumes: WindowsVolumes, drivers: Mapping[str, DriverState]
) -> tuple[list[VolumeVerdict], list[ReportFinding]]:
    """A verdict for each volume and each set of nodes on which the same is true, and what is wrong with volumes.

    Each volume gets its answers.
    """
    control = {plugin.field: decide_control_plane(index, plugin) == "csi" for plugin in in_tree.PLUGINS}
    twins = _find_twins(index, volumes)
    verdicts: list[VolumeVerdict] = []
    findings: list[ReportFinding] = []
    for _key, volume in sorted(volumes.by_key.items()):
        evaluated_volume = _Volume(index, volume, volumes.paths, drivers, control, twins)
        volume.answers = tuple(evaluated_volume.evaluate())
        verdicts += map(evaluated_volume.create_verdict, volume.answers)
        findings += evaluated_volume.findings
    return verdicts, findings


def _identify_disk(volume: ObservedVolume) -> tuple[str, str] | None:
    """What makes two volumes one to kubelets: driver and handle. None if sharing one is legitimate, or the handle is unknown."""
    source, plugin = volume.source, in_tree.find_by_field(volume.source.field)
    if not source.handle or source.field == "azureFile" or (source.field != "csi" and plugin is None):
        return None
    handle = source.handle
    if source.field == "awsElasticBlockStore":
        handle = handle.rsplit("/", 1)[-1]
    elif source.field == "gcePersistentDisk":
        with suppress(TranslationError):
            handle = f"{build_google_location(dict(volume.places))}/disks/{handle}"
    driver = plugin.driver if plugin is not None else source.driver
    # An in-tree disk of Google does not say its project.
    return driver, handle.lower() if driver == "disk.csi.azure.com" else re.sub("^projects/[^/]+/", "", handle)


def _find_twins(index: Index, volumes: WindowsVolumes) -> dict[tuple[str, str], tuple[list[str], int]]:
    """By handle, the volumes that share it, and how many of them pods use; a Released one hurts nobody."""
    persistent_volumes = (volume.persistent_volume for volume in volumes.by_key.values())
    evaluated = {_identify_disk(volume) for volume in persistent_volumes if volume is not None}
    handles = ((_identify_disk(volume), volume) for volume in index.snapshot.volumes)
    by_disk = group_values((handle, volume) for handle, volume in handles if handle is not None and handle in evaluated)

    users_read = index.unread.isdisjoint(kind.plural for kind in (kinds.POD, *kinds.TEMPLATES))

    def is_used(volume: ObservedVolume) -> bool:
        claim = index.claims.get(volume.claim)
        # Of a claim that was not read, Linux workloads are the users; one that was made again has another volume.
        used = (
            volume.phase == "Bound"
            if claim is None
            else claim.volume == volume.name and (claim.key in volumes.used_claims or not users_read)
        )
        return volume.name in volumes.by_key or used

    return {
        handle: (sorted(twin.name for twin in twins), sum(map(is_used, twins)))
        for handle, twins in by_disk.items()
        if len(twins) > 1
    }


class _Volume:
    def __init__(
        self,
        index: Index,
        volume: WindowsVolume,
        paths: Mapping[str, Paths],
        drivers: Mapping[str, DriverState],
        control: Mapping[str, bool],
        twins: Mapping[tuple[str, str], tuple[list[str], int]],
    ) -> None:
        self._index, self._volume = index, volume
        self._paths = paths.get(volume.source.field, Paths(csi=index.windows))
        self._state = drivers.get(volume.driver, DriverState())
        self._control = control.get(volume.source.field, False)
        self._twins = twins
        self.findings: list[ReportFinding] = []

    def evaluate(self) -> Iterator[StepAnswer]:
        volume = self._volume
        self._check_volume()
        nodes = volume.eligible
        if volume.source.field == "csi" and (refusal := self._check_lifecycle() or self._check_profile()):
            yield self._refuse("CSI-V28", *refusal, nodes, "no")
            return
        if not volume.source.field:
            yield self._create_answer("unknown", nodes, "the kind of volume is unknown")
            return
        if volume.source.field in in_tree.LINUX_ONLY:
            yield self._refuse_kind(nodes)
            return
        if volume.source.field in in_tree.KEPT:
            kept = f"kind {volume.source.field} does not use CSI"
            yield self._refuse_block(nodes) if volume.is_block else self._create_answer("yes", nodes, kept)
            return
        if not nodes:
            yield self._refuse_place()
            return
        yield from self._evaluate_paths(nodes)

    def _evaluate_paths(self, nodes: int) -> Iterator[StepAnswer]:
        volume, paths, plugin = self._volume, self._paths, self._volume.plugin
        if in_tree_nodes := nodes & paths.in_tree:
            if plugin is not None and not plugin.on_windows:
                yield self._refuse_kind(in_tree_nodes)
            else:
                yield self._refuse_block(in_tree_nodes) if volume.is_block else self._evaluate_in_tree(in_tree_nodes)
        if unknown := nodes & paths.unknown:
            message = f"its kubelets mount {volume.source.field} in-tree or by CSI; their CSINodes do not show which"
            remedy = "let this account read CSINodes, or upgrade the kubelets"
            yield self._refuse("CSI-V22", message, remedy, unknown, "unknown")
        csi = nodes & paths.csi
        if csi and plugin is not None and (why := explain_untranslatable(volume.source, volume.persistent_volume)):
            yield self._refuse("CSI-V13", *why, csi, "no")
            csi = 0
        if broken := csi & paths.broken:
            yield self._refuse_broken_kubelet(broken)
            csi &= ~broken
        if not csi:
            return
        if not volume.handle.valid:
            message = f"its volumeHandle {volume.source.handle} is none that {volume.driver} can read"
            yield self._refuse("CSI-V31", message, "recreate the PersistentVolume with the right handle", csi, "no")
            return
        for refused, refused_nodes in self._list_refusals(csi):
            if refused is None:
                yield from self._evaluate_driver(refused_nodes)
                continue
            self.findings.append(refused)
            yield self._create_answer("unknown" if refused.doubt else "no", refused_nodes, refused.message)

    def _evaluate_driver(self, csi: int) -> Iterator[StepAnswer]:
        state = self._state
        unknown = csi & ~state.good & ~state.bad
        answers: tuple[tuple[Answer, int], ...] = (
            ("yes", csi & state.good), ("no", csi & state.bad), ("unknown", unknown),
        )  # fmt: skip
        for answer, nodes in answers:
            if nodes:
                yield self._create_driver_answer(answer, share(nodes))

    def _create_driver_answer(self, answer: Answer, nodes: int) -> StepAnswer:
        driver = self._volume.driver
        first = self._index.list_names(nodes)[0]
        reasons = self._state.reasons.get(first, ())
        places = f"{first} and {nodes.bit_count() - 1} more" if nodes & (nodes - 1) else first
        if answer == "yes":
            return self._create_answer("yes", nodes, f"{driver} is registered and works on {places}", reasons)
        worst = next((finding for finding in reasons if finding.severity == "blocker"), next(iter(reasons), None))
        reason = f": {worst.id} {worst.message}" if worst is not None else ""
        if answer == "no":
            return self._create_answer("no", nodes, f"{driver} does not work on {places}{reason}", reasons)
        because = f"whether {driver} works on {places} is unknown{reason}"
        return self._create_answer(
            "unknown", nodes, because, reasons or report_unread_lists(self._index.snapshot.unread)
        )

    # What is wrong with the volume itself

    def _check_volume(self) -> None:
        persistent_volume, claim = self._volume.persistent_volume, self._volume.claim
        if persistent_volume is not None and persistent_volume.deleting and not (claim is not None and claim.deleting):
            # The finalizer pv-protection keeps it while its claim exists, and pods start with it
            # (https://github.com/kubernetes/kubernetes, pkg/controller/volume/pvprotection, isBeingUsed).
            message = f"it is being deleted, with policy {persistent_volume.policy or '(none)'}, and {self._name_user()} uses it"
            remedy = "before its last pod ends, set persistentVolumeReclaimPolicy of the volume to Retain"
            remedy = remedy if claim is None else claim.choose_remedy(remedy)
            self.findings.append(replace(self._make_finding("CSI-V24", message, remedy), severity="warning"))
        handle = None if persistent_volume is None else _identify_disk(persistent_volume)
        if handle is not None and handle in self._twins:
            names, live = self._twins[handle]
            remedy = "keep one of them: set the policy of both to Retain, then delete the one whose claim is not used"
            message = f"they have the same handle {handle[1]} of {handle[0]}"
            finding = self._make_finding(
                "CSI-V25", message, remedy, object_name=f"PersistentVolumes {', '.join(names)}"
            )
            self.findings.append(finding if live > 1 else replace(finding, severity="note"))

    def _check_lifecycle(self) -> tuple[str, str] | None:
        """Why kubelets refuse a volume by its CSIDriver, and what helps; without one they mount only volumes with a claim.

        Source: https://github.com/kubernetes/kubernetes, pkg/volume/csi/csi_mounter.go, supportsVolumeLifecycleMode. That a pod names
        its volume itself, drivers see by what podInfoOnMount adds.
        """
        name, inline = self._volume.driver, self._volume.inline
        driver, entry = self._index.csi_drivers.get(name), BY_NAME.get(name)
        if "csidrivers" in self._index.unread:
            return None
        spec = driver.spec if driver is not None else {}
        modes = spec.get("volumeLifecycleModes") or ["Persistent"]
        recreate = f"recreate CSIDriver {name} as in the driver's own manifest"
        if (mode := "Ephemeral" if inline else "Persistent") not in modes:
            message = f"CSIDriver {name} does not exist, so pods may not name its volumes"
            if driver is not None:
                message = f"CSIDriver {name} has volumeLifecycleModes {', '.join(modes)}, expected {mode} too"
            return message, "use a claim for this volume" if inline else recreate
        if inline and entry is not None and entry.csi_driver["podInfoOnMount"] and not spec.get("podInfoOnMount"):
            return f"CSIDriver {name} has podInfoOnMount false, expected true for volumes that pods name", recreate
        return None

    def _check_profile(self) -> tuple[str, str] | None:
        """Why OpenShift lets no pod name such a volume itself, and what helps.

        Its admission since 4.13 compares the CSIDriver's label with the namespace's Pod Security
        (https://docs.redhat.com/en/documentation/openshift_container_platform/4.21/html/storage, CSI Volume Admission plugin).
        """
        name, snapshot = self._volume.driver, self._index.snapshot
        driver = self._index.csi_drivers.get(name)
        version = version_of(snapshot.cluster.openshift)
        namespace = self._volume.users[0].namespace if self._volume.users else ""
        observed = self._index.namespaces.get(namespace)
        if not self._volume.inline or "csidrivers" in self._index.unread or observed is None:
            return None
        if version is None or version.minor < (4, 13):
            return None
        profile = (driver.profile if driver is not None else "") or _PROFILES[-1]
        enforced = observed.labels.get(ENFORCED_LEVEL) or _PROFILES[0]
        if profile in _PROFILES and enforced in _PROFILES and _PROFILES.index(profile) > _PROFILES.index(enforced):
            message = f"CSIDriver {name} is for namespaces that enforce {profile}, and {namespace} has {enforced}"
            return message, f"use a claim for this volume, or label the CSIDriver {PROFILE}={enforced}"
        return None

    def _refuse_place(self) -> StepAnswer:
        if not self._volume.user_nodes:
            because = "no Windows node accepts the pods that use it"
            return self._create_answer("unknown", 0, because)
        terms = describe_terms(self._volume.terms)
        message = f"its nodeAffinity ({terms}) matches none of the Windows nodes that its workload may run on"
        remedy, nodes = "add a Windows node in its zone, or move the data", self._volume.user_nodes
        return self._refuse("CSI-V17", message, remedy, nodes, "no")

    def _refuse_kind(self, nodes: int) -> StepAnswer:
        message = f"kubelets on Windows do not mount volumes of kind {self._volume.source.field}"
        remedy = "move the data to a share or disk whose CSI driver supports Windows"
        return self._refuse("CSI-V30", message, remedy, nodes, "no")

    def _refuse_block(self, nodes: int) -> StepAnswer:
        return self._refuse(*_BLOCK, nodes, "no")

    def _evaluate_in_tree(self, nodes: int) -> StepAnswer:
        named = self._volume.source.fs_type.lower()
        if named in LINUX_FILE_SYSTEMS and not self._is_mounted_on_windows():
            message = f"its fsType is {named}, which kubelets on Windows do not format, and nothing on Windows has mounted it yet"
            remedy = f"check the disk; {_RECREATE} with fsType ntfs, and its StorageClass for new ones"
            return self._refuse("CSI-V18", message, remedy, nodes, "unknown")
        first = self._index.list_names(nodes)[0]
        observation = (
            f"kubelet {self._index.nodes[first].kubelet} on {first} mounts {self._volume.source.field} in-tree"
        )
        if self._control:
            message = f"the control plane uses CSI migration for it, and {observation}"
            return self._refuse(
                "CSI-V10", message, "finish the upgrade of these nodes, their driver first", nodes, "yes"
            )
        remedy = "before upgrading: csi-proxy where the driver needs it, then the driver, on every Windows node"
        return self._refuse("CSI-V11", f"{observation}, and so does the control plane", remedy, nodes, "yes")

    def _refuse_broken_kubelet(self, nodes: int) -> StepAnswer:
        first = self._index.nodes[self._index.list_names(nodes)[0]]
        version, plugin = version_of(first.kubelet), self._volume.plugin
        issue = plugin.find_issue(version) if plugin is not None and version is not None else ""
        message = (
            f"kubelet {first.kubelet} on {first.name} does not mount {self._volume.source.field} volumes ({issue})"
        )
        return self._refuse("CSI-V20", message, "upgrade these kubelets by one patch release", nodes, "no")

    def _list_refusals(self, nodes: int) -> Iterator[tuple[ReportFinding | None, int]]:
        """What Windows or the driver there refuses of the volume, on which of these nodes; None where nothing is."""
        volume, driver = self._volume, BY_NAME.get(self._volume.driver)
        if driver is not None and driver.fstypes and volume.linux_users:
            linux_user = volume.linux_users[0]
            message = f"{self._name_user()} on Windows and {linux_user.key} on Linux use the same disk"
            yield (
                self._make_finding("CSI-V19", message, "give each system a disk of its own, or share the data by SMB"),
                nodes,
            )
            return
        if driver is None:
            yield self._make_finding(*_BLOCK) if volume.is_block else self._check_linux_file_system(), nodes
            return
        request = self._build_request(driver)
        answers: dict[VolumeSupport, int] = {}
        for (version, mode), form_nodes in self._state.forms.items():
            if answered := nodes & form_nodes:
                answer = _check_support(volume.driver, request, version, mode)
                answers[answer] = answers.get(answer, 0) | answered
        for answer, answered in answers.items():
            yield self._explain_support(answer, driver), answered

    def _build_request(self, driver: Driver) -> RequestedVolume:
        """The volume as its driver is asked for it."""
        volume, source, modes = self._volume, self._volume.source, self._volume.access_modes
        if source.field == "gcePersistentDisk":
            # By its translation: migration changes ReadWriteMany to ReadWriteOnce.
            modes = (choose_google_mode(modes),) if modes else ()
        shares = not driver.fstypes
        return RequestedVolume(
            access_modes=modes,
            block=volume.is_block,
            fs_type=source.fs_type if shares else source.attribute or source.fs_type,
            read_only=source.read_only,
            inline=volume.inline and source.field == "csi",
            protocol=source.protocol or (source.attribute if shares else ""),
            server=source.server,
            lacks=tuple(
                feature
                for feature, is_set in ((capability.NO_SERVER, source.server), (capability.NO_SECRET, source.secret))
                if not is_set and feature in driver.capabilities and source.field == "csi"
            ),
        )

    def _explain_support(self, answer: VolumeSupport, driver: Driver) -> ReportFinding | None:
        if answer.word == "yes" or answer.feature.startswith(capability.FILE_SYSTEM):
            return self._check_file_system(answer, driver)
        source = (f"source: {answer.source}",) if answer.source else ()
        if answer.feature == capability.BLOCK:
            return self._make_finding(*_BLOCK)
        message = f"{self._describe_feature(answer.feature)}, and {driver.title} {answer.why}"
        finding = self._make_finding(
            "CSI-V31" if answer.word == "no" else "CSI-V32", message, _REMEDIES.get(answer.feature, _REMEDY)
        )
        return replace(finding, evidence=finding.evidence + source)

    def _check_file_system(self, answer: VolumeSupport, driver: Driver) -> ReportFinding | None:
        """What its file system makes of it, when nothing else is refused."""
        named = self._volume.source.attribute or self._volume.source.fs_type
        if not driver.fstypes:
            return None
        reason = f"its fsType is {named}" if named else "it has no fsType"
        if answer.word == "no":
            usable = " or ".join(file_system for file_system in driver.fstypes if file_system)
            message = f"{reason}, expected {usable}: {driver.title} {answer.why}"
            rewrite = _RECREATE if self._volume.source.field == "csi" else "convert it"
            remedy = f"if Windows formatted it: {rewrite} with fsType ntfs; if Linux did, use it on Linux only"
            if self._volume.persistent_volume is None:
                remedy = "use a StorageClass with parameter csi.storage.k8s.io/fstype: ntfs"
            return self._make_finding("CSI-V14", message, remedy)
        if self._is_mounted_on_windows():
            return None
        if (finding := self._check_linux_file_system()) is not None:
            return finding
        if answer.word == "unknown":
            message = f"{reason}, and {driver.title} {answer.why}"
            return self._make_finding(
                "CSI-V32", message, f"{_RECREATE} with fsType ntfs, and its StorageClass for new ones"
            )
        return None

    def _check_linux_file_system(self) -> ReportFinding | None:
        """That a disk may have a file system that Windows formats anew."""
        named = (self._volume.source.attribute or self._volume.source.fs_type).lower()
        if named not in LINUX_FILE_SYSTEMS or self._volume.persistent_volume is None or self._is_mounted_on_windows():
            return None
        message = f"its fsType is {named} and nothing on Windows has mounted it yet, so its content is unknown"
        remedy = "check the disk before Windows mounts it, or first use it on Windows when it is new"
        return self._make_finding("CSI-V18", message, remedy)

    def _describe_feature(self, feature: str) -> str:
        if feature in capability.ACCESS_MODES:
            return f"its access mode is {feature}"
        if feature == capability.CLUSTER_NAME:
            return f"its server is {self._volume.source.server}"
        if feature == capability.NO_SERVER:
            return "it has no source //server/share"
        if feature == capability.NO_SECRET:
            return "it has no Secret for its nodes"
        if feature in (capability.READ_ONLY, capability.INLINE):
            return f"it is {feature}"
        return f"its {feature}".replace(f"{capability.PROTOCOL} ", f"{capability.PROTOCOL} is ")

    def _is_mounted_on_windows(self) -> bool:
        index, persistent_volume, claim = self._index, self._volume.persistent_volume, self._volume.claim
        name = claim.name if claim is not None else ""
        pods = (pod for user in self._volume.users for pod in user.pods if pod.phase == "Running")
        # Another pod of the workload may have another volume.
        with_volume = (pod for pod in pods if persistent_volume is None or name in pod.volumes.claims)
        if any(index.bit.get(pod.node, 0) & index.windows for pod in with_volume):
            return True
        return persistent_volume is not None and persistent_volume.name in index.attached_to_windows

    # Words

    def _name_user(self) -> str:
        return self._volume.users[0].key if self._volume.users else "something"

    def _make_finding(
        self, id_: str, message: str, remedy: str, nodes: int = 0, object_name: str = ""
    ) -> ReportFinding:
        return create_finding(
            id_, object_name or self._volume.title, message, tuple(self._list_evidence(nodes)), remedy
        )

    def _refuse(self, id_: str, message: str, remedy: str, nodes: int, answer: Answer) -> StepAnswer:
        """A finding that is the verdict on these nodes too."""
        self.findings.append(self._make_finding(id_, message, remedy, nodes))
        return self._create_answer(answer, nodes, message)

    def _list_evidence(self, nodes: int) -> Iterator[str]:
        volume, persistent_volume = self._volume, self._volume.persistent_volume
        source = volume.source
        named = {"fsType": source.fs_type, "kind": source.kind, "driver": source.driver, "handle": source.handle}
        details = ", ".join(f"{key} {value}" for key, value in named.items() if value)
        yield f"{volume.title}: source {source.field or 'unknown'}" + (f" ({details})" if details else "")
        if persistent_volume is not None:
            if persistent_volume.migrated_to or persistent_volume.provisioned_by:
                yield f"annotations: provisioned-by {persistent_volume.provisioned_by or 'none'}, migrated-to {persistent_volume.migrated_to or 'none'}"
            elif volume.plugin is not None:
                yield "static: no provisioned-by, so migrated-to is never set and proves nothing"
        for user in volume.users[:2]:
            yield f"used by {user.key}: {user.because}"
        if nodes and volume.plugin is not None:
            first = self._index.list_names(nodes)[0]
            csi_node = self._index.csi_nodes.get(first)
            listed = csi_node.migrated if csi_node is not None else None
            plugin = volume.plugin.plugin
            unset = "not read" if "csinodes" in self._index.unread else "not set"
            reason = unset if listed is None else "listed" if plugin in listed else "not listed"
            yield f"Node {first}: kubelet {self._index.nodes[first].kubelet}, migrated-plugins: {plugin} {reason}"

    def _create_answer(
        self, answer: Answer, nodes: int, because: str, reasons: tuple[ReportFinding, ...] = ()
    ) -> StepAnswer:
        """reasons: findings of others that explain it."""
        findings = (*self.findings, *reasons)
        # A finding that keeps a report from being ready, though the volume can be mounted.
        against = next((finding for finding in findings if finding.doubt or finding.severity == "blocker"), None)
        if answer == "yes" and against is not None:
            answer, because = "unknown", against.message
        return StepAnswer("stage", answer, nodes, self._volume.key, because, findings)

    def create_verdict(self, answer: StepAnswer) -> VolumeVerdict:
        volume = self._volume
        name = volume.key if volume.claim is None else ""
        return VolumeVerdict(
            volume=name if volume.persistent_volume is None else volume.persistent_volume.name,
            claim=volume.claim.key if volume.claim is not None else "",
            source=volume.source.field,
            driver=volume.driver,
            nodes=self._index.list_names(answer.nodes),
            ok=answer.answer,
            because=answer.because,
            evidence=tuple(self._list_evidence(answer.nodes)),
            findings=tuple(dict.fromkeys(finding.id for finding in answer.findings)),
        )
