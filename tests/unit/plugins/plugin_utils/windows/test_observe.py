# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is observed beyond the service: who the host is, and what volumes there would trip over."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import desired, model, observe, options, prove
from lab.windows.simulated import SimulatedServer
from unit.plugins.plugin_utils.windows.simulated import NEW, Artifacts, Host, simulated_host, wanted

SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"


def info(host: Host, **given: object) -> tuple[model.Desired, model.Snapshot]:
    values = {name: spec.get("default") for name, spec in options.INFO.items()} | given
    looked_for = desired.for_info(values)
    return looked_for, observe.observe(host.node(), looked_for, look_at_mounts=True)


def found(host: Host, **given: object) -> set[str]:
    looked_for, snapshot = info(host, **given)
    return {finding["id"] for finding in prove.state(looked_for, snapshot)["findings"]}


def test_who_the_host_is(server: SimulatedServer) -> None:
    with simulated_host(server.address, "win-facts", os_build="20348.2700") as host:
        host.plant(
            registry=[{"key": SERVICES + r"\Tcpip\Parameters", "name": "Domain", "data": "example.com"}],
        )
        facts = info(host)[1].host
    assert facts.name.lower() == "win-facts"
    assert facts.dns_name.lower() == "win-facts.example.com"
    assert facts.addresses == ("127.0.11.1",)
    assert facts.os_build == "20348.2700"
    assert facts.installation_type.startswith("Server")
    assert facts.boot_time is not None
    assert facts.boot_time.endswith("Z")


def test_a_reboot_is_seen(host: Host) -> None:
    before = info(host)[1].host
    host.agent.control("reboot")
    after = info(host)[1].host
    assert after.boot_time != before.boot_time
    assert (after.boot_id or 0) > (before.boot_id or 0)


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ([(r"\partmgr\Parameters", "SanPolicy", 3)], "CSI-N10"),
        ([(r"\defragsvc", "Start", 4)], "CSI-N11"),
        ([(r"\afunix", "Start", 4)], "CSI-N12"),
    ],
)
def test_what_volumes_trip_over(host: Host, values: list[tuple[str, str, int]], finding: str) -> None:
    assert finding not in found(host)
    host.plant(
        registry=[
            {"key": SERVICES + key, "name": name, "type": "REG_DWORD", "data": data} for key, name, data in values
        ]
    )
    assert finding in found(host)


def test_a_pending_reboot_is_known_by_a_key_without_values(host: Host) -> None:
    assert "CSI-N16" not in found(host)
    key = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending"
    host.plant(registry=[{"key": key, "key_only": True}])
    assert "CSI-N16" in found(host)


def test_a_global_mount_that_leads_nowhere(host: Host) -> None:
    volume = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi.vsphere.vmware.com\0123abcd"
    host.plant(files={rf"{volume}\globalmount\data.txt": {"text": "x"}})
    assert "CSI-N15" not in found(host)
    host.plant(files={rf"{volume}\globalmount": None})
    looked_for, snapshot = info(host)
    assert snapshot.trouble.stale_mounts == (rf"{volume}\globalmount",)
    remedies = [
        finding["remedy"] for finding in prove.state(looked_for, snapshot)["findings"] if finding["id"] == "CSI-N15"
    ]
    assert remedies == [rf"When no pod on this node uses the volume: rmdir {volume}\globalmount"]


def test_info_tells_the_digest_of_any_service(host: Host, artifacts: Artifacts) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.run(wanted(artifact))
    looked_for, snapshot = info(host, required_pipes=["csi-proxy-disk-v1"])
    state = prove.state(looked_for, snapshot)
    assert state["executable"]["sha256"] == artifact.sha256
    assert state["executable"]["release"] == NEW
    assert state["serving"] is True
    assert state["missing_pipes"] == []
    assert len(host.lines) == 2


def test_info_on_an_empty_node(host: Host) -> None:
    looked_for, snapshot = info(host, required_pipes=["csi-proxy-disk-v1"])
    state = prove.state(looked_for, snapshot)
    assert (state["service"], state["executable"], state["serving"]) == (None, None, False)
    assert state["managed_by"] == "none"
    assert state["missing_pipes"] == ["csi-proxy-disk-v1"]
