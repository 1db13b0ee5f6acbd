# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence for support from a Windows host, in addition to its facts: logs, service, registry, events. Reads only.

A log is read from its end, at most so many bytes of it: csi-proxy's own limit for a log is 1.8 GB. curl.exe does that, the
one in-box program that reads the end of a file (``-r -N`` on a file: URL, curl's lib/file.c), and takes the URL from
standard input, since a blank in it is written with a percent sign, which means something to cmd.exe.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ansible_collections.kubewin.csi.plugins.module_utils.catalog import csi_proxy as catalog
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import (
    Command,
    builtin,
    list_links,
    list_pipes,
    program,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ChannelError, NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Node

_LOG_FLAG = re.compile(
    r"""(?:^|\s)(?:"--?(?P<a>log_file|log_dir)[= ](?P<whole>[^"]+)"|--?(?P<b>log_file|log_dir)[= ](?:"(?P<quoted>[^"]+)"|(?P<bare>[^\s"]+)))"""
)
_FILE_MISSING = 37
_DENIED = 5
_EVENTS = 200
_SCM = "/q:*[System[Provider[@Name='Service Control Manager']]]"
_DISK = "/q:*[System[Provider[@Name='disk' or @Name='partmgr' or @Name='Ntfs' or @Name='volmgr']]]"
_CONNECTIVITY = "Microsoft-Windows-SmbClient/Connectivity"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One file for the archive. raw: as the host has it. problem: why it is not there, or not whole; empty otherwise."""

    name: str
    raw: bytes
    problem: str = ""


def log_paths(service: model.Service | None) -> tuple[str, ...]:
    """The files that the service logs to, and what they were called before its last start."""
    found = []
    for flag in _LOG_FLAG.finditer(service.command_line if service else ""):
        path = flag["whole"] or flag["quoted"] or flag["bare"]
        found.append(path if "log_file" in (flag["a"], flag["b"]) else rf"{path}\csi-proxy.exe.INFO")
    return tuple(one for path in dict.fromkeys(found) for one in (path, f"{path}.1"))


def collect(node: Node, desired: model.Desired, snapshot: model.Snapshot, log_bytes: int) -> Iterator[Evidence]:
    """Every file, as it is read. What cannot be read is a problem of that file; a lost connection ends it: ChannelError."""
    name = snapshot.service.name if snapshot.service else desired.service_name or catalog.SERVICE_NAMES[0]
    for title, commands in _questions(desired, name):
        yield _asked(node, title, commands)
    for path in log_paths(snapshot.service):
        log = _log(node, path, log_bytes)
        # The log of the start before is there only after a change of this collection's.
        if not (log.problem and path.endswith(".1")):
            yield log


def _questions(desired: model.Desired, name: str) -> Iterator[tuple[str, Sequence[Command]]]:
    yield "service.txt", (program("sc", "queryex", name), program("sc", "qc", name), program("sc", "qfailure", name))
    yield (
        "registry.txt",
        (
            program("reg", "query", rf"{model.SERVICES_KEY}\{name}", "/s"),
            program("reg", "query", model.OWN_KEY),
        ),
    )
    yield "pipes.txt", (list_pipes(catalog.PIPE_PREFIX),)
    yield "processes.txt", (program("tasklist", "/fi", "IMAGENAME eq csi-proxy.exe", "/fo", "csv", "/nh"),)
    yield "files.txt", (builtin("dir", desired.install_dir, switches="/b /s /a-d", quiet=True),)
    yield "mounts.txt", (list_links(desired.kubelet_path + r"\plugins\kubernetes.io\csi"), program("mountvol"))
    yield "events-services.txt", (_events("System", _SCM),)
    yield "events-disks.txt", (_events("System", _DISK),)
    yield "events-smb.txt", (_events(_CONNECTIVITY, "/q:*"),)


def _events(channel: str, query: str) -> Command:
    return program("wevtutil", "qe", channel, query, f"/c:{_EVENTS}", "/rd:true", "/f:xml")


def _asked(node: Node, title: str, commands: Sequence[Command]) -> Evidence:
    try:
        answers = node.ask([(str(at), command) for at, command in enumerate(commands)])
    except ChannelError:
        raise
    except NodeError as error:
        return Evidence(title, b"", str(error))
    found = [(command, answers.steps[str(at)]) for at, command in enumerate(commands)]
    raw = b"\r\n".join(f"> {_shown(command)} (code {step.code})\r\n".encode() + step.output for command, step in found)
    # Another code is an answer too: there is no such service, pipe or file.
    denied = "; ".join(f"{_shown(command)}: access is denied" for command, step in found if step.code == _DENIED)
    return Evidence(title, raw, denied)


def _shown(command: Command) -> str:
    """A command without the directory of the system's programs."""
    return command.text.rpartition("\\System32\\")[2].removesuffix(" 2>nul")[:120]


def _log(node: Node, path: str, log_bytes: int) -> Evidence:
    title = f"log-{path.rpartition(chr(92))[2]}"
    config = f'url = "file:///{quote(path.replace(chr(92), "/"), safe="/:")}"\n'
    command = program("curl", "-sS", "-r", f"-{log_bytes}", "-K", "-")
    try:
        answers, failure = node.chain([("log", command)], stdin=io.BytesIO(config.encode()))
    except ChannelError:
        raise
    except NodeError as error:
        return Evidence(title, b"", f"{path}: {error}")
    if failure is not None:
        why = "it does not exist" if failure.code == _FILE_MISSING else f"curl.exe ended with code {failure.code}"
        return Evidence(title, b"", f"{path} was not read: {why}. {failure.words}".strip())
    raw = answers.steps["log"].output
    if len(raw) < log_bytes:
        return Evidence(title, raw)
    # The first line may have lost its beginning, and with it what shows that its rest is a secret.
    return Evidence(title, raw.partition(b"\n")[2], f"{path}: only the last {log_bytes // 1024} KiB")
