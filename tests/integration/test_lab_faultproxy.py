# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults before the API server: a client gets them as the API server's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
import yaml
from lab.cluster.api import Api, ApiError
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab

MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture(scope="module")
def token(lab: Lab) -> Iterator[str]:
    """An administrator's token: certificates do not pass through the proxy."""
    lab.api.post(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "chief"}})
    lab.api.post(
        BINDINGS,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "chief"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "chief", "namespace": "default"}],
        },
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    yield lab.api.post(f"{ACCOUNTS}/chief/token", request)["status"]["token"]
    lab.api.gone(f"{BINDINGS}/chief")
    lab.api.gone(f"{ACCOUNTS}/chief")


@pytest.fixture
def proxy(lab: Lab, token: str) -> Iterator[FaultProxy]:
    with FaultProxy(lab.state, token) as made:
        yield made


def client(lab: Lab, proxy: FaultProxy) -> Api:
    found = yaml.safe_load(Path(proxy.kubeconfig).read_text(encoding="utf-8"))
    return Api(found["clusters"][0]["cluster"]["server"], Path(lab.state.ca), token=found["users"][0]["user"]["token"])


def test_passes_on_what_no_rule_matches(lab: Lab, proxy: FaultProxy) -> None:
    api = client(lab, proxy)
    proxy.add(Fault("error", verbs=("delete",)))
    thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "through"}}
    assert api.post(f"{MAPS}?dryRun=All", thing)["metadata"]["name"] == "through"
    assert [(call.verb, call.resource, call.dry_run) for call in proxy.calls] == [("create", "configmaps", True)]
    assert proxy.hits() == 0


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (Fault("forbidden"), 403, "Forbidden"),
        (Fault("conflict"), 409, "Conflict"),
        (Fault("throttled", retry_after=7), 429, "TooManyRequests"),
        (Fault("expired"), 410, "Expired"),
        (Fault("error", status=503), 503, "InternalError"),
    ],
)
def test_answers_in_the_api_servers_words(lab: Lab, proxy: FaultProxy, fault: Fault, status: int, reason: str) -> None:
    proxy.add(fault)
    with pytest.raises(ApiError) as caught:
        client(lab, proxy).get("/api/v1/nodes/win-1")
    assert (caught.value.status, caught.value.reason) == (status, reason)


def test_forbidden_reads_like_rbacs_own(lab: Lab) -> None:
    """As the least-privilege account, which the proxy uses by default."""
    with FaultProxy(lab.state) as proxy:
        api = client(lab, proxy)
        with pytest.raises(ApiError) as real:
            api.get("/api/v1/namespaces/kubewin/secrets")
        proxy.add(Fault("forbidden"))
        with pytest.raises(ApiError) as made:
            api.get("/api/v1/namespaces/kubewin/secrets")
    assert made.value.message == real.value.message


def test_rule_ends_after_its_times(lab: Lab, proxy: FaultProxy) -> None:
    api = client(lab, proxy)
    proxy.add(Fault("error", verbs=("list",), resources=("nodes",), times=2))
    for _attempt in range(2):
        with pytest.raises(ApiError):
            api.get("/api/v1/nodes")
    assert len(api.items("/api/v1/nodes")) == len(lab.state.nodes)
    assert proxy.hits("nodes") == 2


def test_dropped_connection_before_and_after_the_fact(lab: Lab, proxy: FaultProxy) -> None:
    api = client(lab, proxy)

    def create(name: str) -> None:
        api.post(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})

    try:
        proxy.add(Fault("drop", verbs=("create",), times=1))
        with pytest.raises(urllib3.exceptions.HTTPError):
            create("before")
        proxy.add(Fault("drop", verbs=("create",), times=1, after=True))
        with pytest.raises(urllib3.exceptions.HTTPError):
            create("after")
        names = {item["metadata"]["name"] for item in lab.api.items(MAPS)}
        assert "before" not in names
        assert "after" in names
    finally:
        lab.api.gone(f"{MAPS}/after")


def test_timeout_never_answers(lab: Lab, proxy: FaultProxy) -> None:
    proxy.add(Fault("timeout", resources=("nodes",), times=1))
    with pytest.raises(urllib3.exceptions.TimeoutError):
        client(lab, proxy).request("GET", "/api/v1/nodes", timeout=0.5)


def test_watches_stream_through(lab: Lab, proxy: FaultProxy) -> None:
    text = client(lab, proxy).request("GET", "/api/v1/nodes?watch=true&timeoutSeconds=1")
    assert text.count(b'"type":"ADDED"') == len(lab.state.nodes)
    assert [call.verb for call in proxy.calls] == ["watch"]
