# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of a task to the desired state. Bad input is refused here, before anything is asked of a node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...doc_fragments.windows import ModuleDocFragment
from ...modules import csi_proxy, csi_proxy_info
from ..base.documented import ArgumentSpec, read_argument_spec
from ..catalog import csi_proxy as catalog
from ..catalog.versions import is_above, parse
from . import model
from .commands import check_value
from .errors import ChangeRefusedError
from .plan import hide_url_secrets

LOOK: ArgumentSpec = read_argument_spec(ModuleDocFragment.DOCUMENTATION)
INFO: ArgumentSpec = LOOK | read_argument_spec(csi_proxy_info.DOCUMENTATION)
# Without the options for access to the cluster, which are no variables of the role.
CSI_PROXY: ArgumentSpec = LOOK | read_argument_spec(csi_proxy.DOCUMENTATION)

_PATH = re.compile(r"[A-Za-z]:(\\[^\\/:*?\"<>|]+)+")
# It is part of paths on the node.
_RELEASE = re.compile(r"v?\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+.][0-9A-Za-z.+-]*)?", re.ASCII)
# As the playbook build_csi_proxy names its file.
_RELEASE_FILE = re.compile(r"csi-proxy-v?(\d+\.\d+\.\d+)\.exe")
LOG_FILE = r"C:\var\log\csi-proxy\csi-proxy.log"
"""Where OpenShift's must-gather collects it."""


def check_path(value: str, option: str) -> str:
    """An absolute Windows path without a closing backslash; NodeError ``bad_path`` or ``bad_value`` otherwise."""
    path = value.replace("/", "\\").rstrip("\\")
    check_value(path, option)
    if not _PATH.fullmatch(path):
        raise ChangeRefusedError(
            "bad_path", f"{option}: {value!r} is not an absolute Windows path.", r"Use the form C:\directory."
        )
    if any(part in (".", "..") or part != part.strip() or part.endswith(".") for part in path.split("\\")[1:]):
        raise ChangeRefusedError(
            "bad_path",
            f"{option}: {value!r} has a part that is '.', '..', or begins or ends with a blank or a dot.",
            "Name the directory as Windows shows it.",
        )
    return path


def _check_release(version: str) -> str:
    if not _RELEASE.fullmatch(version):
        raise ChangeRefusedError(
            "bad_version",
            f"version: {version!r} is not a release of csi-proxy.",
            f"Use the form {catalog.RECOMMENDED}.",
        )
    if is_above(catalog.FLOOR, version):
        raise ChangeRefusedError(
            "release_floor",
            f"version: csi-proxy {version} is below {catalog.FLOOR}, the first release without CVE-2023-3893.",
            f"Use {catalog.RECOMMENDED}.",
        )
    if parse(version).release[0] != catalog.MAJOR:
        raise ChangeRefusedError(
            "release_unknown",
            f"version: csi-proxy {version} is unknown to this collection, expected a release from {catalog.FLOOR} on, before 2.",
            f"Use {catalog.RECOMMENDED}. Release 2 has no service: its drivers run as HostProcess pods.",
        )
    return version.removeprefix("v")


def _parse_checksum(value: str | None) -> str:
    # The line of a .sha256 file is welcome as it is: digest, blank, an asterisk or a blank, file name.
    text = re.sub(r"^([0-9a-f]{64})\s+\*?\S+$", r"\1", (value or "").strip().lower().removeprefix("sha256:"))
    if not text:
        raise ChangeRefusedError(
            "checksum_missing",
            "checksum: the SHA-256 of csi-proxy.exe is missing. There is no published file, so the digest is the only proof of its content.",
            "Set checksum (csi_proxy_checksum in a play); the playbook build_csi_proxy.yml prints it, and so does sha256sum.",
        )
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise ChangeRefusedError(
            "bad_checksum",
            f"checksum: {value!r} is not a SHA-256.",
            "Use 64 hexadecimal digits, with or without sha256: before them, or a line that sha256sum wrote.",
        )
    return text


def _render_flags(options: Mapping[str, Any], version: str) -> tuple[str, ...]:
    """The flags of the command line in a fixed order."""
    flags = [f"-log_file={LOG_FILE}", "-logtostderr=false", "-log_file_max_size=100", "-v=2"]
    flags.append(f"-kubelet-path={check_path(options['kubelet_path'], 'kubelet_path')}")
    if options.get("require_privacy") is not None:
        if is_above(catalog.PRIVACY_SINCE, version):
            raise ChangeRefusedError(
                "flag_unknown",
                f"require_privacy: csi-proxy {version} does not have the flag, which would end the process at once (error 1053).",
                f"Remove it, or install {catalog.PRIVACY_SINCE} or later.",
            )
        flags.append(f"-require-privacy={'true' if options['require_privacy'] else 'false'}")
    return tuple(flags)


def build_desired(options: Mapping[str, Any]) -> model.Desired:
    """The desired state of a csi_proxy task; that of build_desired_for_info where no driver needs csi-proxy.

    Raises NodeError for everything that can be known to be wrong without the node.
    """
    kubelet_path = check_path(options["kubelet_path"], "kubelet_path")
    if options["state"] == "absent":
        return model.Desired("absent", kubelet_path=kubelet_path)
    if not options["needed"]:
        return build_desired_for_info(options)
    version = _check_release(options.get("version") or catalog.RECOMMENDED)
    digest = _parse_checksum(options.get("checksum"))
    return model.Desired(
        state="staged" if options["state"] == "staged" else "present",
        version=version,
        sha256=digest,
        source=_build_source(options, version),
        flags=_render_flags(options, version),
        log_file=LOG_FILE,
        required_pipes=catalog.PIPES,
        allow_downgrade=bool(options["allow_downgrade"]),
        take_over=options.get("take_over") or "",
        kubelet_path=kubelet_path,
    )


def _build_source(options: Mapping[str, Any], version: str) -> model.ExecutableSource | None:
    location = options.get("source")
    if not location:
        return None
    file_name = re.split(r"[/\\]", location.partition("?")[0])[-1]
    match = _RELEASE_FILE.fullmatch(file_name)
    if match and parse(match[1]).release != parse(version).release:
        raise ChangeRefusedError(
            "release_mismatch",
            f"source: the file is {file_name}, expected csi-proxy {version} (version).",
            "Set csi_proxy_version, csi_proxy_source and csi_proxy_checksum of one release.",
        )
    source = model.ExecutableSource(location, bool(options["source_check_revocation"]))
    # Not check_value: a refused URL may be a secret, and its text would show it.
    refused = sorted(set(re.findall(r"[\s\x00-\x1f\x7f]", location))) if source.is_url else []
    if refused:
        raise ChangeRefusedError(
            "bad_value",
            f"source: {hide_url_secrets(location)} holds {' '.join(map(repr, refused))}, expected a URL without blanks and control "
            "characters.",
            "Write a blank as %20.",
        )
    return source


def build_desired_for_info(options: Mapping[str, Any]) -> model.Desired:
    """The desired state for csi_proxy_info: any csi-proxy that serves."""
    return model.Desired("present", kubelet_path=check_path(options["kubelet_path"], "kubelet_path"))
