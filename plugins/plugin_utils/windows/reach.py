# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host cannot be reached: errors of requests, OpenSSL and ssh as one sentence with a remedy.

The plugins of Ansible keep only the text of what went wrong, so the text decides for all of them alike. These words come from Python,
OpenSSL and OpenSSH on the controller and are not localised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionAttempt:
    """How a connection was tried. ``endpoint``: URL or ``host:port``, as text. ``scheme`` is empty for ssh.

    ``variables``: the names under which the connection takes ``scheme``, ``ca``, ``ignore`` and ``proxy``.
    """

    endpoint: str
    scheme: str
    variables: Mapping[str, str]


WINRM = {
    "scheme": "ansible_winrm_scheme",
    "ca": "ansible_winrm_ca_trust_path",
    "ignore": "ansible_winrm_server_cert_validation",
    "proxy": "ansible_winrm_proxy or the variables http_proxy and https_proxy",
}
PSRP = {
    "scheme": "ansible_psrp_protocol",
    "ca": "ansible_psrp_ca_cert",
    "ignore": "ansible_psrp_cert_validation",
    "proxy": "ansible_psrp_proxy or the variables http_proxy and https_proxy",
}


def explain(text: str, attempt: ConnectionAttempt) -> tuple[str, str] | None:
    """The cause in ``text`` and its remedy, None if it is unknown."""
    return _explain_connection(text, attempt) if not attempt.scheme else _explain_tls_and_proxies(text, attempt)


def _explain_tls_and_proxies(text: str, attempt: ConnectionAttempt) -> tuple[str, str] | None:
    endpoint, names = attempt.endpoint, attempt.variables
    if re.search(r"ProxyError|[Cc]annot connect to proxy|Unable to connect to proxy|Tunnel connection failed", text):
        answer = re.search(r"Tunnel connection failed: (\d{3}[^'\")]*)", text)
        detail = f" (it answered {answer[1].strip()})" if answer else ""
        return (
            f"The HTTP proxy on the way to {endpoint} does not connect{detail}.",
            f"Correct {names['proxy']}, or add the host to no_proxy.",
        )
    if "CERTIFICATE_VERIFY_FAILED" in text or re.search(r"doesn't match either of|doesn't match '", text):
        if re.search(r"[Hh]ostname mismatch|IP address mismatch|doesn't match", text):
            return (
                f"The certificate of {endpoint} is for another name.",
                "Set ansible_host to a name or address of the certificate, or give the listener a certificate for this one.",
            )
        reason = re.search(r"certificate verify failed: ([^()\"']+)", text)
        why = f": {reason[1].strip()}" if reason else ""
        return (
            f"The certificate of {endpoint} is not trusted by the controller{why}.",
            f"Set {names['ca']} to a file with the CA that signed it (trusting any certificate: {names['ignore']}=ignore, for a test).",
        )
    if re.search(r"WRONG_VERSION_NUMBER|wrong version number|record layer failure|UNKNOWN_PROTOCOL|HTTP_REQUEST", text):
        return (
            f"{endpoint} answers without TLS, so it is an HTTP listener.",
            f"Set {names['scheme']} to http, or ansible_port to the HTTPS listener's (5986 by default).",
        )
    status = re.search(r"Code:? (\d{3})\b", text)
    if status and status[1] in ("404", "405"):
        return (
            f"{endpoint} answers with HTTP status {status[1]}, so it is not a WinRM listener.",
            "Correct ansible_port (5985 for HTTP, 5986 for HTTPS by default) and the path.",
        )
    cause = _explain_connection(text, attempt)
    if (
        cause is None
        and attempt.scheme == "http"
        and re.search(r"RemoteDisconnected|Connection aborted|Connection reset|BadStatusLine", text)
    ):
        return (
            f"{endpoint} ends the connection without an answer to plain HTTP, as an HTTPS listener does.",
            f"If it is one, set {names['scheme']} to https; otherwise check that the WinRM service runs on the host.",
        )
    return cause


def _explain_connection(text: str, attempt: ConnectionAttempt) -> tuple[str, str] | None:
    endpoint = attempt.endpoint
    service = "the WinRM service and its listener" if attempt.scheme else "the service sshd"
    # Ansible takes ssh where ansible_connection is not set.
    not_ssh = "" if attempt.scheme else " For WinRM, set ansible_connection to winrm."
    if "Host key verification failed" in text or "REMOTE HOST IDENTIFICATION HAS CHANGED" in text:
        changed = "has changed" if "HAS CHANGED" in text else "is not known to the controller"
        return (
            f"The ssh host key of {endpoint} {changed}.",
            "Compare its fingerprint with the host's own (ssh-keygen -lf C:\\ProgramData\\ssh\\ssh_host_ed25519_key.pub), then correct known_hosts.",
        )
    if re.search(r"stdio forwarding failed|administratively prohibited|UNKNOWN port 65535", text):
        return (
            f"The jump host on the way to {endpoint} does not connect to it.",
            "Check that ssh reaches the jump host, that the jump host permits forwarding, and that it reaches the node.",
        )
    if "banner line contains invalid characters" in text or "Bad remote protocol version" in text:
        return (f"The service on {endpoint} is not an SSH server.", f"Correct ansible_port (22 by default).{not_ssh}")
    if re.search(r"kex_exchange_identification|[Ss]ession open refused|shell request failed", text):
        return (
            f"The ssh server on {endpoint} refuses another connection.",
            "Raise MaxStartups and MaxSessions in C:\\ProgramData\\ssh\\sshd_config and restart sshd, or lower Ansible's forks.",
        )
    if re.search(
        r"[Nn]ame or service not known|NameResolutionError|getaddrinfo failed|[Cc]ould not resolve|name resolution",
        text,
    ):
        return (f"The name of {endpoint} cannot be resolved.", "Correct ansible_host or the controller's DNS.")
    if "Connection refused" in text:
        return (
            f"Nothing listens on {endpoint} (connection refused).",
            f"Correct ansible_port, or start {service} on the host.{not_ssh}",
        )
    if re.search(r"[Tt]imed out|ConnectTimeout|ReadTimeout", text):
        return (
            f"{endpoint} does not answer in time.",
            f"Check that the host is up and that no firewall drops packets to this port. Then check {service}.{not_ssh}",
        )
    return None
