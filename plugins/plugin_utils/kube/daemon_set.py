# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DaemonSet as it may serve a CSI driver on Windows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..catalog.csi_proxy import PIPE_PREFIX
from .labels import MANAGED_BY, MODE, OPENSHIFT_OPERATOR, Marks, build_selector
from .pod import PodFacts, is_host_process, list_host_paths, list_images, list_pipes, normalize_path

_VARIABLE = re.compile(r"\$\(([^)]+)\)")
# Arguments and variables with the socket for https://github.com/kubernetes-csi/node-driver-registrar, and with the driver's name.
_REGISTERS = re.compile(r"(?:^|\s)--?kubelet-registration-path[=\s]\"?([^\s\"]*)")
_NAMES = re.compile(r"(?:^|\s)--?driver-?name[=\s]\"?([^\s\"]+)", re.IGNORECASE)
# Folders of sockets that do not bear the name of their driver.
# https://github.com/kubernetes-sigs/secrets-store-csi-driver manifest_staging/deploy/secrets-store-csi-driver-windows.yaml
_FOLDERS = {"secrets-store.csi.k8s.io": "csi-secrets-store"}

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
# Fields of a PodSpec that decide where its pods go.
_PLACING = ("nodeSelector", "affinity", "tolerations", "hostNetwork")


