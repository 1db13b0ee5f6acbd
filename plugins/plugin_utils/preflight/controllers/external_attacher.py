# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an external-attacher refuses, and attachments that failed or hang. Pure.

Source: https://github.com/kubernetes-csi/external-attacher, pkg/controller/csi_handler.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from ...catalog.versions import parse_image_tag
from ..facts.storage import ObservedAttachment
from ..findings import create_finding
from ..index import BY_NAME, Index
from ..scheduler.volume_restrictions import ALONE
from ..verdict import ReportFinding
from ..walk.steps import NodeToStatus
from ..windows_volumes import WindowsVolume

# https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes, the note on sidecars.
_ATTACHES_ALONE = (3, 3, 0)
# After this the attach controller detaches by force.
_DETACHING = timedelta(minutes=6)
# Attachments of every driver are done sooner, or something keeps them from being done.
_ATTACHING = timedelta(minutes=10)


def refuse_deleted_volume(index: Index, volume: WindowsVolume, statuses: NodeToStatus, nodes: int) -> None:
    """Block nodes without an attachment for a volume that is being deleted, as csiAttach does."""
    if volume.persistent_volume is not None and volume.persistent_volume.deleting:
        attachments = index.attachments_of.get(volume.key, ())
        attached = index.find_nodes(entry.node for entry in attachments if entry.attached)
        message = "it is being deleted, and its attacher attaches it to no other node"
        remedy = "set persistentVolumeReclaimPolicy to Retain, scale its workload to 0, then recreate volume and claim for its disk"
        remedy = remedy if volume.claim is None else volume.claim.choose_remedy(remedy)
        statuses.block(nodes & ~attached, "CSI-V24", message, remedy)


def check_attacher_release(index: Index, volume: WindowsVolume, statuses: NodeToStatus, nodes: int) -> None:
    """Block nodes if the external-attacher is too old to attach a volume of ReadWriteOncePod."""
    driver = BY_NAME.get(volume.driver)
    controller = index.find_controller(driver) if driver is not None else None
    if controller is None or ALONE not in volume.access_modes:
        return
    version = parse_image_tag(controller.find_image("attacher") or "")
    if version is not None and version.release < _ATTACHES_ALONE:
        message = f"access mode {ALONE} needs external-attacher 3.3.0 or later, and {controller.title} has {version}"
        statuses.block(nodes, "CSI-V31", message, "upgrade the driver's installation")


def is_mounted(index: Index, attachment: ObservedAttachment) -> bool:
    """Whether the kubelet of its node has the volume mounted, so that the attach controller does not detach it."""
    volume, node = index.volumes.get(attachment.volume), index.nodes.get(attachment.node)
    handle = volume.source.handle if volume is not None else ""
    return node is not None and f"kubernetes.io/csi/{attachment.attacher}^{handle}" in node.in_use


def find_attachment_faults(index: Index, attachment: ObservedAttachment) -> Iterator[ReportFinding]:
    csi_node = index.csi_nodes.get(attachment.node)
    object_name = f"Node {attachment.node}, driver {attachment.attacher}"
    description = f"volume {attachment.volume}" if attachment.volume else "an inline volume"
    error, mount = attachment.attach_error or attachment.detach_error, ""
    volume, node = index.volumes.get(attachment.volume), index.nodes.get(attachment.node)
    if volume is not None and node is not None and attachment.deleting:
        mounted = is_mounted(index, attachment)
        description += (
            f", which the kubelet of {attachment.node} {'still has mounted' if mounted else 'does not have mounted'},"
        )
        mount = (
            f"check csi-proxy and the node plugin on {attachment.node}, which unmount it; if that does not help"
            if mounted
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
    minutes = None if attachment.deleting or error else index.count_minutes(attachment.waits_since, _ATTACHING)
    if minutes is not None:
        evidence = (f"VolumeAttachment {attachment.name} status.attached: false since {attachment.waits_since}",)
        message = f"attaching {description} has taken {minutes} minutes"
        remedy = f"kubectl describe volumeattachment {attachment.name}; check that the driver's attacher runs"
        yield create_finding("CSI-N34", object_name, message, evidence, remedy)
    if (minutes := index.count_minutes(attachment.deleting, _DETACHING)) is not None:
        evidence = (f"VolumeAttachment {attachment.name} metadata.deletionTimestamp: {attachment.deleting}",)
        message = f"detaching {description} has taken {minutes} minutes"
        yield create_finding(
            "CSI-N35", object_name, message, evidence, mount or f"kubectl describe volumeattachment {attachment.name}"
        )
