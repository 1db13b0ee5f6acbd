# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases and modes can run on the nodes, and which one to deploy, or why none: the first question of a plan. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..base.findings import Finding, blocker, note, warning
from ..catalog import openshift
from ..catalog.base import Driver, ModeRule
from ..catalog.versions import Version, find_closest, parse, parse_image_tag
from ..kube.node import ObservedNode
from .plan_inputs import DriverController, DriverRequest, DriverSnapshot

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
    only that one counts.
    """
    versions = [version, *(parse(release.version) for release in driver.releases)]
    usable = [
        (release, rule)
        for release in dict.fromkeys(versions)
        for rule in driver.list_mode_rules(release)
        if mode in (None, rule.mode) and not find_obstacles(driver, release, rule, snapshot)
    ]
    closest = find_closest(version, [release for release, _rule in usable])
    return next((pair for pair in usable if pair[0] == closest), None)


def _is_too_old(node: ObservedNode, least: str) -> bool:
    if not node.runtime:
        return False
    release = read_containerd_release(node)
    return release is None or release.release < parse(least).release


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """A release with its mode, or none with the findings that explain why. source: where the release came from."""

    version: Version | None
    rule: ModeRule | None
    source: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ControllerRelease:
    """What the Linux controller runs: usually one release, several if sources disagree, none if it is unknown.

    source: how that is known, as text.
    """

    versions: tuple[Version, ...]
    source: str


def read_controller_release(
    driver: Driver, controller: DriverController | None, snapshot: DriverSnapshot
) -> ControllerRelease:
    """Read the controller's release from its image's tag, else from what its OpenShift version ships."""
    if controller is None:
        return ControllerRelease((), "")
    tagged = parse_image_tag(controller.image)
    if tagged is not None:
        return ControllerRelease((tagged,), "as the Linux controller")
    if snapshot.openshift:
        return ControllerRelease(
            openshift.list_shipped_releases(snapshot.openshift, driver.key), f"as OpenShift {snapshot.openshift} ships"
        )
    return ControllerRelease((), "")


def is_skewed(running: ControllerRelease, version: Version) -> bool:
    """Whether a node plugin of that release and the controller are of different minor releases."""
    return bool(running.versions) and version.minor not in [release.minor for release in running.versions]


def choose_release(
    driver: Driver, desired: DriverRequest, controller: DriverController | None, snapshot: DriverSnapshot
) -> ReleaseChoice:
    """The release asked for, else the controller's, else the catalog's default; and the mode it runs in."""
    running = read_controller_release(driver, controller, snapshot)
    if desired.version is not None:
        try:
            version, source = parse(_require_complete_release(desired.version)), "requested"
        except ValueError as error:
            finding = blocker(
                "CSI-D01",
                f"{driver.title} version",
                f"{error}",
                f"set a complete release number in quotes; {driver.newest} is the newest known",
            )
            return ReleaseChoice(None, None, "", (finding,))
    elif running.versions:
        version, source = running.versions[0], running.source
    else:
        version, source = parse(driver.default_version), "default"
    stood_in: Finding | None = None
    if desired.version is None and (
        near := _find_substitute(driver, desired, running.versions or (version,), snapshot)
    ):
        if near not in running.versions:
            stood_in = _explain_substitute(driver, version, source, near)
            source = "nearest that can be pulled"
        version = near
    rules = _list_mode_rules(driver, desired, version)
    if not rules:
        return ReleaseChoice(
            version, None, source, (_refuse_mode(driver, desired, version, source, running, snapshot),)
        )
    rule, findings = _choose_mode(driver, version, rules, snapshot, running)
    if stood_in is not None:
        findings.append(stood_in)
    listed = driver.find_release(version)
    if listed is None:
        findings.append(_check_listed(driver, version, rule))
    elif rule.mode in listed.unproven_modes and not _has_own_images(desired):
        message = f"no source shows that its image for mode {rule.mode} was published"
        remedy = "check that your nodes can pull it, or set the images or image_mirror option"
        findings.append(warning("CSI-D09", f"{driver.title} {version}", message, remedy))
    findings += _explain_openshift(driver, controller, running, snapshot)
    if is_skewed(running, version):
        findings.append(_check_skew(driver, desired, controller, running.versions[0], version))
    return ReleaseChoice(version, rule, source, tuple(findings))


def _find_substitute(
    driver: Driver, desired: DriverRequest, versions: Sequence[Version], snapshot: DriverSnapshot
) -> Version | None:
    """The release to take in place of those that the cluster runs; None where the first of them will do, or none is better.

    One of these themselves, else one of the same minor release, else the newest older one, else the oldest newer one, each of
    those that can be pulled and run here.
    """
    if _has_own_images(desired) or driver.find_release(versions[0]) is not None:
        return None
    usable = []
    for release in driver.releases:
        version = parse(release.version)
        rules = [rule for rule in _list_mode_rules(driver, desired, version) if rule.mode not in release.unproven_modes]
        if rules and not find_missing_feature_states(driver, version, snapshot):
            usable.append((version, any(not find_obstacles(driver, version, rule, snapshot) for rule in rules)))
    candidates = [version for version, fits in usable if fits] or [version for version, _fits in usable]
    minors = [version.minor for version in versions]
    same_minor_versions = [version for version in candidates if version.minor in minors]
    running = next((version for version in versions if version in candidates), None)
    return running or max(same_minor_versions, default=None) or find_closest(versions[0], candidates)


def _has_own_images(desired: DriverRequest) -> bool:
    """Whether the driver's image comes from the user: a mirror, or an image, holds what the user put there."""
    return bool(desired.image_mirror or desired.images.get("driver"))


