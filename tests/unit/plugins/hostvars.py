# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the hosts as Ansible's hostvars has them, and what tasks register there."""

from __future__ import annotations

from typing import Any

NOTE = {"id": "CSI-N13", "severity": "note", "object": "host WIN-1", "message": "x", "remedy": "y"}
# RV(csi_proxy) of csi_proxy_info
STATE: dict[str, Any] = {
    "observed_at": "2026-01-01T00:00:00Z",
    "host": {"name": "WIN-1", "dns_name": "win-1.example.com", "addresses": ["10.0.0.1"], "boot_time": None},
    "managed_by": "kubewin",
    "service": {"name": "csi-proxy", "state": "RUNNING"},
    "executable": {"path": "C:\\csi-proxy\\csi-proxy.exe", "sha256": "0" * 64, "release": "1.3.0"},
    "pipes": ["csi-proxy-disk-v1"],
    "pipes_by": "listing",
    "serving": True,
    "missing_pipes": [],
    "drift": [],
    "findings": [NOTE],
}


def match(
    *names: str, matched: dict[str, str] | None = None, errors: dict[str, str] | None = None, **facts: Any
) -> dict[str, Any]:
    """What node_info returns of Nodes that all have the same facts."""
    return {
        "nodes": {
            name: {"labels": {}, "cordoned_for": "", "unschedulable": bool(facts.get("cordoned_for")), **facts}
            for name in names
        },
        "matched": matched or {},
        "errors": errors or {},
    }


class HostVars(dict[str, dict[str, Any]]):
    """Variables by host, all of them plain, so that templating changes none."""

    def raw_get(self, host: str) -> dict[str, Any]:
        return self.get(host, {})


class UntemplatedHostVars(HostVars):
    """Variables of which none may be templated."""

    def __getitem__(self, host: str) -> dict[str, Any]:
        raise AssertionError(f"variables of {host} are templated")
