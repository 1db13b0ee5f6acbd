# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired state of a node and what is found there, as values. Nothing here talks to anything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..base.findings import Finding
from . import parse
from .access import AccessList
from .commands import quote_for_c

STOPPED, START_PENDING, STOP_PENDING, RUNNING = 1, 2, 3, 4
STATE_NAMES = {
    1: "stopped",
    2: "start_pending",
    3: "stop_pending",
    4: "running",
    5: "continue_pending",
    6: "pause_pending",
    7: "paused",
}

ManagedBy = Literal["none", "kubewin", "adopted", "wicd", "nssm", "rancher-wins", "host-process", "foreign"]

SERVICES_KEY = r"HKLM\SYSTEM\CurrentControlSet\Services"
OWN_KEY = r"HKLM\SOFTWARE\kubewin.csi"
"""Registry key that records the directory that the collection created; only Administrators can write there."""

DRIVE = "C:\\"
INSTALL_DIR = r"C:\csi-proxy"
"""Directory of the releases. The collection creates it, for SYSTEM and Administrators alone: csi-proxy runs from there as SYSTEM."""

LOCK_PARENT = r"C:\Windows"
LOCK_NAME = "kubewin.csi.lock"
LOCK_DIR = rf"{LOCK_PARENT}\{LOCK_NAME}"
"""The node lock is a directory: renaming one into place is atomic, and only Administrators may create one here."""

UNREADABLE = "unreadable"
"""identity of a lock's holder that left no readable name"""

DESCRIPTION = "Storage operations for CSI node plugins (kubewin.csi)"
DISPLAY_NAME = "CSI Proxy"


def digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    type: str
    """restart or none (reboot and run appear only in what is found)"""
    delay_ms: int


@dataclass(frozen=True, slots=True)
class Recovery:
    reset_seconds: int
    actions: tuple[RecoveryAction, ...]


START_MODE = "auto"
"""A node plugin needs csi-proxy after each boot of the node."""
RECOVERY = Recovery(86400, tuple(RecoveryAction("restart", delay_ms) for delay_ms in (10_000, 30_000, 60_000)))
"""Windows restarts csi-proxy soon, and later each time, so that a csi-proxy that always ends does not load the node."""


@dataclass(frozen=True, slots=True)
class ExecutableSource:
    """Where the executable comes from: a URL that the node pulls, or a file on the controller that is streamed."""

    location: str
    check_revocation: bool = True

    @property
    def is_url(self) -> bool:
        return self.location.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class Desired:
    """What a csi_proxy task asks for, normalised and checked by ``desired.build_desired``."""

    state: Literal["present", "staged", "absent"]
    version: str = ""
    sha256: str = ""
    source: ExecutableSource | None = None
    flags: tuple[str, ...] = ()
    """everything after the executable, without ``-windows-service``"""
    log_file: str = ""
    required_pipes: tuple[str, ...] = ()
    allow_downgrade: bool = False
    take_over: str = ""
    """the other manager whose service becomes this collection's, empty for none"""
    kubelet_path: str = r"C:\var\lib\kubelet"

    @property
    def drives(self) -> tuple[str, ...]:
        """The drive of the install directory, and that of the kubelet's directory if it is another."""
        return tuple(dict.fromkeys(path[:2].upper() for path in (INSTALL_DIR, self.kubelet_path)))

    @property
    def release_dir_name(self) -> str:
        """The release's own directory: version and digest name the content, so an existing one never changes."""
        return f"{self.version}-{self.sha256[:12]}"

    @property
    def release_dir(self) -> str:
        return rf"{INSTALL_DIR}\{self.release_dir_name}"

    @property
    def executable(self) -> str:
        return rf"{self.release_dir}\csi-proxy.exe"

    @property
    def command_line(self) -> str:
        words = [self.executable, "-windows-service", *self.flags]
        return " ".join(quote_for_c(word) if " " in word else word for word in words)


@dataclass(frozen=True, slots=True)
class Record:
    """What the collection wrote under the service's Parameters key."""

    release: str = ""
    sha256: str = ""
    proven_pid: int = 0
    """PID when the release was last proven"""
    previous: str = ""
    """command line to return to: set by a swap that has not been proven yet"""
    previous_pid: int = 0
    """PID of the process that the unproven swap replaces"""
    adopted_from: str = ""
    """command line of the service before the collection took it over"""
    command_line_sha256: str = ""
    """of the service's command line when the release was last proven"""


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    state: int
    """0 when the service is registered, but its status could not be read"""
    pid: int
    start: int | None
    delayed: bool
    command_line: str
    description: str
    recovery: Recovery | None
    delete_pending: bool
    record: Record
    application: str = ""
    """what NSSM runs for this service"""
    app_parameters: str = ""
    """its arguments"""
    app_outputs: tuple[str, ...] = ()
    """files to which NSSM sends its output"""

    @property
    def executable(self) -> str:
        return parse.find_executable(self.command_line)

    @property
    def start_mode(self) -> str:
        if self.start == 2:
            return "delayed-auto" if self.delayed else "auto"
        return {0: "boot", 1: "system", 3: "demand", 4: "disabled"}.get(
            self.start if self.start is not None else -1, "unknown"
        )


