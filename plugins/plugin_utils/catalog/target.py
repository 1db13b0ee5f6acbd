# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target of an upgrade: how users write it, and targets that no upgrade can reach. Pure.

Preflight and upgrade read the same grammar: ``openshift=4.14,wmco=9.0.0``, or a dictionary.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..base.findings import Finding, blocker
from .versions import is_above, parse

# kubelet is another name of kubernetes: the release that the Windows nodes come to.
KEYS = ("kubernetes", "kubelet", "openshift", "wmco")


def parse_target(value: object) -> dict[str, str]:
    """A target by its keys, kubelet as kubernetes. ValueError names everything that is wrong with it."""
    if value in (None, "", {}, []):
        return {}
    if isinstance(value, Mapping):
        pairs = [(str(key).strip(), release, True) for key, release in value.items()]
    elif isinstance(value, (str, list, tuple)):
        parts = value.replace("\n", ",").split(",") if isinstance(value, str) else [str(part) for part in value]
        split = [part.partition("=") for part in parts if part.strip()]
        pairs = [(key.strip(), release.strip(), bool(equals and release.strip())) for key, equals, release in split]
    else:
        raise ValueError(f"{value!r} is not a target, expected key=release, such as kubernetes=1.34, or a dictionary")
    problems = [problem for key, release, equals in pairs if (problem := _check_entry(key, release, equals))]
    target: dict[str, str] = {}
    for key, release, _equals in pairs:
        name = "kubernetes" if key == "kubelet" else key
        if name in target and target[name] != str(release):
            problems.append(f"{name} is set twice: {target[name]} and {release}")
        target[name] = str(release)
    if problems:
        raise ValueError("; ".join(problems))
    return {key: release for key, release in target.items() if release}


def _check_entry(key: str, release: object, equals: bool) -> str:
    if not equals:
        return f"{key!r} has no release, expected key=release, such as kubernetes=1.34"
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, 1)
        return f"{key!r} is not a valid key, expected one of {', '.join(KEYS)}" + (
            f"; did you mean {near[0]}?" if near else ""
        )
    if release not in (None, ""):
        if isinstance(release, float):
            return f"{key} is the number {release}, expected text, because the number 1.30 is 1.3"
        try:
            parse(str(release))
        except ValueError as error:
            return f"{key}: {error}"
    return ""


@dataclass(frozen=True, slots=True)
class CurrentReleases:
    """The releases that a cluster has. kubelets: by Windows Node. openshift, wmco: empty where there is none, None where not known.

    api_server: empty if it may still be upgraded before the nodes.
    """

    kubelets: Mapping[str, str]
    openshift: str | None = None
    wmco: str | None = None
    api_server: str = ""


def find_impossible_targets(target: Mapping[str, str], current: CurrentReleases) -> Iterator[Finding]:
    """Targets behind the cluster, and those of a platform that it is not. target: as read() returns it."""
    release = target.get("kubernetes", "")
    # A node that is ahead is left alone while others come to the target.
    if release and current.kubelets and not any(is_above(release, version) for version in current.kubelets.values()):
        ahead = [
            f"{name} ({version})" for name, version in sorted(current.kubelets.items()) if is_above(version, release)
        ]
        if ahead:
            yield blocker(
                "CSI-T12", f"Node {', '.join(ahead)}",
                f"its kubelet is newer than the target {release}, and no Windows node has an older one; nodes cannot be downgraded",
                "set the release that the nodes are upgraded to",
            )  # fmt: skip
    # https://kubernetes.io/releases/version-skew-policy/#kubelet: "kubelet must not be newer than kube-apiserver".
    if release and current.api_server and is_above(_minor(release), _minor(current.api_server)):
        yield blocker(
            "CSI-T17", "Target", f"kubelet {release}, but the API server is {current.api_server}; a kubelet must not be newer than the API server",
            f"upgrade the control plane first, or set a release up to {_minor(current.api_server)}",
        )  # fmt: skip
    for key, name, running in (
        ("openshift", "OpenShift", current.openshift),
        ("wmco", "Windows Machine Config Operator", current.wmco),
    ):
        release = target.get(key, "")
        if not release or running is None:
            continue
        if not running and key == "openshift":
            yield blocker(
                "CSI-T13", "Target", f"OpenShift {release}, but this cluster is not OpenShift (it has no ClusterVersion)",
                "set the release of Kubernetes instead, such as kubernetes=1.34",
            )  # fmt: skip
        elif running and is_above(running, release):
            yield blocker(
                "CSI-T12" if key == "openshift" else "CSI-T07", name,
                f"it runs {running} and cannot be downgraded to {release}", "choose a later release",
            )  # fmt: skip


def _minor(release: str) -> str:
    """Major and minor of a release; the text itself if it is none."""
    try:
        return ".".join(map(str, parse(release).minor))
    except ValueError:
        return release
