# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-core 2.19 and later send to start a PowerShell, read back.

Format (ansible-core: ``lib/ansible/executor/powershell/module_manifest.py``, ``plugins/shell/powershell.py``): the
command line is ``PowerShell ... -EncodedCommand <base64 of UTF-16LE>``. Without standard input that is the whole
script. With it, it is a fixed bootstrap, and standard input holds, separated by lines of four NUL bytes: a JSON object
that names the exec wrapper; a JSON object with ``scripts`` and ``actions``; data for the script, if it takes any.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ENCODED = re.compile(r"\bpowershell(?:\.exe)?\b.*\s-EncodedCommand\s+(?P<script>[A-Za-z0-9+/=]+)\s*$", re.IGNORECASE)
_SEPARATOR = b"\n\0\0\0\0\n"
_MODULE_WRAPPER = "module_wrapper.ps1"


class NotUnderstood(Exception):
    """An unknown request; the text names it."""


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """A module: fully qualified name, its own arguments, and whether nothing may be changed."""

    name: str
    arguments: Mapping[str, Any]
    check_mode: bool


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """One of ansible-core's helper scripts with its parameters, and the data that it reads."""

    name: str
    parameters: Mapping[str, Any]
    data: bytes


@dataclass(frozen=True, slots=True)
class RawCall:
    """A script that is sent as such."""

    script: str


Call = ModuleCall | ScriptCall | RawCall


def starts_powershell(line: str) -> bool:
    """Whether a command line starts a PowerShell with an encoded script."""
    return _ENCODED.search(line) is not None


def decode(line: str, stdin: bytes) -> Call:
    """Read one PowerShell start back; NotUnderstood for anything but the forms above."""
    match = _ENCODED.search(line)
    if match is None:
        raise NotUnderstood(f"this command line does not start PowerShell with an encoded script: {line[:200]}")
    if not stdin:
        try:
            return RawCall(base64.b64decode(match.group("script"), validate=True).decode("utf-16-le"))
        except (binascii.Error, UnicodeDecodeError) as error:
            raise NotUnderstood(f"the encoded script is not base64 of UTF-16: {error}") from error
    parts = stdin.split(_SEPARATOR, 2)
    try:
        bootstrap, manifest = (json.loads(part) for part in parts[:2])
    except ValueError as error:
        raise NotUnderstood(f"standard input does not begin with two JSON objects: {error}; {stdin[:200]!r}") from error
    if not isinstance(bootstrap, dict) or bootstrap.get("name") != "exec_wrapper":
        raise NotUnderstood(f"expected ansible-core's exec_wrapper, found {stdin[:200]!r}")
    return _call(manifest, parts[2] if len(parts) > 2 else b"")


def _call(manifest: Any, data: bytes) -> Call:
    actions = manifest["actions"]
    if len(actions) != 1:
        raise NotUnderstood(f"expected one action without become or async, found {[a['name'] for a in actions]}")
    name, parameters = actions[0]["name"], actions[0]["params"]
    if name != _MODULE_WRAPPER:
        return ScriptCall(name, parameters, data)
    variables = {variable["Name"]: variable["Value"] for variable in parameters.get("Variables", ())}
    if "complex_args" not in variables:
        raise NotUnderstood(f"{parameters.get('Script')} is a script, not a module")
    arguments = variables["complex_args"]
    own = {key: value for key, value in arguments.items() if not key.startswith("_ansible_")}
    module = str(parameters["Script"]).removesuffix(".ps1")
    return ModuleCall(module, own, bool(arguments.get("_ansible_check_mode")))
