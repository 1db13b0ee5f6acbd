# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Severity and reason of every readiness finding. Its evidence and remedy are in the rule that creates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base import findings as deploy
from .facts.snapshot import Unread
from .verdict import ReportFinding, Severity

# One command for every rule that an account lacks; which rule it is stands in the evidence.
_RBAC = Path(__file__).resolve().parents[3] / "roles" / "csi_driver" / "files" / "kubewin-preflight-rbac.yaml"
GRANT = f"kubectl apply -f {_RBAC} (once, then bind its ClusterRole kubewin-preflight to this account)"
PAGE = "https://kubewin.github.io/csi/docsite/findings.html"
# What Sphinx puts before the id of a finding.
ANCHOR = "ansible-collections-kubewin-csi-docsite-findings-"


@dataclass(frozen=True, slots=True)
class Reason:
    """What is always the same about a finding. doubt: it stands for something that is not known."""

    severity: Severity
    why: str
    doubt: bool = False


REASONS: dict[str, Reason] = {
    # The cluster as a whole.
    "CSI-C01": Reason("warning", "what depends on it is unknown, and unknown is never ready", doubt=True),
    "CSI-C14": Reason("blocker", "without this sidecar no volume of this driver is provisioned or attached, including those with CSI migration"),
    "CSI-C17": Reason("blocker", "a controller without support for the in-tree kind creates, deletes and attaches none of its volumes"),
    # Nodes.
    "CSI-N30": Reason("blocker", "a label can be edited, but the kubelet decides how pods and volumes are prepared"),
    "CSI-N33": Reason("blocker", "a pod beyond the limit waits"),
    "CSI-N34": Reason("blocker", "the volume is not attached or not detached, so its pod does not start"),
    "CSI-N35": Reason("warning", "Kubernetes force-detaches a volume after six minutes; until then no other node can attach it"),
    "CSI-N36": Reason("blocker", "a volume that is attached in-tree is never detached once the kubelet uses CSI"),
    "CSI-N44": Reason("blocker", "volumes of this driver cannot be mounted on the node"),
    "CSI-N45": Reason("blocker", "a plugin that neither uses csi-proxy nor is a HostProcess container cannot reach the disks of the host"),
    "CSI-N46": Reason("warning", "whether anything runs the driver there is unknown, and unknown is never ready", doubt=True),
    # Volumes.
    "CSI-V10": Reason("warning", "deleting and resizing use CSI already, mounting on Windows does not yet"),
    "CSI-V11": Reason("warning", "it works until an upgrade removes the in-tree code"),
    "CSI-V13": Reason("blocker", "the translation to CSI rejects this object, so nothing mounts it once CSI migration is on"),
    "CSI-V14": Reason("blocker", "the driver does not mount this file system on Windows, so the pod waits for its volume"),
    "CSI-V15": Reason("blocker", "Windows has no raw block volumes for containers"),
    "CSI-V17": Reason("blocker", "no Windows node can reach the volume"),
    "CSI-V18": Reason("warning", "Windows formats a disk whose file system it does not know, so check the disk first", doubt=True),
    "CSI-V19": Reason("blocker", "a disk has one file system: Windows cannot read that of Linux, or formats the disk again"),
    "CSI-V20": Reason("blocker", "this release of the kubelet does not mount it"),
    "CSI-V22": Reason("warning", "whether the kubelet mounts it in-tree or by CSI is unknown", doubt=True),
    "CSI-V23": Reason("blocker", "its volume does not exist or belongs to another claim, so its pods do not start"),
    "CSI-V24": Reason("blocker", "it is deleted after its last pod; with the policy Delete, its data is deleted too"),
    "CSI-V25": Reason("blocker", "kubelet and attach controller treat two volumes with one handle as one, and pods that use both hang"),
    "CSI-V26": Reason("blocker", "nothing provisions a volume for the claim"),
    "CSI-V27": Reason("blocker", "pods that name a missing claim do not start"),
    "CSI-V28": Reason("blocker", "kubelets mount only the kinds of volumes that the CSIDriver allows"),
    "CSI-V30": Reason("blocker", "kubelets on Windows do not mount this kind of volume"),
    "CSI-V31": Reason("blocker", "the driver does not mount the volume on Windows, so its pod does not start"),
    "CSI-V32": Reason("warning", "whether the driver supports the volume on Windows is unknown, and unknown is not ready", doubt=True),
    "CSI-V40": Reason("blocker", "the claim cannot be bound to its volume, so no pod with the claim starts"),
    "CSI-V41": Reason("warning", "whether the claim gets a volume depends on facts that this report does not have", doubt=True),
    "CSI-V42": Reason("blocker", "one pod at a time can use such a claim; every other pod stays Pending"),
    "CSI-V43": Reason("warning", "the new pod of a rollout waits for the old one to end, and the old one for the new", doubt=True),
    "CSI-V50": Reason("blocker", "the control plane and the kubelet attach the volume in different ways, so the kubelet waits forever"),
    "CSI-V51": Reason("warning", "a kubelet waits forever for a volume that the control plane attaches in the other way", doubt=True),
    "CSI-V52": Reason("blocker", "Kubernetes detaches a volume from such a node only when the node is Ready again, deleted or out of service"),
    "CSI-V53": Reason("warning", "attaching the volume to a second node fails with Multi-Attach, and the pod there waits for its volume", doubt=True),
    # Workloads.
    "CSI-W01": Reason("warning", "either operating system may mount its volumes, so the report checks them for Windows too", doubt=True),
    "CSI-W06": Reason("warning", "a file on its node defines it: the API cannot move it, and a drain leaves it there"),
    "CSI-W07": Reason("blocker", "no controller recreates it after a drain or the loss of its node"),
    "CSI-W08": Reason("warning", "what makes its next pods, or from which template, is unknown", doubt=True),
    "CSI-W09": Reason("warning", "it is unknown whether its pods start again", doubt=True),
    "CSI-W20": Reason("blocker", "the API server creates no pod of the workload, the scheduler places none on these nodes, or the kubelet there rejects it"),
    "CSI-W21": Reason("warning", "whether the scheduler places a pod of the workload there depends on facts that this report does not have", doubt=True),
    "CSI-W22": Reason("blocker", "a pod that does not start now does not start after a restart either, until its cause is removed"),
    "CSI-W23": Reason("warning", "a pod that does not start now may not start after a restart either", doubt=True),
    # A target.
    "CSI-T01": Reason("blocker", "kubelets that are too far behind the API server are not supported and may not work"),
    "CSI-T02": Reason("warning", "this collection has no data of that release, so this part of the report is unknown", doubt=True),
    "CSI-T03": Reason("blocker", "volumes of node plugins that use csi-proxy fail after the upgrade"),
    "CSI-T06": Reason("blocker", "each release of the operator is for one release of OpenShift"),
    "CSI-T07": Reason("blocker", "its nodes would keep services that the older release cannot manage or remove"),
    "CSI-T12": Reason("blocker", "kubelet and cluster are never downgraded, so nothing would be upgraded"),
    "CSI-T15": Reason("blocker", "between in-tree and CSI, no release of the operator mounts these volumes on Windows"),
    "CSI-T14": Reason("blocker", "Operator Lifecycle Manager offers only the next minor release, so such an upgrade does not begin"),
    "CSI-T18": Reason("note", "the node plugin for Windows follows the release of OpenShift's controller"),
    "CSI-T16": Reason("warning", "two node plugins of a driver on a node remove each other's registration"),
    "CSI-T13": Reason("blocker", "the target is for another platform, so this cluster never reaches it"),
}  # fmt: skip

