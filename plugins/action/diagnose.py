# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists what keeps volumes on Windows from working, in the order to fix it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.release import __version__ as core

from ..modules.diagnose import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction, to_plain
from ..plugin_utils.actions.host_results import HostResult, describe_left_cordons, list_csi_proxies, read_hosts
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.base.findings import Finding
from ..plugin_utils.base.stored import serialize
from ..plugin_utils.catalog.registry import DRIVERS
from ..plugin_utils.drivers.rollout.snapshot import ObservedHost
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.preflight.report import NAMED, ReadinessOptions, name_cluster, report_readiness
from ..plugin_utils.preflight.verdict import Report
from ..plugin_utils.support.diagnose import (
    ABSENCE,
    ClusterFacts,
    ControllerPackages,
    HostFacts,
    diagnose,
    is_passed,
    render,
)
from ..plugin_utils.support.observe import lacks_windows_nodes, list_failed_mounts, list_missing_rules, read_workload
from ..plugin_utils.support.workload import describe_workload

# Package of the index, and the module by which it is there.
PACKAGES = {
    "kubernetes": "kubernetes", "msgspec": "msgspec", "pywinrm": "winrm", "pypsrp": "pypsrp", "requests-ntlm": "requests_ntlm",
    "pykerberos": "kerberos", "requests-credssp": "requests_credssp", "gssapi": "gssapi",
}  # fmt: skip
# Default logon method of each connection.
_TRANSPORT = {"winrm": "ansible_winrm_transport", "psrp": "ansible_psrp_auth"}
_PASSWORDS = (
    "ansible_password",
    "ansible_winrm_password",
    "ansible_ssh_pass",
    "ansible_ssh_password",
    "ansible_winrm_pass",
)


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)
    remainder = "Nothing was changed"

    def read_run(self) -> dict[str, Any]:
        """The drivers that the inputs name or that this collection installed, and the workload."""
        installed = self.task_vars.get("kubewin_installed") or {}
        drivers = self.inputs["drivers"] or installed.get("own_drivers") or []
        return {"drivers": drivers, "workload": self.inputs["workload"]}

    def sum_up(self) -> None:
        """The list is printed once, with what failed."""
        self.result.setdefault("lines", [])

    def work(self, options: Mapping[str, Any]) -> None:
        """Return what to fix; failed unless it passes."""
        controller = read_controller()
        results, hostvars = read_hosts(self.task_vars), self.task_vars.get("hostvars") or {}
        hosts = [build_host_facts(host, hostvars[host.name]) for host in results]
        cluster = self._read_cluster(options)
        diagnoses = diagnose(controller, cluster, hosts)
        self.result.update(
            diagnosis=[serialize(diagnosis) for diagnosis in diagnoses],
            lines=[*self._describe_beginning(cluster), *render(diagnoses)],
        )
        if not is_passed(diagnoses, options["fail_on"]):
            # The list above it on the screen has all of them.
            self.result["failure_place"] = "fix item 1 first."
            first = diagnoses[0]
            expected = "" if first.expected == ABSENCE else f", expected: {first.expected}"
            raise TaskError(f"{first.object}: {first.found}{expected}. {first.remedy}", "not_ready")

    def _describe_beginning(self, cluster: ClusterFacts) -> list[str]:
        """Where the pods of the workload are; of the whole cluster, which Nodes an interrupted run left cordoned."""
        if cluster.workload:
            return describe_workload(cluster.workload)
        return describe_left_cordons((self.task_vars.get("kubewin_nodes") or {}).get("nodes") or {})

    def _read_cluster(self, options: Mapping[str, Any]) -> ClusterFacts:
        drivers = [DRIVERS[name] for name in options["drivers"] if name in DRIVERS]
        readiness, unread = self._read_readiness(options)
        report: dict[str, Any] = {
            "findings": select_findings(readiness.findings) if readiness else (),
            "unread": unread,
        }
        try:
            client = self.connect(options, retry_for=20.0)
            client.read_version()
            lacking = list_missing_rules(client, drivers)
            if options["workload"] and readiness:
                report["workload"] = read_workload(client, options["workload"], readiness)
            report["is_without_nodes"] = lacks_windows_nodes(client)
            return ClusterFacts(lacking=lacking, events=list_failed_mounts(client), **report)
        except ClusterError as error:
            return ClusterFacts(problem=str(error), **report)

    def _read_readiness(self, options: Mapping[str, Any]) -> tuple[Report | None, str]:
        """The readiness report, or None and why there is none."""
        hosts = tuple(map(ObservedHost.from_option, to_plain(list_csi_proxies(self.task_vars))))
        request = ReadinessOptions(hosts=hosts, cluster=name_cluster(options))
        try:
            return report_readiness(lambda: self.connect(options), request, self).report, ""
        except ClusterError as error:
            return None, str(error)


def select_findings(findings: Sequence[Finding]) -> list[Finding]:
    """The blockers and the warnings of a readiness report, of each at most as many as a reader is shown."""
    blockers, warnings = (
        [finding for finding in findings if finding.severity == severity][:NAMED] for severity in ("blocker", "warning")
    )
    return blockers + warnings


def read_controller() -> ControllerPackages:
    installed, missing = {"ansible-core": core}, set()
    for package, name in PACKAGES.items():
        if importlib.util.find_spec(name) is None:
            missing.add(package)
            continue
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed[package] = ""
    if shutil.which("ssh") is None:
        missing.add("ssh")
    if (collection := importlib.util.find_spec("ansible_collections.kubernetes.core")) is None:
        missing.add("kubernetes.core")
    else:
        installed["kubernetes.core"] = read_release(collection.submodule_search_locations or ())
    return ControllerPackages(installed, frozenset(missing))


def read_release(folders: Sequence[str]) -> str:
    """The release of the collection in one of these directories, empty if none has its manifest."""
    for folder in folders:
        manifest = Path(folder) / "MANIFEST.json"
        if manifest.is_file():
            return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return ""


def build_host_facts(host: HostResult, variables: Mapping[str, Any]) -> HostFacts:
    """What was read of a host, or why it was not, and its connection. variables: of the host."""
    connection = str(variables.get("ansible_connection") or "ssh").rpartition(".")[2]
    transport = variables.get(_TRANSPORT.get(connection, ""), "")
    if isinstance(transport, (list, tuple)):
        transport = transport[0] if transport else ""
    return HostFacts(
        name=host.name,
        node=host.node,
        problem=host.unread,
        unmatched=host.unmatched,
        state=host.state,
        connection=connection,
        transport=str(transport or ""),
        password=any(name in variables for name in _PASSWORDS),
    )
