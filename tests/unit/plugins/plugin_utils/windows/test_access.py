# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may replace csi-proxy.exe: nobody but administrators, seen by a user who tries it on a host that enforces access rights."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import access, model, plan
from lab.windows.agent import Result
from unit.plugins.plugin_utils.windows.simulated import NEW, Artifacts, Host, failed, wanted

ICACLS = r"C:\Windows\System32\icacls.exe"
# Get-Acl of C:\ on Windows Server, in public audit scripts; the second from a test of Server 2025.
SERVER = "D:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICI;0x1200a9;;;BU)"
SERVER_2025 = SERVER + "(A;;0x1000a1;;;S-1-15-3-65536-1)"
PROGRAM_DATA_2025 = "D:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;DCLCRPCR;;;BU)"
CLIENT = "D:PAI(A;;LC;;;AU)(A;OICIIO;SDGXGWGR;;;AU)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"


def as_user(host: Host, line: str) -> Result:
    return host.agent.run(line, user=True)


def can_replace(host: Host, desired: model.Desired) -> list[str]:
    """What a user without administrator rights manages, of the ways to let SYSTEM run another program."""
    directory, other = model.INSTALL_DIR, r"C:\Users\evil"
    ways = {
        "rename the executable": f"ren {desired.executable} old.exe",
        "delete the release": f"rd /s /q {desired.release_dir}",
        "add a file beside it": rf"echo x>{desired.release_dir}\version.dll",
        "rename the directory": f"move {directory} {other}",
        "open the directory": f'{ICACLS} {directory} /grant "*S-1-1-0:(OI)(CI)F"',
        "open the release": f'{ICACLS} {desired.release_dir} /grant "*S-1-1-0:(OI)(CI)F"',
    }
    host.agent.control("snapshot")
    before = files(host)
    managed = []
    for way, line in ways.items():
        as_user(host, line)
        if files(host) != before:
            managed.append(way)
        host.agent.control("restore")
    return managed


def files(host: Host) -> object:
    """Every file with its content's digest and its access list."""
    return host.agent.control("state")["state"]["files"]


