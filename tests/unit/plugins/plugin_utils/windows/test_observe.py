# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is observed beyond the service: the identity of the host, and problems for its volumes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands, desired, model, observe, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from lab.windows import conformance
from lab.windows.simulated import SimulatedServer
from unit.plugins.plugin_utils.windows.simulated import NEW, Artifacts, Host, simulated_host, wanted

SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"


def info(host: Host, **given: object) -> tuple[model.Desired, model.HostSnapshot]:
    values = {name: spec.get("default") for name, spec in desired.INFO.items()} | given
    looked_for = desired.build_desired_for_info(values)
    return looked_for, observe.observe(host.node(), looked_for, with_mounts=True)


def found(host: Host, **given: object) -> set[str]:
    looked_for, snapshot = info(host, **given)
    return {finding["id"] for finding in prove.describe_state(looked_for, snapshot)["findings"]}


def test_identity_of_the_host(server: SimulatedServer) -> None:
    with simulated_host(server.address, "win-facts") as host:
        host.plant(
            registry=[{"key": SERVICES + r"\Tcpip\Parameters", "name": "Domain", "data": "example.com"}],
        )
        facts = info(host)[1].host
    assert facts.name.lower() == "win-facts"
    assert facts.dns_name.lower() == "win-facts.example.com"
    assert facts.addresses == ("127.0.11.1",)
    assert facts.boot_time is not None
    assert facts.boot_time.endswith("Z")


def test_a_reboot_is_detected(host: Host) -> None:
    before = info(host)[1].host
    host.agent.control("reboot")
    after = info(host)[1].host
    assert after.boot_time != before.boot_time


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ([(r"\partmgr\Parameters", "SanPolicy", 3)], "CSI-N10"),
        ([(r"\defragsvc", "Start", 4)], "CSI-N11"),
        ([(r"\afunix", "Start", 4)], "CSI-N12"),
    ],
)
def test_a_setting_that_breaks_volumes_is_a_finding(
    host: Host, values: list[tuple[str, str, int]], finding: str
) -> None:
    assert finding not in found(host)
    host.plant(
        registry=[
            {"key": SERVICES + key, "name": name, "type": "REG_DWORD", "data": data} for key, name, data in values
        ]
    )
    assert finding in found(host)


CSI = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi"
PRESENT, GONE = "Volume{11111111-0000-0000-0000-000000000001}", "Volume{22222222-0000-0000-0000-000000000002}"


def mount(host: Host, volume: str, target: str, driver: str = "csi.vsphere.vmware.com") -> str:
    path = rf"{CSI}\{driver}\{volume}\globalmount"
    host.plant(files={path: {"link": target}, path.replace("globalmount", "vol_data.json"): {"text": "{}"}})
    return path


def volumes_of_the_node(host: Host) -> None:
    key = r"HKLM\SYSTEM\MountedDevices"
    host.plant(registry=[{"key": key, "name": rf"\??\{PRESENT}", "type": "REG_BINARY", "data": "00"}])


def test_a_global_mount_that_leads_nowhere(host: Host) -> None:
    volumes_of_the_node(host)
    mount(host, "0123abcd", rf"\??\{PRESENT}" + "\\")
    host.plant(files={rf"{CSI}\pv\pvc-1": {"dir": True}})
    assert "CSI-N15" not in found(host)
    stale = mount(host, "4567cdef", rf"\??\{GONE}" + "\\")
    looked_for, snapshot = info(host)
    assert snapshot.storage.stale_mounts == (stale,)
    remedies = [
        finding["remedy"]
        for finding in prove.describe_state(looked_for, snapshot)["findings"]
        if finding["id"] == "CSI-N15"
    ]
    assert remedies == [rf"If no pod on this node uses the volume: rmdir {stale}"]


def test_mounts_of_shares_that_do_not_answer_and_of_many_volumes_cost_one_line(host: Host) -> None:
    volumes_of_the_node(host)
    mount(host, "share", r"\\192.0.2.1\share", "smb.csi.k8s.io")
    for number in range(60):
        mount(host, f"{number:064x}", rf"\??\{PRESENT}" + "\\")
    snapshot = info(host)[1]
    assert snapshot.storage.stale_mounts == ()
    assert len(host.lines) == 1


@pytest.mark.parametrize("where", ["HKLM", "HKCU"])
def test_implausible_exit_codes_are_detected(host: Host, where: str) -> None:
    key = rf"{where}\Software\Microsoft\Command Processor"
    host.plant(registry=[{"key": key, "name": "DelayedExpansion", "type": "REG_DWORD", "data": 1}])
    with pytest.raises(NodeError) as refused:
        info(host)
    assert refused.value.reason == "delayed_expansion"
    assert "reg delete" in refused.value.remedy


