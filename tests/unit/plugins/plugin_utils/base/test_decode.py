# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile text in whatever a tenant, a node or a host may write: each reader returns, or raises its own error."""

from __future__ import annotations

import base64
import contextlib
import gc
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base import stored
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import (
    DEPTH,
    SIZE,
    DecodeError,
    decode,
    inflate,
    read_json,
    read_number,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import versions
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import record
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import listing, manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.decide import WaitingNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout import apply, decide, scheduling
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import faults, kinds, streams
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ApiCall, ClusterError, describe_failure
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import HeldLease, identify_run
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import ConfigMaps
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.times import parse_time
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.nodes import ObservedCsiNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import read_quantity
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import ObservedTemplate
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade import journal
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands, observe, parse
from situations.world import observed_pod

from ..kube.fakes import ApiError, Response, Script

NOW = datetime(2026, 11, 23, tzinfo=timezone.utc)
DIGITS = "9" * 5000
BOMB = base64.b64encode(gzip.compress(b"0" * (SIZE + 1))).decode()

HOSTILE = {
    "deep": "[" * 20_000,
    "closed and deep": "[" * 20_000 + "]" * 20_000,
    "deep objects": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "deeper than ours": "[" * (DEPTH + 1) + "]" * (DEPTH + 1),
    "digits": DIGITS,
    "negative digits": f"-{DIGITS}",
    "a number in JSON": '{"schema": 1, "node": 1, "stale": [["a", 1e400]], "metadata": 1, "details": 1}',
    "not finite": "NaN",
    "an infinite number": '{"schema": Infinity, "code": 1e999}',
    "a number of another script": "\u0669\u00b2",
    "hexadecimal": "0x" + "f" * 20_000,
    "an exponent": "1e999999999",
    "a list": "[1, null, {}]",
    "a null": "null",
    "a null of another kind": '{"run": null, "annotations": 3, "taken": [], "details": {"causes": 7}, "items": 1}',
    "a surrogate": '"\\ud800"',
    "a time": "0001-01-01T00:00:00+23:59",
    "a late time": "9999-12-31T23:59:59-23:59",
    "a WMI time": "LastBootUpTime=00010101000000.000000+999",
    "a bomb": BOMB,
    "a cut archive": base64.b64encode(zlib.compress(b"a" * 1000)[:-8]).decode(),
    "controls": "\x00\x1b]0;x\x07\r\n\u202e",
    "nothing": "",
}


def of_daemon_set(text: str) -> dict[str, Any]:
    names = (apply.FAILED, "kubewin.io/handover-node")
    metadata = {"name": "vsphere", "namespace": "csi", "annotations": dict.fromkeys(names, text)}
    return {"metadata": metadata, "spec": {"template": {"spec": {}}, "selector": {}}}


def of_config_map(text: str) -> str | None:
    """A compressed text in a ConfigMap, as a tenant may have written it."""
    live = {"metadata": {"name": "a", "resourceVersion": "1"}, "binaryData": {"journal.json.gz": text}}
    client = Client(Script(Response(live)), retry_for=0)
    return ConfigMaps(client, "csi", "journal", "journal.json", "").read("a")


def of_server(text: str) -> Any:
    """An answer in place of an API server's: an object, a page, an event, an error."""
    raw = Response()
    raw.data = text.encode("utf-8", "replace")
    client = Client(Script(raw), retry_for=0)
    return client.list(kinds.POD)


def watched(text: str) -> Any:
    response = Response()
    response.stream = lambda **_options: iter([f"{text}\n".encode("utf-8", "replace")])  # type: ignore[method-assign]
    return list(Client(Script(response), retry_for=0).watch(kinds.POD, "1", 1))


def of_pod(text: str) -> Any:
    spec = {
        "containers": [{"name": "a", "resources": {"requests": {"cpu": text, "memory": text}}}],
        "volumes": [
            {
                "name": "v",
                "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": text}}}}},
            }
        ],
        "nodeSelector": {"a": text},
    }
    template: dict[str, Any] = {
        "spec": {"template": {"spec": spec}, "strategy": {"rollingUpdate": {"maxSurge": text}}},
        "metadata": {},
    }
    metadata = {"name": "web-0", "namespace": "shop", "uid": "u", "annotations": {"a": text}}
    template["metadata"] = metadata
    return observed_pod({"metadata": metadata, "spec": spec, "status": {}}), ObservedTemplate.from_object(
        "Deployment", template
    )


def of_lease(text: str) -> Any:
    table = "/".join(identify_run().split("/")[:2])
    spec = {"renewTime": text, "leaseDurationSeconds": 30}
    metadata = {"name": "a", "resourceVersion": "1", "uid": "u"}
    leases = [
        {"metadata": metadata, "spec": {**spec, "holderIdentity": holder}} for holder in (text, f"{table}/{text}-1")
    ]
    return [str(HeldLease.from_object(lease, NOW)) for lease in leases]