def test_a_user_cannot_replace_what_was_installed(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    assert can_replace(host, desired) == []


@pytest.mark.parametrize(
    "opened",
    [
        r'/grant "*S-1-1-0:(OI)(CI)F"',
        # Two entries with full control, as the right list has: without their names they look alike.
        r'/remove *S-1-5-18 /grant "*S-1-1-0:(OI)(CI)F"',
        r'/grant "*S-1-5-11:(OI)(CI)M"',
        r"/setowner *S-1-5-21-1004336348-1177238915-682003330-1001 /inheritance:e",
    ],
)
def test_a_directory_that_was_opened_is_closed_again(host: Host, artifacts: Artifacts, opened: str) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    assert host.agent.run(f"{ICACLS} {model.INSTALL_DIR} {opened}").rc == 0
    assert can_replace(host, desired) != []
    outcome = host.run(desired)
    assert [step.kind for step in outcome.steps] == ["secure_directory"]
    assert can_replace(host, desired) == []
    assert not host.run(desired).changed


@pytest.mark.parametrize("path", ["release_dir", "executable"])
def test_what_lies_in_it_is_closed_too(host: Host, artifacts: Artifacts, path: str) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    opened = getattr(desired, path)
    assert host.agent.run(f'{ICACLS} {opened} /grant "*S-1-5-32-545:F"').rc == 0
    host.agent.run(f"{ICACLS} {opened} /setowner *S-1-5-21-1004336348-1177238915-682003330-1001")
    assert [item.item for item in plan.compare_with_desired(desired, host.observe(desired))] == ["access"]
    host.run(desired)
    assert can_replace(host, desired) == []


def test_a_directory_that_a_user_made_during_a_first_installation_is_taken_over(
    host: Host, artifacts: Artifacts
) -> None:
    """The run was cut off after it recorded the directory: what is there by now has another owner."""
    desired = wanted(artifacts.csi_proxy(NEW))
    host.plant(registry=[{"key": model.OWN_KEY, "name": "InstallDir", "data": model.INSTALL_DIR}])
    assert as_user(host, rf"md {model.INSTALL_DIR}").rc == 0
    closed = f'{ICACLS} {model.INSTALL_DIR} /inheritance:r /grant:r "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F"'
    assert as_user(host, closed).rc == 0
    host.run(desired)
    assert can_replace(host, desired) == []


@pytest.mark.parametrize("link", [r"C:\csi-proxy", r"C:\csi-proxy\1.3.0-0123456789ab", r"C:\csi-proxy\stage-1\x"])
def test_a_junction_that_a_user_made_during_a_first_installation_is_refused(
    host: Host, artifacts: Artifacts, link: str
) -> None:
    """icacls would close what it leads to, and the user could let it lead elsewhere afterwards."""
    desired = wanted(artifacts.csi_proxy(NEW))
    host.plant(registry=[{"key": model.OWN_KEY, "name": "InstallDir", "data": model.INSTALL_DIR}])
    host.plant(files={link: {"link": r"\??\Volume{4c1b02c1-d990-11dc-99ae-806e6f6e6963}" + "\\"}})
    error = failed(host, desired)
    assert error.reason == "directory_unsafe"
    assert f"{link} is a junction" in error.message
    assert not [step for step in host.steps() if step.startswith("icacls")]


def test_a_drive_on_which_a_user_could_replace_the_directory_is_refused(host: Host, artifacts: Artifacts) -> None:
    assert host.agent.run(rf'{ICACLS} C:\ /grant "*S-1-5-11:DC"').rc == 0
    host.forget()
    error = failed(host, wanted(artifacts.csi_proxy(NEW)))
    assert error.reason == "directory_unsafe"
    assert "(S-1-5-11) have rights on C:\\ and" in error.message
    assert error.remedy == r"Remove these rights: icacls C:\ /remove:g *S-1-5-11"
    assert not [step for step in host.steps() if step.startswith(("md", "curl"))]


def test_without_cacls_the_list_is_saved_by_icacls(host: Host, artifacts: Artifacts) -> None:
    host.plant(files={r"C:\Windows\System32\cacls.exe": None})
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    assert not host.run(desired).changed
    assert host.agent.run(r"dir /b C:\Windows\*.acl").rc == 1
    host.fault(match=r"icacls.* /save", times=-1, rc=5)
    assert failed(host, desired).reason == "access_unread"


@pytest.mark.parametrize("text", [SERVER, SERVER_2025, PROGRAM_DATA_2025, CLIENT])
def test_what_windows_itself_grants_endangers_no_directory_below(text: str) -> None:
    found = access.parse_access_list(f'D:\\ "{text}" \r\n\r\n')
    assert found is not None
    assert found.text == text
    assert found.list_others(access.TAKE_CHILD) == ()


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", ()),
        ("D:NO_ACCESS_CONTROL", ("S-1-1-0",)),
        ("D:(A;;FA;;;S-1-5-21-1-2-3-500)(A;;FA;;;S-1-5-21-1-2-3-512)", ()),
        ("D:(A;;FA;;;S-1-5-21-1-2-3-1500)", ("S-1-5-21-1-2-3-1500",)),
        ("D:(A;;0x10000000;;;BU)", ("S-1-5-32-545",)),
        ("D:(A;;XX;;;BU)", ("S-1-5-32-545",)),
        ("D:(D;;FA;;;BU)", ()),
        ("D:(A;IO;FA;;;BU)", ()),
        ("D:(A;;FRFX;;;BU)", ()),
        # Letters of directory services: DC writes, DT deletes a child.
        ("D:(A;;DC;;;BU)", ()),
        ("D:(A;;DT;;;BU)", ("S-1-5-32-545",)),
    ],
)
def test_others_who_may_take_a_child(text: str, others: tuple[str, ...]) -> None:
    found = access.parse_access_list(text)
    assert found is not None
    assert found.list_others(access.TAKE_CHILD) == others


@pytest.mark.parametrize("text", ["", "The system cannot find the file specified.\r\n", r"D:\apps", "D:(A;;FA)"])
def test_what_is_no_list_is_not_read(text: str) -> None:
    assert access.parse_access_list(text) is None
