# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of an object only listed fields are kept; in any other field a secret may stand, whatever the field is called."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.fields import KINDS
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.redactor import Redactor
from unit.plugins.plugin_utils.base.redaction.reader import part_survives

PLANTED = "sommerregenbogen"
POD: dict[str, Any] = {
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"example.com/note": "text"}},
    "spec": {
        "nodeName": "win-1",
        "containers": [
            {
                "name": "driver", "image": "registry.example.com/driver:v1.2.3", "args": ["--endpoint=unix://C:\\csi\\csi.sock", "--v=5"],
                "env": [{"name": "CSI_ENDPOINT", "value": "unix://C:\\csi\\csi.sock"}, {"name": "NOTE", "value": "text"}],
                "volumeMounts": [{"name": "creds", "mountPath": "C:\\creds"}],
            }
        ],
        "volumes": [{"name": "creds", "secret": {"secretName": "smbcreds"}}],
        "tolerations": [{"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}],
    },
    "status": {"phase": "Running", "containerStatuses": [{"name": "driver", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each mapping."""
    if isinstance(value, dict):
        yield path
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from places(part, (*path, at))


@pytest.mark.parametrize("name", ["surprise", "password", "data", "token", "spec2", "metadataNote"])
def test_a_field_that_is_not_listed_is_hidden_at_every_place(name: str) -> None:
    for value in (PLANTED, [PLANTED], {"a": {"b": PLANTED}}, [{"a": PLANTED}]):
        for path in places(POD):
            item = copy.deepcopy(POD)
            place: Any = item
            for step in path:
                place = place[step]
            place[name] = value
            if path[-1:] == ("labels",):
                # Words may be labels; what has the name of a secret is none.
                continue
            shown = json.dumps(Redactor().redact_objects("Pod", [item]))
            assert not part_survives(PLANTED, shown), (path, value, shown)


def test_what_explains_a_pod_stays() -> None:
    (shown,) = Redactor().redact_objects("Pod", [POD])
    expected = copy.deepcopy(POD)
    expected["metadata"]["annotations"]["example.com/note"] = "<str, 4>"
    expected["spec"]["containers"][0]["env"][1]["value"] = "<str, 4>"
    assert shown == expected


def test_copies_of_the_manifest_are_left_out() -> None:
    metadata = {
        "name": "a", "managedFields": [{"x": PLANTED}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"x": PLANTED})},
    }  # fmt: skip
    assert Redactor().redact_objects("Pod", [{"metadata": metadata}]) == [
        {"metadata": {"name": "a", "annotations": {}}}
    ]


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap", "UnknownKind"])
def test_of_these_kinds_only_that_an_object_is_there(kind: str) -> None:
    item = {"metadata": {"name": "a"}, "data": {"x": PLANTED}, "stringData": {"x": PLANTED}, "spec": {"x": PLANTED}}
    shown = json.dumps(Redactor().redact_objects(kind, [item]))
    assert not part_survives(PLANTED, shown)
    assert '"a"' in shown


def test_parameters_and_arguments_are_judged_by_their_names() -> None:
    parameters = {
        "csi.storage.k8s.io/fstype": "ntfs",
        "csi.storage.k8s.io/provisioner-secret-name": "smbcreds",
        "password": PLANTED,
        "sas": PLANTED,
    }
    (shown,) = Redactor().redact_objects(
        "StorageClass", [{"metadata": {"name": "a"}, "provisioner": "smb.csi.k8s.io", "parameters": parameters}]
    )
    hidden = f"<str, {len(PLANTED)}>"
    assert shown["parameters"] == {**parameters, "password": hidden, "sas": hidden}
    pod = {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "args": ["--password", PLANTED, "--v", "5", f"--token={PLANTED}"]}]},
    }
    (shown,) = Redactor().redact_objects("Pod", [pod])
    assert shown["spec"]["containers"][0]["args"] == ["--password", hidden, "--v", "5", f"--token={hidden}"]


def test_an_object_nested_without_end_is_cut() -> None:
    item: dict[str, Any] = {}
    for _level in range(900):
        item = {"nodeAffinity": item}
    assert Redactor().redact_objects("Pod", [{"metadata": {"name": "a"}, "spec": {"affinity": item}}])


@pytest.mark.parametrize("character", ["\x1b", "\x9b", "\u202e", "\u2028"])
@pytest.mark.parametrize("name", ["readiness/snapshot.json", "readiness/readiness.html", "csi-proxy.txt"])
def test_no_file_of_the_archive_acts_on_a_terminal(name: str, character: str) -> None:
    """The snapshot has texts of objects as they were read."""
    text = (
        json.dumps({"message": f"a {character} b", character: 1}, ensure_ascii=False)
        if name.endswith("json")
        else character
    )
    shown = Redactor().redact_file(name, text)
    assert character not in shown
    assert not name.endswith("json") or character not in str(json.loads(shown))


def test_every_kind_that_gather_reads_is_listed() -> None:
    kinds = {
        "Node",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
        "StorageClass",
        "DaemonSet",
        "Pod",
        "Event",
        "PersistentVolume",
        "PersistentVolumeClaim",
    }
    assert kinds <= KINDS


@pytest.mark.parametrize(
    "text",
    ["\\", '"', "[", "{", "a@", "password=[", "<a ", "%41", "net use * ", "'a'", "a.b-", "pods/", '\\"', "x=1,", ",-u"],
)
def test_no_text_takes_long(text: str) -> None:
    """A host may write anything into its logs: 30,000 characters of one pattern are no work."""
    begin = time.process_time()
    assert Redactor(["held-by-the-run"]).redact_log(text * (30_000 // len(text)))
    # Each takes less than half a second; one that grows with the square of the size took 12 s.
    assert time.process_time() - begin < 5
