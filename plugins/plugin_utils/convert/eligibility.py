# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a volume may be converted. Everything is checked before the first change. Pure.

Only a volume that already goes through its CSI driver on every Windows node that it can reach enters: then the conversion
changes the object that describes the disk, and nothing about how the disk is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding, blocker, warning
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.in_tree import InTree
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.native import Native, convert_volume
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.translation import TranslationError, find_plugin
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.facts import strange
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.objects import helper_name, keep_claims, locked_by
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record, Variant, Workload
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import HELM, Marks
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import list_claims
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.nodes import ObservedCsiNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.migration import reports_csi, way
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import ProofNode, reachable

Object = Mapping[str, Any]

SCALED = ("Deployment", "StatefulSet")
_RESIZING = frozenset({"Resizing", "FileSystemResizePending", "ModifyingVolume"})
_REVIEW = "Review it before you start."


@dataclass(frozen=True, slots=True)
class Facts:
    """The observed objects, as the API returned them.

    pods, sets: of the claim's namespace; sets are its workloads that can be scaled, and ReplicaSets. nodes: Windows
    Nodes with their CSINode. migrations: CnsVSphereVolumeMigrations, None where the kind does not exist. unhealthy: why
    the driver's controller is not, empty when it is. attaches: the driver has VolumeAttachments. driver: of the catalog, None for one that it has not.
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
    driver: Driver | None = None
    records: Sequence[Record] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for. storage_class, volume_name: of re-claim, empty for those of the old volume.

    managed: objects with another manager may be changed. project: of Google Cloud. handle: instead of what was found.
    """

    namespace: str
    claim: str
    variant: Variant = "in_place"
    storage_class: str = ""
    volume_name: str = ""
    managed: bool = False
    project: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What came of it. findings: blockers among them refuse. nodes: names of Windows Nodes that may have the volume."""

    findings: tuple[Finding, ...]
    as_csi: Native | None = None
    handle: str = ""
    workloads: tuple[Workload, ...] = ()
    nodes: tuple[str, ...] = field(default=())

    @property
    def refused(self) -> bool:
        """Whether anything is in the way."""
        return any(finding.severity == "blocker" for finding in self.findings)


def evaluate(facts: Facts, desired: Request, first: Collection[str] = ()) -> Eligibility:
    """Evaluate. Everything that is in the way is named at once.

    first: claims of this namespace; what was begun with them ends before this one begins, and then it is evaluated once more.
    """
    where = f"PersistentVolumeClaim {desired.namespace}/{desired.claim}"
    claim, volume = facts.claim, facts.volume
    if claim is None:
        return Eligibility((blocker("CSI-B01", where, "it does not exist", "Correct its namespace or name."),))
    if volume is None or not _bound(claim, volume):
        found = (claim.get("status") or {}).get("phase", "Pending")
        text = f"it is {found} and volume {claim['spec'].get('volumeName') or 'none'} is not bound to it, expected Bound on both sides"
        return Eligibility((blocker("CSI-B01", where, text, "Fix the binding first."),))
    plugin = find_plugin(volume)
    if plugin is None and "csi" in volume["spec"]:
        text = f"PersistentVolume {volume['metadata']['name']} is already a native volume of {volume['spec']['csi']['driver']}"
        return Eligibility((blocker("CSI-B02", where, text, "Nothing to do."),))
    findings: list[Finding] = []
    translated, handle = None, ""
    try:
        translated = convert_volume(volume, desired.project, desired.handle)
        handle = translated.handle
    except TranslationError as error:
        findings.append(blocker("CSI-B03", f"PersistentVolume {volume['metadata']['name']}", str(error), error.remedy))
    if translated is not None:
        if translated.volume_path:
            handle, problems = _registered(facts, translated, handle)
            findings += problems
        named = f"PersistentVolume {volume['metadata']['name']}"
        findings += [warning("CSI-B30", named, note, _REVIEW) for note in translated.notes]
        findings += _twins(facts, volume, translated, handle)
    nodes = [ProofNode.from_objects(node, csi_node) for node, csi_node in facts.nodes]
    able = [node for node in nodes if reachable(node, volume)]
    if translated is not None:
        findings += _places(volume, translated, able)
    findings += _path(facts, plugin, able) if plugin is not None else ()
    findings += _at_rest(facts, desired, claim, volume)
    workloads, problems = _workloads(facts, desired, first)
    findings += problems
    findings += _kept(facts, desired, claim, volume)
    findings += _surroundings(facts, desired, claim, volume)
    return Eligibility(tuple(findings), translated, handle, workloads, tuple(node.name for node in able))


def without_leftovers(facts: Facts, done: Sequence[Record]) -> Facts:
    """The facts without what late requests of earlier runs created, which a run removes first. done: their records."""
    sides = {(record.run, "old" if record.target_side == "new" else "new") for record in done}
    pods = {helper_name(record.run) for record in done}
    return replace(
        facts,
        volumes=[one for one in facts.volumes if locked_by(one) not in sides or not _is_unused(one)],
        pods=[one for one in facts.pods if one["metadata"]["name"] not in pods],
    )


def _is_unused(volume: Object) -> bool:
    phase = (volume.get("status") or {}).get("phase")
    return phase != "Bound" and volume["spec"].get("persistentVolumeReclaimPolicy") == "Retain"


def _bound(claim: Object, volume: Object) -> bool:
    reference = volume["spec"].get("claimRef") or {}
    return (
        (claim.get("status") or {}).get("phase") == "Bound"
        and (volume.get("status") or {}).get("phase") == "Bound"
        and claim["spec"].get("volumeName") == volume["metadata"]["name"]
        and reference.get("uid") == claim["metadata"]["uid"]
    )


def _registered(facts: Facts, translated: Native, handle: str) -> tuple[str, list[Finding]]:
    """vSphere: the object with which the driver registered the disk has its ID."""
    path = translated.volume_path
    found = [one for one in facts.migrations or () if (one.get("spec") or {}).get("volumepath") == path]
    if handle:
        return handle, []
    if len(found) == 1:
        return str(found[0]["spec"]["volumeid"]), []
    observed = "no CnsVSphereVolumeMigration" if not found else f"{len(found)} CnsVSphereVolumeMigrations"
    remedy = (
        "Check that the driver's syncer runs, and use the volume in a pod once on a node with CSI migration, so "
        "that the driver registers the disk. CSI migration supports only one vCenter."
    )
    return "", [blocker("CSI-B04", path, f"{observed} names it, expected one, which has the disk's ID", remedy)]


def _twins(facts: Facts, volume: Object, translated: Native, handle: str) -> Iterator[Finding]:
    for other in facts.volumes:
        name = other["metadata"]["name"]
        source = other["spec"].get("csi") or {}
        same_csi = source.get("driver") == translated.driver and source.get("volumeHandle") in (
            handle, translated.migrated,
        )  # fmt: skip
        field_name = translated.plugin.field
        same_field = field_name in other["spec"] and _same_disk(other, volume, field_name)
        if name != volume["metadata"]["name"] and (same_csi or same_field):
            yield blocker(
                "CSI-B05",
                f"PersistentVolume {name}",
                f"it has the same disk as {volume['metadata']['name']} ({handle or translated.migrated})",
                "Two volumes of one disk are indistinguishable. Set the policy of the unused one to Retain, then delete it.",
            )


def _same_disk(other: Object, volume: Object, name: str) -> bool:
    keys = ("volumePath", "volumeID", "diskURI", "pdName")
    mine, its = volume["spec"][name], other["spec"][name]
    return any(key in mine and mine[key] == its.get(key) for key in keys)


def _places(volume: Object, translated: Native, nodes: Sequence[ProofNode]) -> Iterator[Finding]:
    """The new volume is bound by the driver's own keys: wherever the old one can go, it has to be able to go."""
    name = f"PersistentVolume {volume['metadata']['name']}"
    affinity = translated.affinity
    new = {"spec": {"nodeAffinity": affinity}} if affinity else {"spec": {}}
    lost = [node.name for node in nodes if not reachable(node, new)]
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
            "The driver's registration sets them. Run enable_csi.yml for these nodes; its gate reports why they are missing.",
        )