def of_csi_node(text: str) -> Any:
    driver = {"name": "a", "nodeID": text, "topologyKeys": [text]}
    return ObservedCsiNode.from_object({"metadata": {"name": "win-1"}, "spec": {"drivers": [driver]}})


def of_node(text: str) -> Any:
    annotations = dict.fromkeys(("csi.volume.kubernetes.io/nodeid", "windowsmachineconfig.openshift.io/version"), text)
    info = {"kubeletVersion": text, "kernelVersion": f"10.0.{text}", "containerRuntimeVersion": f"containerd://{text}"}
    return ObservedNode.from_object(
        {"metadata": {"name": "win-1", "labels": {"a": text}, "annotations": annotations}, "status": {"nodeInfo": info}}
    )


def printed(text: str) -> Any:
    """What a host printed in place of each tool."""
    status = f"\n  A : {text}\n  A : 4 {text}\n  A : {text} (0x0)\n  A : {text} (0x0)\n  A : {text}\n"
    return (
        parse.read_service_status(status),
        parse.read_service_status(f"\n  A : 1\n  A : 4 B\n  A : {text} (0x0)\n  A : {text} (0x0)\n  A : {text}\n"),
        parse.read_dword(("REG_DWORD", text)),
        parse.read_processes(f'"a.exe","{text}","b"'),
        parse.read_smb_mappings(f"LocalPath=\nRemotePath=\\\\a\\b\nStatus={text}"),
        parse.read_failure_actions(text),
        observe.parse_lock_owner(f"id=a at={text} process={text}"),
        commands.split_steps(f"#abc.0=0\r\n#abc.{text}=1\r\n#abc.1={text}\r\n".encode("utf-8", "replace"), "abc", 1),
        listing.parse_listing(f" Directory of C:\\data\r\n\r\n11/22/2026  09:30 AM    {text} a.txt\r\n", "C:\\data"),
    )


READERS: dict[str, tuple[Callable[[str], Any], tuple[type[Exception], ...]]] = {
    "read_json": (read_json, (DecodeError,)),
    "inflate": (lambda text: inflate(text.encode("utf-8", "replace")), (DecodeError,)),
    "a Node": (of_node, ()),
    "a CSINode": (of_csi_node, ()),
    "a pod and its template": (of_pod, ()),
    "a Lease": (of_lease, ()),
    "a failed template": (lambda text: apply.FailedTemplate.from_object(of_daemon_set(text)), ()),
    "a handover's annotation": (lambda text: WaitingNode.from_object(of_daemon_set(text)), (ClusterError,)),
    "a journal": (journal.from_json, (stored.FormatError,)),
    "a record of a conversion": (record.from_json, (stored.FormatError,)),
    "a baseline": (manifest.from_json, (stored.FormatError,)),
    "a baseline's second line": (lambda text: manifest.from_json(f'{{"schema": 1}}\n{text}'), (stored.FormatError,)),
    "a compressed record": (of_config_map, ()),
    "an answer of a server": (of_server, (ClusterError,)),
    "an event of a watch": (watched, (ClusterError,)),
    "an error's body": (lambda text: str(describe_failure(ApiCall("get", kinds.POD, "a", "b"), 409, text)), ()),
    "an exit code": (streams.parse_exit_code, (ClusterError,)),
    "a time to wait": (lambda text: faults.read_retry_after(ApiError(429, {}, {"Retry-After": text})), ()),
    "a time": (lambda text: [found - NOW for found in [parse_time(text)] if found], ()),
    "a read_quantity": (read_quantity, ()),
    "a release": (versions.parse, (ValueError,)),
    "a number of nodes": (lambda text: decide.count_allowed_unavailable(f"{text}%", 3), ()),
    "a node selector": (
        lambda text: scheduling.matches_expression({"key": "a", "operator": "Gt", "values": [text]}, {"a": text}), (),
    ),
    "a host's output": (printed, ()),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def uncollected() -> Iterator[None]:
    """A finalizer of an object of another test, run by the collector at the bottom of a recursion, would fail this one."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("reader", READERS)
def test_hostile_text_ends_no_reader_with_another_error_than_its_own(reader: str, hostile: str) -> None:
    read, expected = READERS[reader]
    with contextlib.suppress(*expected):
        str(read(HOSTILE[hostile]))


def test_each_decoder_of_a_library_is_behind_the_edge() -> None:
    with pytest.raises(DecodeError, match="nested"):
        decode(json.loads, HOSTILE["deep"])
    with pytest.raises(DecodeError, match="at most"):
        read_json(" " * (SIZE + 1))
    with pytest.raises(DecodeError, match="uncompressed"):
        inflate(base64.b64decode(BOMB))
    assert inflate(gzip.compress(b"kept")) == inflate(zlib.compress(b"kept")) == b"kept"
    assert read_json("[" * DEPTH + "]" * DEPTH)
    assert [read_number(text) for text in ("12", " -3 ", "1.5", "", None, DIGITS)] == [12, -3, None, None, None, None]
    assert partial(parse_time, "2026-11-23T00:00:00Z")() == NOW
