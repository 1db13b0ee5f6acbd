# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps volumes on Windows from working, from the controller to the share, in the order in which it is fixed. Pure.

Earlier findings decide whether later ones can be found at all: without a library no host is reached, without a host
its csi-proxy is unknown. Blockers come before warnings; of each the earlier layer comes first. Of one workload only
what keeps its pods from their volumes is listed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.findings import Finding, Severity
from ..base.grouped import group_values
from ..base.text import join_field_lines
from ..drivers.rollout.explain import ALLOW_PIPES, find_denied_pipe
from ..preflight.render.view import FOLLOWS
from ..windows.model import CsiProxyState
from .workload import WorkloadFacts

LAYERS = ("controller", "cluster", "permissions", "connection", "node", "csi-proxy", "driver", "SMB", "workload")
# What is expected where a finding says what is wrong.
ABSENCE = "none of it"
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

# Of a pod that no controller recreates: it has its volumes, and a drain would end it.
_OF_A_DRAIN = "CSI-W07"
# That a driver is unproven, because its host was not read.
_UNPROVEN = frozenset({"CSI-G40", "CSI-G41"})
# Windows error 1219, as Win32 code and as HRESULT: https://learn.microsoft.com/windows/win32/debug/system-error-codes--1000-1299-
_CONFLICT = re.compile(r"\b1219\b|0x800704c3", re.IGNORECASE)
# Of a second mount beside the first format: https://github.com/kubernetes-sigs/azuredisk-csi-driver/issues/2690
_FORMAT = re.compile("requested access path is already in use", re.IGNORECASE)
# ERROR_DISK_FULL, 112: https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-
_FULL_DISK = re.compile("not enough space on the disk", re.IGNORECASE)
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
class ControllerPackages:
    """The machine that runs Ansible. installed: release by package, empty where it is there without one; absent where it is not."""

    installed: Mapping[str, str]
    missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One Windows host. transport: how it logs on. problem: why it was not read. state: None then."""

    name: str
    connection: str = "winrm"
    transport: str = ""
    password: bool = True
    problem: str = ""
    node: str = ""
    unmatched: str = ""
    state: CsiProxyState | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster. problem: why it was not read. lacking: rules by role. events: (object, message, node) of failed mounts.

    findings: blockers and warnings of the readiness report. unread: why there is no report. workload: the only one to diagnose.
    is_without_nodes: whether it has no Windows Node.
    """

    problem: str = ""
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    events: Sequence[tuple[str, str, str]] = ()
    findings: Sequence[Finding] = ()
    unread: str = ""
    workload: WorkloadFacts | None = None
    is_without_nodes: bool = False


# Packages that every playbook with a cluster needs for it.
NEEDED = ("kubernetes", "msgspec", "kubernetes.core")


def explain_missing_packages(missing: Collection[str]) -> list[str]:
    """A sentence for each package of NEEDED that is not installed."""
    return [
        f"controller, {package}: it is not installed, and the cluster needs it. Install it: {_suggest_install(package)}"
        for package in NEEDED
        if package in missing
    ]


def diagnose(
    controller: ControllerPackages, cluster: ClusterFacts, hosts: Sequence[HostFacts]
) -> tuple[Diagnosis, ...]:
    """Everything that is wrong, the next thing to fix first."""
    if (workload := cluster.workload) is not None:
        nodes, names = workload.select_nodes(), {f"Pod {pod.name}" for pod in workload.pods}
        hosts = [host for host in hosts if host.node in nodes]
        lacking = {role: rules for role, rules in cluster.lacking.items() if role == "kubewin-preflight"}
        events = [event for event in cluster.events if event[0] in names]
        cluster = replace(cluster, lacking=lacking, events=events, findings=workload.causes)
    diagnoses = [
        *_diagnose_controller(controller, hosts),
        *_diagnose_cluster(cluster),
        *(diagnosis for host in hosts for diagnosis in _diagnose_host(host, is_cluster_read=not cluster.problem)),
    ]
    reported = {diagnosis.id for diagnosis in diagnoses}
    # A stopped service serves no pipe: the host's own state says more.
    if reported & {"CSI-X15", "CSI-X16", "CSI-N06"}:
        reported |= {"CSI-G42", "CSI-G43"}
    unread = {host.node for host in hosts if host.node and not host.state}
    diagnoses += _diagnose_driver(cluster, reported, unread)
    diagnoses += _diagnose_conflicts(cluster.events)
    diagnoses += _diagnose_formats(cluster.events)
    diagnoses += _diagnose_hosts_of_mounts(cluster.events)
    if workload is not None and not cluster.problem and not cluster.unread:
        if any(pod.event and not pod.runs for pod in workload.pods):
            # These say that a pod waits, and its event says why.
            diagnoses = [diagnosis for diagnosis in diagnoses if diagnosis.id not in ("CSI-W22", "CSI-W23")]
        diagnoses += _diagnose_workload(workload, any(diagnosis.severity == "blocker" for diagnosis in diagnoses))
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


