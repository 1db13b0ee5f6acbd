# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The observation of a cluster for an inventory:  whole, or refused with what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.inventory.windows_nodes import observe
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.observation import Observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.inventory.clusters import SERVER, csi_node, node
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Response

CONFIG_MAP = "/api/v1/namespaces/openshift-windows-machine-config-operator/configmaps/windows-instances"


class Server:
    """An API server with a Windows node, which answers these paths otherwise."""

    def __init__(self, **otherwise: Any) -> None:
        self.answers: dict[str, Any] = {
            "/version": {"gitVersion": "v1.36.3"},
            "/readyz": {},
            "/api/v1/nodes": {"items": [node("win-1", ("InternalIP", "10.0.0.11"))], "metadata": {}},
            "/apis/storage.k8s.io/v1/csinodes": {"items": [csi_node("win-1", "smb.csi.k8s.io")], "metadata": {}},
            CONFIG_MAP: ApiError(404),
            **otherwise,
        }
        self.asked: list[tuple[str, str, Any]] = []

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        self.asked.append((method, path, params.get("label_selector")))
        answer = self.answers[path]
        if isinstance(answer, ApiError):
            raise answer
        return Response(answer)


def observed(server: Server) -> Observation:
    clock = Clock()
    client = Client(server, retry_for=5, clock=clock, sleep=clock.sleep)
    client.server = SERVER
    return observe(client, annotations=())


def test_four_reads_and_no_node_of_another_system() -> None:
    server = Server()
    found = observed(server)
    assert [one.name for one in found.nodes] == ["win-1"]
    assert found.nodes[0].drivers == ("smb",)
    assert set(server.asked) == {
        ("GET", "/version", None),
        ("GET", "/api/v1/nodes", "kubernetes.io/os=windows"),
        ("GET", "/apis/storage.k8s.io/v1/csinodes", None),
        ("GET", CONFIG_MAP, None),
    }


def test_the_operators_instances_are_read_where_they_are() -> None:
    found = observed(Server(**{CONFIG_MAP: {"data": {"10.0.0.99": "username=core"}}}))
    assert found.instances == {"10.0.0.99": "core"}
    assert found.platform == "openshift"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/v1/nodes", ['resources: ["nodes"], verbs: ["list"]']),
        ("/apis/storage.k8s.io/v1/csinodes", ['resources: ["csinodes"], verbs: ["list"]']),
        (CONFIG_MAP, ['resources: ["configmaps"], verbs: ["get"]']),
    ],
)
def test_half_an_inventory_is_refused_with_the_rule_that_is_missing(path: str, words: list[str]) -> None:
    with pytest.raises(ClusterError) as caught:
        observed(Server(**{path: ApiError(403)}))
    assert caught.value.reason == "forbidden"
    for word in words:
        assert word in str(caught.value)
