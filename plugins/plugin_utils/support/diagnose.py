# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps volumes on Windows from working, from the controller to the share, in the order in which it is fixed. Pure.

Earlier findings decide whether later ones can be found at all: without a library no host is reached, without a host
its csi-proxy is unknown. Blockers come before warnings; of each the earlier layer comes first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Severity
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_field_lines

LAYERS = ("controller", "cluster", "permissions", "connection", "node", "csi-proxy", "driver", "SMB")
_SEVERITIES = ("blocker", "warning", "note")

# Lowest releases that this collection is tested with; galaxy.yml, meta/runtime.yml and requirements.txt have the same.
LEAST: Mapping[str, str] = {
    "ansible-core": "2.16.0",
    "kubernetes.core": "5.0.0",
    "kubernetes": "28.1.0",
    "msgspec": "0.18.6",
    "pywinrm": "0.5.0",
    "pypsrp": "0.8.1",
}
# Further requirements of a logon method, by connection.
_OF_CONNECTION: Mapping[str, tuple[str, ...]] = {"winrm": ("pywinrm",), "psrp": ("pypsrp",), "ssh": ("ssh",)}
_OF_TRANSPORT: Mapping[tuple[str, str], str] = {
    ("winrm", "ntlm"): "requests-ntlm",
    ("winrm", "kerberos"): "pykerberos",
    ("winrm", "credssp"): "requests-credssp",
    ("psrp", "kerberos"): "gssapi",
    ("psrp", "credssp"): "requests-credssp",
}
_WITHOUT_PASSWORD = frozenset({"kerberos", "certificate"})

