# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubeconfig keeps secret in a module's result, and what not; how errors name it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module, patiently
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import _be_a_module, _encode, in_child
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


def ran(options: dict[str, Any], does: Callable[[Any], None]) -> dict[str, Any]:
    """The result of a module with these options."""

    def work() -> None:
        _be_a_module(_encode({"ANSIBLE_MODULE_ARGS": options}), {}, "/")
        does(module({}))

    _status, stdout, stderr = in_child(work)
    assert stdout, stderr
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("form", ["dictionary", "path"])
def test_a_result_keeps_texts_that_the_kubeconfig_has_too(form: str, tmp_path: Path) -> None:
    path = tmp_path / "v1"
    path.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    plan = {
        "image": "node-driver-registrar:v1.20.3", "apiVersion": "v1", "name": "lab", "at": str(path), "claim": "prod/data-db-0",
        "node": "ip-10-0-1-2.eu-west-1.compute.internal", "kubelet": "v1.34.0", "kind": "kubernetes.io/json",
    }  # fmt: skip
    found = ran({"kubeconfig": CONFIG if form == "dictionary" else str(path)}, lambda made: made.exit_json(plan=plan))
    assert found["plan"] == plan


def test_secrets_of_a_kubeconfig_stay_hidden() -> None:
    secrets = (TOKEN, KEY, *PLUGIN, "another-secret")
    message = " ".join(secrets)
    found = ran({"kubeconfig": CONFIG, "api_key": "another-secret"}, lambda made: made.exit_json(msg=message))
    assert not [secret for secret in secrets if secret in found["msg"]]


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

    def tries(made: Any) -> None:
        try:
            connect(made.params)
        except ClusterError as error:
            made.fail_json(msg=str(error), reason=error.reason)

    found = ran({"kubeconfig": config if isinstance(config, dict) else str(path), "context": "nosuch"}, tries)
    assert found["reason"] == "configuration"
    assert expected in found["msg"]
    assert isinstance(config, dict) or str(path) in found["msg"]
    assert TOKEN not in found["msg"]


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
        patiently(discover, 0)
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
                raise NewConnectionError(cast("Any", None), "Failed to establish a new connection") from error
        except NewConnectionError as error:
            raise MaxRetryError(cast("Any", None), "/version", error) from error

    with pytest.raises(ClusterError, match=r"^the API server refuses connections for 10 s: ") as caught:
        patiently(discover, 60)
    assert caught.value.reason == "unreachable"
    assert clock[0] <= 11
