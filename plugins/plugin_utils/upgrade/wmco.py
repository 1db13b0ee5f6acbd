# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrade paths between releases of the Windows Machine Config Operator, and what they mean for volumes. Pure.

Source: https://github.com/openshift/windows-machine-config-operator (branches release-4.12 to release-4.14) and the scenarios
A to E of https://github.com/openshift/enhancements, enhancements/windows-containers/csi-proxy.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..base.findings import Finding, blocker
from ..catalog.versions import is_at_least, parse
from ..catalog.wmco import CsiProxyChange, classify_upgrade
from .journal import UpgradeTarget
from .observation import TAINT, UpgradeNode


@dataclass(frozen=True, slots=True)
class WmcoPath:
    """An upgrade path. csi_proxy: drivers can be verified before the first node only if it is kept. lowest: release of the nodes."""

    csi_proxy: CsiProxyChange
    lowest: str


def find_path(nodes: Sequence[UpgradeNode], target: UpgradeTarget) -> WmcoPath:
    """Return the path from the lowest release of these nodes. ValueError without a release."""
    versions = [node.version for node in nodes if node.version] or [target.wmco]
    lowest = min(versions, key=lambda text: parse(text).release)
    return WmcoPath(classify_upgrade(parse(lowest), parse(target.wmco)), lowest)


def find_blockers(nodes: Sequence[UpgradeNode], target: UpgradeTarget, unproven_canary: bool) -> Iterator[Finding]:
    """Return why these nodes cannot be upgraded to the target."""
    if not target.wmco:
        yield blocker(
            "CSI-U16", "WMCO", "kubewin_upgrade_target has no release of WMCO",
            "set the new release, such as kubewin_upgrade_target=wmco=9.0.0",
        )  # fmt: skip
        return
    strangers = [node.name for node in nodes if not node.version and not node.desired]
    if strangers:
        yield blocker(
            "CSI-U16", f"Node {', '.join(strangers)}", "WMCO does not manage it (it has no annotation of its release)",
            "exclude it with kubewin_upgrade_nodes, or use another hook for it",
        )  # fmt: skip
        return
    try:
        path = find_path(nodes, target)
    except ValueError as error:
        yield blocker("CSI-U16", "WMCO", str(error), "correct kubewin_upgrade_target")
        return
    lowest, target_release = parse(path.lowest).release, parse(target.wmco).release
    if target_release < lowest:
        message = f"a node has {path.lowest}, requested is {target.wmco}; WMCO cannot be downgraded"
        yield blocker("CSI-U16", "WMCO", message, "correct kubewin_upgrade_target")
    elif target_release[0] > lowest[0] + 1 and lowest[0] < 10:
        message = (
            f"from {path.lowest} to {target.wmco} is more than one minor release; each is for one release of OpenShift"
        )
        yield blocker("CSI-U16", "WMCO", message, f"first upgrade to release {lowest[0] + 1} of WMCO")
    elif path.csi_proxy == "removed":
        yield blocker(
            "CSI-U12", "WMCO",
            f"{path.lowest} includes csi-proxy and {target.wmco} does not: Windows pods would lose access to their volumes",
            "upgrade to 8.1.0 or a later release of WMCO 8 instead",
        )  # fmt: skip
    elif path.csi_proxy == "added" and target_release[0] == lowest[0]:
        yield blocker(
            "CSI-U13", "WMCO",
            f"from {path.lowest} to {target.wmco} only adds csi-proxy: volumes stay in-tree, and there is no driver to verify yet",
            "let it upgrade the nodes (approve its InstallPlan if needed), then run this for the next release",
        )  # fmt: skip
    elif path.csi_proxy == "added" and not unproven_canary:
        yield blocker(
            "CSI-U13", "WMCO",
            f"{path.lowest} has no csi-proxy, so nothing can be verified before {target.wmco}",
            _describe_first_step(path) + "; if that is impossible, kubewin_upgrade_unproven_canary=true upgrades one node without volumes first",
        )  # fmt: skip
    elif path.csi_proxy == "added" and all(
        node.carries_volumes and not is_at_least(node.version, target.wmco) for node in nodes
    ):
        yield blocker(
            "CSI-U14", "all Windows nodes",
            "each has a workload with a volume, and the first one is upgraded before anything can be verified",
            "add a node, or move the workloads off one (kubectl drain)",
        )  # fmt: skip


def _describe_first_step(path: WmcoPath) -> str:
    if parse(path.lowest).release[0] <= 7:
        return "upgrade to WMCO 7.2.0 or a later release of WMCO 7 first"
    return (
        "upgrade to WMCO 8.1.0 or a later release of WMCO 8 first, then the control plane to OpenShift 4.14, deploy "
        "the driver (4.13's feature states keep vSphere's Windows plugin from starting), verify it, and then "
        "upgrade to WMCO 9"
    )


def report_repelled_plugin(daemon_set: str) -> Finding:
    """Report a node plugin that our taint would repel."""
    return blocker(
        "CSI-U15", f"DaemonSet {daemon_set}",
        f"it does not tolerate {TAINT}:NoSchedule, which keeps workloads off a node until its volumes are verified",
        "add the toleration {key: " + TAINT + ", operator: Exists} to it",
    )  # fmt: skip