def test_pipes_that_cannot_be_listed_are_opened(host: Host, artifacts: Artifacts) -> None:
    host.fault(match=r"^dir /b \S*pipe", times=-1, rc=1)
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    assert not host.run(desired).changed
    looked_for, snapshot = info(host)
    state = prove.describe_state(looked_for, snapshot)
    assert (state["serving"], state["pipes_by"]) == (True, "opening")
    assert "csi-proxy-volume-v1" in state["pipes"]
    host.clear_faults()
    state = prove.describe_state(looked_for, info(host)[1])
    assert state["pipes_by"] == "listing"


def test_a_boot_missing_in_the_event_log_is_unknown(host: Host) -> None:
    host.fault(match="wevtutil", times=-1, rc=0)
    looked_for, snapshot = info(host)
    assert snapshot.host.boot_time is None
    assert "CSI-N17" in {finding["id"] for finding in prove.describe_state(looked_for, snapshot)["findings"]}


LAB = r"HKLM\SOFTWARE\WinLab"


@pytest.mark.parametrize("offset", [-18000, 7200])
def test_a_hardware_clock_in_another_zone_moves_no_boot(host: Host, offset: int) -> None:
    known = info(host)[1].host.boot_time
    host.plant(registry=[{"key": LAB, "name": "RtcOffset", "data": str(offset)}])
    assert info(host)[1].host.boot_time == known
    host.agent.control("reboot")
    assert info(host)[1].host.boot_time != known


def test_where_the_clock_was_set_too_often_the_daily_uptime_counts(host: Host) -> None:
    known = info(host)[1].host.boot_time
    host.plant(
        registry=[
            {"key": LAB, "name": name, "data": data} for name, data in (("RtcOffset", "7200"), ("ClockSteps", "9"))
        ]
    )
    # Until the event log writes it the boot is unknown, not wrong.
    assert info(host)[1].host.boot_time is None
    host.agent.control("clock", advance_ms=25 * 3600 * 1000)
    assert info(host)[1].host.boot_time == known


WMIC = r"C:\Windows\System32\wbem\WMIC.exe"
MAPPING = {"key": LAB, "name": "SmbGlobalMappings", "data": r"|\\nas\share|2;Z:|\\nas\other|0"}
MAPPINGS = (("", r"\\nas\share", 2), ("Z:", r"\\nas\other", 0))


@pytest.mark.parametrize("os_build", ["20348.2700", "26100.1742"])
def test_smb_mappings_are_read_with_and_without_wmic(server: SimulatedServer, os_build: str) -> None:
    with simulated_host(server.address, "win-mappings", os_build=os_build) as host:
        assert observe.list_smb_mappings(host.node(), uses_smb=True) == ()
        host.plant(registry=[MAPPING])
        assert observe.list_smb_mappings(host.node(), uses_smb=True) == MAPPINGS
        assert started_powershell(host) == os_build.startswith("26100")


def test_the_case_table_has_the_line_that_asks_powershell(host: Host) -> None:
    host.plant(files={WMIC: None})
    observe.list_smb_mappings(host.node(), uses_smb=True)
    (step,) = [step for step in host.steps() if "powershell" in step]
    (case,) = [case for case in conformance.load() if case.name == "smb-mappings"]
    assert case.line == commands.wrap_line(f"{commands.SYSTEM32}{step.removeprefix('.')} <nul")


def test_without_a_node_plugin_of_smb_no_powershell_is_started(host: Host) -> None:
    host.plant(registry=[MAPPING])
    assert observe.list_smb_mappings(host.node(), uses_smb=False) == MAPPINGS
    host.plant(files={WMIC: None})
    assert observe.list_smb_mappings(host.node(), uses_smb=False) is None
    assert not started_powershell(host)


@pytest.mark.parametrize(
    "powershell",
    [
        # The class is missing, or a policy forbids a cmdlet.
        {"rc": 1, "effect": "none"},
        # It fails between two mappings.
        {"rc": 1, "effect": "none", "stdout": "LocalPath=\r\nRemotePath=\\\\nas\\other\r\nStatus=0\r\n"},
        # A policy blocks the program.
        {"rc": 1260, "effect": "none"},
        {"delay_ms": 5_000},
        None,
    ],
    ids=["fails", "fails-half-way", "is-blocked", "hangs", "is-missing"],
)
def test_smb_mappings_that_cannot_be_read_are_not_absent(
    host: Host, powershell: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observe, "MAPPINGS_TIMEOUT", 1.0)
    files: dict[str, Any] = {WMIC: None}
    if powershell is None:
        files[r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe"] = None
    else:
        host.fault(match="powershell", times=-1, **powershell)
    host.plant(files=files, registry=[MAPPING])
    assert observe.list_smb_mappings(host.node(), uses_smb=True) is None


def started_powershell(host: Host) -> bool:
    return any("powershell" in step for step in host.steps())


def test_smb_matters_where_its_node_plugin_is(host: Host) -> None:
    assert "CSI-N13" not in found(host)
    host.plant(files={r"C:\var\lib\kubelet\plugins\smb.csi.k8s.io": {"dir": True}})
    assert "CSI-N13" in found(host)


def test_services_behind_a_denied_key_are_unknown(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(NEW)))
    host.plant(registry=[{"key": SERVICES + r"\aaa", "denied": True}])
    looked_for, snapshot = info(host)
    assert "CSI-N08" in {finding["id"] for finding in prove.describe_state(looked_for, snapshot)["findings"]}


