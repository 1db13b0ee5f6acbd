# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible inventories of a lab, one a transport: everything that a play on the lab needs."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from lab.builds import CSI_PROXY_RELEASES
from lab.state import TRANSPORTS, Host, LabState, write_atomic

RECOMMENDED = CSI_PROXY_RELEASES[-1]


def _from_file(path: str) -> str:
    """Ansible reads the secret when it is used, so the inventory holds none."""
    return f"{{{{ lookup('ansible.builtin.file', '{path}') }}}}"


def _known_hosts(path: str) -> str:
    """The ssh option, quoted for the split into arguments and, because the option takes several files, for ssh."""
    return "-o " + shlex.quote(f'UserKnownHostsFile="{path}"')


def _winrm(state: LabState, transport: str, scheme: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ansible_connection": "winrm",
        "ansible_user": state.user,
        "ansible_password": _from_file(state.password_file),
        "ansible_winrm_transport": transport,
        "ansible_winrm_scheme": scheme,
    }
    if scheme == "https":
        found["ansible_winrm_ca_trust_path"] = state.ca
    if transport == "ntlm":
        found["ansible_winrm_message_encryption"] = "auto"
    return found


def _connection(state: LabState, transport: str) -> dict[str, Any]:
    if transport == "ssh":
        return {
            "ansible_connection": "ssh",
            "ansible_user": state.user,
            "ansible_shell_type": "cmd",
            "ansible_ssh_private_key_file": state.ssh_key,
            "ansible_ssh_common_args": f"{_known_hosts(state.ssh_known_hosts)} -o StrictHostKeyChecking=yes",
        }
    if transport == "psrp":
        return {
            "ansible_connection": "psrp",
            "ansible_user": state.user,
            "ansible_password": _from_file(state.password_file),
            "ansible_psrp_auth": "ntlm",
            "ansible_psrp_protocol": "https",
            "ansible_psrp_ca_cert": state.ca,
        }
    kind, scheme = transport.split("-")
    return _winrm(state, kind, scheme)


def _port(host: Host, transport: str) -> int:
    if transport == "ssh":
        return host.ssh
    return host.http if transport.endswith("http") else host.https


def content(state: LabState, transport: str) -> dict[str, Any]:
    """The inventory of one transport: group `windows`, and what the plays need besides."""
    shared: dict[str, Any] = {"kubewin_kubeconfig": state.kubeconfigs["kubewin"]}
    for artifact in state.artifacts:
        if artifact.release == RECOMMENDED:
            shared["csi_proxy_version"] = artifact.release
            if transport.endswith("http"):
                shared["csi_proxy_source"] = artifact.http_url
            else:
                shared["csi_proxy_source"] = artifact.https_url
                # The lab's CA has no revocation list, and Windows' curl refuses a certificate it cannot check.
                shared["csi_proxy_source_check_revocation"] = False
            shared["csi_proxy_checksum"] = f"sha256:{artifact.sha256}"
    hosts = {host.name: {"ansible_host": host.address, "ansible_port": _port(host, transport)} for host in state.hosts}
    return {"all": {"vars": shared, "children": {"windows": {"hosts": hosts, "vars": _connection(state, transport)}}}}


def write(state: LabState) -> dict[str, str]:
    """Write every inventory; answers their paths by transport."""
    folder = state.paths.inventories
    folder.mkdir(exist_ok=True)
    found = {}
    for transport in TRANSPORTS:
        path = folder / f"{transport}.yml"
        write_atomic(path, yaml.safe_dump(content(state, transport), sort_keys=False, width=200))
        found[transport] = str(path)
    return found
