# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""WMCO's releases: what an upgrade does to csi-proxy is distinguished, those that lose storage are refused, and each refusal has a remedy."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.begin import (
    UpgradeRequest,
    begin,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import (
    UpgradeNode,
    UpgradeObservation,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.wmco import find_blockers

NINE = UpgradeTarget(wmco="9.0.0")


def node(
    name: str, version: str, *, attached: tuple[str, ...] = (), allowed: bool = False, desired: str = ""
) -> UpgradeNode:
    return UpgradeNode(
        name,
        True,
        "",
        False,
        "",
        False,
        "v1.26.1",
        version=version,
        desired=desired,
        attached=attached,
        allowed=allowed,
    )


@pytest.mark.parametrize(
    ("nodes", "target", "finding", "expected"),
    [
        (
            [node("win-1", "7.2.0")],
            UpgradeTarget(wmco="8.0.1"),
            "CSI-U12",
            "8.1.0 or a later release of WMCO 8 instead",
        ),
        (
            [node("win-1", "8.0.1")],
            NINE,
            "CSI-U13",
            "upgrade to WMCO 8.1.0 or a later release of WMCO 8 first, then the control plane",
        ),
        ([node("win-1", "7.1.0")], UpgradeTarget(wmco="8.1.0"), "CSI-U13", "WMCO 7.2.0"),
        (
            [node("win-1", "8.0.1")],
            UpgradeTarget(wmco="8.1.0"),
            "CSI-U13",
            "let it upgrade the nodes (approve its InstallPlan if needed)",
        ),
        ([node("win-1", "7.2.0")], NINE, "CSI-U16", "release 8 of WMCO"),
        ([node("win-1", "9.0.0")], UpgradeTarget(wmco="8.1.0"), "CSI-U16", "WMCO cannot be downgraded"),
        ([node("win-1", "")], NINE, "CSI-U16", "WMCO does not manage it"),
        ([node("win-1", "8.1.0")], UpgradeTarget(), "CSI-U16", "wmco=9.0.0"),
        ([node("win-1", "8.1.0")], UpgradeTarget(wmco="nine"), "CSI-U16", "nine"),
    ],
)
def test_an_impossible_target_is_refused_with_an_alternative(
    nodes: list[UpgradeNode], target: UpgradeTarget, finding: str, expected: str
) -> None:
    (found,) = find_blockers(nodes, target, unproven_canary=False)
    assert found.id == finding
    assert expected in found.line()


def test_from_csi_proxy_to_csi_proxy_nothing_is_in_the_way() -> None:
    assert list(find_blockers([node("win-1", "8.1.2"), node("win-2", "9.0.0")], NINE, unproven_canary=False)) == []


def test_an_unproven_canary_needs_a_node_without_volumes() -> None:
    full = node("win-1", "8.0.1", attached=("kubernetes.io/vsphere-volume/a",))
    (found,) = find_blockers([full], NINE, unproven_canary=True)
    assert found.id == "CSI-U14"
    assert list(find_blockers([full, node("win-2", "8.0.1")], NINE, unproven_canary=True)) == []


def test_a_node_that_wmco_is_reconfiguring_is_managed_without_a_release() -> None:
    assert list(find_blockers([node("win-1", "", desired="9.0.0")], NINE, unproven_canary=False)) == []


def test_every_refusal_is_reported_at_once() -> None:
    observed = UpgradeObservation(datetime(2026, 1, 1, tzinfo=timezone.utc), {"win-1": node("win-1", "7.2.0")})
    with pytest.raises(TaskError) as refused:
        begin(
            UpgradeRequest("x", "wmco", UpgradeTarget(wmco="8.0.1"), nodes=("win-1", "win-9"), batches=("0",)), observed
        )
    assert "Node win-9 is not a Windows node of this cluster, expected one of win-1." in str(refused.value)
    assert "batch size is '0'" in str(refused.value)
    assert "CSI-U12" in str(refused.value)
