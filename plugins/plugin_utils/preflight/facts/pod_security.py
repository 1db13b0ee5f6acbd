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

_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
        "SETPCAP", "SETUID", "SYS_CHROOT",
    )
)  # fmt: skip
_VOLUMES = frozenset(
    (
        "name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    )
)  # fmt: skip
_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
    )
)  # fmt: skip
_ENGINE = "container_engine_t"
_SE_LINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t", _ENGINE)
Contexts = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Violations:
    """The first field against the baseline standard, and against the restricted one; empty for none.

    by_release: what only some releases forbid: a probe or hook of another host since 1.34, the type container_engine_t before
    1.31, and before 1.35 that pods in a user namespace run as any user.
    """

    baseline: str = ""
    restricted: str = ""
    by_release: str = ""


NO_VIOLATIONS = Violations()


def find_violations(spec: Mapping[str, Any]) -> Violations:
    """Read a whole core/v1 PodSpec."""
    containers = [container for field in ("initContainers", "containers") for container in spec.get(field) or ()]
    pod: Mapping[str, Any] = spec.get("securityContext") or {}
    contexts: Contexts = [container.get("securityContext") or {} for container in containers]
    baseline = next(_check_baseline(spec, containers, pod, contexts), "")
    users = next(_check_users(pod, contexts), "")
    of_host, of_namespace = ("", users) if spec.get("hostUsers") is False else (users, "")
    restricted = baseline or of_host or next(_check_restricted(spec, pod, contexts), "")
    types = {(context.get("seLinuxOptions") or {}).get("type") for context in (pod, *contexts)}
    by_release = next(_check_handlers(containers), _ENGINE if _ENGINE in types else of_namespace)
    return Violations(baseline, restricted, by_release) if restricted or by_release else NO_VIOLATIONS


def _check_baseline(
    spec: Mapping[str, Any], containers: Contexts, pod: Mapping[str, Any], contexts: Contexts
) -> Iterator[str]:
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    yield from ("volumes.hostPath" for volume in spec.get("volumes") or () if "hostPath" in volume)
    yield from (
        "ports.hostPort" for container in containers for port in container.get("ports") or () if port.get("hostPort")
    )
    for context in (pod, *contexts):
        if (context.get("windowsOptions") or {}).get("hostProcess"):
            yield "windowsOptions.hostProcess"
        if context.get("privileged"):
            yield "securityContext.privileged"
        if not _CAPABILITIES.issuperset((context.get("capabilities") or {}).get("add") or ()):
            yield "capabilities.add"
        if context.get("procMount") not in (None, "Default"):
            yield "securityContext.procMount"
        if "Unconfined" in ((context.get(field) or {}).get("type") for field in ("seccompProfile", "appArmorProfile")):
            yield "a profile of type Unconfined"
        se_linux = context.get("seLinuxOptions") or {}
        if se_linux.get("user") or se_linux.get("role") or (se_linux.get("type") or "") not in _SE_LINUX_TYPES:
            yield "securityContext.seLinuxOptions"
    if not _SYSCTLS.issuperset(sysctl.get("name") for sysctl in pod.get("sysctls") or ()):
        yield "securityContext.sysctls"


def _check_handlers(containers: Contexts) -> Iterator[str]:
    for container in containers:
        handlers = [container.get(field) or {} for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        hooks = container.get("lifecycle") or {}
        handlers += [hooks.get(field) or {} for field in ("postStart", "preStop")]
        if any((handler.get(field) or {}).get("host") for handler in handlers for field in ("httpGet", "tcpSocket")):
            yield "the host of a probe or hook"


def _check_users(pod: Mapping[str, Any], contexts: Contexts) -> Iterator[str]:
    if pod.get("runAsNonRoot") is False:
        yield "runAsNonRoot: false"
    if any(context.get("runAsUser") == 0 for context in (pod, *contexts)):
        yield "runAsUser: 0"
    for context in contexts:
        asks = context.get("runAsNonRoot")
        if not (pod.get("runAsNonRoot") if asks is None else asks):
            yield "no runAsNonRoot: true"


def _check_restricted(spec: Mapping[str, Any], pod: Mapping[str, Any], contexts: Contexts) -> Iterator[str]:
    yield from (f"volumes.{field}" for volume in spec.get("volumes") or () for field in volume if field not in _VOLUMES)
    # The following does not bind pods of Windows.
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for context in contexts:
        if context.get("allowPrivilegeEscalation") is not False:
            yield "no allowPrivilegeEscalation: false"
        if not (context.get("seccompProfile") or pod.get("seccompProfile")):
            yield "no seccompProfile"
        capabilities = context.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            yield "no capabilities.drop: [ALL]"
        if set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}:
            yield "capabilities.add"
