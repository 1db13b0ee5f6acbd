# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence for support from a Windows host, in addition to its facts: logs, service, registry, events. Reads only.

A log is read from its end, at most so many bytes of it: csi-proxy's own limit for a log is 1.8 GB. curl.exe does that, the
one in-box program that reads a part of a file (``-r`` on a file: URL, curl's lib/file.c), and takes the URL from standard
input, since a blank in it is written with a percent sign, which means something to cmd.exe. The sizes of all logs are read
first: ``-r -N`` of a file of fewer than N bytes ends with 36. curl opens a file for its size, while ``dir`` shows the one of
the directory's entry, which is old as long as a program holds the file open.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ..catalog import csi_proxy as catalog
from . import model, parse
from .commands import Command, builtin, list_links, list_pipes, program
from .errors import ChannelError, NodeError
from .node import WindowsHost

_LOG_FLAG = re.compile(
    r"""(?:^|\s)(?:"--?(?P<a>log[_-]file|log[_-]dir)[= ](?P<whole>[^"]+)"|--?(?P<b>log[_-]file|log[_-]dir)[= ](?:"(?P<quoted>[^"]+)"|(?P<bare>[^\s"]+)))"""
)
_DENIED = 5
_WICD = "windows-instance-config-daemon"
_NODE_SERVICES = ("kubelet", "containerd", _WICD)
_NODE_LOGS = (
    # openshift/must-gather, collection-scripts/gather_windows_node_logs (below the kubelet's /var/log)
    *(
        rf"C:\var\log\{path}"
        for path in (r"kubelet\kubelet.log", r"containerd\containerd.log", r"csi-proxy\csi-proxy.log")
    ),
    *(rf"C:\var\log\wicd\{_WICD}.exe.{level}" for level in ("INFO", "WARNING", "ERROR")),
    # Azure/AgentBaker, staging/cse/windows/debug/collect-windows-logs.ps1
    *(rf"C:\k\{name}{kind}.log" for name in ("kubelet", "containerd", "csi-proxy") for kind in ("", ".err")),
    # kubernetes/kubernetes, cluster/gce/windows/k8s-node-setup.psm1
    r"C:\etc\kubernetes\logs\kubelet.log",
)
"""Logs of the node's own services where their installers put them; most are on no single node."""
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


def find_own_logs(service: model.Service | None) -> tuple[str, ...]:
    """The files that the service logs to, and what they were called before its last start."""
    if service is None:
        return ()
    paths = _find_logs((service.command_line, f'"{service.application}" {service.app_parameters}'), service.app_outputs)
    return tuple(name for path in paths for name in (path, f"{path}.1"))


def _find_logs(command_lines: Iterable[str], outputs: Iterable[str]) -> tuple[str, ...]:
    """Log files that command lines name, and those to which NSSM sends a program's output (kirillkovalenko/nssm, registry.h)."""
    paths = []
    for line in command_lines:
        program_name = parse.find_executable(line).replace("/", "\\").rpartition("\\")[2]
        for flag in _LOG_FLAG.finditer(line):
            path = (flag["whole"] or flag["quoted"] or flag["bare"]).replace("/", "\\")
            # klog writes <directory>\<program>.INFO.
            paths.append(path if "file" in (flag["a"] or flag["b"]) else rf"{path}\{program_name}.INFO")
    return tuple(dict.fromkeys([*paths, *(path.replace("/", "\\") for path in outputs if path)]))


def collect(
    node: WindowsHost, desired: model.Desired, snapshot: model.HostSnapshot, log_bytes: int
) -> Iterator[Evidence]:
    """Every file, as it is read. What cannot be read is a problem of that file; a lost connection ends it: ChannelError."""
    name = snapshot.service.name if snapshot.service else catalog.SERVICE_NAMES[0]
    for title, commands in _list_queries(desired, name):
        yield _run_queries(node, title, commands)
    own_logs = find_own_logs(snapshot.service)
    try:
        every = [*own_logs, *_find_node_service_logs(node), *_NODE_LOGS]
        # Each once, as its first mention spells it.
        paths = list({path.lower(): path for path in reversed(every)}.values())[::-1]
        sizes = _read_sizes(node, paths)
    except ChannelError:
        raise
    except NodeError as error:
        yield Evidence("logs.txt", b"", f"No log was read: {error}")
        return
    for path, size in zip(paths, sizes, strict=True):
        # The log of the start before is there only after a change of this collection's.
        if size is not None or (path in own_logs and not path.endswith(".1")):
            yield _read_log(node, path, size, log_bytes)


def _find_node_service_logs(node: WindowsHost) -> tuple[str, ...]:
    keys = [rf"{model.SERVICES_KEY}\{name}{key}" for name in _NODE_SERVICES for key in ("", r"\Parameters")]
    answers = node.ask([(key, program("reg", "query", key)) for key in keys])
    tree = parse.read_registry("\n".join(answers.text(key) for key in keys))
    values = [{name: value[1] for name, value in tree.get(parse.spell_key(key), {}).items()} for key in keys]
    lines = [
        entry.get("imagepath", f'"{entry.get("application", "")}" {entry.get("appparameters", "")}') for entry in values
    ]
    return _find_logs(lines, [entry.get(name, "") for entry in values for name in ("appstdout", "appstderr")])


def _list_queries(desired: model.Desired, name: str) -> Iterator[tuple[str, Sequence[Command]]]:
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
    yield "files.txt", (builtin("dir", model.INSTALL_DIR, switches="/b /s /a-d"),)
    yield "mounts.txt", (list_links(desired.kubelet_path + r"\plugins\kubernetes.io\csi"), program("mountvol"))
    yield "events-services.txt", (_query_events("System", _SCM),)
    yield "events-disks.txt", (_query_events("System", _DISK),)
    yield "events-smb.txt", (_query_events(_CONNECTIVITY, "/q:*"),)


def _query_events(channel: str, query: str) -> Command:
    return program("wevtutil", "qe", channel, query, f"/c:{_EVENTS}", "/rd:true", "/f:xml")


def _run_queries(node: WindowsHost, title: str, commands: Sequence[Command]) -> Evidence:
    try:
        answers = node.ask([(str(at), command) for at, command in enumerate(commands)])
    except ChannelError:
        raise
    except NodeError as error:
        return Evidence(title, b"", str(error))
    answered = [(command, answers.steps[str(at)]) for at, command in enumerate(commands)]
    raw = b"\r\n".join(
        f"> {_shorten_command(command)} (code {step.code})\r\n".encode() + step.output for command, step in answered
    )
    # Another code is an answer too: there is no such service, pipe or file.
    denied = "; ".join(
        f"{_shorten_command(command)}: access is denied" for command, step in answered if step.code == _DENIED
    )
    return Evidence(title, raw, denied)


def _shorten_command(command: Command) -> str:
    """A command without the directory of the system's programs."""
    return command.text.rpartition("\\System32\\")[2][:120]


def _render_url(path: str) -> str:
    return f'url = "file:///{quote(path.replace(chr(92), "/"), safe="/:")}"\n'


def _read_sizes(node: WindowsHost, paths: Sequence[str]) -> list[int | None]:
    """Bytes of each file; None: curl cannot open it, because it is not there or another process keeps it for itself."""
    config = "next\n".join(
        f'{_render_url(path)}head\nwrite-out = "\\n#{number}#\\n"\n' for number, path in enumerate(paths)
    )
    command = program("curl", "-sS", "-K", "-")
    answers, failure = node.chain([("sizes", command)], stdin=io.BytesIO(config.encode()))
    # The code is that of the last file, which need not be there.
    text = failure.output if failure else answers.text("sizes")
    sizes: list[int | None] = []
    begin = 0
    for number in range(len(paths)):
        end = text.find(f"\n#{number}#", begin)
        if end < 0:
            raise NodeError(
                "command_failed",
                f"curl.exe did not report the sizes of the logs (code {failure.code if failure else 0}).",
                remedy=r"Check that C:\Windows\System32\curl.exe is there (Windows Server 2019 or later).",
            )
        size = re.search(r"(?im)^content-length:\s*(\d{1,18})\b", text[begin:end])
        sizes.append(int(size[1]) if size else None)
        begin = end
    return sizes


def _read_log(node: WindowsHost, path: str, size: int | None, log_bytes: int) -> Evidence:
    title = f"log-{path}".replace(":", "").replace("\\", "-")
    if size is None:
        return Evidence(title, b"", f"{path} was not read: it does not exist, or curl.exe could not open it.")
    if not size:
        return Evidence(title, b"")
    first = max(0, size - log_bytes)
    command = program("curl", "-sS", "-r", f"{first}-{size - 1}", "-K", "-")
    try:
        answers, failure = node.chain([("log", command)], stdin=io.BytesIO(_render_url(path).encode()))
    except ChannelError:
        raise
    except NodeError as error:
        return Evidence(title, b"", f"{path}: {error}")
    if failure is not None:
        why = f"curl.exe ended with code {failure.code}"
        return Evidence(title, b"", f"{path} was not read: {why}. {failure.words}".strip())
    raw = answers.steps["log"].output
    if not first:
        return Evidence(title, raw)
    # The first line may have lost its beginning, and with it what shows that its rest is a secret.
    return Evidence(title, raw.partition(b"\n")[2], f"{path}: only the last {log_bytes // 1024} KiB")
