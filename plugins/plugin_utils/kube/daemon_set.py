# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DaemonSet as it may serve a CSI driver on Windows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .labels import MANAGED_BY, MODE, OPENSHIFT_OPERATOR, Marks
from .pod import list_host_paths

_VARIABLE = re.compile(r"\$\(([^)]+)\)")
# Arguments and variables with the socket for https://github.com/kubernetes-csi/node-driver-registrar, and with the driver's name.
_REGISTERS = re.compile(r"(?:^|\s)--?kubelet-registration-path[=\s]\"?([^\s\"]*)")
_NAMES = re.compile(r"(?:^|\s)--?driver-?name[=\s]\"?([^\s\"]+)", re.IGNORECASE)
# Folders of sockets that do not bear the name of their driver.
# https://github.com/kubernetes-sigs/secrets-store-csi-driver manifest_staging/deploy/secrets-store-csi-driver-windows.yaml
_FOLDERS = {"secrets-store.csi.k8s.io": "csi-secrets-store"}


@dataclass(frozen=True, slots=True)
class ObservedDaemonSet:
    """A DaemonSet, as far as it may serve a driver on Windows.

    host_paths: what its pods mount from the host. words: paths among the arguments and variables of its containers, which is where
    HostProcess modes name their directories. Both in lower case with single backslashes. marks: labels that show its
    owner. mode: annotation of ours. going: it is being deleted. ready: how many of its pods are Ready.
    """

    namespace: str
    name: str
    managed_by: str
    node_selector: Mapping[str, str]
    host_paths: tuple[str, ...]
    words: str
    registers: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    marks: Marks = field(default_factory=Marks)
    mode: str = ""
    going: bool = False
    ready: int = 0

    @classmethod
    def from_object(cls, daemon_set: Mapping[str, Any]) -> ObservedDaemonSet:
        metadata, pod = daemon_set["metadata"], daemon_set["spec"]["template"]["spec"]
        # HostProcess modes mount nothing: there the plugin directory is only named in environment and arguments.
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
            host_paths=tuple(map(_normalize_path, list_host_paths(pod))),
            # Only these: the others may be secrets.
            words=" ".join(word for word in map(_normalize_path, words) if "\\plugins\\" in word or "c:\\" in word),
            registers=tuple(folder for part in pod["containers"] for folder in _list_registered_folders(part)),
            names=tuple(name for part in pod["containers"] for name in _list_named_drivers(part)),
            marks=Marks.from_object(daemon_set),
            mode=str((metadata.get("annotations") or {}).get(MODE, "")),
            going="deletionTimestamp" in metadata,
            ready=int((daemon_set.get("status") or {}).get("numberReady") or 0),
        )

    @property
    def of_openshift(self) -> bool:
        """Whether OpenShift's storage operator applied it."""
        return any(mark in self.marks.annotations for mark in OPENSHIFT_OPERATOR)

    def is_node_plugin_of(self, driver: str) -> bool:
        """Whether it resembles a node plugin of that driver for Windows nodes.

        Its registrar's socket or its arguments name the driver; one without a registrar mounts or names the driver's folder.
        """
        if not self.on_windows:
            return False
        folder_name = _FOLDERS.get(driver, driver)
        if folder_name in self.registers or (driver in self.names and self.plugin):
            return True
        folder = re.compile(rf"\\plugins\\{re.escape(folder_name)}(?=[\\\s]|$)")
        matches = any(map(folder.search, self.host_paths)) or folder.search(self.words) is not None
        return matches and not any(self.registers)

    @property
    def plugin(self) -> bool:
        """Whether it is a node plugin for Windows nodes, of whichever driver."""
        mounts = any("\\plugins_registry" in path or "\\plugins\\" in path for path in self.host_paths)
        return self.on_windows and (bool(self.registers) or mounts or "\\plugins\\" in self.words)

    @property
    def on_windows(self) -> bool:
        """Whether its pods go to Windows nodes, as far as selector and paths show."""
        windows_paths = any(":\\" in path for path in self.host_paths) or "c:\\" in self.words
        return self.node_selector.get("kubernetes.io/os") == "windows" or windows_paths


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
        folder = _normalize_path(match[1]).partition("\\plugins\\")[2].rpartition("\\")[0]
        yield "" if "$(" in folder else folder


def _list_named_drivers(part: Mapping[str, Any]) -> Iterator[str]:
    """Drivers that a container's arguments name."""
    yield from (match[1].lower() for match in _NAMES.finditer(" ".join(_expand_words(part))))


def _normalize_path(path: str) -> str:
    single = path.lower().replace("/", "\\")
    while "\\\\" in single[1:]:
        single = single[0] + single[1:].replace("\\\\", "\\")
    return single
