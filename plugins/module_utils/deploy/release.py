# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release and mode to deploy, or why none: the first question of a plan. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.versions import Version, from_image, parse
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.findings import Finding
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import ControllerSeen, Wanted


@dataclass(frozen=True, slots=True)
class Choice:
    """A release with its mode, or none with the findings that say why. source: where the release came from."""

    version: Version | None
    rule: ModeRule | None
    source: str
    findings: tuple[Finding, ...]


def choose(driver: Driver, wanted: Wanted, controller: ControllerSeen | None, kubernetes: Version) -> Choice:
    """The release asked for, else the controller's, else the catalog's default; and the mode it runs in."""
    running = from_image(controller.image) if controller is not None else None
    if wanted.version is not None:
        try:
            version, source = parse(wanted.version), "asked for"
        except ValueError as error:
            return Choice(
                None, None, "", (_blocker("CSI-D01", f"{driver.title} version", f"{error}", "give a release number"),)
            )
    elif running is not None:
        version, source = running, "as the Linux controller"
    else:
        version, source = parse(driver.default_version), "default"
    rules = driver.mode_rules(version)
    if wanted.mode != "auto":
        rules = tuple(rule for rule in rules if rule.mode == wanted.mode)
    usable = [rule for rule in rules if rule.template is not None]
    if not usable:
        return Choice(version, None, source, (_no_such_mode(driver, wanted, version, source, running),))
    rule = usable[0]
    findings: list[Finding] = []
    if kubernetes < parse(rule.min_kubernetes):
        message = (
            f"{driver.title} {version} in mode {rule.mode} needs Kubernetes {rule.min_kubernetes}; found {kubernetes}"
        )
        findings.append(
            _blocker("CSI-D03", "Kubernetes", message, f"upgrade Kubernetes to {rule.min_kubernetes} or later")
        )
    if driver.release(version) is None:
        nearest = driver.nearest(version, rule.mode)
        text = (
            f"release {version} is newer than this collection or was left out; its images are derived from "
            f"{nearest[0] if nearest else '?'}"
        )
        remedy = "check the image references below, or set them with the images option"
        findings.append(Finding("CSI-D04", "warning", f"{driver.title} {version}", text, remedy))
    if running is not None and running.minor != version.minor:
        findings.append(_skew(driver, wanted, controller, running, version))
    return Choice(version, rule, source, tuple(findings))


def _no_such_mode(driver: Driver, wanted: Wanted, version: Version, source: str, running: Version | None) -> Finding:
    asked = "" if wanted.mode == "auto" else f" in mode {wanted.mode}"
    known = driver.mode_rules(version)
    asked_rule = driver.rule(wanted.mode)
    if wanted.mode != "auto" and asked_rule is None:
        why = f"{driver.title} has no mode {wanted.mode}"
    elif wanted.mode != "auto" and asked_rule is not None and asked_rule not in known:
        why = asked_rule.why
    else:
        why = known[0].why if known else f"no mode is known for release {version}"
    near = driver.nearest(version, None if wanted.mode == "auto" else wanted.mode) or driver.nearest(version)
    remedy = "no release of it can be deployed by this collection"
    if near is not None:
        remedy = f"nearest that works: version {near[0]} in mode {near[1]}"
        if running is not None and running.minor != parse(near[0]).minor:
            remedy += ", with allow_version_skew when the controller stays at its release"
    return _blocker("CSI-D02", f"{driver.title} {version}{asked}", f"cannot be deployed ({source}): {why}", remedy)


def _skew(
    driver: Driver, wanted: Wanted, controller: ControllerSeen | None, running: Version, version: Version
) -> Finding:
    where = f"Deployment {controller.namespace}/{controller.name}" if controller is not None else "controller"
    message = (
        f"the controller runs {running}, the node plugin would be {version}; {driver.title} expects the same minor "
        "release"
    )
    if wanted.allow_version_skew:
        return Finding("CSI-D33", "warning", where, message, "accepted by allow_version_skew")
    matching = [rule for rule in driver.mode_rules(running) if rule.template is not None]
    remedy = f"leave version unset to deploy {running}" if matching else "set allow_version_skew to accept it"
    return _blocker(
        "CSI-D33", where, message, f"{remedy}, or bring the controller to {version.minor[0]}.{version.minor[1]}"
    )


def _blocker(finding: str, subject: str, message: str, remedy: str) -> Finding:
    return Finding(finding, "blocker", subject, message, remedy)