# Windows error 1219, as Win32 code and as HRESULT: https://learn.microsoft.com/windows/win32/debug/system-error-codes--1000-1299-
_CONFLICT = re.compile(r"\b1219\b|0x800704c3", re.IGNORECASE)
# MSFT_SmbGlobalMapping, Status: https://learn.microsoft.com/windows/win32/fileio/msft-smbglobalmapping
_STATUS = {
    1: "paused", 2: "disconnected", 3: "in a network error", 4: "connecting", 5: "reconnecting", 6: "unavailable",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing to fix. layer: where it is, one of LAYERS."""

    layer: str
    id: str
    severity: Severity
    object: str
    found: str
    expected: str
    remedy: str

    def __post_init__(self) -> None:
        join_field_lines(self, "object", "found", "expected", "remedy")


@dataclass(frozen=True, slots=True)
class Controller:
    """The machine that runs Ansible. installed: release by package, empty where it is there without one; absent where it is not."""

    installed: Mapping[str, str]
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One Windows host. transport: how it logs on. problem, reason: why it was not read. state: RV(csi_proxy) of csi_proxy_info."""

    name: str
    connection: str = "winrm"
    transport: str = ""
    password: bool = True
    reason: str = ""
    problem: str = ""
    node: str = ""
    unmatched: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster. problem, reason: why it was not read. lacking: rules by role. events: (object, message) of failed mounts.

    blockers: of the readiness report. unread: why there is no report.
    """

    reason: str = ""
    problem: str = ""
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    events: Sequence[tuple[str, str]] = ()
    blockers: Sequence[Mapping[str, str]] = ()
    unread: str = ""


# Packages that every playbook with a cluster needs, and for what.
NEEDED: Mapping[str, str] = {
    "kubernetes": "the cluster",
    "msgspec": "the readiness report",
    "kubernetes.core": "the cluster",
}


def explain_missing_packages(missing: Collection[str]) -> list[str]:
    """A sentence for each package of NEEDED that is not installed."""
    return [
        f"controller, {package}: it is not installed, and {why} needs it. Install it: {_suggest_install(package)}"
        for package, why in NEEDED.items()
        if package in missing
    ]


def diagnose(controller: Controller, cluster: ClusterFacts, hosts: Sequence[HostFacts]) -> tuple[Diagnosis, ...]:
    """Everything that is wrong, the next thing to fix first."""
    diagnoses = [
        *_diagnose_controller(controller, hosts),
        *_diagnose_cluster(cluster),
        *(diagnosis for host in hosts for diagnosis in _diagnose_host(host)),
    ]
    diagnoses += _diagnose_driver(cluster, {diagnosis.id for diagnosis in diagnoses})
    diagnoses += _diagnose_conflicts(cluster)
    unique = dict.fromkeys(diagnoses)
    return tuple(
        sorted(
            unique,
            key=lambda diagnosis: (
                _SEVERITIES.index(diagnosis.severity),
                LAYERS.index(diagnosis.layer),
                diagnosis.id,
                diagnosis.object,
            ),
        )
    )


def _diagnose_controller(controller: Controller, hosts: Sequence[HostFacts]) -> Iterator[Diagnosis]:
    needed = dict(NEEDED)
    for host in hosts:
        why = f"the connection {host.connection} ({host.transport or 'default'}) of host {host.name}"
        of_transport = _OF_TRANSPORT.get((host.connection, host.transport))
        for package in (*_OF_CONNECTION.get(host.connection, ()), *filter(None, [of_transport])):
            needed.setdefault(package, why)
    for package, why in needed.items():
        if package in controller.missing:
            yield Diagnosis(
                "controller", "CSI-X01", "blocker", f"controller, {package}", "is not installed", f"it is installed for {why}",
                _suggest_install(package),
            )  # fmt: skip
    for package, release in controller.installed.items():
        least = LEAST.get(package)
        if least and release and _is_below(release, least):
            yield Diagnosis(
                "controller", "CSI-X02", "blocker", f"controller, {package}", f"is release {release}", f"{least} or later",
                _suggest_install(package),
            )  # fmt: skip


def _suggest_install(package: str) -> str:
    if package == "ssh":
        return "Install the OpenSSH client on the controller."
    if package == "kubernetes.core":
        return "ansible-galaxy collection install --upgrade kubernetes.core"
    requirement = f"'{package}>={LEAST[package]}'" if package in LEAST else package
    return f"pip install --upgrade {requirement} in Ansible's Python, or use an execution environment that has it."


def _is_below(release: str, least: str) -> bool:
    release_numbers, least_numbers = (re.findall(r"\d+", text)[:3] for text in (release, least))
    return [int(number) for number in release_numbers] < [int(number) for number in least_numbers]


def _diagnose_cluster(cluster: ClusterFacts) -> Iterator[Diagnosis]:
    if cluster.problem:
        problem, remedy = _split_problem(cluster.problem)
        expected = {
            "configuration": "a kubeconfig with a context of this cluster",
            "unauthorized": "credentials that the API server accepts",
            "unreachable": "an API server that answers",
        }.get(cluster.reason, "the API server answers")
        ids = {"configuration": "CSI-X03", "unauthorized": "CSI-X04", "unreachable": "CSI-X05"}
        yield Diagnosis("cluster", ids.get(cluster.reason, "CSI-X05"), "blocker", "cluster", problem, expected, remedy)
        return
    for role, rules in cluster.lacking.items():
        severity: Severity = "blocker" if role == "kubewin-preflight" else "warning"
        yield Diagnosis(
            "permissions", "CSI-X06", severity, f"ClusterRole {role}", f"this account lacks {len(rules)} of its rules: {'; '.join(rules)}",
            "an account that holds the role of what it runs",
            f"kubectl apply -f roles/csi_driver/files/, then bind {role} to the account as on the page of ClusterRoles.",
        )  # fmt: skip


def _diagnose_host(host: HostFacts) -> Iterator[Diagnosis]:
    title = f"host {host.name}"
    if not host.state:
        yield _diagnose_unreached_host(host, title)
        return
    if not host.node:
        problem, remedy = _split_problem(host.unmatched or "it is no Node of this cluster.")
        remedy = remedy or "Set kubewin_node_name for the host."
        yield Diagnosis("node", "CSI-X10", "blocker", title, problem, "it is exactly one Node", remedy)
    yield from _diagnose_csi_proxy(host.state, title)
    for finding in host.state.get("findings") or ():
        if finding["severity"] != "note":
            yield Diagnosis(
                "csi-proxy", finding["id"], finding["severity"], f"{title}, {finding['object']}", finding["message"],
                "none of it", finding["remedy"],
            )  # fmt: skip
    if host.state.get("smb_used") and host.state.get("smb_mappings") is None:
        yield Diagnosis(
            "SMB", "CSI-X20", "warning", title, "its SMB mappings cannot be read: wmic.exe is missing", "the mappings of all sessions",
            "If a mount of a share hangs, run Get-SmbGlobalMapping in PowerShell on the host.",
        )  # fmt: skip
    yield from _diagnose_mappings(host.state.get("smb_mappings"), title)


def _diagnose_unreached_host(host: HostFacts, title: str) -> Diagnosis:
    problem, remedy = _split_problem(host.problem or "it was not read.")
    if not host.password and host.transport not in _WITHOUT_PASSWORD and host.connection in ("winrm", "psrp"):
        remedy = "Set ansible_password for the host, from a vault or the AWX Machine credential."
        expected = "credentials of an administrator"
        return Diagnosis("connection", "CSI-X07", "blocker", title, "no password is set", expected, remedy)
    reasons = {
        "access_denied": ("CSI-X08", "an account that may log on and is an administrator"),
        "quota_exceeded": ("CSI-X09", "fewer shells and operations than WinRM allows"),
        "remote_shell_disabled": ("CSI-X11", "WinRM with remote shells, or the connection ssh"),
        "connection_configuration": ("CSI-X11", "a connection that this controller can open"),
        "unsupported_connection": ("CSI-X11", "the connection winrm, psrp or ssh"),
        "not_windows": ("CSI-X12", "a Windows host that runs cmd.exe"),
        "no_cmd": ("CSI-X12", "a Windows host that runs cmd.exe"),
        "delayed_expansion": ("CSI-X12", "cmd.exe without delayed expansion"),
    }
    name, expected = reasons.get(host.reason, ("CSI-X13", "the host answers"))
    return Diagnosis("connection", name, "blocker", title, problem, expected, remedy or "See the connection's options.")


def _diagnose_csi_proxy(state: Mapping[str, Any], title: str) -> Iterator[Diagnosis]:
    service = state.get("service") or {}
    if state.get("serving"):
        return
    severity: Severity = "blocker"
    repair = "run kubewin.csi.enable_csi with this inventory"
    if not service:
        if state.get("managed_by", "none") not in ("none", ""):
            return
        # Nodes whose drivers run as HostProcess containers need none; the readiness report says whether a volume does.
        name, severity = "CSI-X14", "warning"
        problem, expected = "csi-proxy is absent", "it serves, unless all drivers are HostProcess"
    elif service.get("state") != "running":
        problem = (
            f"the service {service.get('name')} is {service.get('state')} (start mode {service.get('start_mode')})"
        )
        name, expected = "CSI-X15", "it is running"
        repair = f"{repair}, or on the host: sc.exe start {service.get('name')}"
    else:
        lacks = ", ".join(state.get("missing_pipes") or ()) or "all"
        name, problem = "CSI-X16", f"these pipes are not served: {lacks}"
        expected = "every required pipe is served"
    yield Diagnosis("csi-proxy", name, severity, title, problem, expected, repair)


def _diagnose_mappings(mappings: Sequence[Mapping[str, Any]] | None, title: str) -> Iterator[Diagnosis]:
    for mapping in mappings or ():
        status = int(mapping["status"])
        if status:
            yield Diagnosis(
                "SMB", "CSI-X17", "warning", f"{title}, mapping of {mapping['remote']}", f"it is {_STATUS.get(status, f'in state {status}')}",
                "it is connected",
                "When no pod on this node uses the share, remove the mapping there (Remove-SmbGlobalMapping) and delete the pod that waits: "
                "the driver maps the share anew.",
            )  # fmt: skip


def _diagnose_driver(cluster: ClusterFacts, reported: set[str]) -> Iterator[Diagnosis]:
    if cluster.unread and not cluster.problem:
        problem, remedy = _split_problem(cluster.unread)
        yield Diagnosis("driver", "CSI-X18", "blocker", "readiness report", problem, "a report", remedy)
    for blocker in cluster.blockers:
        # What a host reported is in the layer of csi-proxy already.
        if blocker["id"] not in reported:
            yield Diagnosis(
                "driver",
                blocker["id"],
                "blocker",
                blocker["object"],
                blocker["message"],
                "none of it",
                blocker["remedy"],
            )


def _diagnose_conflicts(cluster: ClusterFacts) -> Iterator[Diagnosis]:
    for title in dict.fromkeys(title for title, message in cluster.events if _CONFLICT.search(message)):
        yield Diagnosis(
            "SMB", "CSI-X19", "blocker", title, "its mount fails with Windows error 1219: its node is connected to the server with other credentials",
            "one account for each SMB server on a node",
            "Use the same Secret in all StorageClasses and PersistentVolumes of that server, remove the old mapping on the node "
            "(Remove-SmbGlobalMapping), and delete the pod that waits.",
        )  # fmt: skip


def _split_problem(text: str) -> tuple[str, str]:
    """What was found, and the remedy: the first sentence of our errors, and the rest."""
    first, stop, remedy = text.strip().partition(". ")
    return first.rstrip("."), remedy.strip() if stop else ""


def render(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """The text lines, the next thing to fix first."""
    if not diagnoses:
        return ["Nothing to fix was found, from the controller to the drivers."]
    lines = ["Fix these in this order; run diagnose again after each:"]
    for number, diagnosis in enumerate(diagnoses, 1):
        lines += [
            f"{number}. {diagnosis.severity} {diagnosis.id} {diagnosis.object}: {diagnosis.found}; expected: {diagnosis.expected}.",
            f"   {diagnosis.remedy}",
        ]
    return lines


def is_passed(diagnoses: Sequence[Diagnosis], fail_on: str) -> bool:
    """Whether the run succeeds, as preflight decides it: what could not be read is a blocker here."""
    failing = {"never": "", "blocked": "blocker", "unknown": "blocker", "warning": "blocker warning"}[fail_on].split()
    return not any(diagnosis.severity in failing for diagnosis in diagnoses)