def _path(facts: Facts, plugin: InTree, nodes: Sequence[ProofNode]) -> Iterator[Finding]:
    """Whether every Windows node that can have the volume already takes it through the driver."""
    if not nodes:
        text = "no Windows node matches the volume's node affinity"
        yield blocker("CSI-B06", "Nodes", text, "Do not convert a volume for Linux, or correct the node affinity.")
    observed = {node["metadata"]["name"]: csi for node, csi in facts.nodes}
    for node in nodes:
        csi_node, kubelet = observed[node.name], node.facts.kubelet
        listed = reports_csi(plugin, None if csi_node is None else ObservedCsiNode.from_object(csi_node))
        if way(plugin, kubelet, listed) in ("in_tree", "unknown"):
            text = f"its kubelet {kubelet or 'of unknown version'} mounts {plugin.plugin} in-tree, expected CSI migration to {plugin.driver}"
            yield blocker(
                "CSI-B07", f"Node {node.name}", text, f"Upgrade it to Kubernetes {plugin.gone} or later first."
            )
        if plugin.driver not in node.drivers:
            text = f"{plugin.driver} is not in its CSINode"
            yield blocker("CSI-B08", f"Node {node.name}", text, "Run enable_csi.yml; its gate reports the cause.")
    if facts.unhealthy:
        remedy = "Repair it: it releases the old volume and serves the new one."
        yield blocker("CSI-B09", f"controller of {plugin.driver}", facts.unhealthy, remedy)


