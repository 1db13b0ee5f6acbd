# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a volume may be converted. Everything is checked before the first change. Pure.

Only a volume that already goes through its CSI driver on every Windows node that it can reach enters: then the conversion
changes the object that describes the disk, and nothing about how the disk is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.findings import Finding, blocker, warning
from ..catalog.in_tree import InTree
from ..catalog.native import NativeVolume, convert_volume
from ..catalog.translation import TranslationError, find_plugin
from ..kube.labels import HELM, Marks
from ..kube.pod import list_claims
from ..preflight.facts.nodes import ObservedCsiNode
from ..preflight.migration import decide_way, reports_csi
from ..verify.nodes import ProofNode, can_reach
from .objects import format_retention_command, parse_lock
from .observation import find_unknown_finalizers
from .record import ConversionRecord, RecordedWorkload

Object = Mapping[str, Any]

SCALED = ("Deployment", "StatefulSet")
_RESIZING = frozenset({"Resizing", "FileSystemResizePending", "ModifyingVolume"})
_REVIEW = "Review it before you start."


@dataclass(frozen=True, slots=True)
class ConversionFacts:
    """The observed objects, as the API returned them.

    pods, sets: of the claim's namespace; sets are its workloads that can be scaled, and ReplicaSets. nodes: Windows
    Nodes with their CSINode. migrations: CnsVSphereVolumeMigrations, None where the kind does not exist. unhealthy: why
    the driver's controller is not, empty when it is. attaches: the driver has VolumeAttachments.
    records: of conversions that are not done, of any claim, as they were before and after this observation.
    """

    claim: Object | None
    volume: Object | None
    volumes: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    sets: Sequence[Object] = ()
    claims: Sequence[Object] = ()
    snapshots: Sequence[Object] = ()
    storage_class: Object | None = None
    nodes: Sequence[tuple[Object, Object | None]] = ()
    migrations: Sequence[Object] | None = None
    unhealthy: str = ""
    attaches: bool = True
    records: Sequence[ConversionRecord] = ()


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """The requested conversion of one claim. managed: objects with another manager may be changed. handle: instead of what was found."""

    namespace: str
    claim: str
    managed: bool = False
    handle: str = ""

    @property
    def title(self) -> str:
        """The claim, as namespace/name."""
        return f"{self.namespace}/{self.claim}"


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The result of the evaluation. findings: blockers among them refuse."""

    findings: tuple[Finding, ...]
    as_csi: NativeVolume | None = None
    handle: str = ""
    workloads: tuple[RecordedWorkload, ...] = ()

    @property
    def refused(self) -> bool:
        return any(finding.severity == "blocker" for finding in self.findings)


def evaluate(facts: ConversionFacts, desired: ConversionRequest, first: Collection[str] = ()) -> Eligibility:
    """Return every finding about the conversion of a claim.

    first: claims of this namespace; what was begun with them ends before this one begins, and then it is evaluated once more.
    """
    claim_title = f"PersistentVolumeClaim {desired.title}"
    claim, volume = facts.claim, facts.volume
    if claim is None:
        return Eligibility((blocker("CSI-B01", claim_title, "it does not exist", "Correct its namespace or name."),))
    if volume is None or not _is_bound(claim, volume):
        phase = (claim.get("status") or {}).get("phase", "Pending")
        text = f"it is {phase} and volume {claim['spec'].get('volumeName') or 'none'} is not bound to it, expected Bound on both sides"
        return Eligibility((blocker("CSI-B01", claim_title, text, "Fix the binding first."),))
    plugin = find_plugin(volume)
    if plugin is None and "csi" in volume["spec"]:
        text = f"PersistentVolume {volume['metadata']['name']} is already a native volume of {volume['spec']['csi']['driver']}"
        return Eligibility((blocker("CSI-B02", claim_title, text, "Nothing to do."),))
    findings: list[Finding] = []
    translated, handle = None, ""
    try:
        translated = convert_volume(volume, desired.handle)
        handle = translated.handle
    except TranslationError as error:
        findings.append(blocker("CSI-B03", f"PersistentVolume {volume['metadata']['name']}", str(error), error.remedy))
    if translated is not None:
        if translated.volume_path:
            handle, problems = _find_registered_handle(facts, translated, handle)
            findings += problems
        named = f"PersistentVolume {volume['metadata']['name']}"
        findings += [warning("CSI-B30", named, note, _REVIEW) for note in translated.notes]
        findings += _check_twins(facts, volume, translated, handle)
    nodes = [ProofNode.from_objects(node, csi_node) for node, csi_node in facts.nodes]
    able = [node for node in nodes if can_reach(node, volume)]
    if translated is not None:
        findings += _check_node_affinity(volume, translated, able)
    findings += _check_csi_path(facts, plugin, able) if plugin is not None else ()
    findings += _check_pending_changes(facts, desired, claim, volume)
    workloads, problems = _collect_workloads(facts, desired, first)
    findings += problems
    findings += _check_managers(facts, desired, claim, volume)
    findings += _check_claim(facts, desired, claim)
    return Eligibility(tuple(findings), translated, handle, workloads)


def _is_bound(claim: Object, volume: Object) -> bool:
    reference = volume["spec"].get("claimRef") or {}
    return (
        (claim.get("status") or {}).get("phase") == "Bound"
        and (volume.get("status") or {}).get("phase") == "Bound"
        and claim["spec"].get("volumeName") == volume["metadata"]["name"]
        and reference.get("uid") == claim["metadata"]["uid"]
    )


def _find_registered_handle(facts: ConversionFacts, translated: NativeVolume, handle: str) -> tuple[str, list[Finding]]:
    """Return the handle of a vSphere disk from the object with which the driver registered it."""
    path = translated.volume_path
    migrations = [
        migration for migration in facts.migrations or () if (migration.get("spec") or {}).get("volumepath") == path
    ]
    if handle:
        return handle, []
    if len(migrations) == 1:
        return str(migrations[0]["spec"]["volumeid"]), []
    observed = "no CnsVSphereVolumeMigration" if not migrations else f"{len(migrations)} CnsVSphereVolumeMigrations"
    remedy = (
        "Check that the driver's syncer runs, and use the volume in a pod once on a node with CSI migration, so "
        "that the driver registers the disk. CSI migration supports only one vCenter."
    )
    return "", [blocker("CSI-B04", path, f"{observed} names it, expected one, which has the disk's ID", remedy)]


def _check_twins(facts: ConversionFacts, volume: Object, translated: NativeVolume, handle: str) -> Iterator[Finding]:
    for twin in facts.volumes:
        name = twin["metadata"]["name"]
        source = twin["spec"].get("csi") or {}
        same_csi = source.get("driver") == translated.driver and source.get("volumeHandle") in (
            handle, translated.migrated,
        )  # fmt: skip
        field_name = translated.plugin.field
        same_field = field_name in twin["spec"] and _has_same_disk(twin, volume, field_name)
        if name != volume["metadata"]["name"] and (same_csi or same_field):
            yield blocker(
                "CSI-B05",
                f"PersistentVolume {name}",
                f"it has the same disk as {volume['metadata']['name']} ({handle or translated.migrated})",
                "Two volumes of one disk are indistinguishable. Set the policy of the unused one to Retain, then delete it.",
            )


def _has_same_disk(twin: Object, volume: Object, name: str) -> bool:
    keys = ("volumePath", "volumeID", "diskURI", "pdName")
    source, its = volume["spec"][name], twin["spec"][name]
    return any(key in source and source[key] == its.get(key) for key in keys)


def _check_node_affinity(volume: Object, translated: NativeVolume, nodes: Sequence[ProofNode]) -> Iterator[Finding]:
    """Find nodes that can mount the old volume but not the native one."""
    name = f"PersistentVolume {volume['metadata']['name']}"
    affinity = translated.affinity
    new = {"spec": {"nodeAffinity": affinity}} if affinity else {"spec": {}}
    lost = [node.name for node in nodes if not can_reach(node, new)]
    if lost:
        keys = ", ".join(
            f"{entry['key']} {entry['operator']} {entry.get('values', [])}"
            for term in ((affinity or {}).get("required") or {}).get("nodeSelectorTerms", [])
            for entry in term.get("matchExpressions", [])
        )
        yield blocker(
            "CSI-B20",
            name,
            f"{', '.join(lost)} can mount it, but could not mount the native volume, expected labels {keys}",
            "The driver's registration sets them. Run enable_csi for these nodes; its gate reports why they are missing.",
        )


def _check_csi_path(facts: ConversionFacts, plugin: InTree, nodes: Sequence[ProofNode]) -> Iterator[Finding]:
    """Find Windows nodes that do not yet mount the volume through the driver."""
    if not nodes:
        text = "no Windows node matches the volume's node affinity"
        yield blocker("CSI-B06", "Nodes", text, "Do not convert a volume for Linux, or correct the node affinity.")
    observed = {node["metadata"]["name"]: csi for node, csi in facts.nodes}
    for node in nodes:
        csi_node, kubelet = observed[node.name], node.facts.kubelet
        listed = reports_csi(plugin, None if csi_node is None else ObservedCsiNode.from_object(csi_node))
        if decide_way(plugin, kubelet, listed) in ("in_tree", "unknown"):
            text = f"its kubelet {kubelet or 'of unknown version'} mounts {plugin.plugin} in-tree, expected CSI migration to {plugin.driver}"
            yield blocker(
                "CSI-B07", f"Node {node.name}", text, f"Upgrade it to Kubernetes {plugin.removed} or later first."
            )
        if plugin.driver not in node.drivers:
            text = f"{plugin.driver} is not in its CSINode"
            yield blocker("CSI-B08", f"Node {node.name}", text, "Run enable_csi; its gate reports the cause.")
    if facts.unhealthy:
        remedy = "Repair it: it releases the old volume and serves the new one."
        yield blocker("CSI-B09", f"controller of {plugin.driver}", facts.unhealthy, remedy)


def _check_pending_changes(
    facts: ConversionFacts, desired: ConversionRequest, claim: Object, volume: Object
) -> Iterator[Finding]:
    claim_title = f"PersistentVolumeClaim {desired.title}"
    for thing, name in ((claim, claim_title), (volume, f"PersistentVolume {volume['metadata']['name']}")):
        if thing["metadata"].get("deletionTimestamp"):
            yield blocker("CSI-B10", name, "it is being deleted", "Find out what deleted it, and keep the disk.")
    for name in find_unknown_finalizers(volume["metadata"].get("finalizers") or ()):
        text = f"finalizer {name} blocks its deletion, and the workload would stay stopped meanwhile"
        remedy = "Find out what set it, and remove it for the conversion."
        yield blocker("CSI-B21", f"PersistentVolume {volume['metadata']['name']}", text, remedy)
    status = claim.get("status") or {}
    conditions = [str(entry.get("type")) for entry in status.get("conditions") or [] if entry.get("type") in _RESIZING]
    requested = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    has = (status.get("capacity") or {}).get("storage")
    if conditions or (requested and has and requested != has):
        state = f"conditions {', '.join(conditions)}" if conditions else f"{requested} requested, has {has}"
        yield blocker("CSI-B11", claim_title, f"it is being resized: {state}", "Wait for the resize to end.")
    for snapshot in facts.snapshots:
        if ((snapshot.get("spec") or {}).get("source") or {}).get("persistentVolumeClaimName") != desired.claim:
            continue
        if not (snapshot.get("status") or {}).get("readyToUse"):
            name = snapshot["metadata"]["name"]
            text = f"VolumeSnapshot {name} of it is not ready"
            yield blocker("CSI-B12", claim_title, text, "Wait for it, or delete it.")
    for clone in facts.claims:
        source = clone["spec"].get("dataSource") or clone["spec"].get("dataSourceRef") or {}
        pending = (clone.get("status") or {}).get("phase") != "Bound"
        if source.get("kind") == "PersistentVolumeClaim" and source.get("name") == desired.claim and pending:
            text = f"PersistentVolumeClaim {clone['metadata']['name']} is being cloned from it"
            yield blocker("CSI-B12", claim_title, text, "Wait for it, or delete it.")
    run, dummy = parse_lock(claim)
    if run:
        yield blocker("CSI-B13", claim_title, f"it is locked by run {run}", "Continue that run, or roll it back.")


def _collect_workloads(
    facts: ConversionFacts, desired: ConversionRequest, first: Collection[str]
) -> tuple[tuple[RecordedWorkload, ...], list[Finding]]:
    """Return all current or future users of the claim: by pods, templates, and a StatefulSet's names for its claims."""
    problems: list[Finding] = []
    workloads_by_uid: dict[str, Object] = {}
    by_uid = {workload["metadata"]["uid"]: workload for workload in facts.sets}
    for pod in facts.pods:
        if desired.claim not in list_claims(pod):
            continue
        owner, name = _find_workload(pod, by_uid), f"pod {desired.namespace}/{pod['metadata']['name']}"
        if owner is None:
            owners = pod["metadata"].get("ownerReferences") or []
            kinds = ", ".join(f"{reference['kind']} {reference['name']}" for reference in owners)
            number, text = ("CSI-B15", f"it belongs to {kinds}") if kinds else ("CSI-B14", "no controller recreates it")
            remedy = "Delete it first: only Deployments and StatefulSets are scaled down and up."
            problems.append(blocker(number, name, f"{text}, and it uses the claim", remedy))
        else:
            workloads_by_uid[owner["metadata"]["uid"]] = owner
    for workload in facts.sets:
        if workload["kind"] in SCALED and _has_claim(workload, desired.claim):
            workloads_by_uid[workload["metadata"]["uid"]] = workload
    for workload in workloads_by_uid.values():
        problems += _check_conversions(facts, desired, workload, first)
        problems += _check_retention(workload)
    workloads = [
        RecordedWorkload(
            workload["kind"],
            desired.namespace,
            workload["metadata"]["name"],
            workload["metadata"]["uid"],
            int(workload["spec"].get("replicas", 1)),
        )
        for workload in workloads_by_uid.values()
    ]
    return tuple(sorted(workloads, key=lambda workload: (workload.kind, workload.name))), problems


