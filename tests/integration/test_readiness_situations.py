# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every named situation on a real API server: it accepts the objects, and what is read from it makes the same findings.

The server is alone with its etcd: controllers would repair most of what is planted. Objects are put into etcd as they are, with
times and states that take too long to reach; that the server takes them from clients as well, a dry run shows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts import pod_spec
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.nodes import ObservedHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from benchmark.stored import alone, key, store
from integration.kube import connect
from lab import handle
from lab.handle import Lab
from situations.cluster import healthy
from situations.named import SITUATIONS, Situation
from situations.served import KINDS
from situations.world import Object, World

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
        wanted = {place(item): item for item in world.objects}
        # Made by a controller elsewhere; without it no pod is accepted.
        wanted |= {place(item): item for item in map(account, world.of("Namespace"))}
        changed = {name: item for name, item in wanted.items() if self.stored.get(name) != item}
        gone: list[tuple[str, bytes | None]] = [(name, None) for name in self.stored if name not in wanted]
        store(self.lab, [*gone, *((name, json.dumps(item).encode()) for name, item in changed.items())])
        self.stored = wanted
        return [item for item in changed.values() if item["kind"] not in ("Namespace", "ServiceAccount")]

    def accepts(self, item: Mapping[str, Any]) -> None:
        """A client may create such an object; ApiError if not."""
        kind, metadata = KINDS[item["kind"]], item["metadata"]
        copy = {**item, "metadata": {**metadata, "name": f"{metadata['name']}-x"}}
        self.lab.api.post(f"{kind.path(metadata.get('namespace'))}?dryRun=All&fieldValidation=Strict", copy)


def account(namespace: Object) -> Object:
    """The ServiceAccount that every namespace has."""
    place = {"name": "default", "namespace": namespace["metadata"]["name"]}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place}


def place(item: Mapping[str, Any]) -> str:
    """Where etcd keeps an object."""
    metadata = item["metadata"]
    return key(KINDS[item["kind"]], metadata["name"], metadata.get("namespace", ""))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = handle.start(f"situations-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    try:
        alone(made)
        yield Server(made, connect(made.state.kubeconfigs["admin"]))
    finally:
        made.stop()


@pytest.fixture(scope="module")
def now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def findings_of(server: Server, world: World, planted: Situation | None = None) -> set[str]:
    """Ids of the findings that the server's objects make, with what was seen on the hosts."""
    hosts = tuple(ObservedHost.from_option(one) for one in world.hosts)
    found = replace(take(server.client, hosts=hosts, hosts_at=world.now), taken_at=world.now)
    report = evaluate(found, Options(target=planted.target) if planted else None)
    return {one.id for one in report.findings}


def test_a_healthy_cluster_gives_no_finding(server: Server, now: datetime) -> None:
    world = healthy(now)
    for item in server.show(world):
        server.accepts(item)
    assert findings_of(server, world) == set()


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_situation_makes_the_same_findings(server: Server, now: datetime, planted: Situation) -> None:
    world = planted.world(healthy(now))
    for item in server.show(world):
        server.accepts(item)
    assert findings_of(server, world, planted) == planted.expected


KNOWN_FIELDS = {
    "PodSpec": pod_spec.POD_READ | pod_spec.POD_IRRELEVANT,
    "Affinity": pod_spec.AFFINITY_READ,
    "Container": pod_spec.CONTAINER_READ | pod_spec.CONTAINER_IRRELEVANT,
    "EphemeralContainer": pod_spec.CONTAINER_READ | pod_spec.CONTAINER_IRRELEVANT,
    "EnvVarSource": pod_spec.VARIABLE_READ,
    "Volume": pod_spec.VOLUME_READ | pod_spec.VOLUME_IRRELEVANT,
    "VolumeProjection": pod_spec.PROJECTED_READ | pod_spec.PROJECTED_IRRELEVANT,
}
# No table has them, so a pod that uses one has an assumption.
ASSUMED = {
    "PodSpec": {"schedulingGroup"},
    "EnvVarSource": {"fileKeyRef"},
    "VolumeProjection": {"clusterTrustBundle", "podCertificate"},
}


@pytest.mark.parametrize("kind", KNOWN_FIELDS)
def test_every_field_of_the_api_is_read_or_irrelevant_or_assumed(server: Server, kind: str) -> None:
    schemas = server.lab.api.get("/openapi/v3/api/v1")["components"]["schemas"]
    fields = set(schemas[f"io.k8s.api.core.v1.{kind}"]["properties"])
    assert fields - KNOWN_FIELDS[kind] == ASSUMED.get(kind, set())
