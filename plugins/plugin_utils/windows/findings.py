# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems for volumes on a Windows node although csi-proxy serves. Each finding has a remedy; the collection changes none of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.findings import Finding, blocker, note, warning
from ..catalog import csi_proxy as catalog
from ..catalog.versions import is_above
from . import model, plan
from .model import HostSnapshot, Service

_AUTOMATIC, _DEMAND, _DISABLED = 2, 3, 4
_MISSING_CODES = (0x80070002, 0x80070003)
# A free gigabyte or less: csi-proxy's log and a mount may need more, and the kubelet has evicted pods before.
_FULL = 1 << 30
_SAN = {1: "online all", 2: "offline shared", 3: "offline all", 4: "offline internal"}


def list_findings(snapshot: HostSnapshot) -> tuple[Finding, ...]:
    """Every finding of a snapshot, in the order of their ids. Pure."""
    rules = (_check_service, _check_next_start, _check_storage)
    findings = [finding for rule in rules for finding in rule(snapshot)]
    return tuple(sorted(findings, key=lambda finding: finding.id))


def _check_service(snapshot: HostSnapshot) -> Iterator[Finding]:
    release = plan.find_release(snapshot)
    if release and is_above(catalog.FLOOR, release):
        yield blocker(
            "CSI-N01",
            f"csi-proxy {release}",
            f"csi-proxy {release} is below {catalog.FLOOR}, the first release without CVE-2023-3893.",
            f"Install {catalog.RECOMMENDED} with the csi_proxy role.",
        )
    elif release and is_above(catalog.RECOMMENDED, release):
        yield note(
            "CSI-N02",
            f"csi-proxy {release}",
            f"csi-proxy {release} runs PowerShell for each operation, which costs CPU on busy nodes.",
            f"Plan the upgrade to {catalog.RECOMMENDED}.",
        )
    for name, command_line in snapshot.other_services:
        yield warning(
            "CSI-N03",
            f"service {name}",
            f"A further service runs csi-proxy ({command_line}); the one that starts second cannot open its pipes.",
            f"Delete the one that you do not need: sc.exe delete {name}.",
        )
    if snapshot.service and plan.find_manager(snapshot) not in plan.ELSEWHERE:
        for process in plan.find_foreign_processes(snapshot):
            yield warning(
                "CSI-N04",
                f"{process.image} PID {process.pid}",
                "A csi-proxy process runs outside the service; only one can serve the pipes.",
                f"If no HostProcess pod owns it, end it: taskkill /F /PID {process.pid}.",
            )


def _check_next_start(snapshot: HostSnapshot) -> Iterator[Finding]:
    """What keeps a csi-proxy that runs now from serving after the next reboot, or leaves open whether it will."""
    service = snapshot.service
    if not snapshot.services_read:
        yield note(
            "CSI-N08",
            model.SERVICES_KEY,
            "A key below it cannot be read, so a second service of csi-proxy may be there unseen.",
            rf"Find the key (reg query {model.SERVICES_KEY} /s ends there) and grant Administrators read access.",
        )
    if snapshot.host.boot_time is None:
        yield warning(
            "CSI-N17",
            "time of the last boot",
            "The System event log does not have the time of the last boot, or its events disagree, so a plugin pod from before the boot is "
            "not detected.",
            "Enlarge the log (wevtutil sl System /ms:67108864), which then keeps the event of the next boot. If the hardware clock is in UTC, "
            "set the registry value RealTimeIsUniversal.",
        )
    if service is None:
        return
    subject = f"service {service.name}"
    runs = service.state not in (0, model.STOPPED)
    repair = "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"
    if plan.find_manager(snapshot) in plan.ELSEWHERE or plan.find_manager(snapshot) == "foreign":
        repair = "Repair it with the tool that installed csi-proxy."
    code = snapshot.executable_code
    if code in _MISSING_CODES:
        state = "runs, but its executable" if runs else "is stopped, and its executable"
        message = f"csi-proxy {state} {service.executable} is missing: it {'will not start again' if runs else 'cannot start'}."
        yield blocker("CSI-N06", subject, message, repair)
    if not runs:
        return
    if code not in _MISSING_CODES and snapshot.executable_sha256 is None:
        why = "only the node can resolve its path" if code is None else f"certutil answered 0x{code:x}"
        message = f"csi-proxy runs, but its executable {service.executable} was not read ({why}): whether it will start again is unknown."
        yield warning("CSI-N09", subject, message, f"Check the file on the node, then: {repair}")
    changed = _describe_change(service, snapshot)
    if changed:
        yield blocker("CSI-N07", subject, changed, repair)
    if plan.find_manager(snapshot) not in plan.ELSEWHERE and service.start != _AUTOMATIC:
        depends = ", ".join(snapshot.dependents) if service.start == _DEMAND else ""
        yield Finding(
            "CSI-N18",
            "warning" if depends else "blocker",
            subject,
            f"csi-proxy runs, but its start mode is {service.start_mode}: "
            + (f"it starts only with {depends}." if depends else "no reboot starts it."),
            f"sc.exe config {service.name} start= auto",
        )