def _diagnose_controller(controller: ControllerPackages, hosts: Sequence[HostFacts]) -> Iterator[Diagnosis]:
    needed = dict.fromkeys(NEEDED, "the cluster")
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
        minimum = LEAST.get(package)
        if minimum and release and _is_below(release, minimum):
            yield Diagnosis(
                "controller", "CSI-X02", "blocker", f"controller, {package}", f"is release {release}", f"{minimum} or later",
                _suggest_install(package),
            )  # fmt: skip


def _suggest_install(package: str) -> str:
    if package == "ssh":
        return "Install the OpenSSH client on the controller."
    if package == "kubernetes.core":
        return "ansible-galaxy collection install --upgrade kubernetes.core"
    requirement = f"'{package}>={LEAST[package]}'" if package in LEAST else package
    return f"pip install --upgrade {requirement} in Ansible's Python, or use an execution environment that has it."


def _is_below(release: str, minimum: str) -> bool:
    release_numbers, least_numbers = (re.findall(r"\d+", text)[:3] for text in (release, minimum))
    return [int(number) for number in release_numbers] < [int(number) for number in least_numbers]


def _diagnose_cluster(cluster: ClusterFacts) -> Iterator[Diagnosis]:
    if cluster.problem:
        problem, remedy = _split_problem(cluster.problem)
        yield Diagnosis(
            "cluster", "CSI-X05", "blocker", "cluster", problem, "an API server that answers this account", remedy
        )
        return
    if cluster.is_without_nodes:
        yield Diagnosis(
            "cluster", "CSI-X26", "blocker", "cluster", "it has no Windows Node", "a Node with kubernetes.io/os=windows",
            "Add a Windows node, or set kubeconfig and context to the right cluster: kubectl get nodes -o wide",
        )  # fmt: skip
    for role, rules in cluster.lacking.items():
        severity: Severity = "blocker" if role == "kubewin-preflight" else "warning"
        yield Diagnosis(
            "permissions", "CSI-X06", severity, f"ClusterRole {role}", f"this account lacks {len(rules)} of its rules: {'; '.join(rules)}",
            "an account that holds the role of what it runs",
            f"kubectl apply -f roles/csi_driver/files/, then bind {role} to the account as on the page of ClusterRoles.",
        )  # fmt: skip


def _diagnose_host(host: HostFacts, *, is_cluster_read: bool) -> Iterator[Diagnosis]:
    title = f"host {host.name}"
    if host.state is None:
        yield _diagnose_unreached_host(host, title)
        return
    if (host.unmatched or not host.node) and is_cluster_read:
        problem, remedy = _split_problem(host.unmatched or "it is no Node of this cluster.")
        remedy = remedy or "Set kubewin_node_name for the host."
        yield Diagnosis("node", "CSI-X10", "blocker", title, problem, "it is exactly one Node", remedy)
    yield from _diagnose_csi_proxy(host.state, title)
    for finding in host.state.findings:
        if finding.severity != "note":
            yield Diagnosis(
                "csi-proxy", finding.id, finding.severity, f"{title}, {finding.object}", finding.message, ABSENCE, finding.remedy,
            )  # fmt: skip
    if host.state.smb_used and host.state.smb_mappings is None:
        yield Diagnosis(
            "SMB", "CSI-X20", "warning", title, "its SMB mappings cannot be read: wmic.exe is missing or fails, and PowerShell fails",
            "the mappings of all sessions",
            "Run Get-SmbGlobalMapping in PowerShell on the host: its error names the cause, for example a policy.",
        )  # fmt: skip
    yield from _diagnose_mappings(host.state.smb_mappings or (), host.node, title)


