# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of the front process: dataclasses, and reading them from JSON.

::

    {"ready_file": "/lab/front.json", "control_port": 0,
     "users": {"Administrator": "Passw0rd!"},
     "tls_cert": "/lab/pki/winrm.crt", "tls_key": "/lab/pki/winrm.key",
     "ssh_host_key": "/lab/pki/ssh_host_key", "ssh_authorized_keys": "/lab/pki/authorized_keys",
     "hosts": [{"endpoint": {"name": "win-1", "agent": "127.0.0.1:18101", "basic_over_http": true}, "ssh": 0}],
     "artifacts": {"root": "/lab/artifacts", "http": 0, "https": 0}}

Unknown keys are refused. The file holds passwords: write it with mode 0600.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lab.windows.artifacts import ArtifactsConfig
from lab.windows.ssh import DefaultShell
from lab.windows.wsman import EndpointConfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostConfig:
    """One host: its WS-Man endpoint, and SSH on port ``ssh`` (0 a free one, None no SSH)."""

    endpoint: EndpointConfig
    ssh: int | None = None
    ssh_shell: DefaultShell = "cmd"


@dataclass(frozen=True, slots=True)
class FrontConfig:
    """Everything in front of the hosts of one lab.

    ``ready_file`` is written (atomically) with the ports once all of them listen. ``users`` maps names to passwords.
    Without ``tls_cert`` nothing listens on HTTPS; clients may show certificates of ``tls_client_ca`` there; without ``ssh_host_key`` nothing on SSH.
    """

    ready_file: str
    users: dict[str, str]
    hosts: list[HostConfig] = field(default_factory=list)
    control_port: int = 0
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""
    ssh_host_key: str = ""
    ssh_authorized_keys: str = ""
    artifacts: ArtifactsConfig | None = None


def to_json(config: object) -> dict[str, Any]:
    """The JSON form of a configuration."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"{config!r} is no configuration dataclass")
    return dataclasses.asdict(config)


def from_json(cls: type[T], data: Any, where: str = "config") -> T:
    """Build a configuration dataclass; ValueError names the place of what does not fit."""
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected an object, found {data!r}")
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise ValueError(f"{where}: unknown keys {', '.join(unknown)}; known are {', '.join(hints)}")
    try:
        return cls(**{key: _value(hints[key], value, f"{where}.{key}") for key, value in data.items()})
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None


def _value(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(hint)
        if value is None and types.NoneType in options:
            return None
        return _value(next(option for option in options if option is not types.NoneType), value, where)
    if origin is list:
        if not isinstance(value, list):
            raise ValueError(f"{where}: expected a list, found {value!r}")
        return [_value(typing.get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(value)]
    if origin is dict:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected an object, found {value!r}")
        return dict(value)
    if origin is typing.Literal:
        if value not in typing.get_args(hint):
            raise ValueError(f"{where}: expected one of {typing.get_args(hint)}, found {value!r}")
        return value
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast("type[Any]", hint), value, where)
    if hint is float and isinstance(value, int):
        return float(value)
    # A bool is an int to Python, and a port of `true` is a mistake.
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{where}: expected {hint.__name__}, found {value!r}")
    return value
