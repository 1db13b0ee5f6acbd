# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a cluster need not be kept, because it runs on Linux and no verdict comes of it. Pure.

A reader asks before it reads claims, so that a large cluster costs what is on Windows. Evaluating with or without what is left
out gives the same report; a test holds it to that.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..catalog.registry import DRIVERS
from ..kube.node import ObservedNode
from .facts.cluster import ObservedController
from .facts.workloads import ObservedPod, ObservedTemplate

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Scope:
    """What is kept of templates and pods. elsewhere: keys of claims that only workloads on Linux use."""

    templates: tuple[ObservedTemplate, ...]
    pods: tuple[ObservedPod, ...]
    elsewhere: frozenset[str] = frozenset()


def list_config_maps(
    controllers: Iterable[ObservedController],
    templates: Iterable[ObservedTemplate],
    namespaces: frozenset[str] | None,
) -> tuple[tuple[str, str], ...]:
    """The ConfigMaps to ask for, (namespace, name): all of a cluster's are many, and none of our business.

    namespaces: those there are, None if they could not be read; then the usual namespaces are read anyway.
    """
    keys: list[tuple[str, str]] = []
    plugins = [template.plugin for template in templates if template.plugin is not None]
    for driver in DRIVERS.values():
        if driver.feature_states is not None:
            driver_namespaces = {
                controller.observed.namespace for controller in controllers if controller.driver == driver.key
            }
            driver_namespaces |= {plugin.namespace for plugin in plugins if plugin.is_node_plugin_of(driver.name)}
            usual_namespaces = {driver.namespace, *driver.controller.namespaces}
            driver_namespaces |= usual_namespaces if namespaces is None else usual_namespaces & namespaces
            keys += [(namespace, driver.feature_states.name) for namespace in sorted(driver_namespaces)]
    return tuple(dict.fromkeys(keys))


def limit_scope(
    nodes: Iterable[ObservedNode], templates: Sequence[ObservedTemplate], pods: Sequence[ObservedPod]
) -> Scope:
    """Leave out workloads whose pods are all on Linux nodes, with the claims that only they use.

    A workload without pods on a node stays, whatever its template says, and so does one that shares a claim with it.
    """
    windows = {node.name: node.windows for node in nodes}
    by_root = key_templates(templates)
    roots = [find_root(pod, by_root) for pod in pods]
    on_windows: dict[Key, set[bool]] = defaultdict(set)
    for pod, root in zip(pods, roots, strict=True):
        if pod.node in windows and is_decisive(pod, by_root.get(root)):
            on_windows[root].add(windows[pod.node])
    linux = {root for root, systems in on_windows.items() if systems == {False}}

    def named(on_linux: bool) -> Iterator[tuple[Key, str]]:
        """Workloads, here or on Linux, with the claims that they name."""
        for pod, root in zip(pods, roots, strict=True):
            if (root in linux) == on_linux:
                yield from ((root, claim) for claim in _list_claims(pod))
        for key, template in by_root.items():
            if (key in linux) == on_linux:
                yield from ((key, f"{template.namespace}/{name}") for name in template.volumes.claims)

    windows_claims = frozenset(claim for dummy, claim in named(False))
    unneeded = linux - {root for root, claim in named(True) if claim in windows_claims}
    kept = tuple(pod for pod, root in zip(pods, roots, strict=True) if pod.plugin is not None or root not in unneeded)
    owners = {_identify_owner(pod) for pod in kept}
    return Scope(
        templates=tuple(
            template
            for key, template in by_root.items()
            # A template with an owner names the owner of its pods; without pods it does not matter.
            if template.plugin is not None or (key not in unneeded and (not template.owner or key in owners))
        ),
        pods=kept,
        elsewhere=frozenset(claim for dummy, claim in named(True) if claim not in windows_claims),
    )


def is_decisive(pod: ObservedPod, template: ObservedTemplate | None) -> bool:
    """Whether the node of a pod shows the system of its workload: where a finished pod was says nothing of the next one, nor
    does a pod that is not for Windows, as the next ones are."""
    if template is None or template.finished:
        return True
    system = template.placement.named_system
    return not pod.finished and (system != "windows" or pod.placement.named_system == system)


def key_templates(templates: Iterable[ObservedTemplate]) -> dict[Key, ObservedTemplate]:
    return {(template.kind, template.namespace, template.name): template for template in templates}


def find_root(pod: ObservedPod, templates: Mapping[Key, ObservedTemplate]) -> Key:
    """Kind, namespace and name of what makes a pod in the end; the pod itself where nothing does."""
    owner = _identify_owner(pod)
    template = templates.get(owner)
    if template is None:
        return owner
    kind, name = template.kind, template.name
    if template.owner:
        kind, dummy, name = template.owner.partition("/")
    return (sys.intern(kind), pod.namespace, sys.intern(name))


def _identify_owner(pod: ObservedPod) -> Key:
    kind, dummy, name = pod.owner.partition("/")
    # A static pod is its node's.
    return ("Pod", pod.namespace, pod.name) if kind in ("", "Node") or pod.mirror else (kind, pod.namespace, name)


def _list_claims(pod: ObservedPod) -> Iterator[str]:
    for name in pod.volumes.claims:
        yield f"{pod.namespace}/{name}"
    for claim_template in pod.volumes.ephemeral:
        yield f"{pod.namespace}/{pod.name}-{claim_template.name}"