def _describe_change(service: Service, snapshot: HostSnapshot) -> str:
    """What differs from the release that was proven; '' when nothing does, or none was."""
    record = service.record
    if record.previous:
        return "An earlier run set another release of csi-proxy and ended before it was verified."
    if record.command_line_sha256 not in ("", model.digest_text(service.command_line)):
        return f"The command line of csi-proxy is {service.command_line!r}, expected the one that was verified."
    if record.sha256 and snapshot.executable_sha256 and record.sha256 != snapshot.executable_sha256:
        return (
            f"The executable of csi-proxy, {service.executable}, was replaced: SHA-256 {snapshot.executable_sha256}, "
            f"expected {record.sha256}, which was verified."
        )
    return ""


def _check_storage(snapshot: HostSnapshot) -> Iterator[Finding]:
    storage = snapshot.storage
    if storage.san_policy not in (None, 1):
        yield warning(
            "CSI-N10",
            "SAN policy",
            f"New disks are offline (SanPolicy {storage.san_policy}, "
            f"{_SAN.get(storage.san_policy or 0, 'unknown')}); a driver that does not bring them online cannot "
            "format or mount them.",
            "diskpart: san policy=OnlineAll (or Set-StorageSetting -NewDiskPolicy OnlineAll).",
        )
    if storage.defragsvc_start == _DISABLED:
        yield warning(
            "CSI-N11",
            "service defragsvc",
            "Optimize drives is disabled; expanding a volume fails without it.",
            "sc.exe config defragsvc start= demand",
        )
    if storage.afunix_start is None or storage.afunix_start == _DISABLED:
        state = "disabled" if storage.afunix_start == _DISABLED else "missing"
        yield blocker(
            "CSI-N12",
            "driver afunix",
            f"The driver for Unix domain sockets is {state}; node plugins and the kubelet communicate through such sockets.",
            "sc.exe config afunix start= system, then reboot (Windows Server 2019 or later).",
        )
    for drive, free in storage.free_bytes:
        if free >= _FULL:
            continue
        yield warning(
            "CSI-N23",
            f"drive {drive}",
            f"The drive has {free >> 20} MiB free, expected {_FULL >> 20} MiB or more: mounts fail, and the kubelet evicts pods.",
            "Free space on the host. This removes images that no container uses: crictl rmi --prune",
        )
    if storage.uses_smb and storage.compartment_namespace != 1:
        yield note(
            "CSI-N13",
            r"HKLM\SYSTEM\CurrentControlSet\Services\hns\State EnableCompartmentNamespace",
            "Names of SMB servers may not resolve for shares that are mapped from a container's compartment.",
            r"reg add HKLM\SYSTEM\CurrentControlSet\Services\hns\State"
            " /v EnableCompartmentNamespace /t REG_DWORD /d 1 /f, then reboot.",
        )
    for mount in storage.stale_mounts:
        yield warning(
            "CSI-N15",
            mount,
            "This global mount has no target, as after a reboot; the kubelet does not mount the volume while it exists.",
            f"If no pod on this node uses the volume: rmdir {mount}",
        )
