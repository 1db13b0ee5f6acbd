# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports written by hand, for what is done with a report after it was evaluated."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import (
    Cause,
    NodeVerdict,
    Report,
    ReportFinding,
    Suppressed,
    Target,
    VolumeVerdict,
    WorkloadVerdict,
)

EBS = "ebs.csi.aws.com"


def finding(name: str = "CSI-V10", about: str = "PersistentVolume pv-1", **changes: Any) -> ReportFinding:
    """A minimal finding."""
    values: dict[str, Any] = {
        "id": name,
        "severity": "blocker",
        "object": about,
        "message": f"something about {about}",
        "evidence": (f"{about} spec: seen",),
        "why": "It matters.",
        "remedy": "Repair it.",
        "link": "https://example.com/guide",
        **changes,
    }
    return ReportFinding(**values)


def volume(name: str = "pv-1", ok: Any = "yes", **changes: Any) -> VolumeVerdict:
    """A volume on win-1."""
    values: dict[str, Any] = {
        "volume": name,
        "claim": f"shop/{name}-claim",
        "source": "csi",
        "driver": EBS,
        "nodes": ("win-1",),
        "ok": ok,
        "because": f"{EBS} works on win-1",
        "evidence": (f"PersistentVolume {name} spec.csi.driver: {EBS}",),
        **changes,
    }
    return VolumeVerdict(**values)


def node(name: str = "win-1", ok: Any = "yes", **changes: Any) -> NodeVerdict:
    """A node with one check."""
    values: dict[str, Any] = {
        "node": name,
        "drivers": (EBS,),
        "ok": ok,
        "because": f"{EBS} is registered and its pod is Ready",
        "evidence": (f"CSINode {name}: {EBS} registered with node id {name}",),
        **changes,
    }
    return NodeVerdict(**values)


def workload(name: str = "StatefulSet shop/db", starts_again: Any = "yes", **changes: Any) -> WorkloadVerdict:
    """A workload with the claim of pv-1."""
    values: dict[str, Any] = {
        "workload": name,
        "runs_on": "windows",
        "runs_on_because": "spec.nodeSelector kubernetes.io/os: windows",
        "starts_again": starts_again,
        "because": "every volume works on every node that it may be on",
        "volumes": ("shop/pv-1-claim",),
        **changes,
    }
    return WorkloadVerdict(**values)


def report(**changes: Any) -> Report:
    """A report; without changes nothing is wrong and nothing is there."""
    values: dict[str, Any] = {
        "cluster": "shop-east",
        "kubernetes": "v1.27.16",
        "openshift": "4.14.3",
        "taken_at": "2026-11-20T08:00:00+00:00",
        "target": Target(),
        "findings": (),
        "volumes": (),
        "nodes": (),
        "workloads": (),
        **changes,
    }
    return Report(**values)


def troubled() -> Report:
    """Some of everything: two nodes, one without its driver; a workload that will start again, one that will not, one unknown."""
    lost = finding(
        "CSI-V20",
        "PersistentVolume pv-2",
        message="pv-2 may be on win-2, where ebs.csi.aws.com is not registered",
        remedy="inspect it",
    )
    driver = finding(
        "CSI-N44",
        "Node win-2",
        message="ebs.csi.aws.com is not in its CSINode",
        remedy="Run enable_csi for the host of win-2.",
    )
    doubt = finding(
        "CSI-V30", "PersistentVolume pv-3", severity="warning", doubt=True, message="nothing says where pv-3 may be"
    )
    noted = finding("CSI-C50", "StorageClass gp2", severity="note", message="the default class is in-tree")
    return report(
        target=Target(kubernetes="1.30"),
        findings=(noted, doubt, lost, driver),
        volumes=(
            volume("pv-1"),
            volume("pv-2", "no", nodes=("win-2",), because="no driver on win-2", findings=("CSI-V20",)),
            volume("pv-3", "unknown", nodes=(), claim="lab/scratch", because="no evidence", findings=("CSI-V30",)),
        ),
        nodes=(node(), node("win-2", "no", because="ebs.csi.aws.com is not registered", findings=("CSI-N44",))),
        workloads=(
            workload(),
            workload(
                "Deployment shop/web",
                "no",
                because="claim shop/pv-2-claim: no driver on win-2",
                volumes=("shop/pv-2-claim",),
                findings=("CSI-V20",),
                causes=(Cause("CSI-V20", "PersistentVolume pv-2"),),
            ),
            workload(
                "CronJob lab/nightly", "unknown", because="claim lab/scratch: no evidence", volumes=("lab/scratch",)
            ),
        ),
        unread=({"resource": "cronjobs", "why": "403 Forbidden", "rule": "get, list cronjobs in batch"},),
        suppressed=(Suppressed(finding("CSI-N60", "Node win-1", severity="warning"), "until the move", "2027-01-31"),),
    )


def huge() -> Report:
    """1,000 nodes and 50,000 volumes, of which every twentieth node and its volumes are not well."""
    nodes = [f"win-{number:04}" for number in range(1000)]
    bad = set(nodes[::20])
    lacking = tuple(finding("CSI-N44", f"Node {name}", remedy=f"inspect {name}") for name in nodes if name in bad)
    volumes = []
    for number in range(50_000):
        name, on = f"pvc-{number:06}", nodes[number % len(nodes)]
        if on in bad:
            volumes.append(volume(name, "no", nodes=(on,), because=f"no driver on {on}", findings=("CSI-N44",)))
        else:
            volumes.append(volume(name, claim=f"team-{number % 300}/data-{number}", nodes=(on,)))
    return report(
        findings=lacking,
        nodes=tuple(
            node(name, "no" if name in bad else "yes", findings=("CSI-N44",) if name in bad else ()) for name in nodes
        ),
        volumes=tuple(volumes),
        workloads=tuple(
            workload(f"StatefulSet team-{number % 300}/set-{number}", volumes=(f"team-{number % 300}/data-{number}",))
            for number in range(5_000)
        ),
    )
