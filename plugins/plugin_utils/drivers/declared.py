# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a driver's node plugin, each declared once. Pure.

From these follow the argument specs of the modules and their documentation (fragment kubewin.csi.driver), the variables
<driver>_csi_<option> that the modules' actions read, meta/argument_specs.yml of the drivers' roles, and the names and values that
the playbooks refuse. A template reads an option that is no field of DriverRequest as plan.options.<option>.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

INFO, APPLY, ROLLOUT = "driver_info", "driver_apply", "gate"


@dataclass(frozen=True, slots=True)
class DriverOption:
    """One option. text: sentences of its documentation. default: None where code decides.

    modules: those that take it. named: what it is called there, where not as in the role. playbooks: the variable that sets it for
    all drivers of a playbook. since: the release of this collection that brought it, where not the first one.
    """

    text: str
    type: str = "str"
    elements: str = ""
    default: Any = None
    choices: tuple[str, ...] = ()
    suboptions: Mapping[str, DriverOption] = field(default_factory=dict)
    modules: tuple[str, ...] = (INFO,)
    named: str = ""
    playbooks: str = ""
    since: str = ""

    def build_spec(self) -> dict[str, Any]:
        """The option in an argument spec."""
        below = {name: option.build_spec() for name, option in self.suboptions.items()}
        return {**self._shape(), **({"options": below} if below else {})}

    def describe(self) -> dict[str, Any]:
        """The option in a module's documentation."""
        below = {name: option.describe() for name, option in self.suboptions.items()}
        since = {"version_added": self.since} if self.since else {}
        return {"description": self.text, **self._shape(), **since, **({"suboptions": below} if below else {})}

    def _shape(self) -> dict[str, Any]:
        shape = {"type": self.type, "elements": self.elements, "choices": list(self.choices)}
        # A validator writes the suboptions into the default that it gets.
        default = {} if self.default is None else {"default": deepcopy(self.default)}
        return {**{key: value for key, value in shape.items() if value}, **default}


def _declare_containers(type_: str) -> dict[str, DriverOption]:
    return {
        "driver": DriverOption("The driver.", type_),
        "registrar": DriverOption("The node-driver-registrar.", type_),
        "liveness_probe": DriverOption("The liveness probe.", type_),
    }


def _declare_switch(text: str, **attributes: Any) -> DriverOption:
    return DriverOption(text, "bool", **{"default": False, **attributes})


def _declare_timeout(text: str, **attributes: Any) -> DriverOption:
    return DriverOption(text, "int", default=600, **attributes)


def _declare_names(text: str, **attributes: Any) -> DriverOption:
    return DriverOption(text, "list", "str", [], **attributes)


OPTIONS: dict[str, DriverOption] = {
    "mode": DriverOption(
        "How the node plugin reaches the host. V(auto) uses upstream's default for the release, or the other mode if "
        "that one cannot run.",
        default="auto",
        choices=("auto", "csi_proxy", "host_process"),
    ),
    "version": DriverOption(
        "Release of the driver. Defaults to the release of the installed Linux controller, else to the catalog's "
        "default."
    ),
    "namespace": DriverOption(
        "Namespace of the DaemonSet. Defaults to the namespace of the Linux controller, else to upstream's.",
        modules=(INFO, ROLLOUT),
    ),
    "create_cluster_objects": _declare_switch(
        "Create the CSIDriver, and the feature-state map of vSphere, if they are missing, instead of failing.",
        playbooks="kubewin_create_cluster_objects",
    ),
    "allow_version_skew": _declare_switch("Accept a node plugin of another minor release than the controller's."),
    "csi_proxy_managed": _declare_switch(
        "Whether this collection installs csi-proxy. If so, the DaemonSet selects only Nodes with the label "
        "C(kubewin.io/csi-proxy=serving), which the run sets when csi-proxy serves its pipes. Set to V(false) if the "
        "platform installs csi-proxy.",
        default=True,
    ),
    "images": DriverOption(
        "Image references that replace the catalog's.", "dict", default={}, suboptions=_declare_containers("str")
    ),
    "image_mirror": DriverOption("Registry, with an optional path, that replaces the registry host of every image."),
    "image_digests": DriverOption(
        "Digests (C(sha256:...)) that pin the images.", "dict", default={}, suboptions=_declare_containers("str")
    ),
    "image_pull_secrets": _declare_names("Names of Secrets for the registry, in the namespace of the DaemonSet."),
    "kubelet_dir": DriverOption("The kubelet's root directory on Windows.", default="C:\\var\\lib\\kubelet"),
    "tolerations": DriverOption(
        "Tolerations of the plugin pods. Defaults to upstream's, which tolerate every taint.", "list", "dict"
    ),
    "node_selector": DriverOption(
        "Labels that Nodes must have in addition to C(kubernetes.io/os=windows).", "dict", default={}
    ),
    "priority_class": DriverOption(
        "Name of an existing PriorityClass of the plugin pods. Defaults to upstream's, C(system-node-critical)."
    ),
    "resources": DriverOption(
        "Requests and limits by container. Defaults to upstream's.", "dict", default={}, suboptions=_declare_containers("dict")
    ),
    "max_unavailable": DriverOption(
        "Maximum number or percentage of Nodes without a Ready plugin during a rolling update. Defaults to upstream's.",
        modules=(INFO, APPLY),
    ),
    "storage_class": DriverOption(
        "The StorageClass for Windows claims.",
        "dict",
        default={},
        suboptions={
            "create": _declare_switch("Whether to apply a StorageClass.", default=True),
            "name": DriverOption("Name of the StorageClass."),
            "parameters": DriverOption("Parameters in addition to the file system.", "dict", default={}),
        },
    ),
    "batches": DriverOption(
        "Sizes of the batches in which a running node plugin is changed, as numbers or percentages of all Nodes. The "
        "first Node is changed alone; the last value repeats.",
        "list",
        "str",
        ["1", "25%"],
        modules=(APPLY,),
        playbooks="kubewin_batches",
    ),
    "node_timeout": _declare_timeout(
        "Timeout in seconds for one Node, from the end of its former plugin pod until the driver works there again.",
        modules=(APPLY,),
    ),
    "gate_timeout": _declare_timeout(
        "Timeout in seconds until the driver works on all Nodes.",
        modules=(ROLLOUT,),
        named="timeout",
        playbooks="kubewin_gate_timeout",
    ),
    "accept_unproven": _declare_switch(
        "Pass the gate when Nodes are registered but their hosts were not read. The report still lists them as "
        "unproven.",
        modules=(ROLLOUT,),
    ),
}  # fmt: skip


def list_module_options(module: str) -> dict[str, tuple[str, DriverOption]]:
    """The options that a module takes under its own names, each with its name in the roles."""
    return {option.named or name: (name, option) for name, option in OPTIONS.items() if module in option.modules}


def make_argument_spec(module: str) -> dict[str, Any]:
    """The part of a module's argument spec that is declared here."""
    specs = {name: option.build_spec() for name, (_role, option) in list_module_options(module).items()}
    # It holds names of Secrets, not secrets.
    return {"driver": {"type": "str", "required": True}} | {
        name: {**spec, "no_log": False} if "secret" in name else spec for name, spec in specs.items()
    }
