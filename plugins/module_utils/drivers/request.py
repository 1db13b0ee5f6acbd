# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployment is planned from: the user's wishes and a snapshot of the cluster.

No logic beyond reading objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog import wmco
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MANAGED_BY, MODE, Marks

OPENSHIFT_CONTAINER = "csi-driver"

_VARIABLE = re.compile(r"\$\(([^)]+)\)")
# How https://github.com/kubernetes-csi/node-driver-registrar is told the socket, and drivers their name.
_REGISTERS = re.compile(r"(?:^|\s)--?kubelet-registration-path[=\s]\"?([^\s\"]*)")
_NAMES = re.compile(r"(?:^|\s)--?driver-?name[=\s]\"?([^\s\"]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The user's wishes; None or empty takes upstream's default.

    version: "3.4.0". mode: auto, csi_proxy or host_process. csi_proxy_managed: this collection installs csi-proxy, so
    the DaemonSet goes only where its pipes were proven. csi_proxy_version: the release that it installs.
    images: by role, whole references. image_mirror: replaces the
    registry host of every image. image_digests: by role, "sha256:...". resources: by container role, requests and
    limits. storage_class: {create, name, parameters, reclaim_policy, binding_mode, default}.
    """

    mode: str = "auto"
    version: str | None = None
    namespace: str | None = None
    controller_namespace: str | None = None
    service_account: str | None = None
    create_cluster_objects: bool = False
    allow_version_skew: bool = False
    csi_proxy_managed: bool = True
    csi_proxy_version: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    image_mirror: str | None = None
    image_digests: Mapping[str, str] = field(default_factory=dict)
    image_pull_policy: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    kubelet_dir: str = "C:\\var\\lib\\kubelet"
    tolerations: tuple[Mapping[str, Any], ...] | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    max_unavailable: str | None = None
    log_level: str | None = None
    storage_class: Mapping[str, Any] = field(default_factory=dict)
    replace: str = ""


@dataclass(frozen=True, slots=True)
class ControllerSeen:
    """The driver's Linux controller as its Deployment shows it."""

    namespace: str
    name: str
    image: str
    desired: int
    available: int

    @classmethod
    def from_object(cls, deployment: Mapping[str, Any], container: str) -> ControllerSeen:
        """Read an apps/v1 Deployment; the image is that of the named container, else OpenShift's, else the first one."""
        spec, status = deployment["spec"], deployment.get("status") or {}
        by_name = {entry["name"]: entry["image"] for entry in reversed(spec["template"]["spec"]["containers"])}
        first = spec["template"]["spec"]["containers"][0]["name"]
        image = by_name.get(container) or by_name.get(OPENSHIFT_CONTAINER) or by_name[first]
        return cls(
            namespace=deployment["metadata"]["namespace"],
            name=deployment["metadata"]["name"],
            image=str(image),
            desired=int(spec.get("replicas", 1)),
            available=int(status.get("availableReplicas") or 0),
        )


@dataclass(frozen=True, slots=True)
class DaemonSetSeen:
    """A DaemonSet, as far as it may serve a driver on Windows.

    host_paths: what its pods mount from the host. words: paths among what its containers are told, which is where
    HostProcess forms name their directories. Both in lower case with single backslashes. host_ports: ports of the node that its pods
    take. marks: what says who keeps it. mode: what ours says of itself. going: it was deleted and is still there. ready: how many of
    its pods are Ready. made: when and with which program it was created; empty where that was not asked.
    """

    namespace: str
    name: str
    managed_by: str
    node_selector: Mapping[str, str]
    host_paths: tuple[str, ...]
    words: str
    host_ports: frozenset[int] = frozenset()
    registers: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    marks: Marks = field(default_factory=Marks)
    mode: str = ""
    going: bool = False
    ready: int = 0
    made: str = ""

    @classmethod
    def from_object(cls, daemon_set: Mapping[str, Any]) -> DaemonSetSeen:
        """Read an apps/v1 DaemonSet."""
        metadata, pod = daemon_set["metadata"], daemon_set["spec"]["template"]["spec"]
        paths = [str((volume.get("hostPath") or {}).get("path", "")) for volume in pod.get("volumes") or []]
        # HostProcess forms mount nothing: there the plugin directory is only named in environment and arguments.
        words = [str(entry.get("value", "")) for part in pod["containers"] for entry in part.get("env") or []]
        words += [
            str(word)
            for part in pod["containers"]
            for word in [*(part.get("args") or []), *(part.get("command") or [])]
        ]
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            managed_by=str((metadata.get("labels") or {}).get(MANAGED_BY, "")),
            node_selector=dict(pod.get("nodeSelector") or {}),
            host_paths=tuple(_slashes(path) for path in paths if path),
            # Only these: the others may be secrets, and are nobody's business.
            words=" ".join(word for word in map(_slashes, words) if "\\plugins\\" in word or "c:\\" in word),
            # In the host's network a container's port is one of the host; the server says so in pods, and not in templates.
            host_ports=frozenset(
                int(entry.get("hostPort") or entry["containerPort"])
                for part in pod["containers"]
                for entry in part.get("ports") or []
                if entry.get("hostPort") or pod.get("hostNetwork")
            ),
            registers=tuple(folder for part in pod["containers"] for folder in _registered(part)),
            names=tuple(name for part in pod["containers"] for name in _named(part)),
            marks=Marks.from_object(daemon_set),
            mode=str((metadata.get("annotations") or {}).get(MODE, "")),
            going="deletionTimestamp" in metadata,
            ready=int((daemon_set.get("status") or {}).get("numberReady") or 0),
        )

    def serves_on_windows(self, driver: str) -> bool:
        """Whether it looks like a node plugin of that driver for Windows nodes.

        Its registrar's socket or its arguments name the driver; one without a registrar mounts or names the driver's folder.
        """
        if not self.on_windows:
            return False
        if driver in self.registers or (driver in self.names and self.plugin):
            return True
        folder = re.compile(rf"\\plugins\\{re.escape(driver)}(?=[\\\s]|$)")
        told = any(map(folder.search, self.host_paths)) or folder.search(self.words) is not None
        return told and not any(self.registers)

    @property
    def plugin(self) -> bool:
        """Whether it is a node plugin for Windows nodes, of whichever driver."""
        mounts = any("\\plugins_registry" in path or "\\plugins\\" in path for path in self.host_paths)
        return self.on_windows and (bool(self.registers) or mounts or "\\plugins\\" in self.words)

    @property
    def on_windows(self) -> bool:
        """Whether its pods go to Windows nodes, as far as selector and paths tell."""
        windows_paths = any(":\\" in path for path in self.host_paths) or "c:\\" in self.words
        return self.node_selector.get("kubernetes.io/os") == "windows" or windows_paths


