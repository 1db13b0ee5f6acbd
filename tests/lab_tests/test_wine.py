# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on Wine: what sets them apart from one another and from the machine they run on, and their power switch."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import builds
from lab.handle import eventually
from lab.state import LabError
from lab.windows import wine
from lab.windows.agent import Agent, Request
from lab.windows.wine import TOOLS, WineHost, base_prefix, find_wine
from lab.windows.wine_registry import Identity, machine_values, render

from lab_tests.conftest import MakeWineHost

REG = r"C:\Windows\System32\reg.exe"
SC = r"C:\Windows\System32\sc.exe"


def query(host: WineHost, key: str, value: str) -> str:
    """Data of a registry value, as reg.exe prints it."""
    done = host.agent.run(f'{REG} query "{key}" /v {value}')
    assert done.rc == 0, done
    return done.stdout.decode().split("    ")[-1].strip()


class TestIdentity:
    def test_every_host_has_its_own_name(self, wine_hosts: list[WineHost]) -> None:
        for host in wine_hosts:
            assert host.agent.run(r"C:\Windows\System32\hostname.exe").stdout.decode().strip() == host.name
            assert query(host, r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters", "Hostname") == host.name

    def test_every_host_has_its_nodes_address(self, wine_hosts: list[WineHost]) -> None:
        key = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
        for host in wine_hosts:
            output = host.agent.run(f"{REG} query {key} /s /f IPAddress /v").stdout.decode()
            assert f"REG_SZ    {host.address}\r\n" in output

    def test_it_is_a_server_2022(self, wine_hosts: list[WineHost]) -> None:
        key = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
        host = wine_hosts[0]
        assert query(host, key, "CurrentBuildNumber") == "20348"
        assert query(host, key, "UBR") == "0xa8c"
        assert query(host, key, "InstallationType").startswith("Server")
        assert b"10.0.20348.2700" in host.agent.run("ver").stdout

    def test_the_linux_machine_does_not_show(self, wine_hosts: list[WineHost]) -> None:
        output = wine_hosts[0].agent.run("set").stdout.decode()
        names = {line.partition("=")[0].upper() for line in output.splitlines()}
        assert {"PATH", "COMSPEC", "SYSTEMROOT", "COMPUTERNAME", "OS"} <= names
        assert not names & set(os.environ) - {"PATH", "TMP", "TEMP", "OS", "LANG", "USER", "PWD", "TMPDIR"}
        assert wine_hosts[0].agent.run(r"dir /b Z:\ ").rc != 0

    def test_hosts_do_not_share_files_and_do_not_write_through(self, wine_hosts: list[WineHost]) -> None:
        first, second = wine_hosts
        base = base_prefix(first.wine, builds.cache())
        before = hashlib.sha256((base / "system.reg").read_bytes()).hexdigest()
        assert first.agent.run(r'echo mine>"C:\var\log\mine.txt"').rc == 0
        assert first.path(r"C:\var\log\mine.txt").read_text() == "mine\n"
        assert second.agent.run(r'type "C:\var\log\mine.txt"').rc == 1
        assert not (base / "drive_c" / "var").exists()
        assert hashlib.sha256((base / "system.reg").read_bytes()).hexdigest() == before

    def test_our_tools_answer_and_not_wines(self, wine_hosts: list[WineHost]) -> None:
        # Wine's own sc prints nothing to standard output here, and its cmd continues after a failure.
        done = wine_hosts[0].agent.run(f'cmd.exe /d /s /c "{SC} query nosuch >nul && echo on"')
        assert (done.rc, done.stdout) == (1060, b"")
        system32 = wine_hosts[0].prefix / "drive_c" / "windows" / "system32"
        assert {(system32 / tool).stat().st_ino for tool in TOOLS} == {(system32 / "winland.exe").stat().st_ino}

    def test_language(self, wine_hosts: list[WineHost]) -> None:
        host = wine_hosts[1]
        host.set_language("de")
        try:
            german = host.agent.run(f"{SC} query nosuch")
        finally:
            host.set_language("en")
        english = host.agent.run(f"{SC} query nosuch")
        assert german.rc == english.rc == 1060
        assert "Der angegebene Dienst ist kein installierter Dienst." in german.stdout.decode()
        assert b"FAILED 1060" in english.stdout


class TestPower:
    @pytest.fixture
    def host(self, make_wine_host: MakeWineHost, request: pytest.FixtureRequest) -> Iterator[WineHost]:
        host = make_wine_host("power", "127.0.11.103")
        host.boot()
        yield host
        host.remove()

    def test_reboot_keeps_the_disk_and_counts(self, host: WineHost) -> None:
        key = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters"
        boot_id = int(query(host, key, "BootId"), 16)
        assert host.agent.run(rf"{REG} add HKLM\SOFTWARE\kept /v x /t REG_SZ /d y /f").rc == 0
        assert host.agent.run(r'echo kept>"C:\kept.txt"').rc == 0
        address = host.agent_address
        host.reboot()
        assert host.agent_address == address
        assert query(host, r"HKLM\SOFTWARE\kept", "x") == "y"
        assert host.agent.run(r'type "C:\kept.txt"').stdout == b"kept\r\n"
        assert int(query(host, key, "BootId"), 16) == boot_id + 1

    def test_a_host_can_be_made_from_one_that_is_down(
        self, host: WineHost, make_wine_host: MakeWineHost, tmp_path: Path
    ) -> None:
        assert host.agent.run(r'echo kept>"C:\k\own.exe"').rc == 0
        host.stop()
        copy = WineHost(host.wine, "copy", "127.0.11.105", host.folder.with_name("copy"))
        try:
            copy.create(host.prefix, builds.build("winland-windows")["winland.exe"])
            host.boot()
            copy.boot()
            assert copy.agent.run(r'echo other>"C:\k\own.exe"').rc == 0
            assert host.agent.run(r'type "C:\k\own.exe"').stdout == b"kept\r\n"
            # A program that runs in one host must not be the file that is written when another is made.
            programs = [h.path(r"C:\windows\system32\winland.exe").stat() for h in (host, copy)]
            assert programs[0].st_ino != programs[1].st_ino
        finally:
            copy.remove()

    def test_services_with_automatic_start_are_started_again(self, host: WineHost) -> None:
        target = host.path(r"C:\k\csi-proxy.exe")
        target.write_bytes(builds.build("csi-proxy-1.3.0")["csi-proxy-1.3.0.exe"].read_bytes())
        line = (
            rf'{SC} create csi-proxy binPath= "C:\k\csi-proxy.exe -windows-service" start= auto && {SC} start csi-proxy'
        )
        assert host.agent.run(line).rc == 0
        self.wait_for_pipes(host.agent)
        host.reboot()
        self.wait_for_pipes(host.agent)

    def wait_for_pipes(self, agent: Agent) -> None:
        deadline = time.monotonic() + 120
        while b"csi-proxy-filesystem-v1\r\n" not in agent.run(r"dir /b \\.\pipe\\csi-proxy-*").stdout:
            assert time.monotonic() < deadline, agent.run(f"{SC} queryex csi-proxy").stdout
            time.sleep(0.05)

    def test_stop_leaves_nothing_behind(self, host: WineHost) -> None:
        assert list(host.folder.glob("wine-*"))
        host.stop()
        assert not host.running()
        assert not list(host.folder.glob("wine-*"))
        mark = f"WINEPREFIX={host.prefix}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            assert mark not in environment, (process / "cmdline").read_bytes()

    def test_a_host_that_is_up_does_not_boot_twice(self, host: WineHost) -> None:
        with pytest.raises(LabError, match="up already"):
            host.boot()


class TestFailures:
    def test_leftovers_of_a_killed_process_are_removed(self, wine_hosts: list[WineHost], tmp_path: Path) -> None:
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = tmp_path / "wine" / f"run-{dead.pid}-x" / "host" / "prefix"
        left.mkdir(parents=True)
        with wine.scratch(wine_hosts[0].wine, tmp_path) as folder:
            assert not left.exists()
            with wine.scratch(wine_hosts[0].wine, tmp_path) as other:
                assert folder.exists()
                assert other != folder
        assert not folder.exists()

    def test_boot_reports_what_it_found(self, make_wine_host: MakeWineHost) -> None:
        host = make_wine_host("broken", "127.0.11.104")
        (host.prefix / "drive_c" / "windows" / "system32" / "winland.exe").unlink()
        with pytest.raises(LabError, match=r"host broken did not boot .*agent\.log"):
            host.boot()
        assert not host.running()

    def test_a_prefix_is_not_overwritten(self, wine_hosts: list[WineHost]) -> None:
        with pytest.raises(LabError, match="exists already"):
            wine_hosts[0].create(Path("/nonexistent"), Path("/nonexistent"))

    def test_missing_wine_is_named_with_its_remedy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(wine, "_PLACES", ("/nonexistent",))
        with pytest.raises(wine.WineMissing, match="apt install wine64"):
            find_wine()

    def test_missing_compiler_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", os.devnull)
        with pytest.raises(wine.WineMissing, match="mingw"):
            find_wine()


def test_registry_text() -> None:
    text = render({r"Software\Ä": {"a\\b": 'c"d', "n": 255, "list": ["x", "y"]}})
    assert text == '\n[Software\\\\\\x00c4]\n"a\\\\b"="c\\"d"\n"n"=dword:000000ff\n"list"=str(7):"x\\0y\\0"\n'


def test_identity_is_in_the_registry() -> None:
    text = render(machine_values(Identity("win-1", "127.0.11.1", boot_id=3, build="10.0.17763.6532")))
    assert '"CurrentBuildNumber"="17763"' in text
    assert '"UBR"=dword:00001984' in text
    assert '"BootId"=dword:00000003' in text


class TestOpenFiles:
    def test_an_open_file_cannot_be_moved_until_it_is_closed(self, wine_hosts: list[WineHost]) -> None:
        """A scanner of new files does this; the simulated hosts' fault `scan` does the same. Windows refuses to rename its
        directory too, and Wine does not.
        """
        agent = wine_hosts[0].agent
        assert agent.run(r"md C:\held & echo x>C:\held\new.exe").rc == 0
        # A move before the holder has the file open would keep the holder from it.
        holder = Request(r"(echo held & C:\Windows\System32\ping.exe -n 3 127.0.0.1) >>C:\held\new.exe")
        with agent.start(holder, 60.0) as held:
            size = r"for %A in (C:\held\new.exe) do @echo %~zA"
            eventually(lambda: int(agent.run(size).stdout) > len("x\r\n"), "the file is held")
            assert agent.run(r"move /y C:\held\new.exe C:\moved.exe").rc == 1
            assert held.wait().rc == 0
        assert agent.run(r"move /y C:\held\new.exe C:\moved.exe").rc == 0
