# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a removal reads again, and what it refuses: another run at the same DaemonSet, and volumes that came into use."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.action.driver_remove import ActionModule
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.decide import make_record
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.uses import make_selector
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import lease
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, Response, client_of

LEASES = "/apis/coordination.k8s.io/v1/namespaces/csi/leases"
PLUGINS = "/apis/apps/v1/namespaces/csi/daemonsets"


class Cluster(ObjectStore):
    """A cluster with two node plugins and a Windows node.

    renewed: path of a Lease that another run renews all the time.
    """

    def __init__(self, renewed: str = "") -> None:
        super().__init__()
        self.renewed, self.deleted, self.used_later = renewed, list[str](), False
        labels = {"kubernetes.io/os": "windows"}
        self.things["/api/v1/nodes/win-1"] = {"metadata": {"name": "win-1", "labels": labels}}
        for key in ("smb", "vsphere"):
            labels = dict(label.split("=") for label in make_selector(DRIVERS[key]).split(","))
            metadata = {"namespace": "csi", "name": key, "uid": key, "resourceVersion": "1", "labels": labels}
            self.things[f"{PLUGINS}/{key}"] = {"metadata": metadata, "spec": {"template": {"spec": {}}}}

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "GET" and path == self.renewed:
            self.serial += 1
            renewed = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            spec = {
                "holderIdentity": f"elsewhere/1-1/{self.serial}-1",
                "renewTime": renewed,
                "leaseDurationSeconds": 45,
            }
            return Response({"metadata": {"name": "x", "resourceVersion": str(self.serial)}, "spec": spec})
        if method == "GET" and path == "/apis/apps/v1/daemonsets":
            # Of all namespaces.
            return super().request(method, PLUGINS, body, **params)
        if method == "GET" and path == "/api/v1/pods" and self.used_later and self.deleted:
            volume = {"name": "data", "csi": {"driver": DRIVERS["vsphere"].name}}
            pod = {"metadata": {"namespace": "shop", "name": "db"}, "spec": {"nodeName": "win-1", "volumes": [volume]}}
            return Response({"items": [pod], "metadata": {"resourceVersion": "1"}})
        if method == "DELETE":
            response = super().request(method, path, body, **params)
            self.deleted.append(path)
            return response
        return super().request(method, path, body, **params)


def prepare() -> Any:
    action: Any = ActionModule.__new__(ActionModule)
    action._task, action.result = SimpleNamespace(check_mode=False), {"changed": False}
    action.task_vars = {"kubewin_inputs": {"remove_csi_proxy": False}}
    action.show = lambda *_lines: None
    return action


def remove(cluster: Cluster) -> dict[str, Any]:
    action = prepare()
    action._remove(client_of(cluster), {"drivers": ["smb", "vsphere"], "csi_proxy": False})
    result: dict[str, Any] = action.result
    return result


def test_what_a_removal_kept_for_others_is_no_second_installation() -> None:
    cluster = Cluster()
    labels = cluster.things.pop(f"{PLUGINS}/smb")["metadata"]["labels"]
    metadata = {"name": DRIVERS["smb"].name, "uid": "kept", "resourceVersion": "1", "labels": labels}
    cluster.things[f"/apis/storage.k8s.io/v1/csidrivers/{DRIVERS['smb'].name}"] = {"metadata": metadata}
    assert prepare()._choose_drivers(client_of(cluster)) == ["vsphere"]
    del cluster.things[f"{PLUGINS}/vsphere"]
    assert prepare()._choose_drivers(client_of(cluster)) == []


def test_plugins_that_nothing_uses_and_no_other_run_changes_are_removed() -> None:
    cluster = Cluster()
    assert [item["name"] for item in remove(cluster)["objects"]] == ["smb", "vsphere"]
    assert cluster.deleted == [f"{PLUGINS}/smb", f"{PLUGINS}/vsphere"]


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("kubewin-roll-vsphere", "the update of DaemonSet csi/vsphere"),
        ("kubewin-handover-vsphere", "a hand-over of vSphere"),
    ],
)
def test_nothing_is_removed_while_another_run_works_on_a_plugin(
    monkeypatch: pytest.MonkeyPatch, name: str, work: str
) -> None:
    monkeypatch.setattr(lease, "_LOOK", 0.0)
    cluster = Cluster(renewed=f"{LEASES}/{name}")
    with pytest.raises(ClusterError, match=f"another run works on {work}: elsewhere/1-1/") as caught:
        remove(cluster)
    assert (caught.value.reason, cluster.deleted) == ("locked", [])


