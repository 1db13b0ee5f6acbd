# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template of a node plugin's pods, where their generation does not show it. Pure.

A restored template has a new generation, and pods that always had it keep the old one. The DaemonSet controller
identifies them by a hash: it keeps each template as a ControllerRevision, makes the one that is used again the newest, and has done
so when it says that it has observed the DaemonSet (pkg/controller/daemon/update.go, constructHistory).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..drivers.rollout.snapshot import read_revision_hash
from .facts.workloads import ObservedPod, ObservedTemplate, read_owner


def find_doubted_templates(
    templates: Iterable[ObservedTemplate], pods: Iterable[ObservedPod]
) -> tuple[ObservedTemplate, ...]:
    """Node plugins with a pod of another generation, where only revisions show whether their template is an older one."""
    plugins = {
        (daemon_set.namespace, f"DaemonSet/{daemon_set.name}"): daemon_set
        for daemon_set in templates
        if daemon_set.plugin is not None and daemon_set.plugin.is_plugin
    }
    doubted = {}
    for pod in pods:
        template = plugins.get((pod.namespace, pod.owner))
        if template is None or template.plugin is None or pod.plugin is None:
            continue
        if not template.plugin.is_current(pod.plugin):
            doubted[template.key] = template
    return tuple(doubted.values())


def set_revision(template: ObservedTemplate, revisions: Iterable[Mapping[str, Any]]) -> ObservedTemplate:
    """A node plugin with the hash of the newest of its own ControllerRevisions (apps/v1: metadata (namespace, labels,
    ownerReferences (kind, name, controller)), revision), of which others may be in the list."""
    plugin, owner = template.plugin, (template.namespace, f"{template.kind}/{template.name}")
    own_revisions = [
        item for item in revisions if (item["metadata"]["namespace"], read_owner(item["metadata"])) == owner
    ]
    if not own_revisions or plugin is None or not plugin.processed:
        return template
    revision = read_revision_hash(max(own_revisions, key=lambda item: int(item.get("revision") or 0)))
    return replace(template, plugin=replace(plugin, revision=revision))
