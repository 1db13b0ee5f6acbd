# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims that cannot be read do not keep a run that goes on from the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.run import ClaimResult, DataRun
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError

NAMESPACES: dict[str, Any] = {
    "kubewin": {"metadata": {}},
    "shop": {"metadata": {}},
    "going": {"metadata": {"deletionTimestamp": "2026-11-27T12:00:00Z"}},
}


def run_of(keep_going: bool) -> DataRun:
    """A run over claims of a namespace, of one that is being deleted, and of one that is gone."""
    client: Any = SimpleNamespace(
        get=lambda _kind, name: NAMESPACES.get(name),
        list_granted_rules=lambda _namespaces: {},
        is_allowed=lambda _need: True,
    )
    options = {
        "record_namespace": "kubewin", "name": "nine", "compare": False, "keep_going": keep_going, "append_only": [], "limit": 1,
        "rate": 1, "timeout": 1, "step_timeout": 1,
    }  # fmt: skip
    return DataRun(client, options, ["shop/data", "going/data", "gone/data"], lambda _line: None)


def test_a_claim_whose_namespace_cannot_be_used_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(True)
    monkeypatch.setattr(run, "_read", lambda claim: ClaimResult({"claim": claim, "why": ""}, ""))
    run.refuse()
    run.run()
    assert [(volume["claim"], volume["why"]) for volume in run.as_dict()["volumes"]] == [
        ("shop/data", ""),
        ("going/data", "its namespace is being deleted"),
        ("gone/data", "its namespace does not exist"),
    ]


def test_without_keep_going_it_is_refused() -> None:
    with pytest.raises(ClusterError, match="Namespace going: it is being deleted"):
        run_of(False).refuse()
