# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that change the csi-proxy of one Node one after the other, and the writes of a run that was stopped meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import SERVING_LABEL, SERVING_VALUE
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.cluster_node import ClusterNode
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

PATH = "/api/v1/nodes/win-1"
SERVING = {SERVING_LABEL: SERVING_VALUE}


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore()
    store._put(PATH, {"metadata": {"name": "win-1", "labels": SERVING}, "spec": {}})
    return store


def begin(store: ObjectStore, *, cordon: bool = True, dry_run: bool = False) -> ClusterNode:
    """A run that is about to restart csi-proxy."""
    run = ClusterNode(client_of(store), "win-1", dry_run, lambda text: None)
    run.read()
    run.take_over(cordon=cordon)
    run.remove_label()
    return run


def state(store: ObjectStore) -> tuple[bool, dict[str, Any], dict[str, Any]]:
    node = store.things[PATH]
    return bool(node["spec"].get("unschedulable")), node["metadata"]["labels"], node["metadata"].get("annotations", {})


@pytest.mark.parametrize("cordon", [True, False])
def test_a_stopped_run_restores_nothing_while_another_run_changes_csi_proxy(store: ObjectStore, cordon: bool) -> None:
    stopped, following = begin(store, cordon=cordon), begin(store, cordon=cordon)
    before = state(store)
    with pytest.raises(ClusterError, match="Node win-1: another run changes csi-proxy there") as caught:
        stopped.restore(label=True)
    assert caught.value.reason == "taken_over"
    assert state(store) == before
    following.restore(label=True)
    assert state(store) == (False, SERVING, {})


def test_a_stopped_run_does_not_label_a_node_whose_csi_proxy_another_run_removed(store: ObjectStore) -> None:
    stopped, following = begin(store), begin(store)
    following.restore(label=False)
    with pytest.raises(ClusterError, match="another run"):
        stopped.restore(label=True)
    assert state(store) == (False, {}, {})


def test_a_run_without_a_change_restores_what_a_killed_run_left(store: ObjectStore) -> None:
    begin(store, cordon=False)
    following = ClusterNode(client_of(store), "win-1", False, lambda text: None)
    assert following.read() == (False, True)
    following.restore(label=True)
    assert state(store) == (False, SERVING, {})
    assert following.read() == (True, False)
