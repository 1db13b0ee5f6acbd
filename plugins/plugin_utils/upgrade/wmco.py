# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Windows Machine Config Operator's releases mean for volumes, and which ways from one to another there are. Pure.

Source: https://github.com/openshift/windows-machine-config-operator (branches release-4.12 to release-4.14) and the scenarios
A to E of https://github.com/openshift/enhancements, enhancements/windows-containers/csi-proxy.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding, blocker, warning
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import is_at_least, parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.wmco import ALLOW, Scenario, classify_upgrade
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.facts import TAINT, NodeNow
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Target


@dataclass(frozen=True, slots=True)
class Way:
    """How to go. proof_first: whether drivers can be proven before the first node."""

    scenario: Scenario
    now: str
    proof_first: bool


def way(nodes: Sequence[NodeNow], target: Target) -> Way:
    """The way for these nodes, from the lowest release among those that are not there yet. ValueError without a release."""
    versions = [node.version for node in nodes if node.version] or [target.wmco]
    lowest = min(versions, key=lambda text: parse(text).release)
    found = classify_upgrade(parse(lowest), parse(target.wmco))
    return Way(found, lowest, found in ("A", "D"))


def blockers(nodes: Sequence[NodeNow], target: Target, unproven_canary: bool) -> Iterator[Finding]:
    """Why these nodes cannot go there."""
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
        found = way(nodes, target)
    except ValueError as error:
        yield blocker("CSI-U16", "WMCO", str(error), "correct kubewin_upgrade_target")
        return
    now, then = parse(found.now).release, parse(target.wmco).release
    if then < now:
        message = f"a node has {found.now}, requested is {target.wmco}; WMCO cannot be downgraded"
        yield blocker("CSI-U16", "WMCO", message, "correct kubewin_upgrade_target")
    elif then[0] > now[0] + 1 and now[0] < 10:
        message = (
            f"from {found.now} to {target.wmco} is more than one minor release; each is for one release of OpenShift"
        )
        yield blocker("CSI-U16", "WMCO", message, f"first upgrade to release {now[0] + 1} of WMCO")
    elif found.scenario == "C":
        yield blocker(
            "CSI-U12", "WMCO",
            f"{found.now} includes csi-proxy and {target.wmco} does not: Windows pods would lose access to their volumes",
            "upgrade to 8.1.0 or a later release of WMCO 8 instead",
        )  # fmt: skip
    elif found.scenario in ("B", "E") and then[0] == now[0]:
        yield blocker(
            "CSI-U13", "WMCO",
            f"from {found.now} to {target.wmco} only adds csi-proxy: volumes stay in-tree, and there is no driver to verify yet",
            "let it upgrade the nodes (approve its InstallPlan if needed), then run this for the next release",
        )  # fmt: skip
    elif found.scenario in ("B", "E") and not unproven_canary:
        yield blocker(
            "CSI-U13", "WMCO",
            f"{found.now} has no csi-proxy, so nothing can be verified before {target.wmco} (scenario {found.scenario})",
            _before(found) + "; if that is impossible, kubewin_upgrade_unproven_canary=true upgrades one node without volumes first",
        )  # fmt: skip
    elif found.scenario in ("B", "E") and all(
        node.carries_volumes and not is_at_least(node.version, target.wmco) for node in nodes
    ):
        yield blocker(
            "CSI-U14", "all Windows nodes",
            "each has a workload with a volume, and the first one is upgraded before anything can be verified",
            "add a node, or move the workloads off one (kubectl drain)",
        )  # fmt: skip


def _before(found: Way) -> str:
    if found.scenario == "B":
        return "upgrade to WMCO 7.2.0 or a later release of WMCO 7 first"
    return (
        "upgrade to WMCO 8.1.0 or a later release of WMCO 8 first, then the control plane to OpenShift 4.14, deploy "
        "the driver (4.13's feature states keep vSphere's Windows plugin from starting), verify it, and then "
        "upgrade to WMCO 9"
    )


def notes(nodes: Sequence[NodeNow], running: str, target: Target) -> Iterator[Finding]:
    """What is worth knowing before."""
    sticky = [node.name for node in nodes if node.allowed]
    if sticky:
        yield warning(
            "CSI-U18", f"Node {', '.join(sticky)}", f"it already has the label {ALLOW}=true, so WMCO upgrades it without waiting",
            f"kubectl label node {sticky[0]} {ALLOW}-  (this upgrade removes it when the node is done)",
        )  # fmt: skip
    if running and target.wmco and parse(running).release >= parse(target.wmco).release:
        left = [node.name for node in nodes if not is_at_least(node.version, target.wmco)]
        if left:
            yield warning(
                "CSI-U20", "WMCO",
                f"{running} already runs; it upgrades nodes without attached volumes ({', '.join(left)} if they have "
                "none) without waiting",
                "none; they are observed and verified. Next time run this before you approve the InstallPlan",
            )  # fmt: skip


def plugin_kept_off(daemon_set: str) -> Finding:
    """A node plugin that our taint would keep away."""
    return blocker(
        "CSI-U15", f"DaemonSet {daemon_set}",
        f"it does not tolerate {TAINT}:NoSchedule, which keeps workloads off a node until its volumes are verified",
        "add the toleration {key: " + TAINT + ", operator: Exists} to it",
    )  # fmt: skip
