# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of the lab and the CSINode each kubelet makes at its start."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

from lab.cluster import era
from lab.cluster.api import Api, ApiError, Object

NODES = "/api/v1/nodes"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
LINUX = "linux-1"
KUBELET_VERSION = "v1.36.3"
WINDOWS_BUILD = "10.0.20348"
PER_NET = 254
NETS = 8


def address(number: int) -> str:
    """The loopback address of Windows node `number` (from 1): 127.0.11.N, then 127.0.12.N and so on."""
    net, last = divmod(number - 1, PER_NET)
    return f"127.0.{11 + net}.{last + 1}"


LINUX_ADDRESS = "127.0.10.1"


def kubelet_addresses() -> list[str]:
    """Every address a kubelet may be asked at; they are in its certificate from the start, so nodes can be added."""
    return [LINUX_ADDRESS, *(address(number) for number in range(1, PER_NET + 1))]


@dataclass(frozen=True, slots=True)
class Node:
    """What the lab decides about one node."""

    name: str
    address: str
    windows: bool

    @classmethod
    def windows_node(cls, number: int) -> Node:
        return cls(f"win-{number}", address(number), windows=True)

    @classmethod
    def linux_node(cls) -> Node:
        return cls(LINUX, LINUX_ADDRESS, windows=False)


def boot_id() -> str:
    return str(uuid.uuid4())


def system_uuid(name: str) -> str:
    """The machine's UUID, the same for a name in every lab: a driver's node id is made from it."""
    return str(uuid.UUID(bytes=hashlib.md5(name.encode(), usedforsecurity=False).digest()))


def body(node: Node, kubelet_port: int, kubelet: str = KUBELET_VERSION) -> Object:
    system = "windows" if node.windows else "linux"
    labels = {
        "kubernetes.io/os": system,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
    }
    if node.windows:
        labels["node.kubernetes.io/windows-build"] = WINDOWS_BUILD
    info = {
        "machineID": node.name,
        "systemUUID": system_uuid(node.name),
        "bootID": boot_id(),
        "kernelVersion": "10.0.20348.2700" if node.windows else "6.1.0-18-amd64",
        "osImage": "Windows Server 2022 Datacenter" if node.windows else "Debian GNU/Linux 12 (bookworm)",
        "containerRuntimeVersion": "containerd://1.7.20",
        "kubeletVersion": kubelet,
        "kubeProxyVersion": kubelet,
        "operatingSystem": system,
        "architecture": "amd64",
    }
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "250", "ephemeral-storage": "100Gi"}
    taints = [{"key": "os", "value": "Windows", "effect": "NoSchedule"}] if node.windows else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "labels": labels,
            "annotations": {
                "kwok.x-k8s.io/node": "fake",
                **{name: value for name, value in era.node_annotations(kubelet).items() if value is not None},
            },
        },
        "spec": {"taints": taints, "providerID": f"vsphere://{system_uuid(node.name)}"},
        "status": {
            "nodeInfo": info,
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": node.address}, {"type": "Hostname", "address": node.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
            # The API server passes exec's newer web socket protocol on only to a kubelet that declares this; those of older
            # releases, which could not, declare it here too.
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                }
            ],
        },
    }


def add(api: Api, node: Node, kubelet_port: int, kubelet: str = KUBELET_VERSION) -> Object:
    """Create the Node and its CSINode (no driver yet), as a kubelet's first start does."""
    made = api.post(NODES, body(node, kubelet_port, kubelet))
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": made["metadata"]["uid"]}
    api.ensure(
        CSI_NODES,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {
                "name": node.name,
                "ownerReferences": [owner],
                "annotations": {era.MIGRATED_PLUGINS: era.migrated(kubelet)},
            },
            "spec": {"drivers": []},
        },
    )
    return made


def remove(api: Api, name: str) -> None:
    """Delete the Node and its CSINode, so that the name can return; its pods follow by the controllers."""
    api.delete(f"{NODES}/{name}")
    try:
        api.delete(f"{CSI_NODES}/{name}")
    except ApiError as error:
        if error.status != 404:
            raise


def reboot(api: Api, name: str) -> str:
    """Give the node a new boot id, as a restarted machine reports it; answers that id."""
    new = boot_id()
    api.patch(f"{NODES}/{name}/status", {"status": {"nodeInfo": {"bootID": new}}})
    return new


def upgraded(name: str, kubelet: str) -> list[tuple[str, Object]]:
    """(path, merge patch): what a kubelet of another release writes when it starts on a node that is there."""
    return [
        (
            f"{CSI_NODES}/{name}",
            {"metadata": {"annotations": {era.MIGRATED_PLUGINS: era.migrated(kubelet)}}},
        ),
        (f"{NODES}/{name}", {"metadata": {"annotations": era.node_annotations(kubelet)}}),
        (
            f"{NODES}/{name}/status",
            {"status": {"nodeInfo": {"kubeletVersion": kubelet, "kubeProxyVersion": kubelet}}},
        ),
    ]


def upgrade(api: Api, name: str, kubelet: str = KUBELET_VERSION) -> None:
    """A kubelet of this release starts on the node. Only upwards: the attach controller never releases a node again."""
    for path, patch in upgraded(name, kubelet):
        api.patch(path, patch)
