# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects put straight into a lab's etcd, where its API server finds them: thousands a second, with states and times that
nobody could wait for.

No controller may run meanwhile, they would repair what is put there; `alone` ends them.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from lab.handle import Lab

# Where etcd keeps what is called otherwise in the API.
_FOLDERS = {"nodes": "minions", "replicationcontrollers": "controllers"}
# Operations that etcd takes in one transaction.
_MOST = 120


def alone(lab: Lab) -> None:
    """Leave the API server and its etcd, and none of the lab's nodes."""
    for name in ("kwok", "scheduler", "controller-manager", "kubelet"):
        lab.call("stop", name=name)
    for node in lab.state.nodes:
        lab.api.gone(f"/apis/storage.k8s.io/v1/csinodes/{node}")
        lab.api.gone(f"/api/v1/nodes/{node}")


def key(kind: Kind, name: str, namespace: str = "") -> str:
    """Where etcd keeps an object."""
    return "/".join(part for part in ("/registry", _FOLDERS.get(kind.plural, kind.plural), namespace, name) if part)


def store(lab: Lab, objects: Iterable[tuple[str, bytes | None]]) -> None:
    """Put objects, JSON with apiVersion and kind, under their keys; None takes one away."""
    endpoint = f"http://127.0.0.1:{lab.state.ports['etcd']}/v3/kv/txn"
    rest = iter(objects)
    while some := [_operation(where, content) for where, content in islice(rest, _MOST)]:
        body = json.dumps({"success": some}).encode()
        with urllib.request.urlopen(urllib.request.Request(endpoint, body, method="POST"), timeout=20) as answer:
            answer.read()


def _operation(where: str, content: bytes | None) -> dict[str, Any]:
    named = {"key": base64.b64encode(where.encode()).decode()}
    if content is None:
        return {"requestDeleteRange": named}
    return {"requestPut": {**named, "value": base64.b64encode(content).decode()}}
