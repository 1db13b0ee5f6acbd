# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a volume before and during its conversion. Read-only. Each observation reads only what its step needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from ..base.decode import read_number
from ..catalog.base import Driver
from ..catalog.translation import find_plugin
from ..drivers.installed import list_controllers
from ..kube import kinds
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.kinds import Kind
from ..kube.labels import build_selector
from ..kube.node import ObservedNode
from ..kube.pod import PodFacts, list_claims
from ..kube.times import parse_time
from ..preflight.index import BY_NAME
from ..verify.objects import name_attachment
from . import objects
from .eligibility import ConversionFacts, ConversionRequest
from .observation import (
    ConversionClaim,
    ConversionObservation,
    ConversionVolume,
    ConversionWorkload,
    HelperState,
    VolumeSide,
)
from .record import ConversionRecord, RecordedWorkload


def read_facts(client: Client, desired: ConversionRequest) -> ConversionFacts:
    """Read everything that decides whether a volume may be converted."""
    claim = client.get(kinds.PERSISTENT_VOLUME_CLAIM, desired.claim, desired.namespace)
    name = str(((claim or {}).get("spec") or {}).get("volumeName") or "")
    volume = client.get(kinds.PERSISTENT_VOLUME, name) if name else None
    if claim is None or volume is None:
        return ConversionFacts(claim, volume)
    plugin = find_plugin(volume)
    driver = BY_NAME.get(plugin.driver) if plugin is not None else None
    storage_class = str(claim["spec"].get("storageClassName") or "")
    csi_nodes = {item["metadata"]["name"]: item for item in client.list(kinds.CSI_NODE).items}
    nodes = client.list_windows_nodes()
    sets: list[Mapping[str, Any]] = []
    for kind in (kinds.DEPLOYMENT, kinds.STATEFUL_SET, kinds.REPLICA_SET):
        # Items of a list do not carry their kind.
        sets += [{**item, "kind": kind.kind} for item in client.list(kind, desired.namespace).items]
    attaches = True
    if plugin is not None and (csi_driver := client.get(kinds.CSI_DRIVER, plugin.driver)) is not None:
        attaches = bool(csi_driver["spec"].get("attachRequired", True))
    return ConversionFacts(
        claim=claim,
        volume=volume,
        volumes=client.list(kinds.PERSISTENT_VOLUME).items,
        pods=client.list(kinds.POD, desired.namespace).items,
        sets=sets,
        claims=client.list(kinds.PERSISTENT_VOLUME_CLAIM, desired.namespace).items,
        snapshots=_list_if_served(client, kinds.VOLUME_SNAPSHOT, desired.namespace) or (),
        storage_class=client.get(kinds.STORAGE_CLASS, storage_class) if storage_class else None,
        nodes=[(node, csi_nodes.get(node["metadata"]["name"])) for node in nodes],
        migrations=_list_if_served(client, kinds.VSPHERE_MIGRATION, None)
        if "vsphereVolume" in volume["spec"]
        else None,
        unhealthy=find_controller_trouble(client, driver) if driver is not None else "",
        attaches=attaches,
    )


def _list_if_served(client: Client, kind: Kind, namespace: str | None) -> tuple[dict[str, Any], ...] | None:
    """List objects of a kind that only some clusters have; None without the kind."""
    try:
        return client.list(kind, namespace).items
    except ClusterError as error:
        if error.status == 404:
            return None
        raise


def find_controller_trouble(client: Client, driver: Driver) -> str:
    """Return why a driver's controller does not work, empty if it works."""
    observed: list[str] = []
    for deployment, _container in list_controllers(client, driver):
        namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        if int((deployment.get("status") or {}).get("readyReplicas") or 0):
            return _find_lease_trouble(client, driver.controller.lease, namespace)
        observed.append(f"Deployment {namespace}/{name} has no ready pod")
    return "; ".join(observed) or (
        f"no Deployment {' or '.join(driver.controller.deployments)} in any namespace; "
        "expected the driver's controller, whose provisioner and attacher the conversion needs"
    )


