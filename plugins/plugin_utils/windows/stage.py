# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Getting the executable onto the node: pulled by the node or pushed through the channel, verified before it counts.

Both go into a staging directory that only this run uses, so an interrupted transfer, or one that still runs for a
run that has ended, never touches what another one stages. A verified staging directory becomes the release by a rename.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from . import model, parse
from .commands import Steps, builtin, discard_output, program, tolerate
from .errors import CURL, DOWNLOAD, UNPACK, NodeError, build_directory_error, find_meaning
from .node import Failure, WindowsHost
from .plan import hide_url_secrets

_EXECUTABLE = "csi-proxy.exe"
_TOO_LARGE = 63
"""curl's code for a file above --max-filesize"""
_PROBE_LIMIT = 1024 * 1024
"""Bytes: more than the page of an error or a redirect, less than the executable"""
_RETRIES, _RETRY_DELAY, _ATTEMPT_SECONDS = 3, 5, 600
FETCH_SECONDS = (_RETRIES + 1) * (_ATTEMPT_SECONDS + _RETRY_DELAY) + 60.0
"""how long a download may take at most, with every retry"""


def build_stage_dir(identity: str) -> str:
    return rf"{model.INSTALL_DIR}\stage-{identity}"


def build_fetch_steps(source: model.ExecutableSource, identity: str) -> Steps:
    """The node downloads what :func:`render_fetch_input` names. Only options of curl 7.55.1, the oldest that Windows Server ships."""
    target = build_stage_dir(identity)
    return [
        *_enter(target),
        ("fetch", program("curl", *_build_curl_arguments(source), "--output", _EXECUTABLE)),
        *build_hash_steps(identity),
    ]


def _build_curl_arguments(source: model.ExecutableSource) -> list[str]:
    """The options of every download; the address comes as of :func:`render_fetch_input`."""
    arguments = ["-gfsSL", "--config", "-", "--retry", str(_RETRIES), "--retry-delay", str(_RETRY_DELAY)]
    arguments += ["--connect-timeout", "15", "--max-time", str(_ATTEMPT_SECONDS)]
    if not source.check_revocation:
        arguments.append("--ssl-no-revoke")
    return arguments


def probe(node: WindowsHost, desired: model.Desired, source: model.ExecutableSource) -> None:
    """See that the node can download what is planned. Writes nothing. NodeError as of :func:`explain_failure`.

    Asks for the first byte by GET, because signed addresses are often valid for that method alone. A server that ignores the range
    would send the whole file, which curl refuses with 63 before it reads the body (curl's manual, --max-filesize).
    """
    arguments = [*_build_curl_arguments(source), "--range", "0-0", "--max-filesize", str(_PROBE_LIMIT)]
    command = discard_output(program("curl", *arguments))
    failure = node.chain([("fetch", command)], stdin=render_fetch_input(source), timeout=60.0 + FETCH_SECONDS)[1]
    if failure is not None and failure.code != _TOO_LARGE:
        raise explain_failure(desired, failure)


def build_hash_steps(identity: str) -> Steps:
    staged = rf"{build_stage_dir(identity)}\{_EXECUTABLE}"
    return [("hash", program("certutil", "-hashfile", staged, "SHA256"))]


def _enter(target: str) -> Steps:
    """Make the directory anew and work in it. An earlier round of this run may have left one, which nothing uses any more."""
    drop = tolerate(builtin("rd", target, switches="/s /q"))
    return [("unstage", drop), ("stage", builtin("md", target)), ("enter", builtin("cd", target, switches="/d"))]


def render_fetch_input(source: model.ExecutableSource) -> BinaryIO:
    """Curl's configuration with the address, for its standard input.

    It may hold a password or signature. Process lists and audit logs of the node show command lines, and so does ``-vvv`` on the
    controller.
    """
    return io.BytesIO(('url = "' + re.sub(r'([\\"])', r"\\\1", source.location) + '"\n').encode())