def _at_rest(facts: Facts, desired: Request, claim: Object, volume: Object) -> Iterator[Finding]:
    where = f"PersistentVolumeClaim {desired.namespace}/{desired.claim}"
    for thing, name in ((claim, where), (volume, f"PersistentVolume {volume['metadata']['name']}")):
        if thing["metadata"].get("deletionTimestamp"):
            yield blocker("CSI-B10", name, "it is being deleted", "Find out what deleted it, and keep the disk.")
    for name in strange(volume["metadata"].get("finalizers") or ()):
        text = f"finalizer {name} blocks its deletion, and the workload would stay stopped meanwhile"
        remedy = "Find out what set it, and remove it for the conversion."
        yield blocker("CSI-B21", f"PersistentVolume {volume['metadata']['name']}", text, remedy)
    status = claim.get("status") or {}
    conditions = [str(entry.get("type")) for entry in status.get("conditions") or [] if entry.get("type") in _RESIZING]
    asked = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    has = (status.get("capacity") or {}).get("storage")
    if conditions or (asked and has and asked != has):
        found = f"conditions {', '.join(conditions)}" if conditions else f"{asked} requested, has {has}"
        yield blocker("CSI-B11", where, f"it is being resized: {found}", "Wait for the resize to end.")
    for snapshot in facts.snapshots:
        if ((snapshot.get("spec") or {}).get("source") or {}).get("persistentVolumeClaimName") != desired.claim:
            continue
        if not (snapshot.get("status") or {}).get("readyToUse"):
            name = snapshot["metadata"]["name"]
            text = f"VolumeSnapshot {name} of it is not ready"
            yield blocker("CSI-B12", where, text, "Wait for it, or delete it.")
    for other in facts.claims:
        source = other["spec"].get("dataSource") or other["spec"].get("dataSourceRef") or {}
        pending = (other.get("status") or {}).get("phase") != "Bound"
        if source.get("kind") == "PersistentVolumeClaim" and source.get("name") == desired.claim and pending:
            text = f"PersistentVolumeClaim {other['metadata']['name']} is being cloned from it"
            yield blocker("CSI-B12", where, text, "Wait for it, or delete it.")
    run, dummy = locked_by(claim)
    if run:
        yield blocker("CSI-B13", where, f"it is locked by run {run}", "Continue that run, or roll it back.")


