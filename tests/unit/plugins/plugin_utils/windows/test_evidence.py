# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a host for support: logs from their end, and answers with their codes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import desired, evidence
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ConnectionLostError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.observe import observe
from lab.windows.channel import Cut
from unit.plugins.plugin_utils.windows.simulated import Artifacts, Host, wanted

LOG = r"C:\var\log\csi-proxy\csi-proxy.log"


@pytest.fixture
def installed(host: Host, artifacts: Artifacts) -> Host:
    host.run(wanted(artifacts.csi_proxy("1.3.0")))
    return host


def collected(host: Host, size: int = 1024, cut: Cut | None = None) -> dict[str, evidence.Evidence]:
    node = host.node()
    asked = desired.build_desired_for_info({"kubelet_path": r"C:\var\lib\kubelet"})
    snapshot = observe(node, asked)
    return {one.name: one for one in evidence.collect(host.node(cut), asked, snapshot, size)}


def test_service_registry_pipes_processes_events_and_log_are_read(installed: Host) -> None:
    installed.agent.run(r'reg add HKLM\SOFTWARE\WinLab /v "Events System" /t REG_SZ /d "<Event>7031</Event>" /f')
    installed.agent.run(rf"echo last words>>{LOG}")
    found = collected(installed)
    text = {name: one.raw.decode() for name, one in found.items()}
    assert "4  RUNNING" in text["service.txt"]
    assert "ImagePath" in text["registry.txt"]
    assert "csi-proxy-disk-v1" in text["pipes.txt"]
    assert '"csi-proxy.exe"' in text["processes.txt"]
    assert "7031" in text["events-services.txt"]
    assert text["log-C-var-log-csi-proxy-csi-proxy.log"].rstrip().endswith("last words")
    assert [one.problem for one in found.values() if one.problem] == []
    assert "> sc.exe queryex csi-proxy (code 0)" in text["service.txt"]


def test_a_long_log_is_read_from_its_end_and_begins_with_a_whole_line(installed: Host) -> None:
    for number in range(40):
        installed.agent.run(rf"echo line {number} with some words in it>>{LOG}")
    log = collected(installed, 300)["log-C-var-log-csi-proxy-csi-proxy.log"]
    lines = log.raw.decode().splitlines()
    assert len(log.raw) <= 300
    assert lines[-1] == "line 39 with some words in it"
    assert all(line.startswith("line ") for line in lines)
    assert "only the last" in log.problem


@pytest.mark.parametrize("size", [0, 1, 299, 300, 301])
def test_a_log_is_read_whatever_its_size(installed: Host, size: int) -> None:
    installed.agent.run("sc.exe stop csi-proxy")
    installed.agent.run("taskkill /F /IM csi-proxy.exe")
    installed.plant(files={LOG: {"text": "x" * (size - 1) + "\n" if size else ""}})
    log = collected(installed, 300)["log-C-var-log-csi-proxy-csi-proxy.log"]
    assert log.problem == ("" if size <= 300 else rf"{LOG}: only the last 0 KiB")
    assert len(log.raw) == (size if size <= 300 else 0)


def test_a_log_that_nssm_writes_is_found(host: Host) -> None:
    """As AKS installs csi-proxy: without flags, its output sent to two files (Azure/AgentBaker, kubeletfunc.ps1)."""
    key = r"HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy\Parameters"
    host.plant(services=[{"name": "csi-proxy", "command": r"C:\k\nssm.exe"}])
    host.plant(
        registry=[
            {"key": key, "name": name, "type": "REG_EXPAND_SZ", "data": value}
            for name, value in (
                ("Application", r"C:\k\csi-proxy.exe"),
                ("AppParameters", "-v=5 -log_file=C:/logs/c.log"),
                ("AppStdout", r"C:\k\csi-proxy.log"),
                ("AppStderr", r"C:\k\csi-proxy.err.log"),
            )
        ],
        files={
            r"C:\k\csi-proxy.log": {"text": "out"},
            r"C:\k\csi-proxy.err.log": {"text": "err"},
            r"C:\logs\c.log": {"text": "klog"},
        },
    )
    found = collected(host)
    logs = {name: one.raw.decode() for name, one in found.items() if name.startswith("log-")}
    assert logs == {"log-C-k-csi-proxy.log": "out", "log-C-k-csi-proxy.err.log": "err", "log-C-logs-c.log": "klog"}
    assert [one.problem for one in found.values() if one.problem] == []


def test_logs_of_kubelet_containerd_and_wicd_are_read_where_they_are(host: Host) -> None:
    """Where OpenShift's must-gather and AKS read them, and where a service's line says, here on another drive."""
    files = {
        r"C:\var\log\kubelet\kubelet.log": "openshift",
        r"C:\var\log\wicd\windows-instance-config-daemon.exe.ERROR": "wicd",
        r"C:\k\kubelet.err.log": "aks",
        r"D:\k\kubelet.err.log": "own place",
    }
    host.plant(files={path: {"text": text} for path, text in files.items()})
    host.agent.run(r'sc.exe config containerd binPath= "C:\c.exe --run-service --log-file D:\k\kubelet.err.log"')
    found = collected(host)
    assert {name: one.raw.decode() for name, one in found.items() if name.startswith("log-")} == {
        "log-C-var-log-kubelet-kubelet.log": "openshift",
        "log-C-var-log-wicd-windows-instance-config-daemon.exe.ERROR": "wicd",
        "log-C-k-kubelet.err.log": "aks",
        "log-D-k-kubelet.err.log": "own place",
    }


def test_a_missing_log_and_a_missing_service_are_reported(host: Host) -> None:
    found = collected(host)
    assert "(code 1060)" in found["service.txt"].raw.decode()
    assert "log-C-var-log-csi-proxy-csi-proxy.log" not in found
    host.agent.run(r'sc.exe create csi-proxy binPath= "C:\gone.exe -windows-service -log_file=C:\no\such.log"')
    assert "does not exist" in collected(host)["log-C-no-such.log"].problem


def test_a_connection_that_is_lost_ends_it(installed: Host) -> None:
    with pytest.raises(ConnectionLostError):
        collected(installed, cut=Cut("reply_lost", 2))


@pytest.mark.parametrize(
    ("command_line", "paths"),
    [
        (r"C:\a.exe -windows-service -log_file=C:\l\a.log -v=5", (r"C:\l\a.log", r"C:\l\a.log.1")),
        (r'"C:\a b\c.exe" "-log_file=C:\l m\a.log" -v 5', (r"C:\l m\a.log", r"C:\l m\a.log.1")),
        (r"C:\a.exe --log_dir C:\logs", (r"C:\logs\a.exe.INFO", r"C:\logs\a.exe.INFO.1")),
        (r"C:\a.exe -log_file=C:/var/log/a.log", (r"C:\var\log\a.log", r"C:\var\log\a.log.1")),
        (r"C:\a.exe -windows-service", ()),
    ],
)
def test_the_log_is_found_in_the_command_line(command_line: str, paths: tuple[str, ...]) -> None:
    service = SimpleNamespace(command_line=command_line, application="", app_parameters="", app_outputs=())
    assert evidence.find_own_logs(service) == paths  # type: ignore[arg-type]  # all it reads
