# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every named situation on a real API server: it accepts the objects, and what is read from it makes the same findings.

Daily the first situation of each family of findings is read from the server, as torture every one: test_observe.py reads each from
an HTTP server that has the same objects.

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
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import ObservedHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts import fields
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NO_TARGET
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


def first_of_each_family() -> set[str]:
    """Names of situations that together have each letter of findings, CSI-N to CSI-X."""
    first: dict[str, str] = {}
    for name, situation in PLANTED.items():
        for finding in situation.expected:
            first.setdefault(finding[:5], name)
    return set(first.values())


DAILY = first_of_each_family()


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
        if item["kind"] == "PriorityClass":
            # The situation's own may be the default, of which there is one.
            copy["globalDefault"] = False
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
    report = evaluate(found, planted.target if planted else NO_TARGET)
    return {one.id for one in report.findings}


def test_a_healthy_cluster_gives_no_finding(server: Server, now: datetime) -> None:
    world = healthy(now)
    for item in server.show(world):
        server.accepts(item)
    assert findings_of(server, world) == set()


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_the_server_accepts_a_situation(server: Server, now: datetime, planted: Situation) -> None:
    for item in server.show(planted.world(healthy(now))):
        server.accepts(item)


@pytest.mark.parametrize(
    "planted",
    [pytest.param(PLANTED[name], id=name, marks=() if name in DAILY else pytest.mark.torture) for name in PLANTED],
)
def test_a_situation_makes_the_same_findings(server: Server, now: datetime, planted: Situation) -> None:
    world = planted.world(healthy(now))
    server.show(world)
    assert findings_of(server, world, planted) == planted.expected


def find_properties(schemas: dict[str, Any], schema_name: str) -> dict[str, str]:
    """The fields of a schema, each with the name of its own schema, empty for a scalar or a map."""
    properties: dict[str, str] = {}
    for name, schema in schemas[schema_name].get("properties", {}).items():
        item = schema.get("items", schema)
        reference = next((part["$ref"] for part in (item, *item.get("allOf", ())) if "$ref" in part), "")
        part = reference.rpartition("/")[2]
        properties[name] = part if part and "properties" in schemas[part] else ""
    return properties


def compare_with_schema(
    schemas: dict[str, Any], schema_name: str, table: fields.FieldTable, path: str
) -> Iterator[str]:
    """What a table of fields has otherwise than the schema of the API."""
    properties = find_properties(schemas, schema_name)
    yield from (f"{path}.{name} is in no table" for name in properties.keys() - table.keys())
    yield from (f"{path}.{name} is no field of the API" for name in table.keys() - properties.keys())
    for name in properties.keys() & table.keys():
        part, answer = properties[name], table[name]
        is_list = schemas[schema_name]["properties"][name].get("type") == "array"
        if not isinstance(answer, fields.FieldAnswer):
            # A map's keys are in no schema.
            if part and is_list != isinstance(answer, list):
                yield f"{path}.{name} is a list in one of table and schema"
            elif part:
                item = answer if isinstance(answer, Mapping) else answer[0]
                yield from compare_with_schema(schemas, part, item, f"{path}.{name}")
        elif part and answer.answer == "read":
            yield f"{path}.{name} is read, and its own fields are in no table"


def read_schemas(server: Server) -> dict[str, Any]:
    """The schemas of the API by name."""
    groups = (server.lab.api.get(f"/openapi/v3/{group}") for group in ("api/v1", "apis/storage.k8s.io/v1"))
    return {name: schema for group in groups for name, schema in group["components"]["schemas"].items()}


def name_schema(schemas: Mapping[str, Any], kind: str) -> str:
    (name,) = (name for name in schemas if name.endswith(f".v1.{kind}"))
    return name


@pytest.fixture(scope="module")
def schemas(server: Server) -> dict[str, Any]:
    return read_schemas(server)


@pytest.mark.parametrize("kind", fields.TABLES)
def test_every_field_of_the_api_is_read_or_irrelevant_or_assumed(schemas: dict[str, Any], kind: str) -> None:
    assert sorted(compare_with_schema(schemas, name_schema(schemas, kind), fields.TABLES[kind], kind)) == []


@pytest.mark.parametrize(
    ("kind", "owner", "path"),
    [
        *((kind, kind, kind) for kind in fields.TABLES),
        ("PodSpec", "Container", "PodSpec.containers"),
        ("PodSpec", "NodeAffinity", "PodSpec.affinity.nodeAffinity"),
        ("PersistentVolumeClaim", "PersistentVolumeClaimSpec", "PersistentVolumeClaim.spec"),
        ("PersistentVolume", "CSIPersistentVolumeSource", "PersistentVolume.spec.csi"),
        ("CSIDriver", "CSIDriverSpec", "CSIDriver.spec"),
    ],
)
def test_a_field_of_the_next_release_is_in_no_table(schemas: dict[str, Any], kind: str, owner: str, path: str) -> None:
    owner = name_schema(schemas, owner)
    properties = {**schemas[owner]["properties"], "newField": {"type": "string"}}
    following = {**schemas, owner: {**schemas[owner], "properties": properties}}
    differences = list(compare_with_schema(following, name_schema(schemas, kind), fields.TABLES[kind], kind))
    assert f"{path}.newField is in no table" in differences
