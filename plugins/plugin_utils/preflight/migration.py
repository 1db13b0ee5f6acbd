# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way the volumes of in-tree plugins go: by each node's kubelet, and by the control plane. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from ..catalog import wmco
from ..catalog.in_tree import InTree
from ..catalog.translation import TranslationError, build_google_location, parse_ebs_id
from .facts.nodes import ObservedCsiNode
from .facts.sources import Source
from .facts.storage import ObservedVolume
from .index import Index, version_of

Way = Literal["csi", "in_tree", "unknown"]


def reports_csi(plugin: InTree, csi_node: ObservedCsiNode | None) -> bool | None:
    """Whether a node reports that its kubelet uses CSI for an in-tree plugin, None if it does not report it."""
    return None if csi_node is None or csi_node.migrated is None else plugin.plugin in csi_node.migrated


def decide_way(plugin: InTree, kubelet: str, listed: bool | None, *, read: bool = True) -> Way:
    """How a kubelet of that version mounts volumes of an in-tree plugin. listed: result of `reports_csi`. read: False when the
    CSINodes could not be read.
    """
    version = version_of(kubelet)
    if version is None:
        return "unknown"
    if plugin.requires_csi(version) or listed:
        return "csi"
    # A gate that is off by default may have been set, which only a CSINode tells.
    if listed is None and (plugin.is_migrated_by_default(version) or not read):
        return "unknown"
    return "in_tree"


@dataclass(frozen=True, slots=True)
class Paths:
    """How Windows kubelets mount volumes of an in-tree plugin: sets of nodes. broken: by a known issue of their release."""

    csi: int = 0
    in_tree: int = 0
    unknown: int = 0
    broken: int = 0


def find_paths(index: Index, plugin: InTree) -> Paths:
    """Every Windows node's way with an in-tree plugin."""
    read = "csinodes" not in index.unread
    by_kubelet: dict[tuple[str, bool | None], int] = defaultdict(int)
    for node in index.list_nodes(index.windows):
        by_kubelet[node.kubelet, reports_csi(plugin, index.csi_nodes.get(node.name))] |= index.bit[node.name]
    sets: dict[Way, int] = defaultdict(int)
    broken = 0
    for (kubelet, listed), nodes in by_kubelet.items():
        kubelet_way = decide_way(plugin, kubelet, listed, read=read)
        sets[kubelet_way] |= nodes
        version = version_of(kubelet)
        # A target without a patch release means the newest one.
        has_patch = kubelet.count(".") > 1
        if kubelet_way == "csi" and version is not None and has_patch and plugin.find_issue(version):
            broken |= nodes
    return Paths(sets["csi"], sets["in_tree"], sets["unknown"], broken)


def decide_control_plane(index: Index, plugin: InTree) -> Way:
    """Which way kube-controller-manager attaches, provisions, deletes and resizes volumes of an in-tree plugin."""
    version = index.kubernetes
    if version is None:
        return "unknown"
    if plugin.requires_csi(version) or plugin.driver in index.migrated_to:
        return "csi"
    if plugin.plugin in index.provisioners:
        # Those would report it.
        return "in_tree"
    line = wmco.find_line_of_openshift(index.snapshot.cluster.openshift) if index.snapshot.cluster.openshift else None
    if line is not None and plugin.plugin in line.not_migrated:
        return "in_tree"
    if line is not None and plugin.plugin in line.windows_in_tree:
        # An administrator chooses, by spec.vsphereStorageDriver of OpenShift's Storage "cluster".
        return "unknown"
    # A gate that is off by default may have been set.
    return "csi" if plugin.is_migrated_by_default(version) else "unknown"


def explain_untranslatable(source: Source, volume: ObservedVolume | None) -> tuple[str, str] | None:
    """Why migration cannot translate a volume, and what helps; None where it can. volume: None for a pod's own."""
    if source.field == "azureDisk" and source.kind and source.kind.lower() != "managed":
        return (
            f"its azureDisk kind is {source.kind}, expected Managed",
            "copy the blob into a managed disk, and create a PersistentVolume for that disk",
        )
    claimed = volume is None or volume.claim.partition("/")[0]
    if source.field == "azureFile" and not claimed and not source.secret_namespace:
        return ("it has neither secretNamespace nor a claim", "set azureFile.secretNamespace")
    if source.field == "vsphereVolume" and volume is None and source.policy:
        return (
            "an inline vsphereVolume with storagePolicyName is not translated",
            "create a PersistentVolume for the disk and mount it through a claim",
        )
    try:
        if source.field == "awsElasticBlockStore":
            parse_ebs_id(source.handle)
        elif source.field == "gcePersistentDisk" and volume is not None:
            build_google_location(dict(volume.places))
    except TranslationError as error:
        return f"it {error}", error.remedy
    return None