def _workloads(facts: Facts, desired: Request, first: Collection[str]) -> tuple[tuple[Workload, ...], list[Finding]]:
    """All current or future users of the claim: pods, templates, and a StatefulSet's names for its claims."""
    problems: list[Finding] = []
    found: dict[str, Object] = {}
    by_uid = {one["metadata"]["uid"]: one for one in facts.sets}
    for pod in facts.pods:
        if desired.claim not in list_claims(pod):
            continue
        owner, name = _owner(pod, by_uid), f"pod {desired.namespace}/{pod['metadata']['name']}"
        if owner is None:
            owners = pod["metadata"].get("ownerReferences") or []
            kinds = ", ".join(f"{one['kind']} {one['name']}" for one in owners)
            number, text = ("CSI-B15", f"it belongs to {kinds}") if kinds else ("CSI-B14", "no controller recreates it")
            remedy = "Delete it first: only Deployments and StatefulSets are scaled down and up."
            problems.append(blocker(number, name, f"{text}, and it uses the claim", remedy))
        else:
            found[owner["metadata"]["uid"]] = owner
    for one in facts.sets:
        if one["kind"] in SCALED and _uses(one, desired.claim):
            found[one["metadata"]["uid"]] = one
    for one in found.values():
        problems += _under_way(facts, desired, one, first)
        problems += _retention(one)
        if desired.variant == "re_claim":
            problems += _templates(one, desired)
    workloads = [
        Workload(one["kind"], desired.namespace, one["metadata"]["name"], one["metadata"]["uid"], _replicas(one))
        for one in found.values()
    ]
    return tuple(sorted(workloads, key=lambda one: (one.kind, one.name))), problems


def _owner(pod: Object, by_uid: Mapping[str, Object]) -> Object | None:
    """The Deployment or StatefulSet above a pod."""
    thing: Object = pod
    for _step in range(3):
        owner = next((one for one in thing["metadata"].get("ownerReferences") or [] if one.get("controller")), None)
        above = by_uid.get(owner["uid"]) if owner is not None else None
        if above is None:
            return None
        if above["kind"] in SCALED and not above["metadata"].get("ownerReferences"):
            return above
        thing = above
    return None


def _uses(one: Object, claim: str) -> bool:
    """By its template; or a StatefulSet by its name, whatever its replicas are: claims above them stay, and are its own."""
    template = (one["spec"].get("template") or {}).get("spec") or {}
    mounted = [volume.get("persistentVolumeClaim") or {} for volume in template.get("volumes") or []]
    stem, dummy, ordinal = claim.rpartition("-")
    own = [
        f"{made['metadata']['name']}-{one['metadata']['name']}"
        for made in one["spec"].get("volumeClaimTemplates") or []
    ]
    return claim in [entry.get("claimName") for entry in mounted] or (ordinal.isdigit() and stem in own)


def _replicas(one: Object) -> int:
    return int(one["spec"].get("replicas", 1))


def _under_way(facts: Facts, desired: Request, one: Object, first: Collection[str]) -> Iterator[Finding]:
    """Conversions of the workload's other claims that are not over: what it has now need not be what it is to have."""
    name, uid = f"{one['kind']} {desired.namespace}/{one['metadata']['name']}", one["metadata"]["uid"]
    begun = {
        record.run: record
        for record in facts.records
        if uid in {workload.uid for workload in record.workloads} and not record.reached("finish")
    }
    for record in begun.values():
        if record.claim not in first:
            claim = f"PersistentVolumeClaim {record.namespace}/{record.claim}"
            text = f"run {record.run} converts its {claim} and is at step {record.step} ({record.direction})"
            remedy = "Name that claim too, which is then converted first, or roll it back. If it no longer exists, move its record away."
            yield blocker("CSI-B22", name, f"{text}, expected one conversion of a workload at a time", remedy)
    known = {record.claim for record in facts.records if record.namespace == desired.namespace}
    for other in facts.claims:
        claim, (run, dummy) = other["metadata"]["name"], locked_by(other)
        if run and claim not in (desired.claim, *known) and _uses(one, claim) and not _replicas(one):
            text = (
                f"it has 0 replicas, and its PersistentVolumeClaim {desired.namespace}/{claim} is locked by run {run}"
            )
            remedy = "Name the record stores of that run, or finish it or roll it back there first."
            yield blocker(
                "CSI-B22", name, f"{text}, which may have set them; its record is in none of the given stores", remedy
            )