# Findings of other parts, which mean the same wherever they are found.
_ELSEWHERE = {
    "CSI-D": "the driver's deployment on Windows depends on it",
    "CSI-G": "a driver mounts nothing on a node where its node plugin does not work",
    "CSI-N": "volumes on this host can fail because of it, even if csi-proxy serves",
}
# What keeps a csi-proxy that runs from serving after its node's next reboot.
AFTER_REBOOT = ("CSI-N06", "CSI-N07", "CSI-N18")
# Findings of a group with a reason of their own.
_BY_ID = {
    "CSI-G14": "it runs an older template, not yet the desired one",
    "CSI-G30": "the two remove each other's registration, so mounts fail intermittently",
    **dict.fromkeys(AFTER_REBOOT, "after its next reboot the node serves no volumes, or through another program"),
    **dict.fromkeys(
        ("CSI-N08", "CSI-N09", "CSI-N17"), "what was not read on the host is unknown, and unknown is never ready"
    ),
    **dict.fromkeys(
        ("CSI-G13", "CSI-G15", "CSI-G40", "CSI-G41"),
        "whether its node plugin works there is unknown, so none of its volumes is ready there",
    ),
}
# Those among them that stand for something not known, or not lasting.
DOUBTS = frozenset({"CSI-G13", "CSI-G14", "CSI-G15", "CSI-G40", "CSI-G41", "CSI-N09", "CSI-N17"})


def create_finding(
    id_: str, object_: str, message: str, evidence: tuple[str, ...], remedy: str, severity: Severity | None = None
) -> ReportFinding:
    """A finding of readiness, or one of another part, which says its severity."""
    entry = REASONS[id_] if severity is None or id_ in REASONS else _describe_other_part(id_, severity)
    return ReportFinding(
        id=id_,
        severity=severity or entry.severity,
        object=object_,
        message=message,
        evidence=evidence,
        why=entry.why,
        remedy=remedy,
        link=f"{PAGE}#{ANCHOR}{id_.lower()}",
        doubt=entry.doubt,
    )


def change_template(workload: str, change: str) -> str:
    """How the next pods of a workload get something: those of a Pod or Job cannot be changed."""
    recreated = workload.startswith(("Pod ", "Job "))
    return f"recreate it with {change}" if recreated else f"add {change} to its pod template"


def _describe_other_part(id_: str, severity: Severity) -> Reason:
    return Reason(severity, _BY_ID.get(id_) or _ELSEWHERE[id_[:5]], id_ in DOUBTS)


def report_unread_lists(lists: Iterable[Unread]) -> tuple[ReportFinding, ...]:
    return tuple(
        create_finding(
            "CSI-C01",
            unread_list.resource,
            f"{unread_list.resource} could not be read: {unread_list.why}",
            (unread_list.why, f"missing rule: {unread_list.rule}") if unread_list.rule else (unread_list.why,),
            GRANT if unread_list.rule else f"run the report again when {unread_list.resource} can be read",
        )
        for unread_list in lists
    )


def pass_on(findings: Iterable[deploy.Finding]) -> Iterator[ReportFinding]:
    """What deploying a driver finds, as it is."""
    for finding in findings:
        yield create_finding(
            finding.id,
            finding.object,
            finding.message,
            (f"{finding.object}: {finding.message}",),
            finding.remedy,
            finding.severity,
        )