def _diagnose_unreached_host(host: HostFacts, title: str) -> Diagnosis:
    problem, remedy = _split_problem(host.problem or "it was not read.")
    if not host.password and host.transport not in _WITHOUT_PASSWORD and host.connection in ("winrm", "psrp"):
        remedy = "Set ansible_password for the host, from a vault or the AWX Machine credential."
        expected = "credentials of an administrator"
        return Diagnosis("connection", "CSI-X07", "blocker", title, "no password is set", expected, remedy)
    remedy = remedy or "See the connection's options."
    return Diagnosis(
        "connection", "CSI-X13", "blocker", title, problem, "a Windows host that answers an administrator", remedy
    )


def _diagnose_csi_proxy(state: CsiProxyState, title: str) -> Iterator[Diagnosis]:
    service = state.service
    if state.serving:
        return
    severity: Severity = "blocker"
    repair = "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"
    if service is None:
        if state.managed_by != "none":
            return
        # Nodes whose drivers run as HostProcess containers need none; the readiness report says whether a volume does.
        name, severity = "CSI-X14", "warning"
        problem, expected = "csi-proxy is absent", "it serves, unless all drivers are HostProcess"
    elif any(finding.id == "CSI-N06" for finding in state.findings):
        # It cannot start before its executable is there.
        return
    elif service.state != "running":
        problem = f"the service {service.name} is {service.state} (start mode {service.start_mode or 'unknown'})"
        name, expected = "CSI-X15", "it is running"
        if service.start_mode != "disabled":
            # Error 1058: a disabled service cannot be started.
            repair = f"{repair}, or on the host: sc.exe start {service.name}"
    else:
        lacks = ", ".join(state.missing_pipes) or "all"
        name, problem = "CSI-X16", f"the service {service.name} runs, but does not serve these pipes: {lacks}"
        expected = "every required pipe is served"
    yield Diagnosis("csi-proxy", name, severity, title, problem, expected, repair)


def _diagnose_mappings(mappings: Sequence[Mapping[str, Any]], node: str, title: str) -> Iterator[Diagnosis]:
    """Mappings that are not connected."""
    for mapping in mappings:
        status, remote = int(mapping["status"]), str(mapping["remote"])
        if not status:
            continue
        quoted = remote.replace("'", "''")
        removal = f"Remove-SmbGlobalMapping -RemotePath '{quoted}' -Force"
        yield Diagnosis(
            "SMB", "CSI-X17", "warning", f"{title}, mapping of {remote}", f"it is {_STATUS.get(status, f'in state {status}')}",
            "it is connected", _render_remapping(node, "this share", removal),
        )  # fmt: skip


def _render_remapping(node: str, users: str, removal: str) -> str:
    """The steps that remove mappings on a node. A removal interrupts the pods that use them, and a pod that starts uses the old mapping."""
    name = node or "NODE"
    return (
        f"kubectl cordon {name}; delete its pods that mount {users}, and check that none is left: kubectl get pods -A "
        f"--field-selector spec.nodeName={name}; on the host, in PowerShell: {removal}; kubectl uncordon {name} (not if it was "
        "cordoned before). The driver maps the share anew."
    )


def _diagnose_driver(cluster: ClusterFacts, reported: set[str], unread: set[str]) -> Iterator[Diagnosis]:
    """What the readiness report found. unread: Nodes whose host the connection layer reports already."""
    if cluster.unread and not cluster.problem:
        problem, remedy = _split_problem(cluster.unread)
        yield Diagnosis("driver", "CSI-X18", "blocker", "readiness report", problem, "a report", remedy)
    causes = {(finding.id, finding.object) for finding in cluster.findings}
    for finding in cluster.findings:
        if any((cause, finding.object) in causes for cause in FOLLOWS.get(finding.id, ())):
            # It disappears with its cause; its own remedy would not last.
            continue
        # What a host reported is in the layer of csi-proxy already.
        follows = finding.id in _UNPROVEN and any(finding.object.startswith(f"Node {node},") for node in unread)
        if finding.id not in reported and not follows:
            severity: Severity = "warning" if finding.id == _OF_A_DRAIN else finding.severity
            yield Diagnosis("driver", finding.id, severity, finding.object, finding.message, ABSENCE, finding.remedy)


