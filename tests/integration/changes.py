# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of changes to a running cluster share: a driver's plugin as it runs, a record of unavailable nodes, and workloads."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import GoneError, UnreachableError
from integration.kube import connect
from integration.playbooks import meanwhile, start
from lab.cluster.api import Api, Object
from lab.handle import Lab, eventually, ready
from situations.cluster import disk_handle

# The driver's role alone, against the cluster: what the play does for each driver, without the hosts.
APPLY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  module_defaults:
    group/kubewin.csi.cluster: {kubeconfig: "{{ kubewin_kubeconfig }}"}
    kubewin.csi.driver_apply: {kubeconfig: "{{ kubewin_kubeconfig }}", nodes: "{{ roll_nodes | default([]) }}"}
  tasks:
    - ansible.builtin.include_role:
        name: kubewin.csi.csi_driver
        tasks_from: apply
      vars: {csi_driver_name: "{{ kubewin_drivers }}"}
"""
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PODS = "/api/v1/namespaces/default/pods"
VOLUMES = "/api/v1/persistentvolumes"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


def daemon_set(lab: Lab, driver: Driver) -> Object:
    """The driver's DaemonSet."""
    return lab.api.get(f"/apis/apps/v1/namespaces/{driver.namespace}/daemonsets/{driver.daemonset}")


def at_rest(lab: Lab, driver: Driver) -> bool:
    """Whether every plugin pod, one that is being deleted too, has the DaemonSet's newest template, and no run changes it."""
    revisions = lab.api.items(f"/apis/apps/v1/namespaces/{driver.namespace}/controllerrevisions")
    newest = max(
        (one for one in revisions if one["metadata"]["labels"].get("app") == driver.app_label),
        key=lambda one: int(one["revision"]),
    )
    leases = lab.api.items(f"/apis/coordination.k8s.io/v1/namespaces/{driver.namespace}/leases")
    pods = lab.api.items(f"/api/v1/namespaces/{driver.namespace}/pods?labelSelector=app={driver.app_label}")
    hashes = {pod["metadata"]["labels"]["controller-revision-hash"] for pod in pods}
    rolling = any(one["metadata"]["name"] == f"kubewin-roll-{driver.daemonset}" for one in leases)
    return hashes == {newest["metadata"]["labels"]["controller-revision-hash"]} and not rolling


def memory(size: int) -> dict[str, Any]:
    """Resources that limit the driver's container, in MiB: a change of the pod template."""
    return {"driver": {"limits": {"memory": f"{size}Mi"}}}


def mode(lab: Lab, driver: Driver) -> str:
    """The mode in the DaemonSet's label."""
    return str(daemon_set(lab, driver)["metadata"]["annotations"]["kubewin.io/mode"])


def plugins(lab: Lab, driver: Driver) -> dict[str, str]:
    """The uid of each node's plugin pod that is Ready."""
    found = lab.pods(f"app={driver.app_label}", driver.namespace)
    return {pod["spec"]["nodeName"]: pod["metadata"]["uid"] for pod in found if ready(pod)}


def images(lab: Lab, driver: Driver) -> dict[str, str]:
    """The image of each node's driver container."""
    return {
        pod["spec"]["nodeName"]: next(
            part["image"] for part in pod["spec"]["containers"] if part["name"] == driver.container
        )
        for pod in lab.pods(f"app={driver.app_label}", driver.namespace)
    }


def killed(role: Path, record: Path, when: Callable[[], Any], what: str, **variables: Any) -> None:
    """A run of the driver's role that is killed, with all its children, as soon as something is seen."""
    process = start(str(role), "localhost,", record=record, variables=variables)
    try:
        meanwhile(process, when, what)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Record:
    """What a watch saw of a driver's plugin pods. away: the most nodes that were without a Ready one at a time."""

    def __init__(self, nodes: frozenset[str]) -> None:
        self.nodes = nodes
        self.away = 0
        self.order: list[str] = []
        self._pods: dict[str, tuple[str, bool]] = {}

    def take(self, change: str, pod: Mapping[str, Any]) -> None:
        """One event."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if change == "DELETED":
            self._pods.pop(uid, None)
            self.order.append(node)
        else:
            gone = "deletionTimestamp" in pod["metadata"]
            self._pods[uid] = (node, not gone and ready(dict(pod)))
        there = {node for node, is_ready in self._pods.values() if is_ready}
        self.away = max(self.away, len(self.nodes - there))


@contextmanager
def recorded(lab: Lab, driver: Driver) -> Iterator[Record]:
    """Watch the plugin pods of a driver for the length of a block; every event, from a state in which all are Ready."""
    client = connect(str(lab.state.kubeconfigs["admin"]))
    label = f"app={driver.app_label}"
    listed = client.list(kinds.POD, driver.namespace, label_selector=label)
    record = Record(frozenset(pod["spec"]["nodeName"] for pod in listed.items))
    for pod in listed.items:
        record.take("ADDED", pod)
    record.away = 0
    over = threading.Event()

    def follow(version: str) -> None:
        while not over.is_set():
            try:
                for change, item in client.watch(kinds.POD, version, 2.0, driver.namespace, label_selector=label):
                    version = item["metadata"]["resourceVersion"]
                    if change != "BOOKMARK":
                        record.take(change, item)
            except (GoneError, UnreachableError) as error:
                raise AssertionError(f"the record has a gap: {error}") from error

    thread = threading.Thread(target=follow, args=(listed.resource_version,), daemon=True)
    thread.start()
    try:
        yield record
    finally:
        over.set()
        thread.join(timeout=120)


def workload(api: Api, driver: Driver, node: str) -> None:
    """A pod with a claim bound to a volume of the driver on a node, attached, as provisioner and attacher leave it."""
    name = f"data-{node}"
    capacity, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    api.post(
        VOLUMES,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": capacity,
                "accessModes": modes,
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {
                    "driver": driver.name,
                    "volumeHandle": disk_handle(driver.name, f"disk-{node}"),
                    "fsType": "ntfs",
                },
                "claimRef": {"namespace": "default", "name": name},
            },
        },
    )
    api.post(
        CLAIMS,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "accessModes": modes,
                "volumeName": name,
                "storageClassName": "",
                "resources": {"requests": capacity},
            },
        },
    )
    api.post(
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "app", "image": "app:1"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
            },
        },
    )


def attached(api: Api, nodes: list[str]) -> None:
    """Confirm each attachment, as the driver's attacher does."""

    def all_there() -> list[Object]:
        found = api.items(ATTACHMENTS)
        return found if {one["spec"]["nodeName"] for one in found} >= set(nodes) else []

    for one in eventually(all_there, "the attachments"):
        api.patch(f"{ATTACHMENTS}/{one['metadata']['name']}/status", {"status": {"attached": True}})


def held(api: Api) -> dict[str, Any]:
    """Everything that must not be lost: identity, binding, attachment, running pod."""
    claims = {one["metadata"]["name"]: (one["metadata"]["uid"], one["status"]["phase"]) for one in api.items(CLAIMS)}
    volumes = {one["metadata"]["name"]: (one["metadata"]["uid"], one["status"]["phase"]) for one in api.items(VOLUMES)}
    pods = {one["metadata"]["name"]: (one["metadata"]["uid"], ready(one)) for one in api.items(PODS)}
    attachments = {
        one["metadata"]["uid"]: (one["spec"]["nodeName"], one["status"]["attached"]) for one in api.items(ATTACHMENTS)
    }
    return {"claims": claims, "volumes": volumes, "pods": pods, "attachments": attachments}
