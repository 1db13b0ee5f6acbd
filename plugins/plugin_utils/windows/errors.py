# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the Windows side. Each carries a stable ``reason``, and a text that names object, found, expected and remedy."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.text import join_lines

OUTPUT_LIMIT = 32 << 20
"""Bytes of what a line may print. Ours print kilobytes; the most is the end of a log, which an option of gather limits."""

NOTHING_SENT = (
    "No command was sent. Check address, port, ansible_user and ansible_password of the host, then run again."
)
"""remedy of an error before the first command"""


class NodeError(Exception):
    """Something on or about the node stopped the work.

    ``reason`` is a stable word for rules in playbooks, ``message`` is text, ``detail`` is what the node itself
    printed (localised, shown but never evaluated), ``result`` is merged into the task's result.
    """

    def __init__(
        self, reason: str, message: str, *, remedy: str = "", detail: str = "", result: dict[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        # One line each: a line break in a node's own words could pass for a message of Ansible's.
        self.message = join_lines(message)
        self.remedy = join_lines(remedy)
        self.detail = join_lines(detail)
        self.result = result or {}

    def __str__(self) -> str:
        text = self.message if self.message.endswith((".", ":", "!", "?")) else f"{self.message}."
        if self.remedy:
            text += f" {self.remedy}"
        if self.detail:
            text += f" Output of the node: {self.detail}"
        return text


class ChangeRefusedError(NodeError):
    """What was asked cannot be done; nothing was changed."""

    def __init__(self, reason: str, message: str, remedy: str) -> None:
        super().__init__(reason, message, remedy=remedy)


class ChannelError(NodeError):
    """The way to the node failed; what the last command did is not known."""


class ConnectionLostError(ChannelError):
    """The connection broke, or there never was one. detail: the connection's own words, where ``message`` says what they mean."""

    def __init__(self, message: str, remedy: str = "", *, detail: str = "") -> None:
        what_to_do = remedy or (
            "Commands on the node may have finished. Run the play again; it continues from the state of the node."
        )
        if detail:
            what_to_do += f" The connection reported: {detail}"
        super().__init__("connection_lost", message, remedy=what_to_do)


class CommandTimeoutError(ChannelError):
    def __init__(self, message: str) -> None:
        super().__init__("command_timeout", message, remedy="Check the node's load, then run the play again.")


def build_output_error(where: str) -> ChannelError:
    """A command that was stopped because it printed more than OUTPUT_LIMIT."""
    return ChannelError(
        "output_too_large",
        f"{where}: a command printed more than {OUTPUT_LIMIT >> 20} MiB, expected less",
        remedy="The command was stopped. Check whether another program replaces a Windows tool on the node, then run the play again.",
    )


def build_access_error(message: str, *, logon: bool = False) -> ChannelError:
    """The node refused the account, or what it asked for. logon: whether the account could not even log on."""
    first = "Check ansible_user and ansible_password first. If they are right, use" if logon else "Use"
    return ChannelError(
        "access_denied",
        message,
        remedy=f"{first} an account that may log on remotely and is a member of the local Administrators group; for a local account "
        "other than the built-in Administrator also set LocalAccountTokenFilterPolicy to 1.",
    )


def build_password_error(endpoint: str, text: str) -> ChannelError:
    """A logon that failed without a password."""
    return ChannelError(
        "access_denied",
        f"No password is set for {endpoint}, and the logon failed: {text.rstrip('.')}",
        remedy="Set ansible_password, or check the key, certificate or Kerberos ticket that the connection uses.",
    )


def build_configuration_error(connection: str, text: str) -> ChannelError:
    """The controller cannot even try: a Python package or program is missing, or an option is wrong."""
    return ChannelError(
        "connection_configuration",
        f"The connection {connection} cannot be used from this controller: {text}",
        remedy="Install what is missing there, or correct the connection options of the host.",
    )


@dataclass(frozen=True, slots=True)
class LineResult:
    """What a line left: its own exit code (unsigned 32 bit; ssh keeps 8 bits of it) and the bytes of both streams."""

    rc: int
    stdout: bytes
    stderr: bytes


class ChangedError(Exception):
    """The node is not in the state that the plan was made for; observe and plan again."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a Win32 code means for a service, in our words (the node's own text is localised)."""

    reason: str
    text: str
    remedy: str

    def error(
        self, subject: str, code: int | str, detail: str = "", result: dict[str, object] | None = None
    ) -> NodeError:
        """The error of a step that ended so. subject: the step, as "The service 'x' cannot be stopped"."""
        return NodeError(
            self.reason, f"{subject}: {self.text} ({code}).", remedy=self.remedy, detail=detail, result=result
        )


_RELEASE_OPEN_HANDLES = "Close services.msc, Task Manager and other tools that have the service open, or reboot the node; then run the play again."

WIN32: dict[int, Meaning] = {
    2: Meaning(
        "file_missing",
        "the executable is not where the service expects it",
        "Check whether an antivirus removed it; run the play again.",
    ),
    5: Meaning(
        "access_denied",
        "access is denied",
        "Use an account that is a member of the local Administrators group (elevated token).",
    ),
    32: Meaning(
        "file_in_use",
        "another process has the file open",
        "End that process, or wait for the end of a scan; run the play again.",
    ),
    112: Meaning(
        "disk_full",
        "the disk is full",
        "Free space on the volume of the install directory; a release needs about 60 MB.",
    ),
    193: Meaning(
        "not_an_executable", "the file is not a Windows program", "Check which file source and checksum are for."
    ),
    225: Meaning(
        "quarantined",
        "the antivirus removed or blocked the executable",
        "Allow the file's SHA-256 or the install directory in the antivirus, then run the play again.",
    ),
    577: Meaning(
        "blocked_by_policy",
        "the executable's signature is not accepted (Windows Defender Application Control)",
        "Sign the executable with a certificate that the policy allows, or allow its hash.",
    ),
    1051: Meaning(
        "dependents_running",
        "other running services depend on this service",
        "Stop them, or drain the node, then run the play again.",
    ),
    1053: Meaning(
        "start_failed",
        "the process did not report to the service control manager in time: it ended at once (for example because "
        "of an unknown flag), it is not a service, or an antivirus scan delayed it",
        "Check the flags against the release, and the log. Otherwise exclude the install directory from real-time scans.",
    ),
    1060: Meaning("service_missing", "the service does not exist", "Run the play again."),
    1061: Meaning("service_busy", "the service does not accept controls now", "Run the play again in a minute."),
    1067: Meaning(
        "start_failed",
        "the process ended unexpectedly",
        "Check the log, and for a second csi-proxy that serves the same pipes.",
    ),
    1069: Meaning("start_failed", "the account of the service could not log on", "Let the service run as LocalSystem."),
    1072: Meaning("marked_for_deletion", "the service is marked for deletion", _RELEASE_OPEN_HANDLES),
    1073: Meaning("service_exists", "the service already exists", "Run the play again."),
    1260: Meaning(
        "blocked_by_policy",
        "the executable is blocked by group policy (AppLocker or Software Restriction Policies)",
        "Allow the install directory or the file's hash in the policy.",
    ),
}

_APP_CONTROL = Meaning(
    "blocked_by_policy",
    "an App Control policy blocked the executable",
    "Allow the file's hash in the policy, or sign the executable with a certificate that it allows.",
)
# ERROR_SYSTEM_INTEGRITY_* (winerror.h), from POLICY_VIOLATION to WHQL_NOT_SATISFIED, but for 4552 to 4555, which are of policies.
WIN32 |= dict.fromkeys((4551, *range(4556, 4560), *range(4580, 4584)), _APP_CONTROL)

START: dict[int, Meaning] = {
    5: Meaning(
        "blocked_by_policy",
        "Windows refused to start the executable: Microsoft Defender or App Control blocks it, or the account of the service may "
        "not read it",
        "Check the logs of Defender and of CodeIntegrity on the node, and allow the file's SHA-256; then run the play again.",
    )
}
"""what a code means where it ends the start of a service: the account that asked for it is allowed to, or sc.exe had said so before"""

DOWNLOAD = Meaning(
    "download_failed",
    "it was not transferred",
    "Check the URL from the node, its DNS and firewalls; or name a file on the controller (source).",
)
"""a failed download in general; curl's own words, which are English, say why"""

CURL: dict[int, Meaning] = {
    # After || cmd.exe gives 1 for a program that it does not find. curl gives it for a protocol that it does not have.
    1: Meaning(
        "tool_missing",
        "curl.exe is not there, or it does not support the protocol",
        "Use Windows Server 2019 or later; Nano Server and container images lack it. Check where the URL redirects.",
    ),
    23: Meaning(
        "disk_full",
        "the file could not be written: the disk is full or the file is locked",
        "Free space on the volume of the install directory.",
    ),
    35: Meaning(
        "tls_failed",
        "the TLS handshake failed",
        "Check protocol and cipher settings; if the revocation list is unreachable, set source_check_revocation to false.",
    ),
    60: Meaning(
        "tls_failed",
        "the server's certificate is not trusted by the node",
        "Import its CA into the node's store: certutil -addstore Root <file>.",
    ),
}
"""codes of curl with a remedy of their own"""

UNPACK = Meaning(
    "unpack_failed",
    "the disk is full, the file was damaged on its way, or tar.exe is not there",
    "Free space on the volume of the install directory; a release needs about 60 MB. Use Windows Server 2019 or later. Then run the play "
    "again.",
)


def build_directory_error(directory: str, words: str) -> NodeError:
    """The error for a directory. words: what the node printed."""
    return NodeError(
        "directory_failed",
        f"{directory} cannot be created.",
        remedy="Check free space and access rights of the directory.",
        detail=words,
    )


SHARING_VIOLATION = 0x80070020
"""exit code of certutil when another process has the file open exclusively"""


def find_meaning(code: int) -> Meaning:
    """The meaning of a Win32 code, or of a HRESULT that wraps one (0x8007xxxx); unknown codes keep their number."""
    meaning = WIN32.get(code & 0xFFFF if code & 0xFFFF0000 == 0x80070000 else code)
    return meaning or Meaning(
        "command_failed", f"the command ended with code {code} (0x{code:x})", "Check the node's System event log."
    )