def _list_mode_rules(driver: Driver, desired: DriverRequest, version: Version) -> list[ModeRule]:
    """The modes of a release that the request allows, in upstream's order."""
    return [rule for rule in driver.list_mode_rules(version) if desired.mode in ("auto", rule.mode)]


def _explain_substitute(driver: Driver, version: Version, source: str, near: Version) -> Finding:
    message = f"no registry is known to serve release {version} ({source}) for Windows; {near} is the nearest that can be pulled"
    remedy = f"keep {near}; or, to run {version}, mirror its images and set version with image_mirror or images"
    return warning("CSI-D09", f"{driver.title} {version}", message, remedy)


def _require_complete_release(text: str) -> str:
    """A release number with all its parts; ValueError otherwise: YAML reads 1.30 as the number 1.3, which is another release."""
    if re.fullmatch(r"v?[0-9]+\.[0-9]+", text.strip()):
        raise ValueError(f"'{text}' is not a complete release number, expected one such as 3.4.0")
    return text


def _choose_mode(
    driver: Driver, version: Version, usable: Sequence[ModeRule], snapshot: DriverSnapshot, running: ControllerRelease
) -> tuple[ModeRule, list[Finding]]:
    """The first mode, in upstream's order, that nothing keeps from running; else the first with what is in its way."""
    in_the_way = {rule.mode: find_obstacles(driver, version, rule, snapshot) for rule in usable}
    rule = next((rule for rule in usable if not in_the_way[rule.mode]), usable[0])
    if in_the_way[rule.mode]:
        near = find_nearest(driver, version, snapshot)
        help_ = "" if near is None else f"; nearest that works: {_check_combination(near, running)}"
        return rule, [replace(obstacle, remedy=obstacle.remedy + help_) for obstacle in in_the_way[rule.mode]]
    if rule is usable[0]:
        return rule, []
    first = usable[0]
    why = "; ".join(obstacle.message for obstacle in in_the_way[first.mode])
    message = f"upstream would run it in mode {first.mode}, but {why}"
    remedy = f"none; to change to {first.mode} later, " + in_the_way[first.mode][0].remedy
    return rule, [note("CSI-D06", f"{driver.title} {version}", message, remedy)]


def _check_combination(near: tuple[Version, ModeRule], running: ControllerRelease) -> str:
    text = f"version {near[0]} in mode {near[1].mode}"
    if is_skewed(running, near[0]):
        text += ", with allow_version_skew if the controller keeps its release"
    return text


def _check_listed(driver: Driver, version: Version, rule: ModeRule) -> Finding:
    nearest = driver.find_nearest(version, rule)
    newer = "is newer than every known release" if version > driver.newest else "is unknown to this collection"
    text = f"release {version} {newer}; its images are derived from {nearest.version if nearest else '?'}"
    remedy = "check the image references below, or set the images option"
    return warning("CSI-D04", f"{driver.title} {version}", text, remedy)


def _explain_openshift(
    driver: Driver, controller: DriverController | None, running: ControllerRelease, snapshot: DriverSnapshot
) -> list[Finding]:
    if controller is None or not snapshot.openshift or parse_image_tag(controller.image) is not None:
        return []
    subject = f"Deployment {controller.namespace}/{controller.name}"
    line = openshift.parse_line(snapshot.openshift)
    if not running.versions:
        lines = openshift.list_lines()
        message = f"the release of {driver.title} in OpenShift {line} is unknown to this collection (known: {lines[0]} to {lines[-1]})"
        remedy = "read the release in the log of the controller's start and set version"
        return [warning("CSI-D34", subject, message, remedy)]
    shipped = " or ".join(str(version) for version in running.versions)
    message = f"its image is a digest; OpenShift {line} ships {shipped}, which maintenance updates can change"
    remedy = "compare it with the release in the log of the controller's start, and set version if it differs"
    return [Finding("CSI-D34", "note" if len(running.versions) == 1 else "warning", subject, message, remedy)]


def _refuse_mode(
    driver: Driver,
    desired: DriverRequest,
    version: Version,
    source: str,
    running: ControllerRelease,
    snapshot: DriverSnapshot,
) -> Finding:
    """The refusal of a mode that a release does not have."""
    rule = driver.rule(desired.mode)
    why = f"{driver.title} has no mode {desired.mode}" if rule is None else rule.why
    nearest = find_nearest(driver, version, snapshot, desired.mode) or find_nearest(driver, version, snapshot)
    remedy = "this collection can deploy none of its releases in this cluster"
    if nearest is not None:
        remedy = f"nearest that works: {_check_combination(nearest, running)}"
    subject = f"{driver.title} {version} in mode {desired.mode}"
    return blocker("CSI-D02", subject, f"cannot be deployed ({source}): {why}", remedy)


def _check_skew(
    driver: Driver, desired: DriverRequest, controller: DriverController | None, running: Version, version: Version
) -> Finding:
    where = f"Deployment {controller.namespace}/{controller.name}" if controller is not None else "controller"
    message = f"the controller runs {running} and the node plugin would be {version}, expected the same minor release"
    if desired.allow_version_skew:
        return warning("CSI-D33", where, message, "accepted by allow_version_skew")
    releases = [parse(release.version) for release in driver.releases]
    if not any(release.minor == running.minor for release in releases):
        remedy = f"test this combination first: no release {running.minor[0]}.{running.minor[1]} with an image for Windows is known"
        return warning("CSI-D33", where, message, remedy)
    remedy = (
        f"leave version unset to deploy {running}, or change the controller to {version.minor[0]}.{version.minor[1]}"
    )
    return blocker("CSI-D33", where, message, remedy)