@dataclass(frozen=True, slots=True)
class HostIdentity:
    name: str = ""
    dns_name: str = ""
    addresses: tuple[str, ...] = ()
    boot_time: str | None = None


@dataclass(frozen=True, slots=True)
class LockOwner:
    """Who holds the node lock. ``identity`` is unique per run."""

    identity: str
    since: float
    """seconds since 1970 by the holder's clock"""
    process: str = ""
    """as of kube.holder.identify_process, empty if it is unknown"""
    text: str = ""
    """the lock's file as it was read; each renewal changes it"""


@dataclass(frozen=True, slots=True)
class StorageState:
    """Values that volumes trip over, as found; None means not there or not readable."""

    san_policy: int | None = None
    defragsvc_start: int | None = None
    afunix_start: int | None = None
    compartment_namespace: int | None = None
    free_bytes: tuple[tuple[str, int], ...] = ()
    """(drive, bytes) of the drives with the install directory and with the kubelet's directory"""
    stale_mounts: tuple[str, ...] = ()
    uses_smb: bool = False
    """the kubelet has the directory of a node plugin that maps SMB shares"""


@dataclass(frozen=True, slots=True)
class HostSnapshot:
    """One observation of a node."""

    observed_at: float
    host: HostIdentity
    service: Service | None
    dependents: tuple[str, ...]
    """services that name ours among their dependencies"""
    running_dependents: tuple[str, ...]
    """those of them that run, while ours does"""
    other_services: tuple[tuple[str, str], ...]
    """(name, command line) of further services that run a csi-proxy"""
    rancher: bool
    processes: tuple[parse.Process, ...]
    """every process whose image is csi-proxy's (or that of the service's executable)"""
    pipes: tuple[str, ...]
    executable_sha256: str | None
    """digest of the service's executable"""
    staged_sha256: str | None
    """digest of the desired release's executable, None when it is not there"""
    owns_install_dir: bool
    """whether the collection recorded that it created the install directory"""
    install_dir_exists: bool
    install_dir_entries: tuple[str, ...]
    access: tuple[tuple[str, AccessList | None], ...]
    """access lists of the drive, of the install directory, of the desired release's directory and of its executable; None: there is no
    such path; no entry: its list could not be read"""
    lock: LockOwner | None
    links: tuple[str, ...] = ()
    """junctions and symbolic links: the install directory, and what lies in it"""
    lock_leftovers: tuple[str, ...] = ()
    """directories of interrupted lock attempts"""
    log_dir_exists: bool = True
    storage: StorageState = field(default_factory=StorageState)
    executable_code: int | None = 0
    """what reading the service's executable ended with; None when it was not tried"""
    pipes_listed: bool = True
    """False: pipes cannot be listed on this node, and each was opened"""
    services_read: bool = True
    """False: a key of the services was denied, so further services may run a csi-proxy unseen"""


@dataclass(frozen=True, slots=True)
class Drift:
    item: str
    found: object
    expected: object


@dataclass(frozen=True, slots=True)
class RegisteredService:
    """The Windows service. start_mode: empty in the result of a task that failed."""

    name: str
    state: str
    start_mode: str


@dataclass(frozen=True, slots=True)
class CsiProxyState:
    """RV(csi_proxy) of csi_proxy_info. release: of the executable, empty if it is unknown. smb_mappings: None if they were not read."""

    observed_at: str
    host: HostIdentity
    managed_by: str
    service: RegisteredService | None
    release: str
    pipes: Sequence[str]
    serving: bool
    missing_pipes: Sequence[str]
    drift: Sequence[Drift]
    findings: Sequence[Finding]
    smb_used: bool
    smb_mappings: Sequence[Mapping[str, Any]] | None

    @classmethod
    def from_result(cls, state: Mapping[str, Any]) -> CsiProxyState:
        """Read what describe_state of prove.py made, and csi_proxy_info added."""
        service = state["service"]
        return cls(
            observed_at=state["observed_at"],
            host=HostIdentity(**state["host"]),
            managed_by=state["managed_by"],
            service=service and RegisteredService(service["name"], service["state"], service.get("start_mode", "")),
            release=(state["executable"] or {}).get("release") or "",
            pipes=state["pipes"],
            serving=state["serving"],
            missing_pipes=state["missing_pipes"],
            drift=[Drift(**drift) for drift in state["drift"]],
            findings=[Finding(**finding) for finding in state["findings"]],
            smb_used=state.get("smb_used", False),
            smb_mappings=state.get("smb_mappings"),
        )
