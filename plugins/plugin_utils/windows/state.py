# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of csi-proxy on a host, as later tasks read it from a result. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.findings import Finding
from .model import Drift, HostIdentity


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
