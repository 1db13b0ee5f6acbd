# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts together what the controller has, what the module of the same name asked the cluster, and what the hosts reported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.release import __version__ as core
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.stored import plain
from ansible_collections.kubewin.csi.plugins.module_utils.support import needs
from ansible_collections.kubewin.csi.plugins.module_utils.support.diagnose import (
    ClusterFacts,
    Controller,
    HostFacts,
    diagnose,
    passes,
    render,
)
from ansible_collections.kubewin.csi.plugins.modules import diagnosis
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction

FILES = Path(__file__).resolve().parents[2] / "roles" / "csi_driver" / "files"
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


class ActionModule(ControllerAction):
    """Runs the module where the task runs, and decides."""

    module = diagnosis

    def _run_module(self, options: Mapping[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        asked = list(_needs(options.get("drivers") or ()))
        cluster = super()._run_module({**options, "needs": asked}, task_vars)
        readiness = options.get("readiness") or {}
        controller = _controller()
        facts = ClusterFacts(
            reason=str(cluster.get("reason") or ("configuration" if cluster.get("failed") else "")),
            problem=str(cluster.get("problem") or (cluster.get("msg") if cluster.get("failed") else "") or ""),
            lacking=cluster.get("lacking") or {},
            events=list(cluster.get("events") or ()),
            blockers=readiness.get("blockers") or (),
            unread="" if readiness.get("verdict") else str(readiness.get("msg") or "it was not made."),
        )
        hostvars = (task_vars or {}).get("hostvars") or {}
        hosts = [_host(one, hostvars.get(one["name"]) or {}) for one in options.get("hosts") or ()]
        found = diagnose(controller, facts, hosts)
        result: dict[str, Any] = {
            "changed": False,
            "diagnosis": [plain(one) for one in found],
            "lines": render(found),
            "controller": {"installed": dict(controller.installed), "missing": sorted(controller.missing)},
        }
        if not passes(found, str(options.get("fail_on") or "blocked")):
            first = found[0]
            result |= {
                "failed": True,
                "reason": "not_ready",
                "msg": f"{first.object}: {first.found}, expected: {first.expected}. {first.remedy}",
            }
        return result


def _controller() -> Controller:
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
    if (found := importlib.util.find_spec("ansible_collections.kubernetes.core")) is None:
        missing.add("kubernetes.core")
    else:
        installed["kubernetes.core"] = _collection(list(found.submodule_search_locations or ()))
    return Controller(installed, frozenset(missing))


def _collection(folders: list[str]) -> str:
    for folder in folders:
        manifest = Path(folder) / "MANIFEST.json"
        if manifest.is_file():
            return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return ""


def _host(one: Mapping[str, Any], variables: Mapping[str, Any]) -> HostFacts:
    connection = str(variables.get("ansible_connection") or "ssh").rpartition(".")[2]
    transport = variables.get(_TRANSPORT.get(connection, ""), "")
    if isinstance(transport, (list, tuple)):
        transport = transport[0] if transport else ""
    return HostFacts(
        name=str(one["name"]),
        connection=connection,
        transport=str(transport or ""),
        password=any(name in variables for name in _PASSWORDS),
        reason=str(one.get("reason") or ""),
        problem=str(one.get("problem") or ""),
        node=str(one.get("node") or ""),
        unmatched=str(one.get("unmatched") or ""),
        state=one.get("state") or {},
    )


def _needs(drivers: Any) -> Iterator[dict[str, Any]]:
    """The rules of the shipped roles that the playbooks for these drivers need."""
    roles: dict[str, Any] = {}
    for path in sorted(FILES.glob("kubewin-*rbac.yaml")):
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        roles |= {one["metadata"]["name"]: one for one in found.get("items") or [found]}
    roles_needed: dict[str, str | None] = {"kubewin-preflight": None, "kubewin-csi": None}
    for driver in drivers:
        if driver in DRIVERS:
            roles_needed[f"kubewin-csi-{driver.replace('_', '-')}"] = None
            roles_needed["kubewin-csi-deploy"] = DRIVERS[driver].namespace
    for name, namespace in roles_needed.items():
        for need in needs.of_role(roles[name], namespace) if name in roles else ():
            yield {
                "role": name,
                "verb": need.verb,
                "group": need.group,
                "resource": need.resource,
                "namespace": namespace,
                "name": need.name,
            }
