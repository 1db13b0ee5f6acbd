# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubeconfig keeps secret in a module's result, and what not; how errors name it."""

from __future__ import annotations

import importlib.util
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import ArgumentSpec
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import connect as connecting
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import connect, create_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.actions.tasks import run_task
from urllib3.exceptions import MaxRetryError, NewConnectionError

from .fakes import ApiError

TOKEN, KEY = "eyJhbGciOi.secret", "LS0tLS1CRUdJTiBSU0E="
# Those of an exec plugin and of an auth-provider.
PLUGIN = ("hunter2-0", "AKIA0SECRET", "refresh-0-secret", "wJalr-0")
CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "lab",
    "extensions": [{"name": "minikube", "extension": {"version": "v1.34.0"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1"}}],
    "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
    "users": [
        {"name": "u", "user": {"token": TOKEN, "client-key-data": KEY}},
        {
            "name": "plugin",
            "user": {
                "exec": {
                    "command": "aws",
                    "args": [
                        "--region",
                        "eu-west-1",
                        "get-token",
                        "--output",
                        "json",
                        f"--password={PLUGIN[0]}",
                        "--token",
                        PLUGIN[3],
                    ],
                    "env": [{"name": "AWS_KEY", "value": PLUGIN[1]}, {"name": "AWS_PROFILE", "value": "prod"}],
                },
                "auth-provider": {"name": "oidc", "config": {"refresh-token": PLUGIN[2], "client-id": "kubernetes"}},
            },
        },
    ],
}


class Plan(ClusterAction):
    """An action that returns this plan."""

    argument_spec: ClassVar[ArgumentSpec] = {}
    plan: ClassVar[Any]

    def work(self, options: Mapping[str, Any]) -> None:
        self.result["plan"] = self.plan


def returned(plan: Any, **options: Any) -> Any:
    """What a task with these options returns of a plan."""
    Plan.plan = plan
    return run_task(Plan, **options)["plan"]


@pytest.mark.parametrize("form", ["dictionary", "path"])
def test_a_result_keeps_texts_that_the_kubeconfig_has_too(form: str, tmp_path: Path) -> None:
    path = tmp_path / "v1"
    path.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    plan = {
        "image": "node-driver-registrar:v1.20.3", "apiVersion": "v1", "name": "lab", "at": str(path), "claim": "prod/data-db-0",
        "node": "ip-10-0-1-2.eu-west-1.compute.internal", "kubelet": "v1.34.0", "kind": "kubernetes.io/json",
    }  # fmt: skip
    assert returned(plan, kubeconfig=CONFIG if form == "dictionary" else str(path)) == plan


def test_secrets_of_a_kubeconfig_stay_hidden() -> None:
    secrets = (TOKEN, KEY, *PLUGIN, "another-secret")
    message = " ".join(secrets)
    shown = returned(message, kubeconfig=CONFIG, api_key="another-secret")
    assert not [secret for secret in secrets if secret in shown]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "which does not exist"),
        ("a: [", "which is not YAML"),
        (yaml.safe_dump(CONFIG), "which has the contexts lab"),
        ("{}", "which has no context"),
        (CONFIG, "by the kubeconfig dictionary, which has the contexts lab"),
    ],
)
def test_an_error_names_the_kubeconfig_and_its_contexts(config: Any, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    if isinstance(config, str):
        path.write_text(config, encoding="utf-8")

    kubeconfig = config if isinstance(config, dict) else str(path)
    with pytest.raises(ClusterError) as caught:
        connect({"kubeconfig": kubeconfig, "context": "nosuch", "api_timeout": 60})
    message = str(caught.value)
    assert caught.value.reason == "configuration"
    assert expected in message
    assert isinstance(config, dict) or str(path) in message
    assert TOKEN not in message


@pytest.mark.parametrize(
    ("status", "body", "reason", "sentence"),
    [
        (404, "404 page not found\n", "not_kubernetes", "API discovery with 404 404 page not found, expected the API"),
        (404, {"message": "cluster c-m-1 not found"}, "not_kubernetes", "with 404 cluster c-m-1 not found, expected"),
        (400, "Client sent an HTTP request to an HTTPS server.", "not_kubernetes", "Check the server's URL in the"),
        (401, {"message": "Unauthorized"}, "unauthorized", "rejects these credentials (401 Unauthorized)"),
        (403, {"message": "forbidden"}, "unauthorized", "rejects these credentials (403 forbidden)"),
    ],
)
def test_an_answer_to_discovery_is_called_what_it_is(status: int, body: Any, reason: str, sentence: str) -> None:
    refused = ApiError(status)
    refused.body = body if isinstance(body, str) else json.dumps(body)

    def discover() -> Any:
        raise refused

    with pytest.raises(ClusterError) as caught:
        create_client(discover, 0)
    assert (caught.value.reason, caught.value.status) == (reason, status)
    assert sentence in str(caught.value)


def test_an_api_server_that_refuses_connections_is_reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """As urllib3 and the client wrap it."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))

    def discover() -> Any:
        try:
            try:
                raise ConnectionRefusedError(111, "Connection refused")
            except OSError as error:
                raise NewConnectionError(cast("Any", None), f"Failed to establish a new connection: {error}") from error
        except NewConnectionError as error:
            raise MaxRetryError(cast("Any", None), "/version", error) from error

    with pytest.raises(ClusterError, match=r"^no response from the API server: .*Connection refused") as caught:
        create_client(discover, 60)
    assert caught.value.reason == "unreachable"
    assert 3 < clock[0] <= 5


def test_an_api_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as behind a firewall that drops what is sent: discovery itself has no timeout."""
    monkeypatch.setattr(connecting, "_LEAST_TRY", 0.05)
    answers = threading.Event()
    try:
        with pytest.raises(ClusterError, match="nothing answers") as caught:
            create_client(answers.wait, 0.05)
    finally:
        answers.set()
    assert caught.value.reason == "unreachable"


@pytest.mark.parametrize("package", ["kubernetes", "msgspec"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """kubernetes.core fails with a NameError then."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(ClusterError, match=rf"required Python library \({package}\)") as caught:
        connect({"api_timeout": 60})
    assert caught.value.reason == "configuration"


def test_a_server_is_named_without_credentials() -> None:
    pools = SimpleNamespace(connection_pool_kw={}, clear=lambda: None)
    dynamic = SimpleNamespace(
        configuration=SimpleNamespace(host="https://me:hunter2@a.example.com:6443/"),
        client=SimpleNamespace(rest_client=SimpleNamespace(pool_manager=pools)),
    )
    assert create_client(lambda: SimpleNamespace(client=dynamic), 1.0).server == "https://a.example.com:6443"