def _find_lease_trouble(client: Client, name: str, namespace: str) -> str:
    """Return why there is no leader, empty if there is one or no Lease, which a single pod does not need."""
    live = client.get(kinds.LEASE, name, namespace) if name else None
    if live is None:
        return ""
    spec = live.get("spec") or {}
    renewed, lasts = parse_time(spec.get("renewTime")), int(spec.get("leaseDurationSeconds") or 15)
    if renewed is not None and client.now() - renewed <= timedelta(seconds=2 * lasts):
        return ""
    reported = f"was renewed at {spec.get('renewTime')} and lasts {lasts} s" if renewed else "was never renewed"
    return f"Lease {namespace}/{name} of {spec.get('holderIdentity') or '(no holder)'} {reported}: there is no leader"


class ConversionObserver:
    def __init__(self, client: Client, *, final: bool) -> None:
        self._client = client
        self._final = final

    def observe(self, record: ConversionRecord) -> ConversionObservation:
        """Read what the record's step is decided from. Users of the volume are read first, the volume last."""
        step = record.step
        helper, node = self._read_helper(record)
        uses: tuple[str, ...] = ()
        if step in ("quiesce", "baseline", "delete_volume", "canary"):
            helper_node = node if helper else ""
            # Reading all nodes is expensive and unnecessary while another user is known.
            uses = tuple(self._find_users(record, helper_node)) or tuple(
                self._find_reporting_nodes(record, helper_node)
            )
        twins: tuple[str, ...] = ()
        if step == "create_volume":
            twins = tuple(self._find_twins(record))
        registered, syncer = False, ""
        if step == "forget" and record.forgets:
            registered, syncer = self._read_register(record)
        return ConversionObservation(
            workloads=tuple(self._read_workload(workload, count=step == "restore") for workload in record.workloads),
            uses=uses,
            twins=twins,
            helper=helper,
            helper_path=self._find_path_trouble(record, node) if step == "canary" and helper == "running" else "",
            registered=registered,
            syncer=syncer,
            final=self._final,
            claim=self._read_claim(record),
            volume=self._read_volume(record),
        )

    def _read_volume(self, record: ConversionRecord) -> ConversionVolume | None:
        live = self._client.get(kinds.PERSISTENT_VOLUME, record.volume)
        if live is None:
            return None
        metadata, spec = live["metadata"], live["spec"]
        return ConversionVolume(
            name=metadata["name"],
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
            side=_identify_side(record, live),
            policy=str(spec.get("persistentVolumeReclaimPolicy", "")),
            phase=str((live.get("status") or {}).get("phase", "")),
            terminating="deletionTimestamp" in metadata,
            finalizers=tuple(metadata.get("finalizers") or ()),
            claim_uid=str((spec.get("claimRef") or {}).get("uid") or ""),
            by=str((metadata.get("annotations") or {}).get(objects.PROVISIONED_BY, "")),
        )

    def _read_claim(self, record: ConversionRecord) -> ConversionClaim | None:
        live = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, record.claim, record.namespace)
        if live is None:
            return None
        metadata = live["metadata"]
        run, generation = objects.parse_lock(live)
        return ConversionClaim(
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
            phase=str((live.get("status") or {}).get("phase", "")),
            volume=str(live["spec"].get("volumeName") or ""),
            terminating="deletionTimestamp" in metadata,
            lock=run,
            generation=read_number(generation) or 0,
            held=objects.HOLD in (metadata.get("finalizers") or ()),
        )

    def _read_helper(self, record: ConversionRecord) -> tuple[HelperState, str]:
        live = self._client.get(kinds.POD, objects.name_helper(record.run), record.namespace)
        if live is None:
            return "", ""
        pod = PodFacts.from_object(live)
        if pod.deleting:
            return "stopping", pod.node
        if "/".join(objects.parse_lock(live)) != objects.format_lock(record):
            return "stale", pod.node
        return "failed" if pod.ended else "running" if pod.works else "starting", pod.node

    def _find_users(self, record: ConversionRecord, helper_node: str) -> Iterator[str]:
        """Return all users but the helper pod."""
        for pod in self._client.list(kinds.POD, record.namespace).items:
            pod_facts = PodFacts.from_object(pod)
            if record.claim not in list_claims(pod) or pod_facts.name == objects.name_helper(record.run):
                continue
            where = f" on {pod_facts.node}" if pod_facts.node else ""
            yield f"{pod_facts.title} ({'Terminating' if pod_facts.deleting else pod_facts.phase}{where}) uses the claim"
        handles: list[str] = record.objects["handles"]
        for attachment_object in self._client.list(kinds.VOLUME_ATTACHMENT).items:
            spec = attachment_object["spec"]
            node = str(spec["nodeName"])
            is_of_record = (spec.get("source") or {}).get("persistentVolumeName") == record.volume
            named = attachment_object["metadata"]["name"] in {
                name_attachment(record.driver, handle, node) for handle in handles
            }
            if (is_of_record or named) and node != helper_node:
                yield f"VolumeAttachment {attachment_object['metadata']['name']} attaches it to {node}"

    def _find_reporting_nodes(self, record: ConversionRecord, helper_node: str) -> Iterator[str]:
        """Return nodes that have the volume, as their kubelets and the attach controller report; also those that are not Ready."""
        names = set(record.objects["on_node"])
        for item in self._client.list(kinds.NODE).items:
            node = ObservedNode.from_object(item)
            reported = names.intersection((*node.in_use, *node.attached))
            if reported and node.name != helper_node:
                yield f"Node {node.name} reports {', '.join(sorted(reported))}"

    def _find_path_trouble(self, record: ConversionRecord, node: str) -> str:
        """Return why the helper's volume is not attached by the target's handle, empty if it is."""
        if not record.attaches:
            return ""
        name = name_attachment(record.driver, record.target_handle, node)
        live = self._client.get(kinds.VOLUME_ATTACHMENT, name)
        if not ((live or {}).get("status") or {}).get("attached"):
            return f"VolumeAttachment {name} is missing or not attached"
        attached = objects.name_on_node(record.driver, record.target_handle)
        live = self._client.get(kinds.NODE, node)
        if attached not in (((live or {}).get("status") or {}).get("volumesInUse") or ()):
            return f"Node {node} does not list {attached}"
        return ""

    def _find_twins(self, record: ConversionRecord) -> Iterator[str]:
        handles: list[str] = record.objects["handles"]
        for item in self._client.list(kinds.PERSISTENT_VOLUME).items:
            source = item["spec"].get("csi") or {}
            name = item["metadata"]["name"]
            if (
                name != record.volume
                and source.get("driver") == record.driver
                and source.get("volumeHandle") in handles
            ):
                yield name

    def _read_register(self, record: ConversionRecord) -> tuple[bool, str]:
        path = record.objects["volume_path"]
        migrations = self._client.list(kinds.VSPHERE_MIGRATION).items
        registered = any((migration.get("spec") or {}).get("volumepath") == path for migration in migrations)
        driver = BY_NAME.get(record.driver)
        trouble = find_controller_trouble(self._client, driver) if driver is not None else ""
        return registered, trouble if registered else ""

    def _read_workload(self, workload: RecordedWorkload, *, count: bool) -> ConversionWorkload:
        live = self._client.get(kinds.SCALABLE[workload.kind], workload.name, workload.namespace)
        if live is None or live["metadata"]["uid"] != workload.uid:
            return ConversionWorkload(workload.kind, workload.namespace, workload.name, "", "", 0, 0)
        return ConversionWorkload(
            kind=workload.kind,
            namespace=workload.namespace,
            name=workload.name,
            uid=workload.uid,
            version=live["metadata"]["resourceVersion"],
            replicas=int(live["spec"].get("replicas", 1)),
            ready=self._count_ready_pods(workload, live) if count else 0,
            deletes=(live["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled") == "Delete",
        )

    def _count_ready_pods(self, workload: RecordedWorkload, live: Mapping[str, Any]) -> int:
        """Count the pods that are Ready on Windows nodes."""
        windows = {item["metadata"]["name"] for item in self._client.list_windows_nodes()}
        count = 0
        for pod in self._client.list(kinds.POD, workload.namespace, label_selector=build_selector(live) or None).items:
            pod_facts = PodFacts.from_object(pod)
            count += pod_facts.ready and not pod_facts.deleting and pod_facts.node in windows
        return count


def _identify_side(record: ConversionRecord, live: Mapping[str, Any]) -> VolumeSide:
    """Identify a volume by its uid or by our annotation."""
    run, side = objects.parse_lock(live)
    if live["metadata"]["uid"] == record.volume_uid:
        return "old"
    if run == record.run and side in ("old", "new"):
        return "old" if side == "old" else "new"
    return "foreign"
