# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that pull images are created, followed and deleted, however pulling ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import pull_apply
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.pull_apply import ImagePuller
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.termination import Interrupted
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, Response, client_of

PLUGIN: dict[str, Any] = {
    "metadata": {"name": "csi-smb-node-win", "namespace": "kube-system"},
    "spec": {"template": {"spec": {"containers": [{"name": "driver", "image": "driver:2"}]}}},
}
LACKING = {"win-1": ("driver:2",), "win-2": ("driver:2",)}


class Kubelets(ObjectStore):
    """What happens to the pods while they are watched."""

    def __init__(self, happens: Callable[[Kubelets], None]) -> None:
        super().__init__()
        self.created: list[str] = []
        self._happens = happens

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if "watch" in params:
            self._happens(self)
            return Response()
        if method == "POST":
            self.created.append(body["spec"]["nodeName"])
        return super().request(method, path, body, **params)

    def report(self, **state: Any) -> None:
        for pod in self.things.values():
            pod["status"] = {"containerStatuses": [{"image": "driver:2", **state}]}


def pulled(cluster: Kubelets) -> tuple[ImagePuller, list[str]]:
    lines: list[str] = []
    return ImagePuller(client_of(cluster), "smb.csi.k8s.io", PLUGIN, lines.append), lines


def has_image(cluster: Kubelets) -> None:
    cluster.report(imageID="sha256:1", state={"terminated": {"exitCode": 0}})


def has_wrong_name(cluster: Kubelets) -> None:
    cluster.report(state={"waiting": {"reason": "InvalidImageName"}})


def is_terminated(_cluster: Kubelets) -> None:
    raise Interrupted("the run was terminated")


def test_images_are_pulled_on_each_node_and_the_pods_deleted() -> None:
    cluster = Kubelets(has_image)
    pulls, lines = pulled(cluster)
    pulls.run(LACKING, 600.0)
    assert (sorted(pulls.done), sorted(cluster.created)) == (["win-1", "win-2"], ["win-1", "win-2"])
    assert cluster.things == {}
    assert [line.partition(": ")[2] for line in lines] == ["2 of 2 nodes have the images"]


@pytest.mark.parametrize(
    ("happens", "timeout", "reason"),
    [
        (has_wrong_name, 600.0, "pull_failed"),
        (has_image, 0.0, "timeout"),
        (is_terminated, 600.0, "interrupted"),
    ],
)
def test_no_pod_is_left_when_pulling_fails(
    happens: Callable[[Kubelets], None], timeout: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process keeps its signals.
    monkeypatch.setattr(pull_apply, "ignore_signals", lambda: None)
    cluster = Kubelets(happens)
    pulls, _lines = pulled(cluster)
    with pytest.raises((ClusterError, Interrupted)) as ended:
        pulls.run(LACKING, timeout)
    assert getattr(ended.value, "reason", "") == reason
    assert cluster.created
    assert (cluster.things, pulls.done) == ({}, ())


def test_pods_of_a_killed_run_are_deleted_also_if_no_image_is_missing() -> None:
    cluster = Kubelets(is_terminated)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ImagePuller, "_remove", lambda _pulls: None)
        patched.setattr(pull_apply, "ignore_signals", lambda: None)
        with pytest.raises(Interrupted):
            pulled(cluster)[0].run(LACKING, 600.0)
    assert len(cluster.things) == 2
    pulled(cluster)[0].run({}, 600.0)
    assert cluster.things == {}
