# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server's admission reads of a pod, and the PriorityClasses and webhooks that it asks. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...base.text import share_text
from .placement import Term
from .resources import Amounts, PodResources, read_amounts
from .scheduling import read_selector

NO_RESOURCES = PodResources()
PREEMPT_LOWER = "PreemptLowerPriority"
_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID",
        "SETPCAP", "SETUID", "SYS_CHROOT",
    )
)  # fmt: skip
_RESTRICTED_VOLUMES = frozenset(
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
    """The first field against Pod Security's baseline standard, and against the restricted one; empty for none.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/, and k8s.io/pod-security-admission, policy.

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
    yield from (
        f"volumes.{field}"
        for volume in spec.get("volumes") or ()
        for field in volume
        if field not in _RESTRICTED_VOLUMES
    )
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


@dataclass(frozen=True, slots=True)
class PodToAdmit:
    """A pod as a template creates it. priority, preemption: None and empty where admission sets them.

    overhead: the template's own. deleting: what makes it is being deleted. refused: a field with which every kubelet on Windows
    rejects it. builds: of Windows, that tags of its images name, with the image.
    """

    service_account: str = "default"
    priority_class: str = ""
    priority: int | None = None
    preemption: str = ""
    resources: PodResources = NO_RESOURCES
    overhead: Amounts = ()
    violations: Violations = NO_VIOLATIONS
    deleting: bool = False
    refused: str = ""
    builds: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], deleting: bool = False) -> PodToAdmit:
        """Read a core/v1 PodSpec: serviceAccountName, serviceAccount, priorityClassName, priority, preemptionPolicy, of securityContext sysctls
        and supplementalGroupsPolicy, and what PodResources and find_violations read.
        """
        priority = spec.get("priority")
        return cls(
            service_account=sys.intern(str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default")),
            priority_class=share_text(spec.get("priorityClassName")),
            priority=None if priority is None else int(priority),
            preemption=str(spec.get("preemptionPolicy") or ""),
            resources=PodResources.from_spec(spec),
            overhead=read_amounts(spec.get("overhead")),
            violations=find_violations(spec),
            deleting=deleting,
            refused=_find_refused_field(spec),
            builds=tuple(_list_builds(spec)),
        )


NO_POD = PodToAdmit()


def _find_refused_field(spec: Mapping[str, Any]) -> str:
    """As https://github.com/kubernetes/kubernetes, pkg/kubelet: sysctl/safe_sysctls.go, lifecycle/predicate.go and features_windows.go."""
    context, resources = spec.get("securityContext") or {}, spec.get("resources") or {}
    if context.get("sysctls"):
        return "spec.securityContext.sysctls"
    if context.get("supplementalGroupsPolicy") == "Strict":
        return "spec.securityContext.supplementalGroupsPolicy: Strict"
    return "spec.resources" if resources.get("limits") or resources.get("requests") else ""


# What tags of Windows images call a build, if the number could not be one of the application.
_BUILD = re.compile(r"(?:server(?:core)?|windows)[-:]?1809\b|\bltsc(2019|2022|2025)\b|\b10\.0\.(\d{5})\b")
_BUILDS = {"2019": "17763", "2022": "20348", "2025": "26100"}


def _list_builds(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            options = [
                (holder.get("securityContext") or {}).get("windowsOptions") or {} for holder in (container, spec)
            ]
            # A HostProcess container runs on every build (https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/).
            if any(option.get("hostProcess") for option in options):
                continue
            if match := _BUILD.search(image := str(container.get("image") or "")):
                yield match[2] or _BUILDS[match[1] or "2019"], image


# Resources that are created when a pod moves, with their API groups. No webhook reads the namespace of the last two.
_MOVING: Mapping[str, str] = {
    "pods": "", "pods/binding": "", "pods/eviction": "", "jobs": "batch", "persistentvolumeclaims": "",
    "persistentvolumes": "", "volumeattachments": "storage.k8s.io",
}  # fmt: skip
_CLUSTER_SCOPED = ("persistentvolumes", "volumeattachments")


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook that may have to accept what is created when a pod moves.

    configuration: "validatingwebhookconfiguration/name". service: what serves it, "namespace/name". namespaces: selector of
    those that it is for, empty for all.
    """

    name: str
    configuration: str
    service: str
    namespaces: Term
    resources: tuple[str, ...]

    def explain(self) -> tuple[str, str]:
        """Why without its Service it is not known that a pod moves, and what helps."""
        resources = " and ".join(self.resources)
        message = f"webhook {self.name} of {self.configuration} has to accept new {resources}, and its Service {self.service} does not exist"
        return message, f"deploy what serves it; if it is a leftover: kubectl delete {self.configuration}"

    @classmethod
    def list_from_object(cls, kind: str, item: Mapping[str, Any]) -> Iterator[Webhook]:
        """Read a MutatingWebhookConfiguration or ValidatingWebhookConfiguration of admissionregistration.k8s.io/v1: metadata (name),
        webhooks (name, clientConfig.service, failurePolicy, rules, namespaceSelector). Its other selectors and conditions may
        let objects pass, too.
        """
        for webhook in item.get("webhooks") or ():
            service = (webhook.get("clientConfig") or {}).get("service")
            rules = webhook.get("rules") or ()
            resources = tuple(name for name in _MOVING if any(_is_of_new_objects(rule, name) for rule in rules))
            selects_all = not set(resources).isdisjoint(_CLUSTER_SCOPED)
            if service and webhook.get("failurePolicy") != "Ignore" and resources:
                yield cls(
                    name=str(webhook["name"]),
                    configuration=f"{kind.lower()}/{item['metadata']['name']}",
                    service=f"{service['namespace']}/{service['name']}",
                    namespaces=(not selects_all and read_selector(webhook.get("namespaceSelector"))) or (),
                    resources=resources,
                )


def _is_of_new_objects(rule: Mapping[str, Any], resource: str) -> bool:
    """As Matcher of https://github.com/kubernetes/kubernetes, staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules."""
    name, _slash, part = resource.partition("/")
    expected = {
        "operations": ("*", "CREATE"), "apiGroups": ("*", _MOVING[resource]),
        "resources": ("*/*", f"{name}/*", f"*/{part}", resource) if part else ("*", "*/*", name, f"{name}/*"),
    }  # fmt: skip
    return all(not set(rule.get(field) or ()).isdisjoint(values) for field, values in expected.items())


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass. is_default: of pods that name none."""

    name: str
    value: int = 0
    is_default: bool = False
    preemption: str = PREEMPT_LOWER

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> PriorityClass:
        """Read a scheduling.k8s.io/v1 PriorityClass: metadata.name, value, globalDefault, preemptionPolicy."""
        preemption = str(item.get("preemptionPolicy") or PREEMPT_LOWER)
        return cls(
            str(item["metadata"]["name"]), int(item.get("value") or 0), bool(item.get("globalDefault")), preemption
        )


# Every API server makes these (pkg/apis/scheduling/v1/helpers.go).
SYSTEM_CLASSES = (
    PriorityClass("system-node-critical", 2000001000),
    PriorityClass("system-cluster-critical", 2000000000),
)