def remove_secrets(text: str, source: model.ExecutableSource | None) -> str:
    """``text`` without what is secret in the source's address: curl's messages may repeat a part of it."""
    address = source.location if source else ""
    user = re.sub(r"^\w[\w+.-]*://", "", address).partition("/")[0].rpartition("@")[0]
    for secret in (user, user.partition(":")[2], address.partition("?")[2]):
        text = text.replace(secret, "(hidden)") if secret else text
    return text


def build_push_steps(identity: str) -> Steps:
    """The node unpacks what comes on standard input. ``-f -`` is needed: tar's default archive is a tape."""
    target = build_stage_dir(identity)
    return [
        *_enter(target),
        ("unpack", program("tar", "-xzf", "-")),
        *build_hash_steps(identity),
    ]


def check_local_file(desired: model.Desired, source: model.ExecutableSource) -> None:
    """Compare the file on the controller with the checksum before it is sent. NodeError ``checksum_mismatch`` or ``source_missing``."""
    path = Path(source.location)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _build_unreadable_error(path, error) from error
    if digest != desired.sha256:
        raise NodeError(
            "checksum_mismatch",
            f"The file {path} on the controller has SHA-256 {digest}, expected {desired.sha256} (checksum).",
            remedy="Set csi_proxy_source and csi_proxy_checksum of one file.",
        )


def _build_unreadable_error(path: Path, error: OSError) -> NodeError:
    return NodeError(
        "source_missing",
        f"source: {path} cannot be read on the controller: {error}.",
        remedy="Name a file that the controller can read, or a URL that the node can reach.",
    )


def pack_executable(path: Path) -> BinaryIO:
    """The executable as a gzip archive, ready to be read from the start. NodeError ``source_missing`` when it is no file."""
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - it is returned open, and closed by the caller
    try:
        with tarfile.open(fileobj=spool, mode="w:gz", compresslevel=1, format=tarfile.USTAR_FORMAT) as archive:
            entry = tarfile.TarInfo(_EXECUTABLE)
            entry.size = path.stat().st_size
            entry.mode = 0o755
            with path.open("rb") as source:
                archive.addfile(entry, source)
    except OSError as error:
        spool.close()
        raise _build_unreadable_error(path, error) from error
    spool.seek(0)
    return spool


def check_digest(desired: model.Desired, text: str) -> None:
    """Compare what certutil printed for the staged file. NodeError ``checksum_mismatch``."""
    digest = parse.find_sha256(text)
    if digest != desired.sha256:
        location = hide_url_secrets(desired.source.location) if desired.source else "source"
        raise NodeError(
            "checksum_mismatch",
            f"The file from {location} has SHA-256 {digest or '(unreadable)'}, expected {desired.sha256}. It was removed.",
            remedy="Check that checksum is of this file, and that no proxy returned a login page instead.",
        )


def explain_failure(desired: model.Desired, failure: Failure) -> NodeError:
    """What a failed staging step means."""
    source = desired.source
    if failure.label == "fetch":
        location = hide_url_secrets(source.location) if source else ""
        words = remove_secrets(failure.words, source)
        meaning = CURL.get(failure.code, DOWNLOAD)
        return meaning.error(f"The node could not download {location}", f"curl {failure.code}", words)
    if failure.label == "unpack":
        subject = f"The node could not unpack the executable into {model.INSTALL_DIR}"
        return UNPACK.error(subject, f"tar {failure.code}", failure.words)
    if failure.label == "hash":
        meaning = find_meaning(failure.code)
        if meaning.reason == "file_missing":
            meaning = replace(find_meaning(225), text="it was removed right after it was written, as by an antivirus")
        return meaning.error("The staged executable cannot be read back", f"certutil 0x{failure.code:x}")
    return build_directory_error(f"The staging directory in {model.INSTALL_DIR}", failure.words)
