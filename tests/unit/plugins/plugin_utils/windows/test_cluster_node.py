# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that change the csi-proxy of one Node one after the other, and the writes of a run that was stopped meanwhile."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.action import csi_proxy
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import SERVING_LABEL, SERVING_VALUE
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.cluster_node import ClusterNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.desired import CSI_PROXY
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of
from unit.plugins.plugin_utils.windows.simulated import (
    NEW,
    OLD,
    Artifact,
    Artifacts,
    Host,
    HostClock,
    RenewingClock,
    still_serves,
    wanted,
)

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


def change(store: ObjectStore, host: Host, artifact: Artifact, clock: HostClock | None = None) -> dict[str, Any]:
    """A run of the action that brings csi-proxy of win-1 to this release."""
    task = SimpleNamespace(args={}, check_mode=False)
    templar = SimpleNamespace(available_variables={})
    make: Any = csi_proxy.ActionModule
    action = make(task, None, SimpleNamespace(remote_addr=""), None, templar, None)
    action._parent, action._secrets = os.getppid(), frozenset()
    action._display = SimpleNamespace(display=lambda line: None, vv=lambda line, host: None)
    defaults = {name: spec.get("default") for name, spec in CSI_PROXY.items()}
    given = {**defaults, "api_timeout": 60, "needed": True, "node": "win-1", "lock_timeout": 5, "quiesce_timeout": 5}
    result: dict[str, Any] = action.work(host.node(clock=clock), wanted(artifact, allow_downgrade=True), given)
    return result


@pytest.fixture
def working(store: ObjectStore, host: Host, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """The release that serves on win-1."""
    monkeypatch.setattr(csi_proxy, "connect", lambda _options, **_limits: client_of(store))
    old = artifacts.csi_proxy(OLD)
    host.run(wanted(old))
    return old


def test_a_task_waits_for_an_api_server_that_restarts(
    store: ObjectStore, host: Host, working: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[str, float] = {}

    def connect(_options: Mapping[str, Any], **given_limits: float) -> Any:
        limits.update(given_limits)
        return client_of(store)

    monkeypatch.setattr(csi_proxy, "connect", connect)
    change(store, host, working)
    assert limits == {"connect_for": 60.0}


@pytest.mark.parametrize("labelled", [True, False])
def test_a_run_that_waits_to_restart_stops_once_another_run_uncordoned_the_node(
    store: ObjectStore,
    host: Host,
    artifacts: Artifacts,
    working: Artifact,
    labelled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store._put(PATH, {"metadata": {"name": "win-1", "labels": SERVING if labelled else {}}, "spec": {}})

    def wait(run: ClusterNode, _timeout: int) -> None:
        assert state(store)[0]
        monkeypatch.setattr(ClusterNode, "wait_until_idle", lambda *_given: None)
        assert change(store, host, working)["plan"] == []
        assert state(store) == (False, SERVING, {})

    monkeypatch.setattr(ClusterNode, "wait_until_idle", wait)
    with pytest.raises(NodeError, match="another run changes csi-proxy there") as caught:
        change(store, host, artifacts.csi_proxy(NEW))
    assert caught.value.reason == "taken_over"
    still_serves(host, wanted(working))
    assert state(store) == (False, SERVING, {})


def test_a_run_without_a_change_leaves_the_node_to_a_run_that_holds_the_hosts_lock(
    store: ObjectStore, host: Host, artifacts: Artifacts, working: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals: list[str] = []
    confirm: Callable[[ClusterNode], None] = ClusterNode.confirm

    def and_meanwhile(run: ClusterNode) -> None:
        confirm(run)
        with pytest.raises(NodeError) as caught:
            change(store, host, working, RenewingClock(host, 10000))
        refusals.append(str(caught.value))
        assert state(store)[:2] == (True, {})

    monkeypatch.setattr(ClusterNode, "confirm", and_meanwhile)
    assert change(store, host, artifacts.csi_proxy(NEW))["changed"]
    assert state(store) == (False, SERVING, {})
    assert "Another run is changing this node" in refusals[0]


class RunKilled(BaseException):
    """The end of a run whose patch is still on its way."""


class HoldingStore(ObjectStore):
    """Holds the n-th patch of its first run, which ends there; `release` sends it on."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number, self._count = number, 0
        self.held: dict[str, Any] = {}

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        self._count += method == "PATCH"
        if method == "PATCH" and self._count == self._number:
            self.held = body
            raise RunKilled
        return super().request(method, path, body, **params)

    def release(self) -> bool:
        """Whether the held patch is accepted."""
        try:
            super().request("PATCH", PATH, self.held)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True


@pytest.mark.parametrize("next_release", [OLD, NEW])
def test_no_held_patch_of_a_killed_run_changes_the_node_after_the_next_run(
    host: Host, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, next_release: str
) -> None:
    """With the release that serves, the next run has nothing to change on a host whose lock the killed run never held."""
    old, new = artifacts.csi_proxy(OLD), artifacts.csi_proxy(NEW)
    following = {OLD: old, NEW: new}[next_release]
    for number in itertools.count(1):
        store = HoldingStore(number)
        store._put(PATH, {"metadata": {"name": "win-1", "labels": SERVING}, "spec": {}})
        monkeypatch.setattr(csi_proxy, "connect", lambda _options, store=store, **_limits: client_of(store))
        host.run(wanted(old, allow_downgrade=True))
        try:
            change(store, host, new)
        except RunKilled:
            change(store, host, following)
            accepted = store.release()
            assert state(store)[:2] == (False, SERVING), f"patch {number}: {store.held}"
            # A name of an ended run is all that arrives late, where the next run left the Node alone. The run after that removes it.
            assert not accepted or store.held["metadata"].keys() == {"resourceVersion", "annotations"}
            change(store, host, following)
            assert state(store) == (False, SERVING, {})
        else:
            break
    assert number > 3
