# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes, claims and Windows pods for tests, and what of volumes is in a lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.stream import stream
from lab.cluster.api import Object
from lab.handle import Lab, eventually

NAMESPACE = "stories"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MOUNT = "C:\\data"


def storage_class(
    lab: Lab, name: str, provisioner: str, parameters: dict[str, str] | None = None, *, waits: bool = True,
    reclaim: str = "Delete",
) -> str:  # fmt: skip
    """Make a StorageClass unless it is there; answers its name."""
    body = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "parameters": parameters or {},
        "reclaimPolicy": reclaim,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }
    lab.api.ensure(CLASSES, body)
    return name


def make_namespace(lab: Lab) -> None:
    lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    eventually(lambda: lab.api.ok(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"), "its account")


@contextmanager
def a_namespace(lab: Lab) -> Iterator[None]:
    """The namespace of the stories; whatever is in it goes in the end."""
    make_namespace(lab)
    yield
    for path in (PODS, CLAIMS):
        lab.api.delete(path)
        eventually(partial(_empty, lab, path), f"nothing left of {path}")
    # Kept volumes are released by now; nothing else deletes them.
    for volume in volumes(lab):
        if volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain":
            name = volume["metadata"]["name"]
            lab.api.patch(f"{VOLUMES}/{name}", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    eventually(lambda: not volumes(lab), "no volume left")
    lab.api.gone(f"/api/v1/namespaces/{NAMESPACE}")
    eventually(lambda: not lab.api.ok(f"/api/v1/namespaces/{NAMESPACE}"), "the namespace is gone")


def _empty(lab: Lab, path: str) -> bool:
    return not lab.api.items(path)


def claim(lab: Lab, name: str, storage_class_name: str, mode: str = "ReadWriteOnce") -> None:
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage_class_name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    lab.api.post(CLAIMS, body)


def pod(lab: Lab, name: str, claim_name: str, node: str) -> None:
    """A Windows pod on a node, placed by the scheduler, with the claim at C:\\data."""
    lab.api.post(PODS, pod_body(name, claim_name, node))


def pod_body(name: str, claim_name: str, node: str) -> Object:
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "os": {"name": "windows"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": affinity},
            "containers": [
                {
                    "name": "app",
                    "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
                    "volumeMounts": [{"name": "data", "mountPath": MOUNT}],
                }
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}],
        },
    }


def phase(lab: Lab, name: str) -> str:
    found = lab.api.get(f"{PODS}/{name}")
    return str((found.get("status") or {}).get("phase", ""))


def runs(lab: Lab, name: str) -> None:
    try:
        eventually(lambda: phase(lab, name) == "Running", f"pod {name} runs")
    except AssertionError as error:
        raise AssertionError(f"{error}: {events(lab)}") from error


def gone(lab: Lab, path: str) -> None:
    lab.api.gone(path)
    eventually(lambda: not lab.api.ok(path), f"{path} is gone")


def events(lab: Lab) -> list[str]:
    """Events of the namespace's objects: "name reason message"."""
    found = lab.api.items(f"/api/v1/namespaces/{NAMESPACE}/events")
    return [f"{one['involvedObject']['name']} {one['reason']} {one['message']}" for one in found]


def reported(lab: Lab, *words: str) -> str:
    """Wait for an event that holds all these words."""
    return eventually(
        lambda: next((one for one in events(lab) if all(word in one for word in words)), ""), f"event with {words}"
    )


def run(lab: Lab, name: str, *command: str) -> tuple[int | str, str, str]:
    """Run a command in a pod with the client that everybody uses; the code is a text where nothing could be started."""
    load: Any = config.new_client_from_config
    core = client.CoreV1Api(load(lab.state.kubeconfigs["admin"]))
    socket: Any = stream(
        core.connect_get_namespaced_pod_exec,
        name,
        NAMESPACE,
        command=list(command),
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    socket.run_forever(timeout=120)
    output, errors, status = (socket.read_channel(channel) for channel in (1, 2, 3))
    end: Object = json.loads(status)
    if end["status"] == "Success":
        return 0, output, errors
    causes = end["details"]["causes"]
    return (int(causes[0]["message"]) if causes[0].get("reason") == "ExitCode" else end["message"]), output, errors


def volumes(lab: Lab) -> list[Object]:
    return lab.api.items(VOLUMES)


def folders(lab: Lab) -> list[Path]:
    """The directories that stand behind volumes."""
    return sorted(lab.state.paths.volumes.glob("*/*"))


def status(lab: Lab, node: str) -> Object:
    found: Object = lab.api.get(f"/api/v1/nodes/{node}")["status"]
    return found