def test_a_volume_that_is_used_since_the_plugin_before_was_removed_keeps_its_own() -> None:
    cluster = Cluster()
    cluster.used_later = True
    with pytest.raises(TaskError, match="pod shop/db") as caught:
        remove(cluster)
    assert (caught.value.reason, cluster.deleted) == ("in_use", [f"{PLUGINS}/smb"])


@pytest.mark.parametrize(
    ("state", "schema", "why"),
    [
        ("begun", "1", "a hand-over from DaemonSet csi/old to .* is not finished"),
        ("finished", "2", "a later release wrote it"),
    ],
)
def test_the_record_of_an_unfinished_hand_over_is_not_removed(state: str, schema: str, why: str) -> None:
    cluster = Cluster()
    del cluster.things[f"{PLUGINS}/vsphere"]
    record = make_record(DRIVERS["vsphere"], "csi", {"replaced": "csi/old", "state": state})
    record["metadata"] |= {"uid": "record", "resourceVersion": "1"}
    record["data"]["schema"] = schema
    # Of all namespaces.
    cluster.things["/api/v1/configmaps/kubewin-replaced-vsphere"] = record
    with pytest.raises(TaskError, match=why):
        remove(cluster)
    assert cluster.deleted == []


def test_a_removal_that_fails_half_way_names_what_it_removed_and_what_is_left() -> None:
    cluster, action = Cluster(), prepare()
    cluster.used_later = True
    with pytest.raises(TaskError):
        action._remove(client_of(cluster), {"drivers": ["smb", "vsphere"], "csi_proxy": False})
    action.result["failed"] = True
    action.sum_up()
    assert action.result["lines"] == ["removed DaemonSet smb", "not removed yet: DaemonSet vsphere"]


def test_a_removal_that_is_refused_before_its_first_change_has_no_lines() -> None:
    action = prepare()
    action.result["failed"] = True
    action.sum_up()
    assert action.result["lines"] == []


STORAGE = "/apis/storage.k8s.io/v1"
SMB = DRIVERS["smb"]


def test_a_csi_driver_stays_for_other_installations_with_the_command_that_deletes_it() -> None:
    cluster, action = _with_csi_driver(), prepare()
    action._remove(client_of(cluster), {"drivers": ["smb"], "csi_proxy": False})
    assert cluster.deleted == [f"{PLUGINS}/smb"]
    action.sum_up()
    kept = f"kept: CSIDriver {SMB.name}, since other installations of the driver may rely on it; if there is none: "
    assert f"{kept}kubectl delete csidrivers {SMB.name}" in action.result["lines"]

    again = prepare()
    again._remove(client_of(cluster), {"drivers": ["smb"], "csi_proxy": False})
    again.sum_up()
    assert again.result["lines"] == [f"{kept}kubectl delete csidrivers {SMB.name}"]
    assert again.result["changed"] is False


def test_the_feature_states_stay_and_the_record_of_a_hand_over_goes() -> None:
    cluster, action = Cluster(), prepare()
    labels = cluster.things[f"{PLUGINS}/vsphere"]["metadata"]["labels"]
    states = DRIVERS["vsphere"].feature_states
    assert states is not None
    for name in (states.name, "kubewin-replaced-vsphere"):
        metadata = {"namespace": "csi", "name": name, "uid": name, "resourceVersion": "1", "labels": labels}
        # Of all namespaces.
        cluster.things[f"/api/v1/configmaps/{name}"] = {"metadata": metadata}
    action._remove(client_of(cluster), {"drivers": ["vsphere"], "csi_proxy": False})
    assert [item["name"] for item in action.result["objects"]] == ["vsphere", "kubewin-replaced-vsphere"]
    (kept,) = action.result["kept"]
    assert kept.endswith(f"kubectl -n csi delete configmaps {states.name}")


def _with_csi_driver() -> Cluster:
    """A cluster whose CSIDriver this collection created."""
    cluster = Cluster()
    labels = dict(label.split("=") for label in make_selector(SMB).split(","))
    metadata = {"name": SMB.name, "uid": "driver", "resourceVersion": "1", "labels": labels}
    cluster.things[f"{STORAGE}/csidrivers/{SMB.name}"] = {"metadata": metadata}
    return cluster