@dataclass(frozen=True, slots=True)
class ObservedDaemonSet:
    """A DaemonSet, as far as it may serve a driver on Windows.

    desired, current, ready: how many pods it should have, has, and has Ready. processed: whether its controller has seen it as it is now.
    pod_spec: what decides where its pods go: selector, affinity, tolerations and hostNetwork. host_paths: what its pods mount from the
    host. argument_paths: those among the arguments and variables of its containers, which is where HostProcess modes name their directories. Both
    as of normalize_path. pipes: those of csi-proxy that its pods mount, bare names. other_pipes: all others. images: by container.
    marks: labels that show its owner. mode: annotation of ours. deleting: it is being deleted. revision: hash of its template, empty where
    it is not known. template: of hash_template, empty where it is not compared. selector: label selector of its pods.
    """

    namespace: str
    name: str
    desired: int = 0
    current: int = 0
    ready: int = 0
    processed: bool = True
    template_generation: str = ""
    pod_spec: Mapping[str, Any] = field(default_factory=dict)
    host_paths: tuple[str, ...] = ()
    argument_paths: str = ""
    pipes: tuple[str, ...] = ()
    other_pipes: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = ()
    host_process: bool = False
    registered_folders: tuple[str, ...] = ()
    named_drivers: tuple[str, ...] = ()
    managed_by: str = ""
    marks: Marks = field(default_factory=Marks)
    mode: str = ""
    deleting: bool = False
    revision: str = ""
    template: str = ""
    selector: str = ""

    @classmethod
    def from_object(cls, daemon_set: Mapping[str, Any]) -> ObservedDaemonSet:
        """Read an apps/v1 DaemonSet, all but revision and template."""
        metadata, spec, status = daemon_set["metadata"], daemon_set["spec"], daemon_set.get("status") or {}
        annotations, pod = metadata.get("annotations") or {}, spec["template"]["spec"]
        containers = pod.get("containers") or ()
        # HostProcess modes mount nothing: there the plugin directory is only named in environment and arguments.
        words = [str(entry.get("value", "")) for part in containers for entry in part.get("env") or []]
        words += [
            str(word) for part in containers for word in [*(part.get("args") or []), *(part.get("command") or [])]
        ]
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            desired=int(status.get("desiredNumberScheduled") or 0),
            current=int(status.get("currentNumberScheduled") or 0),
            ready=int(status.get("numberReady") or 0),
            processed=int(status.get("observedGeneration") or 0) >= int(metadata.get("generation") or 0),
            template_generation=str(annotations.get(_TEMPLATE_GENERATION, "")),
            pod_spec={key: pod[key] for key in _PLACING if key in pod},
            host_paths=list_host_paths(pod),
            # Only these: the others may be secrets.
            argument_paths=" ".join(
                word for word in map(normalize_path, words) if "\\plugins\\" in word or "c:\\" in word
            ),
            pipes=tuple(pipe for pipe in list_pipes(pod) if pipe.startswith(PIPE_PREFIX)),
            other_pipes=tuple(pipe for pipe in list_pipes(pod) if not pipe.startswith(PIPE_PREFIX)),
            images=list_images(pod),
            host_process=is_host_process(pod),
            registered_folders=tuple(folder for part in containers for folder in _list_registered_folders(part)),
            named_drivers=tuple(name for part in containers for name in _list_named_drivers(part)),
            managed_by=str((metadata.get("labels") or {}).get(MANAGED_BY, "")),
            marks=Marks.from_object(daemon_set),
            mode=str(annotations.get(MODE, "")),
            deleting="deletionTimestamp" in metadata,
            selector=build_selector(daemon_set),
        )

    def is_current(self, pod: PodFacts) -> bool:
        """Whether a pod is of the template as it is now, by the hash of its revision; by its generation where that is not known."""
        if self.revision:
            return pod.revision == self.revision
        return not self.template_generation or pod.template_generation in ("", self.template_generation)

    @property
    def of_openshift(self) -> bool:
        """Whether OpenShift's storage operator applied it."""
        return any(mark in self.marks.annotations for mark in OPENSHIFT_OPERATOR)

    @property
    def uses_pipes_unmounted(self) -> bool:
        """Whether it uses csi-proxy without mounting a pipe: a HostProcess plugin of OpenShift's storage operator.

        Source: enhancements/windows-containers/windows-CSI-driver-support.md (pull request 2072 of https://github.com/openshift/enhancements).
        """
        return self.of_openshift and self.is_plugin and self.host_process

    def is_node_plugin_of(self, driver: str) -> bool:
        """Whether it resembles a node plugin of that driver for Windows nodes.

        Its registrar's socket or its arguments name the driver; one without a registrar mounts or names the driver's folder.
        """
        if not self.on_windows:
            return False
        folder_name = _FOLDERS.get(driver, driver)
        if folder_name in self.registered_folders or (driver in self.named_drivers and self.is_plugin):
            return True
        folder = re.compile(rf"\\plugins\\{re.escape(folder_name)}(?=[\\\s]|$)")
        matches = any(map(folder.search, self.host_paths)) or folder.search(self.argument_paths) is not None
        return matches and not any(self.registered_folders)

    @property
    def is_plugin(self) -> bool:
        """Whether it is a node plugin for Windows nodes, of whichever driver."""
        mounts = any("\\plugins_registry" in path or "\\plugins\\" in path for path in self.host_paths)
        return self.on_windows and (bool(self.registered_folders) or mounts or "\\plugins\\" in self.argument_paths)

    @property
    def on_windows(self) -> bool:
        """Whether its pods go to Windows nodes, as far as selector and paths show."""
        windows_paths = any(":\\" in path for path in self.host_paths) or "c:\\" in self.argument_paths
        return (self.pod_spec.get("nodeSelector") or {}).get("kubernetes.io/os") == "windows" or windows_paths


def _expand_words(part: Mapping[str, Any]) -> list[str]:
    """A container's command and arguments, with its own variables put in."""
    variables = {
        str(variable.get("name", "")): str(variable["value"])
        for variable in part.get("env") or []
        if "value" in variable
    }
    return [
        _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), str(word))
        for word in [*(part.get("command") or []), *(part.get("args") or [])]
    ]


def _list_registered_folders(part: Mapping[str, Any]) -> Iterator[str]:
    """Folders of the sockets that a container registers, without what is before "plugins"."""
    for match in _REGISTERS.finditer(" ".join(_expand_words(part))):
        folder = normalize_path(match[1]).partition("\\plugins\\")[2].rpartition("\\")[0]
        yield "" if "$(" in folder else folder


def _list_named_drivers(part: Mapping[str, Any]) -> Iterator[str]:
    yield from (match[1].lower() for match in _NAMES.finditer(" ".join(_expand_words(part))))
