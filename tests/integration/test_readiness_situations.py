# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every named situation on a real API server: it accepts the objects, and what is read from it makes the same findings.

The server is alone with its etcd: controllers would mend most of what is planted. Objects are put into etcd as they are, with
times and states that nobody could wait for; that the server takes them from clients as well, a dry run shows.
"""

from __future__ import annotations

import base64
import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.readiness_pass import take
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts import HostSeen
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.judge import Options, judge
from integration.kube import connect
from lab import handle
from lab.handle import Lab
from situations.cluster import Object, World, healthy
from situations.named import SITUATIONS, Situation
from situations.served import KINDS

# Where etcd keeps what is called otherwise in the API.
FOLDERS = {"nodes": "minions", "replicationcontrollers": "controllers"}
# Operations that etcd takes in one transaction.
MOST = 120
# An account that may not read is a matter of roles, not of objects.
PLANTED = {name: one for name, one in SITUATIONS.items() if not one.only_here and not one.world().unread}


@dataclass
class Server:
    """A real API server that shows one world after the other."""

    lab: Lab
    client: Client
    stored: dict[str, Object] = field(default_factory=dict)

    def show(self, world: World) -> list[Object]:
        """Put a world in place of the one before; answers its objects that are new or different."""
        wanted = {key(item): item for item in world.objects}
        # Made by a controller elsewhere; without it no pod is accepted.
        wanted |= {key(item): item for item in map(account, world.of("Namespace"))}
        changed = {name: item for name, item in wanted.items() if self.stored.get(name) != item}
        operations: list[dict[str, Any]] = [
            {"requestDeleteRange": {"key": encoded(name)}} for name in self.stored if name not in wanted
        ]
        for name, item in changed.items():
            operations.append({"requestPut": {"key": encoded(name), "value": encoded(json.dumps(item))}})
        for start in range(0, len(operations), MOST):
            self._etcd("/v3/kv/txn", {"success": operations[start : start + MOST]})
        self.stored = wanted
        return [item for item in changed.values() if item["kind"] not in ("Namespace", "ServiceAccount")]

    def empty(self) -> None:
        """Take away what the lab has put there."""
        for kind in (kinds.NODE, kinds.CSI_NODE):
            for item in self.client.list(kind).items:
                named = {"kind": kind.kind, **item}
                self._etcd("/v3/kv/deleterange", {"key": encoded(key(named))})

    def accepts(self, item: Mapping[str, Any]) -> None:
        """A client may create such an object: ApiError says why not."""
        kind, metadata = KINDS[item["kind"]], item["metadata"]
        copy = {**item, "metadata": {**metadata, "name": f"{metadata['name']}-x"}}
        self.lab.api.post(f"{kind.path(metadata.get('namespace'))}?dryRun=All&fieldValidation=Strict", copy)

    def _etcd(self, path: str, body: dict[str, Any]) -> None:
        endpoint = f"http://127.0.0.1:{self.lab.state.ports['etcd']}"
        request = urllib.request.Request(f"{endpoint}{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=20) as answer:
            answer.read()


def account(namespace: Object) -> Object:
    """The ServiceAccount that every namespace has."""
    place = {"name": "default", "namespace": namespace["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def key(item: Mapping[str, Any]) -> str:
    """Where etcd keeps an object."""
    kind, metadata = KINDS[item["kind"]], item["metadata"]
    parts = ["/registry", FOLDERS.get(kind.plural, kind.plural), metadata.get("namespace", ""), metadata["name"]]
    return "/".join(part for part in parts if part)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = handle.start(f"situations-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    try:
        for name in ("kwok", "scheduler", "controller-manager", "kubelet"):
            made.call("stop", name=name)
        alone = Server(made, connect(made.state.kubeconfigs["admin"]))
        alone.empty()
        yield alone
    finally:
        made.stop()


@pytest.fixture(scope="module")
def now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def looked_at(server: Server, world: World, planted: Situation | None = None) -> set[str]:
    """Ids of the findings that the server's objects make, with what was seen on the hosts."""
    hosts = tuple(HostSeen.from_option(one) for one in world.hosts)
    found = replace(take(server.client, hosts=hosts, hosts_at=world.now), taken_at=world.now)
    report = judge(found, Options(target=planted.target) if planted else None)
    return {one.id for one in report.findings}


def test_a_healthy_cluster_gives_no_finding(server: Server, now: datetime) -> None:
    world = healthy(now)
    for item in server.show(world):
        server.accepts(item)
    assert looked_at(server, world) == set()


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_situation_makes_the_same_findings(server: Server, now: datetime, planted: Situation) -> None:
    world = planted.world(healthy(now))
    for item in server.show(world):
        server.accepts(item)
    assert looked_at(server, world, planted) == planted.expected
