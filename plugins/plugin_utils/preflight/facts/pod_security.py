# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod spec has that the Pod Security Standards forbid. Pure.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/, and k8s.io/pod-security-admission, policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_VOLUMES = frozenset(
    (
        "name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    )
)  # fmt: skip
Contexts = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Violations:
    """The first field against the baseline standard, and against the restricted one; empty for none.

    unevaluated: a field of Linux, or one that only some releases forbid, with which neither standard is evaluated.
    """

    baseline: str = ""
    restricted: str = ""
    unevaluated: str = ""


NO_VIOLATIONS = Violations()


def find_violations(spec: Mapping[str, Any]) -> Violations:
    """Read a whole core/v1 PodSpec, as one with os.name windows."""
    containers = [container for field in ("initContainers", "containers") for container in spec.get(field) or ()]
    pod: Mapping[str, Any] = spec.get("securityContext") or {}
    contexts: Contexts = [container.get("securityContext") or {} for container in containers]
    baseline = next(_check_baseline(spec, containers, [pod, *contexts]), "")
    restricted = baseline or next(_check_restricted(spec, pod, contexts), "")
    unevaluated = next(_list_unevaluated(containers, [pod, *contexts]), "")
    return Violations(baseline, restricted, unevaluated) if restricted or unevaluated else NO_VIOLATIONS


def _check_baseline(spec: Mapping[str, Any], containers: Contexts, contexts: Contexts) -> Iterator[str]:
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    yield from ("volumes.hostPath" for volume in spec.get("volumes") or () if "hostPath" in volume)
    yield from (
        "ports.hostPort" for container in containers for port in container.get("ports") or () if port.get("hostPort")
    )
    for context in contexts:
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield "windowsOptions.hostProcess"
        if context.get("privileged"):
            yield "securityContext.privileged"


def _check_restricted(spec: Mapping[str, Any], pod: Mapping[str, Any], contexts: Contexts) -> Iterator[str]:
    yield from (f"volumes.{field}" for volume in spec.get("volumes") or () for field in volume if field not in _VOLUMES)
    if spec.get("hostUsers") is False:
        # Some releases let pods in a user namespace run as any user.
        return
    if pod.get("runAsNonRoot") is False:
        yield "runAsNonRoot: false"
    if any(context.get("runAsUser") == 0 for context in (pod, *contexts)):
        yield "runAsUser: 0"
    for context in contexts:
        asks = context.get("runAsNonRoot")
        if not (pod.get("runAsNonRoot") if asks is None else asks):
            yield "no runAsNonRoot: true"


def _list_unevaluated(containers: Contexts, contexts: Contexts) -> Iterator[str]:
    for context in contexts:
        yield from (
            f"securityContext.{field}" for field in ("procMount", "seLinuxOptions", "sysctls") if context.get(field)
        )
        if (context.get("capabilities") or {}).get("add"):
            yield "capabilities.add"
        if "Unconfined" in ((context.get(field) or {}).get("type") for field in ("seccompProfile", "appArmorProfile")):
            yield "a profile of type Unconfined"
    for container in containers:
        handlers = [container.get(field) or {} for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        hooks = container.get("lifecycle") or {}
        handlers += [hooks.get(field) or {} for field in ("postStart", "preStop")]
        if any((handler.get(field) or {}).get("host") for handler in handlers for field in ("httpGet", "tcpSocket")):
            yield "the host of a probe or hook"