@pytest.mark.parametrize("name", ["csi-proxy", "csiproxy"])
@pytest.mark.parametrize(
    ("image_path", "read"),
    [
        (r"C:\Windows\proxy\csi-proxy.exe -windows-service", True),
        (r"%SOME_PLACE%\csi-proxy.exe", False),
        (r"C:\a&b\csi-proxy.exe", False),
    ],
)
def test_a_foreign_service_whose_path_cannot_stand_on_a_line(
    host: Host, image_path: str, read: bool, name: str
) -> None:
    host.plant(files={r"C:\Windows\proxy\csi-proxy.exe": {"exe": {"kind": "csi-proxy", "release": NEW}}})
    host.plant(services=[{"name": name, "command": image_path}])
    looked_for, snapshot = info(host)
    assert snapshot.service is not None
    assert prove.describe_state(looked_for, snapshot)["managed_by"] == "foreign"
    assert (snapshot.executable_sha256 is not None) is read
    assert (snapshot.executable_code is None) is not read


def test_info_has_the_digest_of_any_service(host: Host, artifacts: Artifacts) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.run(wanted(artifact))
    looked_for, snapshot = info(host)
    state = prove.describe_state(looked_for, snapshot)
    assert state["executable"]["sha256"] == artifact.sha256
    assert state["executable"]["release"] == NEW
    assert state["serving"] is True
    assert state["missing_pipes"] == []
    assert len(host.lines) == 1


def test_a_program_in_a_directory_with_blanks_is_read_by_a_second_line(host: Host) -> None:
    path = r"C:\Program Files\csi-proxy.exe"
    host.plant(files={path: {"exe": {"kind": "csi-proxy", "release": NEW}}})
    host.plant(services=[{"name": "csi-proxy", "command": f'"{path}" -windows-service'}])
    dummy, snapshot = info(host)
    assert snapshot.executable_sha256 is not None
    assert len(host.lines) == 2


@pytest.mark.parametrize(
    ("spoil", "finding", "message"),
    [
        ("", "", ""),
        ("gone", "CSI-N06", "is missing"),
        ("replaced", "CSI-N07", "was replaced"),
        (r'sc.exe config csi-proxy binPath= "{} -no-such-flag"', "CSI-N07", "command line"),
        (r"sc.exe config csi-proxy start= disabled", "CSI-N18", "disabled"),
        (r"sc.exe config csi-proxy start= demand", "CSI-N18", "demand"),
    ],
)
def test_a_fault_at_the_next_reboot_is_reported_before_it(
    host: Host, artifacts: Artifacts, spoil: str, finding: str, message: str
) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    if spoil in ("gone", "replaced"):
        other = {"exe": {"kind": "csi-proxy", "release": NEW, "start": "exit:2"}}
        # A running program is moved away first: Windows neither deletes nor overwrites it.
        assert host.agent.run(rf'move "{desired.executable}" C:\away.exe').rc == 0
        host.plant(files={desired.executable: other if spoil == "replaced" else None})
    elif spoil:
        assert host.agent.run(spoil.format(desired.executable)).rc == 0
    looked_for, snapshot = info(host)
    state = prove.describe_state(looked_for, snapshot)
    assert state["serving"]
    blockers = [found for found in state["findings"] if found["severity"] == "blocker"]
    assert [found["id"] for found in blockers] == ([finding] if finding else [])
    assert all(message in found["message"] for found in blockers)
    host.agent.control("reboot")
    host.agent.control("clock", advance_ms=60_000)
    assert prove.describe_state(looked_for, info(host)[1])["serving"] is not bool(finding)


def test_a_full_disk_is_named_with_its_drive(host: Host) -> None:
    assert [drive for drive, _free in info(host)[1].storage.free_bytes] == ["C:"]
    host.agent.control("fault", rule={"disk_free": 100})
    found = [finding for finding in prove.describe_state(*info(host))["findings"] if finding["id"] == "CSI-N23"]
    assert [(finding["object"], finding["severity"]) for finding in found] == [("drive C:", "warning")]


def test_a_full_disk_with_the_kubelets_directory_is_named_too(host: Host) -> None:
    host.plant(files={"D:\\kubelet": {"dir": True}})
    host.agent.control("fault", rule={"disk_free": 100})
    state = prove.describe_state(*info(host, kubelet_path="d:\\kubelet"))
    full = [finding["object"] for finding in state["findings"] if finding["id"] == "CSI-N23"]
    assert full == ["drive C:", "drive D:"]


def test_info_on_an_empty_node(host: Host) -> None:
    looked_for, snapshot = info(host)
    state = prove.describe_state(looked_for, snapshot)
    assert (state["service"], state["executable"], state["serving"]) == (None, None, False)
    assert state["managed_by"] == "none"