def _find_workload(pod: Object, by_uid: Mapping[str, Object]) -> Object | None:
    thing: Object = pod
    for _step in range(3):
        owner = next(
            (reference for reference in thing["metadata"].get("ownerReferences") or [] if reference.get("controller")),
            None,
        )
        above = by_uid.get(owner["uid"]) if owner is not None else None
        if above is None:
            return None
        if above["kind"] in SCALED and not above["metadata"].get("ownerReferences"):
            return above
        thing = above
    return None


def _has_claim(workload: Object, claim: str) -> bool:
    """Whether a workload has a claim, by its template or by its claim names, whatever its replicas are."""
    template = (workload["spec"].get("template") or {}).get("spec") or {}
    mounted = [volume.get("persistentVolumeClaim") or {} for volume in template.get("volumes") or []]
    stem, dummy, ordinal = claim.rpartition("-")
    stems = [
        f"{template_of_claim['metadata']['name']}-{workload['metadata']['name']}"
        for template_of_claim in workload["spec"].get("volumeClaimTemplates") or []
    ]
    return claim in [entry.get("claimName") for entry in mounted] or (ordinal.isdigit() and stem in stems)


def _check_conversions(
    facts: ConversionFacts, desired: ConversionRequest, workload: Object, first: Collection[str]
) -> Iterator[Finding]:
    """Find unfinished conversions of the workload's other claims, which may have changed its replicas."""
    name, uid = f"{workload['kind']} {desired.namespace}/{workload['metadata']['name']}", workload["metadata"]["uid"]
    begun = {
        record.run: record
        for record in facts.records
        if uid in {workload.uid for workload in record.workloads} and not record.has_reached("finish")
    }
    for record in begun.values():
        if record.claim not in first:
            claim = f"PersistentVolumeClaim {record.title}"
            text = f"run {record.run} converts its {claim} and is at step {record.step} ({record.direction})"
            remedy = "Name that claim too, which is then converted first, or roll it back. If it no longer exists, move its record away."
            yield blocker("CSI-B22", name, f"{text}, expected one conversion of a workload at a time", remedy)


