# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a release can run in a mode on the nodes that there are, and which one could. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding, blocker
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import Version, find_closest, parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.model import DriverSnapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode

# Windows Server 2022: from here on Windows promises that a newer host runs an older image.
_FIRST_COMPATIBLE = 20348


def match_image(build: str, images: Sequence[str] | None) -> Literal["yes", "maybe", "no"]:
    """Whether a host of a Windows build finds an image among those builds; None is an image for all of them.

    "maybe": an image of an older build may run there, if the node's containerd knows that rule
    (https://github.com/containerd/platforms, platform_windows_compat.go, from 0.2.1 on).
    """
    if images is None or build in images:
        return "yes"
    older = [image for image in images if _FIRST_COMPATIBLE <= int(image) < int(build)]
    return "maybe" if older else "no"


def read_containerd_release(node: ObservedNode) -> Version | None:
    """The release of a node's containerd; None if its runtime is another one or reports none."""
    scheme, dummy, text = node.runtime.partition("://")
    if scheme != "containerd":
        return None
    try:
        return parse(text)
    except ValueError:
        return None


def find_obstacles(driver: Driver, version: Version, rule: ModeRule, snapshot: DriverSnapshot) -> tuple[Finding, ...]:
    """What keeps a release in a mode from running in this cluster, without what would help."""
    title = f"{driver.title} {version} in mode {rule.mode}"
    findings: list[Finding] = []
    kubernetes = parse(snapshot.kubernetes)
    # Distributions put their build behind the release ("v1.29.1-eks-1a2b3c4"), which is no pre-release.
    if kubernetes.release < parse(rule.min_kubernetes).release:
        message = f"{title} needs Kubernetes {rule.min_kubernetes}; found {kubernetes}"
        remedy = f"upgrade Kubernetes to {rule.min_kubernetes} or later"
        findings.append(blocker("CSI-D03", "Kubernetes", message, remedy))
    if rule.min_containerd is not None:
        old = [node for node in snapshot.nodes if _is_too_old(node, rule.min_containerd)]
        if old:
            names = ", ".join(f"{node.name} ({node.runtime})" for node in old)
            message = f"{title} needs containerd {rule.min_containerd} or later; found {names}"
            remedy = f"upgrade containerd to {rule.min_containerd} or later there"
            findings.append(blocker("CSI-D05", "Nodes", message, remedy))
    images = driver.list_builds(version, rule)
    with_build = [node for node in snapshot.nodes if node.build]
    without = [node for node in with_build if match_image(node.build, images) == "no"]
    if images is not None and with_build and len(without) == len(with_build):
        builds = ", ".join(dict.fromkeys(node.build for node in without))
        message = f"{title} has images for Windows builds {', '.join(images)}; the nodes run {builds}"
        remedy = "choose a release that has an image for them"
        findings.append(blocker("CSI-D54", "Nodes", message, remedy))
    return tuple(findings)


def find_missing_feature_states(driver: Driver, version: Version, snapshot: DriverSnapshot) -> tuple[str, ...]:
    """Feature states without which a release does not start, and which a map of them in this cluster does not have."""
    states = driver.feature_states
    if states is None:
        return ()
    needed = [key for key, fixed in states.required_before.items() if version.release < parse(fixed).release]
    maps = [data for data in snapshot.feature_states.values() if data is not None]
    return tuple(key for key in needed if any(data.get(key) != "true" for data in maps))


def find_nearest(
    driver: Driver, version: Version, snapshot: DriverSnapshot, mode: str | None = None
) -> tuple[Version, ModeRule] | None:
    """The closest release and mode that can be deployed in this cluster, None when there is none.

    The same release in another mode comes first, then the newest older one, then the oldest newer one. Given a mode,
    only that one counts. Other releases count when something shows that their images were published.
    """
    versions = [version, *(parse(known.version) for known in driver.releases)]
    usable = [
        (release, rule)
        for release in dict.fromkeys(versions)
        for rule in driver.list_mode_rules(release)
        if rule.template is not None
        and (release == version or rule in driver.list_published_rules(release))
        and mode in (None, rule.mode)
        and not find_obstacles(driver, release, rule, snapshot)
    ]
    closest = find_closest(version, [release for release, _rule in usable])
    return next((pair for pair in usable if pair[0] == closest), None)


def _is_too_old(node: ObservedNode, least: str) -> bool:
    if not node.runtime:
        return False
    release = read_containerd_release(node)
    return release is None or release.release < parse(least).release