def _words(part: Mapping[str, Any]) -> list[str]:
    """A container's command and arguments, with its own variables put in."""
    variables = {str(one.get("name", "")): str(one["value"]) for one in part.get("env") or [] if "value" in one}
    return [
        _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), str(word))
        for word in [*(part.get("command") or []), *(part.get("args") or [])]
    ]


def _registered(part: Mapping[str, Any]) -> Iterator[str]:
    """Folders of the sockets that a container registers, without what is before "plugins"."""
    for found in _REGISTERS.finditer(" ".join(_words(part))):
        folder = _slashes(found[1]).partition("\\plugins\\")[2].rpartition("\\")[0]
        yield "" if "$(" in folder else folder


def _named(part: Mapping[str, Any]) -> Iterator[str]:
    """Drivers that a container's arguments name."""
    yield from (found[1].lower() for found in _NAMES.finditer(" ".join(_words(part))))


def _slashes(path: str) -> str:
    single = path.lower().replace("/", "\\")
    while "\\\\" in single[1:]:
        single = single[0] + single[1:].replace("\\\\", "\\")
    return single


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A Windows Node.

    build: "20348", empty when it is not told. runtime: "containerd://1.7.27", empty likewise. wmco: it was prepared by
    the Windows Machine Config Operator.
    """

    name: str
    build: str
    labels: Mapping[str, str]
    runtime: str = ""
    wmco: bool = False

    @classmethod
    def from_object(cls, node: Mapping[str, Any]) -> NodeSeen:
        """Read a core/v1 Node."""
        labels = node["metadata"].get("labels") or {}
        info = (node.get("status") or {}).get("nodeInfo") or {}
        build = str(labels.get("node.kubernetes.io/windows-build", "") or info.get("kernelVersion", ""))
        parts = build.split(".")
        return cls(
            name=node["metadata"]["name"],
            build=parts[2] if len(parts) > 2 else "",
            labels=dict(labels),
            runtime=str(info.get("containerRuntimeVersion", "")),
            wmco=any(key.startswith(wmco.PREFIX) for key in (*labels, *(node["metadata"].get("annotations") or {}))),
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster as it was looked at.

    kubernetes: "v1.36.3". controllers: those of a known name come first, in the driver's order. namespaces: by name, None when absent.
    feature_states: data of the feature-state map by namespace, None when absent; no entry where it was not read. missing_access: rules this account lacks,
    as text. openshift: "4.20.3", empty where the cluster is none or nobody asked. privileged: whether the plugin's account
    may use OpenShift's SCC privileged, None where that was not asked or nobody may ask. replacing: a hand-over to ours that
    was begun and not finished, as "namespace/name" of what it replaces. in_use: Windows nodes with volumes of the driver,
    each with what shows it; looked at only where a plan asks for it. registered: Windows nodes whose kubelet has registered
    the driver; looked at only where a DaemonSet without a Ready pod claims to provide it.
    """

    kubernetes: str
    nodes: tuple[NodeSeen, ...]
    controllers: tuple[ControllerSeen, ...]
    daemon_sets: tuple[DaemonSetSeen, ...]
    namespaces: Mapping[str, Mapping[str, Any] | None]
    csi_driver: Mapping[str, Any] | None
    feature_states: Mapping[str, Mapping[str, str] | None]
    storage_class: Mapping[str, Any] | None
    missing_access: tuple[str, ...] = ()
    openshift: str = ""
    privileged: bool | None = None
    replacing: str = ""
    in_use: tuple[tuple[str, str], ...] = ()
    registered: tuple[str, ...] = ()
