# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written into a Wine prefix's registry so that it is seen as one Windows Server 2022 node.

The text is in Wine's own registry file format and is appended to the files of a prefix that is down: a section that
occurs twice is merged by wineserver when it loads them, and no program has to run for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Value = str | int | list[str]

SERVER_2022 = "10.0.20348.2700"

# Go suspends its own threads to preempt them; on Wine one of 500 processes then never ended (5 of 2,600 against 1 of 6,000).
GO_ON_WINE = {"GODEBUG": "asyncpreemptoff=1"}

_CURRENT_VERSION = r"Software\Microsoft\Windows NT\CurrentVersion"
_CONTROL = r"System\CurrentControlSet\Control"
_SERVICES = r"System\CurrentControlSet\Services"
_INTERFACE = "{6ab3e6f2-0c9f-4d7e-9d53-3f6f2c1f4a01}"


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a host. ``build`` as ``10.0.<build>.<update>``; ``boot_id`` grows with every boot."""

    name: str
    address: str
    boot_id: int
    build: str = SERVER_2022
    installation_type: str = "Server Core"


def machine_values(identity: Identity) -> dict[str, dict[str, Value]]:
    """Keys below HKEY_LOCAL_MACHINE."""
    _major, _minor, build, update = identity.build.split(".")
    return {
        _CURRENT_VERSION: {
            "CurrentVersion": "6.3",
            "CurrentMajorVersionNumber": 10,
            "CurrentMinorVersionNumber": 0,
            "CurrentBuild": build,
            "CurrentBuildNumber": build,
            "CSDVersion": "",
            "UBR": int(update),
            "InstallationType": identity.installation_type,
            "EditionID": "ServerStandard",
            "DisplayVersion": "21H2",
            # Windows itself keeps an outdated name here, which must not be read.
            "ProductName": "Windows Server 2022 Standard",
        },
        rf"{_CONTROL}\ProductOptions": {"ProductType": "ServerNT"},
        # Strings, not numbers: Wine's service manager ignores REG_DWORD here. Milliseconds.
        _CONTROL: {"ServicesPipeTimeout": "3000", "WaitToKillServiceTimeout": "60000"},
        # What services get: csi-proxy is a Go program too.
        rf"{_CONTROL}\Session Manager\Environment": {**GO_ON_WINE},
        rf"{_CONTROL}\Session Manager\Memory Management\PrefetchParameters": {"BootId": identity.boot_id},
        rf"{_SERVICES}\Tcpip\Parameters": {"Hostname": identity.name, "NV Hostname": identity.name, "Domain": ""},
        rf"{_SERVICES}\Tcpip\Parameters\Interfaces\{_INTERFACE}": {
            "EnableDHCP": 1,
            "DhcpIPAddress": identity.address,
            "DhcpSubnetMask": "255.0.0.0",
        },
        rf"{_SERVICES}\partmgr\Parameters": {"SanPolicy": 1},
        rf"{_SERVICES}\defragsvc": {"Start": 3},
        rf"{_SERVICES}\afunix": {"Start": 1},
        rf"{_SERVICES}\hns\State": {},
    }


def user_values(programs: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Keys below HKEY_CURRENT_USER. ``programs`` are tools of ours that Wine has too: without the override its loader
    takes its own, even by full path."""
    return {
        r"Software\Wine\DllOverrides": {f"{program}": "native" for program in programs},
        r"Software\Wine": {"ShowCrashDialog": 0},
    }


def render(keys: Mapping[str, Mapping[str, Value]]) -> str:
    """Sections of a Wine registry file."""
    lines = []
    for key, values in keys.items():
        lines += ["", f"[{_escape(key)}]"]
        lines += [f'"{_escape(name)}"={_data(value)}' for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _data(value: Value) -> str:
    if isinstance(value, int):
        return f"dword:{value:08x}"
    if isinstance(value, list):
        return f'str(7):"{"".join(_escape(item) + chr(92) + "0" for item in value)}"'
    return f'"{_escape(value)}"'


def _escape(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if ord(c) < 0x7F else f"\\x{ord(c):04x}" for c in plain)