def _diagnose_conflicts(events: Sequence[tuple[str, str, str]]) -> Iterator[Diagnosis]:
    for title, node in dict.fromkeys((title, node) for title, message, node in events if _CONFLICT.search(message)):
        removal = "Get-SmbGlobalMapping lists the mappings of that server, Remove-SmbGlobalMapping -RemotePath PATH -Force removes each"
        yield Diagnosis(
            "SMB", "CSI-X19", "blocker", title,
            "its mount fails with Windows error 1219: its node is connected to the server with other credentials",
            "one account for each SMB server on a node",
            "Use the same Secret in all StorageClasses and PersistentVolumes of that server, then: "
            + _render_remapping(node, "shares of that server", removal),
        )  # fmt: skip


def _diagnose_formats(events: Sequence[tuple[str, str, str]]) -> Iterator[Diagnosis]:
    for title in dict.fromkeys(title for title, message, _node in events if _FORMAT.search(message)):
        namespace, _slash, pod = title.removeprefix("Pod ").partition("/")
        yield Diagnosis(
            "driver", "CSI-X23", "blocker", title,
            "its mount fails because the first format of its disk took longer than a mount may, and another mount began beside it",
            "a format that ends within two minutes", f"Wait until the format has ended, then: kubectl -n {namespace} delete pod {pod}",
        )  # fmt: skip


def _diagnose_hosts_of_mounts(events: Sequence[tuple[str, str, str]]) -> Iterator[Diagnosis]:
    """What mounts fail of on a host, once for all of its pods."""
    denied = group_values(((node, find_denied_pipe(message)), title) for title, message, node in events)
    for (node, pipe), titles in denied.items():
        if pipe:
            yield Diagnosis(
                "csi-proxy", "CSI-X24", "blocker", f"host {node or 'unknown'}",
                f"it denies the node plugin access to pipe {pipe}, so mounts fail, such as of {titles[0]}",
                "a node plugin that may open the pipes", ALLOW_PIPES,
            )  # fmt: skip
    full = group_values((node, title) for title, message, node in events if _FULL_DISK.search(message))
    for node, titles in full.items():
        yield Diagnosis(
            "node", "CSI-X25", "blocker", f"host {node or 'unknown'}",
            f"its disk or the volume is full, so mounts fail, such as of {titles[0]}", "free space",
            f"Look for DiskPressure: kubectl describe node{f' {node}' if node else 's'}. "
            "On the host, this removes images that no container uses: crictl rmi --prune",
        )  # fmt: skip


def _diagnose_workload(workload: WorkloadFacts, is_explained: bool) -> Iterator[Diagnosis]:
    title = f"workload {workload.name}"
    if workload.verdict is None and not workload.pods:
        yield Diagnosis(
            "workload", "CSI-X22", "blocker", title, "no workload with volumes on Windows and no pod has this name",
            "a workload with volumes on Windows, as the readiness report lists them",
            "Correct kubewin_workload: namespace/name of a pod or of its controller.",
        )  # fmt: skip
    for pod in workload.pods:
        if not pod.runs and not is_explained:
            namespace, _slash, name = pod.name.partition("/")
            yield Diagnosis(
                "workload", "CSI-X21", "blocker", f"Pod {pod.name}", pod.event or "it does not run, and has no warning event",
                "it runs", f"kubectl -n {namespace} describe pod {name}",
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
        expected = "" if diagnosis.expected == ABSENCE else f"; expected: {diagnosis.expected}"
        lines += [
            f"{number}. {diagnosis.severity} {diagnosis.id} {diagnosis.object}: {f'{diagnosis.found}{expected}'.rstrip('.')}.",
            f"   {diagnosis.remedy}",
        ]
    return lines


def is_passed(diagnoses: Sequence[Diagnosis], fail_on: str) -> bool:
    """Whether the run succeeds, as preflight decides it: what could not be read is a blocker here."""
    failing = {"never": "", "blocked": "blocker", "unknown": "blocker", "warning": "blocker warning"}[fail_on].split()
    return not any(diagnosis.severity in failing for diagnosis in diagnoses)