def _retention(one: Object) -> Iterator[Finding]:
    policy = one["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    bad = [key for key in ("whenScaled", "whenDeleted") if policy.get(key) == "Delete"]
    if bad:
        name = f"{one['kind']} {one['metadata']['namespace']}/{one['metadata']['name']}"
        text = f"persistentVolumeClaimRetentionPolicy has {', '.join(f'{key}: Delete' for key in bad)}, expected Retain"
        command = keep_claims(one["metadata"]["namespace"], one["metadata"]["name"])
        yield blocker("CSI-B16", name, f"{text}, because scaling it to 0 would delete the claim", command)


def _templates(one: Object, desired: Request) -> Iterator[Finding]:
    for made in one["spec"].get("volumeClaimTemplates") or []:
        name = made["spec"].get("storageClassName")
        if (
            desired.storage_class
            and name != desired.storage_class
            and desired.claim.startswith(f"{made['metadata']['name']}-")
        ):
            yield warning(
                "CSI-B31",
                f"StatefulSet {one['metadata']['namespace']}/{one['metadata']['name']}",
                f"its template {made['metadata']['name']} keeps StorageClass {name}, which further replicas will use",
                "Afterwards: kubectl delete statefulset --cascade=orphan, and recreate it with the new class.",
            )


def _kept(facts: Facts, desired: Request, claim: Object, volume: Object) -> Iterator[Finding]:
    if desired.managed:
        return
    sets = [one for one in facts.sets if one["kind"] in SCALED and _uses(one, desired.claim)]
    for thing, kind in (
        (claim, "PersistentVolumeClaim"),
        (volume, "PersistentVolume"),
        *((one, one["kind"]) for one in sets),
    ):
        metadata = thing["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        for keeper in _keepers(thing):
            yield blocker(
                "CSI-B17",
                f"{kind} {name}",
                f"{keeper} manages it and would restore replicas or objects during the conversion",
                "Pause that manager for this namespace, then set allow_managed (kubewin_convert_allow_managed).",
            )


def _keepers(thing: Object) -> Iterable[str]:
    marks = Marks.from_object(thing)
    found = [tool for tool, _mark, _source in marks.tools()]
    found += ["Helm"] if HELM in marks.annotations else []
    if marks.owner and marks.owner.split()[0] not in (*SCALED, "ReplicaSet"):
        found.append(marks.owner)
    return dict.fromkeys(found)


def _surroundings(facts: Facts, desired: Request, claim: Object, volume: Object) -> Iterator[Finding]:
    storage_class = desired.storage_class or claim["spec"].get("storageClassName") or ""
    where = f"PersistentVolumeClaim {desired.namespace}/{desired.claim}"
    if storage_class and facts.storage_class is None:
        text = f"StorageClass {storage_class} does not exist, but later expansion of the volume requires it"
        yield blocker("CSI-B18", where, text, "Create it, or choose re_claim with another class.")
    if desired.variant == "re_claim":
        name = desired.volume_name or f"{volume['metadata']['name']}-csi"
        if any(other["metadata"]["name"] == name for other in facts.volumes):
            yield blocker("CSI-B19", f"PersistentVolume {name}", "it already exists", "Set another volume_name.")
        yield warning("CSI-B32", where, "it is deleted and recreated with another uid", _REVIEW)
    yield warning(
        "CSI-B33",
        where,
        "it is Lost for some seconds while its volume object is replaced. Kubernetes' event and tools such as Argo "
        "CD then report lost data; no data is lost",
        _REVIEW,
    )
