# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large cluster on vSphere as its API server would send it: objects of realistic shape and size, made by number.

``python -m benchmark.fleet --nodes 5000 --windows 1000 --pods 150000 --volumes 50000`` serves one and prints its address.
Pods are spread evenly over the nodes of their system. Every third workload is a StatefulSet whose pods have a claim each;
half of the volumes still have the in-tree source, half are native. The cluster is healthy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import PAGE

from benchmark.apipeer import ApiPeer, Shelf

CREATED = "2026-03-02T08:15:00Z"
DRIVER = "csi.vsphere.vmware.com"
PLUGINS = "vmware-system-csi"
_NAMESPACES = 200
_PODS_OF_A_SET = 10
# Of so many workloads one has volumes.
_STATELESS = 3
# Earlier revisions that a Deployment keeps.
_REVISIONS = ("6c9f7d8b5d", "5b7c9d4f88", "7f6d5c4b99")
PIPES = ("csi-proxy-disk-v1", "csi-proxy-volume-v1", "csi-proxy-filesystem-v1", "csi-proxy-system-v1alpha1")

Words = tuple[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Sizes of a cluster. Every third workload has volumes, so there are at most a third as many volumes as pods."""

    nodes: int
    windows: int
    pods: int
    volumes: int

    def shelves(self) -> dict[str, Shelf]:
        """Every collection that an evaluation reads, by path."""
        sets = self.pods // _PODS_OF_A_SET
        stateful = self.volumes // _PODS_OF_A_SET
        return {
            "/api/v1/nodes": Shelf(self.nodes, _filled(_node, self._node)),
            "/apis/storage.k8s.io/v1/csinodes": Shelf(self.nodes, _filled(_csi_node, self._node)),
            "/api/v1/persistentvolumes": Shelf(self.volumes, _filled(_volume, self._volume)),
            "/api/v1/persistentvolumeclaims": Shelf(self.volumes, _filled(_claim, self._volume)),
            "/apis/storage.k8s.io/v1/volumeattachments": Shelf(self.volumes, _filled(_attachment, self._volume)),
            "/api/v1/pods": Shelf(self.pods + self.nodes, self._pods()),
            "/apis/apps/v1/deployments": Shelf(sets - stateful + 1, self._deployments(sets - stateful)),
            "/apis/apps/v1/replicasets": Shelf(
                (sets - stateful) * len(_REVISIONS), _filled(_replica_set, self._replica_set)
            ),
            "/apis/apps/v1/statefulsets": Shelf(
                stateful, _filled(_stateful_set, lambda number: self._set(number * _STATELESS))
            ),
            "/apis/apps/v1/daemonsets": Shelf.of(
                [_plugin_set("windows", self.windows), _plugin_set("linux", self.nodes - self.windows)]
            ),
            "/apis/policy/v1/poddisruptionbudgets": Shelf.of([]),
            "/api/v1/replicationcontrollers": Shelf.of([]),
            "/apis/batch/v1/jobs": Shelf.of([]),
            "/apis/batch/v1/cronjobs": Shelf.of([]),
            "/api/v1/namespaces": Shelf.of([_namespace(PLUGINS), *(_namespace(_ns(n)) for n in range(_NAMESPACES))]),
            "/apis/storage.k8s.io/v1/csidrivers": Shelf.of([_csi_driver()]),
            "/apis/storage.k8s.io/v1/storageclasses": Shelf.of([_storage_class()]),
            "/apis/node.k8s.io/v1/runtimeclasses": Shelf.of([]),
            "/apis/scheduling.k8s.io/v1/priorityclasses": Shelf.of([]),
            "/api/v1/serviceaccounts": Shelf.of([_service_account(PLUGINS, "vsphere-csi-node")]),
            "/api/v1/resourcequotas": Shelf.of([]),
            "/api/v1/limitranges": Shelf.of([]),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": Shelf.of([]),
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": Shelf.of([]),
        }

    def hosts(self) -> list[dict[str, Any]]:
        """What a play saw on the Windows hosts."""
        now = datetime.now(timezone.utc).isoformat()
        names = [self._node(number)[1]["NAME"] for number in range(self.nodes) if self._windows(number)]
        return [
            {"node": name, "observed_at": now, "serving": True, "state": "RUNNING", "release": "1.3.0", "pipes": PIPES,
             "boot_time": "2026-10-01T00:00:00Z"}
            for name in names
        ]  # fmt: skip

    def _windows(self, number: int) -> bool:
        """Windows nodes, and workloads for them, are spread evenly, so that every page has some."""
        return (number + 1) * self.windows // self.nodes > number * self.windows // self.nodes

    def _node(self, number: int) -> Words:
        windows = self._windows(number)
        name = f"{'win' if windows else 'lin'}-{number:05d}"
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        return ("windows" if windows else "linux"), {"NAME": name, "UID": _uid(name), "ADDRESS": address}

    def _node_for(self, number: int, windows: bool) -> str:
        """The node of a pod: of the right system, and evenly."""
        share = self.windows if windows else self.nodes - self.windows
        nth = number % share
        step = self.nodes / share
        return next(
            str(self._node(one)[1]["NAME"])
            for one in range(int(nth * step) % self.nodes, self.nodes)
            if self._windows(one) == windows
        )

    def _set(self, number: int) -> Words:
        windows = self._windows(number // _STATELESS)
        name = f"app-{number:05d}"
        return ("windows" if windows else "linux"), {"NAME": name, "UID": _uid(name), "NAMESPACE": _ns(number)}

    def _replica_set(self, number: int) -> Words:
        deployment, revision = divmod(number, len(_REVISIONS))
        system, values = self._set(_stateless(deployment))
        return f"{system}{'' if revision else '+current'}", {**values, "HASH": _REVISIONS[revision]}

    def _volume(self, number: int) -> Words:
        workload, ordinal = divmod(number, _PODS_OF_A_SET)
        system, values = self._set(workload * _STATELESS)
        name = f"pvc-{_uid(f'claim-{number}')}"
        return ("intree" if number % 2 else "native"), {
            "NAME": name,
            "UID": _uid(name),
            "CLAIM": f"data-{values['NAME']}-{ordinal}",
            "CLAIMUID": _uid(f"claim-{number}"),
            "NAMESPACE": values["NAMESPACE"],
            "NODE": self._node_for(workload * _STATELESS * _PODS_OF_A_SET + ordinal, system == "windows"),
            "HANDLE": _uid(f"disk-{number}"),
        }

    def _pods(self) -> Callable[[int], bytes]:
        apps, plugins = _filled(_pod, self._pod), _filled(_plugin_pod, self._node)
        return lambda number: apps(number) if number < self.pods else plugins(number - self.pods)

    def _pod(self, number: int) -> Words:
        workload, ordinal = divmod(number, _PODS_OF_A_SET)
        system, values = self._set(workload)
        name = values["NAME"]
        claims = not workload % _STATELESS and workload // _STATELESS < self.volumes // _PODS_OF_A_SET
        owner = name if claims else f"{name}-{_REVISIONS[0]}"
        return f"{system}{'+claim' if claims else ''}", {
            **values,
            "OWNER": owner,
            "POD": f"{owner}-{ordinal}",
            "NODE": self._node_for(number, system == "windows"),
            "CLAIM": f"data-{name}-{ordinal}",
        }

    def _deployments(self, count: int) -> Callable[[int], bytes]:
        controller = json.dumps(_controller()).encode()
        others = _filled(_deployment, lambda number: self._set(_stateless(number)))
        return lambda number: controller if number == count else others(number)


def _stateless(number: int) -> int:
    """Number of a workload, of those that have no volumes."""
    return number // (_STATELESS - 1) * _STATELESS + number % (_STATELESS - 1) + 1


def _filled(
    make: Callable[[str], Mapping[str, Any]], words: Callable[[int], tuple[str, dict[str, str]]]
) -> Callable[[int], bytes]:
    """Objects by number: of each variant one text is made, and its @WORD@s are filled in."""
    texts: dict[str, str] = {}

    def item(number: int) -> bytes:
        variant, values = words(number)
        text = texts.get(variant)
        if text is None:
            text = texts[variant] = json.dumps(make(variant), separators=(",", ":"))
        for word, value in values.items():
            text = text.replace(f"@{word}@", value)
        return text.encode()

    return item


def _uid(seed: str) -> str:
    return str(uuid.UUID(bytes=hashlib.md5(seed.encode(), usedforsecurity=False).digest()))


def _ns(number: int) -> str:
    return f"team-{number % _NAMESPACES:03d}"


def _metadata(name: str = "@NAME@", namespace: str = "", **more: Any) -> dict[str, Any]:
    found = {"name": name, "uid": "@UID@", "resourceVersion": "812345", "creationTimestamp": CREATED, **more}
    return {**found, "namespace": namespace} if namespace else found


def _managed(manager: str, *fields: str) -> list[dict[str, Any]]:
    """Field ownership, which is a good part of every object and of no use to anybody here."""
    return [
        {
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": CREATED, "fieldsType": "FieldsV1",
            "fieldsV1": {f"f:{field}": {".": {}, f"f:{field}Name": {}, f"k:{{\"type\":\"{field}\"}}": {".": {}}}
                         for field in fields},
        }
    ]  # fmt: skip


_OWNED = tuple(f"field{number}" for number in range(34))


def _node(system: str) -> dict[str, Any]:
    windows = system == "windows"
    info = {
        "machineID": "@UID@", "systemUUID": "@UID@", "bootID": "@UID@", "architecture": "amd64",
        "kernelVersion": "10.0.20348.2700" if windows else "6.1.0-18-amd64",
        "osImage": "Windows Server 2022 Datacenter" if windows else "Debian GNU/Linux 12 (bookworm)",
        "containerRuntimeVersion": "containerd://1.7.20", "kubeletVersion": "v1.34.2", "kubeProxyVersion": "v1.34.2",
        "operatingSystem": system,
    }  # fmt: skip
    labels = {
        "kubernetes.io/os": system, "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "@NAME@",
        "topology.csi.vmware.com/k8s-zone": "zone-a", "topology.kubernetes.io/zone": "zone-a",
        **({"node.kubernetes.io/windows-build": "10.0.20348"} if windows else {}),
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": status, "reason": f"Kubelet{kind}", "message": f"kubelet has {kind} {status}",
         "lastHeartbeatTime": CREATED, "lastTransitionTime": CREATED}
        for kind, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"),
                             ("Ready", "True"))
    ]  # fmt: skip
    images = [
        {"names": [f"registry.example.com/team/app-{n}@sha256:{'ab' * 32}", f"registry.example.com/team/app-{n}:1.{n}"],
         "sizeBytes": 123456789 + n}
        for n in range(9)
    ]  # fmt: skip
    return {
        "metadata": _metadata(
            labels=labels,
            annotations={
                "csi.volume.kubernetes.io/nodeid": json.dumps({DRIVER: "@UID@"}),
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            managedFields=_managed("kubelet", *_OWNED[:20]),
        ),
        "spec": {
            "providerID": "vsphere://@UID@",
            "taints": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}] if windows else [],
        },
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "250"},
            "allocatable": {"cpu": "15", "memory": "60Gi", "pods": "250"},
            "addresses": [
                {"type": "InternalIP", "address": "@ADDRESS@"},
                {"type": "Hostname", "address": "@NAME@"},
            ],
            "conditions": conditions,
            "nodeInfo": info,
            "images": images,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def _csi_node(system: str) -> dict[str, Any]:
    return {
        "metadata": _metadata(
            annotations={
                "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,"
                "kubernetes.io/azure-file,kubernetes.io/cinder,kubernetes.io/gce-pd,kubernetes.io/vsphere-volume"
            },
            ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "@NAME@", "uid": "@UID@"}],
        ),
        "spec": {
            "drivers": [
                {"name": DRIVER, "nodeID": "@UID@", "topologyKeys": ["topology.csi.vmware.com/k8s-zone"],
                 "allocatable": {"count": 59}}
            ]
        },
    }  # fmt: skip


def _volume(kind: str) -> dict[str, Any]:
    native = kind == "native"
    source: dict[str, Any] = (
        {"csi": {"driver": DRIVER, "volumeHandle": "@HANDLE@", "fsType": "ntfs",
                 "volumeAttributes": {"type": "vSphere CNS Block Volume", "storage.kubernetes.io/csiProvisionerIdentity": f"1-8081-{DRIVER}"}}}
        if native
        else {"vsphereVolume": {"volumePath": "[ds-1] kubevols/@NAME@.vmdk", "fsType": "ntfs"}}
    )  # fmt: skip
    annotations = {"pv.kubernetes.io/provisioned-by": DRIVER if native else "kubernetes.io/vsphere-volume"}
    if not native:
        annotations["pv.kubernetes.io/migrated-to"] = DRIVER
    return {
        "metadata": _metadata(
            annotations=annotations,
            finalizers=["kubernetes.io/pv-protection", f"external-attacher/{DRIVER.replace('.', '-')}"],
            managedFields=_managed("kube-controller-manager", *_OWNED[:10]),
        ),
        "spec": {
            "capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "thin",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "@NAMESPACE@",
                         "name": "@CLAIM@", "uid": "@CLAIMUID@", "resourceVersion": "812300"},
            **source,
        },
        "status": {"phase": "Bound", "lastPhaseTransitionTime": CREATED},
    }  # fmt: skip


def _claim(kind: str) -> dict[str, Any]:
    provisioner = DRIVER if kind == "native" else "kubernetes.io/vsphere-volume"
    annotations = {
        "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.kubernetes.io/storage-provisioner": provisioner, "volume.beta.kubernetes.io/storage-provisioner": provisioner,
        "volume.kubernetes.io/selected-node": "@NODE@",
    }  # fmt: skip
    return {
        "metadata": {
            **_metadata("@CLAIM@", "@NAMESPACE@", annotations=annotations, labels={"app": "@CLAIM@"},
                        finalizers=["kubernetes.io/pvc-protection"], managedFields=_managed("kcm", *_OWNED[:10])),
            "uid": "@CLAIMUID@",
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, "volumeMode": "Filesystem",
                 "storageClassName": "thin", "volumeName": "@NAME@"},
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "20Gi"}},
    }  # fmt: skip


def _attachment(kind: str) -> dict[str, Any]:
    return {
        "metadata": {
            **_metadata("csi-@UID@", annotations={"csi.alpha.kubernetes.io/node-id": "@NODE@"},
                        finalizers=[f"external-attacher/{DRIVER.replace('.', '-')}"],
                        managedFields=_managed("csi-attacher", *_OWNED[:5])),
        },
        "spec": {"attacher": DRIVER, "nodeName": "@NODE@", "source": {"persistentVolumeName": "@NAME@"}},
        "status": {"attached": True, "attachmentMetadata": {"diskUUID": "@HANDLE@", "type": "vSphere CNS Block Volume"}},
    }  # fmt: skip


def _container(system: str) -> dict[str, Any]:
    root = "C:\\data" if system == "windows" else "/data"
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "initialDelaySeconds": 5,
             "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}  # fmt: skip
    return {
        "name": "app", "image": "registry.example.com/team/app:1.24.3", "imagePullPolicy": "IfNotPresent",
        "args": ["--listen=:8080", "--log-format=json", "--config=/etc/app/config.yaml"],
        "ports": [{"containerPort": 8080, "protocol": "TCP", "name": "http"}],
        "env": [{"name": f"APP_SETTING_{n}", "value": f"value-of-setting-{n}"} for n in range(12)],
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [
            {"name": "data", "mountPath": root},
            {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": probe, "readinessProbe": probe, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }  # fmt: skip


def _spec(system: str, volumes: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    windows = system == "windows"
    tolerations = [{"key": "os", "operator": "Equal", "value": "Windows", "effect": "NoSchedule"}] if windows else []
    return {
        "containers": [_container(system)],
        "volumes": list(volumes),
        "nodeSelector": {"kubernetes.io/os": system},
        "tolerations": tolerations,
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default", "serviceAccount": "default", "securityContext": {},
        "schedulerName": "default-scheduler", "enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority",
    }  # fmt: skip


def _pod(variant: str) -> dict[str, Any]:
    system, dummy, claim = variant.partition("+")
    token = {
        "name": "token",
        "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]},
    }  # fmt: skip
    data = (
        {"name": "data", "persistentVolumeClaim": {"claimName": "@CLAIM@"}}
        if claim
        else {"name": "data", "emptyDir": {}}
    )
    spec = {**_spec(system, [data, token]), "nodeName": "@NODE@"}
    spec["tolerations"] += [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    return {
        "metadata": _metadata(
            "@POD@", "@NAMESPACE@", generateName="@OWNER@-", labels={"app": "@NAME@", "pod-template-hash": "6c9f7d8b5d"},
            ownerReferences=[{"apiVersion": "apps/v1", "kind": "StatefulSet" if claim else "ReplicaSet", "name": "@OWNER@",
                              "uid": "@UID@", "controller": True, "blockOwnerDeletion": True}],
            managedFields=[*_managed("kube-controller-manager", *_OWNED), *_managed("kubelet", *_OWNED[:12])],
        ),
        "spec": spec,
        "status": _pod_status("app"),
    }  # fmt: skip


def _pod_status(*containers: str) -> dict[str, Any]:
    return {
        "phase": "Running", "hostIP": "10.1.2.3", "podIP": "10.200.3.4", "podIPs": [{"ip": "10.200.3.4"}],
        "startTime": "2026-11-01T08:15:00Z", "qosClass": "Burstable",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": CREATED}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [
            {"name": name, "ready": True, "started": True, "restartCount": 0, "lastState": {},
             "state": {"running": {"startedAt": "2026-11-01T08:15:00Z"}},
             "image": "registry.example.com/team/app:1.24.3",
             "imageID": f"registry.example.com/team/app@sha256:{'cd' * 32}", "containerID": f"containerd://{'ef' * 32}"}
            for name in containers
        ],
    }  # fmt: skip


def _plugin_spec(system: str) -> dict[str, Any]:
    windows = system == "windows"
    folder = f"C:\\var\\lib\\kubelet\\plugins\\{DRIVER}" if windows else f"/var/lib/kubelet/plugins/{DRIVER}"
    volumes = [{"name": "plugin-dir", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}]
    if windows:
        volumes += [{"name": pipe, "hostPath": {"path": f"\\\\.\\pipe\\{pipe}", "type": ""}} for pipe in PIPES]
    return {
        "containers": [
            {
                "name": "node-driver-registrar",
                "image": "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.12.0",
                "args": [f"--kubelet-registration-path={folder}\\csi.sock"],
            },
            {"name": "vsphere-csi-node", "image": "registry.k8s.io/csi-vsphere/driver:v3.4.0"},
            {"name": "liveness-probe", "image": "registry.k8s.io/sig-storage/livenessprobe:v2.14.0"},
        ],
        "volumes": volumes,
        "nodeSelector": {"kubernetes.io/os": system},
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": "vsphere-csi-node",
    }


def _plugin_name(system: str) -> str:
    return "vsphere-csi-node-windows" if system == "windows" else "vsphere-csi-node"


def _plugin_pod(system: str) -> dict[str, Any]:
    name = _plugin_name(system)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": _uid(name), "controller": True}
    return {
        "metadata": _metadata(
            f"{name}-@NAME@", PLUGINS, labels={"app": name, "pod-template-generation": "1"}, ownerReferences=[owner]
        ),
        "spec": {**_plugin_spec(system), "nodeName": "@NAME@"},
        "status": _pod_status("node-driver-registrar", "vsphere-csi-node", "liveness-probe"),
    }


def _plugin_set(system: str, nodes: int) -> dict[str, Any]:
    name = _plugin_name(system)
    generation = {"deprecated.daemonset.template.generation": "1"}
    return {
        "metadata": {**_metadata(name, PLUGINS, annotations=generation, generation=1), "uid": _uid(name)},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": _plugin_spec(system)},
        },
        "status": {
            "desiredNumberScheduled": nodes, "currentNumberScheduled": nodes, "numberReady": nodes, "observedGeneration": 1,
        },
    }  # fmt: skip


def _owned_template(system: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "@NAME@"}}, "spec": _spec(system)}


def _deployment(system: str) -> dict[str, Any]:
    return {
        "metadata": _metadata(namespace="@NAMESPACE@", managedFields=_managed("helm", *_OWNED[:20])),
        "spec": {
            "replicas": _PODS_OF_A_SET,
            "selector": {"matchLabels": {"app": "@NAME@"}},
            "template": _owned_template(system),
        },
        "status": {"replicas": _PODS_OF_A_SET, "readyReplicas": _PODS_OF_A_SET},
    }


def _replica_set(variant: str) -> dict[str, Any]:
    system, dummy, current = variant.partition("+")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "@NAME@", "uid": "@UID@", "controller": True}
    found = _deployment(system)
    found["metadata"] = _metadata("@NAME@-@HASH@", "@NAMESPACE@", ownerReferences=[owner])
    found["spec"]["replicas"] = _PODS_OF_A_SET if current else 0
    return found


def _stateful_set(system: str) -> dict[str, Any]:
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "thin", "accessModes": ["ReadWriteOnce"]}}
    found = _deployment(system)
    found["spec"] |= {"serviceName": "@NAME@", "volumeClaimTemplates": [claim]}
    return found


def _controller() -> dict[str, Any]:
    containers = [
        {"name": name, "image": image}
        for name, image in (
            ("csi-attacher", "registry.k8s.io/sig-storage/csi-attacher:v4.8.1"),
            ("csi-provisioner", "registry.k8s.io/sig-storage/csi-provisioner:v4.0.1"),
            ("vsphere-csi-controller", "registry.k8s.io/csi-vsphere/driver:v3.4.0"),
            ("vsphere-syncer", "registry.k8s.io/csi-vsphere/syncer:v3.4.0"),
        )
    ]
    return {
        "metadata": {**_metadata("vsphere-csi-controller", PLUGINS), "uid": _uid("controller")},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "vsphere-csi-controller"}},
            "template": {
                "metadata": {"labels": {"app": "vsphere-csi-controller"}},
                "spec": {"containers": containers, "nodeSelector": {"kubernetes.io/os": "linux"}},
            },
        },
        "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1},
    }


def _service_account(namespace: str, name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": _uid(name)}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _namespace(name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/metadata.name": name}
    if name == PLUGINS:
        labels["pod-security.kubernetes.io/enforce"] = "privileged"
    return {"metadata": {**_metadata(name, labels=labels), "uid": _uid(name)}, "status": {"phase": "Active"}}


def _csi_driver() -> dict[str, Any]:
    return {
        "metadata": {**_metadata(DRIVER), "uid": _uid(DRIVER)},
        "spec": {"attachRequired": True, "podInfoOnMount": False, "volumeLifecycleModes": ["Persistent"]},
    }


def _storage_class() -> dict[str, Any]:
    return {
        "metadata": {**_metadata("thin"), "uid": _uid("thin")},
        "provisioner": DRIVER,
        "parameters": {"csi.storage.k8s.io/fstype": "ntfs"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


OBJECTS = {
    f"/api/v1/namespaces/{PLUGINS}/configmaps/internal-feature-states.csi.vsphere.vmware.com": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "internal-feature-states.csi.vsphere.vmware.com", "namespace": PLUGINS},
        "data": {"csi-windows-support": "true"},
    }
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmark.fleet", description=__doc__)
    for name in ("nodes", "windows", "pods", "volumes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    fleet = Fleet(options.nodes, options.windows, options.pods, options.volumes)
    with ApiPeer(fleet.shelves(), objects=OBJECTS) as peer:
        peer.prepare(PAGE)
        print(f"LISTEN {peer.url}", flush=True)
        # The parent closes our input when it is done.
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