def _check_retention(workload: Object) -> Iterator[Finding]:
    policy = workload["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    bad = [key for key in ("whenScaled", "whenDeleted") if policy.get(key) == "Delete"]
    if bad:
        name = f"{workload['kind']} {workload['metadata']['namespace']}/{workload['metadata']['name']}"
        text = f"persistentVolumeClaimRetentionPolicy has {', '.join(f'{key}: Delete' for key in bad)}, expected Retain"
        command = format_retention_command(workload["metadata"]["namespace"], workload["metadata"]["name"])
        yield blocker("CSI-B16", name, f"{text}, because scaling it to 0 would delete the claim", command)


def _check_managers(
    facts: ConversionFacts, desired: ConversionRequest, claim: Object, volume: Object
) -> Iterator[Finding]:
    if desired.managed:
        return
    sets = [workload for workload in facts.sets if workload["kind"] in SCALED and _has_claim(workload, desired.claim)]
    for thing, kind in (
        (claim, "PersistentVolumeClaim"),
        (volume, "PersistentVolume"),
        *((workload, workload["kind"]) for workload in sets),
    ):
        metadata = thing["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        for keeper in _find_managers(thing):
            yield blocker(
                "CSI-B17",
                f"{kind} {name}",
                f"{keeper} manages it and would restore replicas or objects during the conversion",
                "Pause that manager for this namespace, then set allow_managed (kubewin_convert_allow_managed).",
            )


def _find_managers(thing: Object) -> Iterable[str]:
    marks = Marks.from_object(thing)
    managers = [tool for tool, _mark, _source in marks.list_tools()]
    managers += ["Helm"] if HELM in marks.annotations else []
    if marks.owner and marks.owner.split()[0] not in (*SCALED, "ReplicaSet"):
        managers.append(marks.owner)
    return dict.fromkeys(managers)


def _check_claim(facts: ConversionFacts, desired: ConversionRequest, claim: Object) -> Iterator[Finding]:
    storage_class = claim["spec"].get("storageClassName") or ""
    claim_title = f"PersistentVolumeClaim {desired.title}"
    if storage_class and facts.storage_class is None:
        text = f"StorageClass {storage_class} does not exist, but later expansion of the volume requires it"
        yield blocker("CSI-B18", claim_title, text, "Create it.")
    yield warning(
        "CSI-B33",
        claim_title,
        "it is Lost for some seconds while its volume object is replaced. Kubernetes' event and tools such as Argo "
        "CD then report lost data; no data is lost",
        _REVIEW,
    )
