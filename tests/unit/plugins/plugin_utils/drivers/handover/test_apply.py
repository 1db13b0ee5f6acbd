# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The writes of a hand-over, beside the DaemonSet controller's."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.apply import (
    HandoverExecutor,
    make_handover_lease,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.decide import (
    REPLACED,
    Handover,
    list_excluded_nodes,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.run import HandoverRun
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.quiesce import plan_cordon
from unit.plugins.plugin_utils.drivers.worlds import HOME, VSPHERE, daemon_set
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, Response, client_of

NODE = "/api/v1/nodes/win-1"
PATH = f"/apis/apps/v1/namespaces/{HOME}/daemonsets/ours"


class Counted(ObjectStore):
    """The DaemonSet's controller writes how many pods there are, before each of the first so many patches."""

    def __init__(self, often: int) -> None:
        super().__init__()
        self._often = often
        self._put(PATH, daemon_set("ours", labels={"app.kubernetes.io/managed-by": MANAGER}))

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "PATCH" and self._often:
            self._often -= 1
            self._put(PATH, {**self.things[PATH], "status": {"currentNumberScheduled": self._often}})
        return super().request(method, path, body, **params)

    def _listed(self, path: str, selector: str) -> Response:
        return super()._listed(PATH.rpartition("/")[0], selector)


def test_a_node_gets_ours_back_while_the_controller_counts_the_pods() -> None:
    store = Counted(2)
    stage = HandoverExecutor(client_of(store), VSPHERE, None, lambda _line: None)
    assert stage.exclude_nodes(["win-1"], None)
    assert list_excluded_nodes(store.things[PATH]) == ("win-1",)
    assert stage.exclude_nodes([], None)
    assert list_excluded_nodes(store.things[PATH]) == ()
    assert not stage.exclude_nodes([], None)


def test_the_mode_is_what_the_pods_mount() -> None:
    stage = HandoverExecutor(client_of(ObjectStore()), VSPHERE, None, lambda _line: None)
    assert stage._read_side(daemon_set("x"), []).mode == "host_process"
    assert stage._read_side(daemon_set("x", path="\\\\.\\pipe\\csi-proxy-volume-v1"), []).mode == "csi_proxy"


def test_what_a_killed_hand_over_sent_is_refused_once_another_one_took_its_lease() -> None:
    """The other run may find nothing to change, so its own writes do not make the held ones fail."""
    store = ObjectStore()
    ours = {MANAGED_BY: MANAGER, PART_OF: VSPHERE.name}
    written = {
        PATH: (kinds.DAEMON_SET, daemon_set("ours", labels=ours)),
        "/api/v1/nodes/win-1": (kinds.NODE, {"metadata": {"name": "win-1", "labels": {"kubernetes.io/os": "windows"}}}),
        f"/api/v1/namespaces/{HOME}/configmaps/kubewin-replaced-vsphere": (
            kinds.CONFIG_MAP,
            {"metadata": {"name": "kubewin-replaced-vsphere", "namespace": HOME}},
        ),
        f"/api/v1/namespaces/{HOME}/pods/theirs-1": (
            kinds.POD,
            {"metadata": {"name": "theirs-1", "namespace": HOME, "labels": {REPLACED: VSPHERE.key}}},
        ),
    }
    for path, (_kind, thing) in written.items():
        store._put(path, thing)
    before = {path: store.things[path]["metadata"]["resourceVersion"] for path in written}
    client = client_of(store)
    killed = make_handover_lease(client, HOME, VSPHERE, lambda _line: None)
    killed.take()
    killed.leave()
    lease = next(path for path in store.things if "/leases/" in path)
    # No such process runs: Linux counts to 4194304.
    dead = identify_process(os.getpid()).rpartition("/")[0] + "/4194305-1"
    store._put(lease, {**store.things[lease], "spec": {**store.things[lease]["spec"], "holderIdentity": dead}})

    following = make_handover_lease(client, HOME, VSPHERE, lambda _line: None)
    following.take()
    following.end()
    for path, (kind, thing) in written.items():
        metadata = thing["metadata"]
        held = {"metadata": {"resourceVersion": before[path]}}
        with pytest.raises(ClusterError, match="has been modified"):
            client.patch(kind, metadata["name"], metadata.get("namespace"), held, "kubewin.csi")


class Unanswered(ObjectStore):
    """The connection ends before the answer to each patch of the Node; the patches are still on their way."""

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if (method, path) == ("PATCH", NODE):
            raise ConnectionResetError
        return super().request(method, path, body, **params)


@pytest.mark.parametrize("answered", [False, True], ids=["lost", "answered"])
def test_a_hand_over_keeps_its_lease_if_a_write_was_not_answered(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObjectStore() if answered else Unanswered()
    store._put(NODE, {"metadata": {"name": "win-1", "labels": {"kubernetes.io/os": "windows"}}, "spec": {}})
    store._put(f"/api/v1/namespaces/{HOME}", {"metadata": {"name": HOME}})

    def cordon(run: HandoverRun) -> tuple[bool, list[str]]:
        run._client.retry_for = 0
        return modify(run._client, kinds.NODE, "win-1", None, lambda live: plan_cordon(live, "test")), []

    monkeypatch.setattr(HandoverRun, "hand_over_all", cordon)
    steps = HandoverRun(client_of(store), VSPHERE, [], {}, lambda _line: None)
    with contextlib.nullcontext() if answered else pytest.raises(ClusterError, match="no response"):
        steps.run(Handover((), (), None, namespace=HOME))
    assert (
        f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/kubewin-handover-vsphere" in store.things
    ) != answered


@pytest.mark.parametrize("place", ["the DaemonSet", "its namespace", "neither"])
def test_the_other_plugin_is_going_where_it_or_its_namespace_is_being_deleted(place: str) -> None:
    store, now = ObjectStore(), {"deletionTimestamp": "2026-11-27T18:00:00Z"}
    store._put(f"/api/v1/namespaces/{HOME}", {"metadata": {"name": HOME, **(now if place == "its namespace" else {})}})
    theirs = daemon_set("theirs", **(now if place == "the DaemonSet" else {}))
    store._put("/apis/apps/v1/daemonsets/theirs", theirs)
    store._put("/version", {"metadata": {}, "gitVersion": "v1.36.3"})
    executor = HandoverExecutor(client_of(store), VSPHERE, None, lambda _line: None)
    assert [side.deleting for side in executor.observe().theirs] == [place != "neither"]
