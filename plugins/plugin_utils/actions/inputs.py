# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inputs of the playbooks: which playbook takes which, what each may be, and its value for the plays."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..catalog.registry import DRIVERS
from ..catalog.target import parse_target
from ..drivers.options import NAMESPACE_NAME, OBJECT_NAME, is_toleration

_BATCH = re.compile(r"[1-9][0-9]*%?")
# As the filter bool reads them.
_YES = frozenset({"true", "yes", "on", "y", "t", "1"})
_WORDS = _YES | {"false", "no", "off", "n", "f", "0"}


@dataclass(frozen=True, slots=True)
class Input:
    """One variable. expected: its valid values, as text. playbooks: those that take it.

    parse: makes its value of what is set, None where it is blank. secret: whether it may hold a secret, so that no task returns it.
    """

    expected: str
    fits: Callable[[object], bool]
    playbooks: frozenset[str] = frozenset()
    type: str = "str"
    choices: tuple[str, ...] = ()
    text: str = ""
    default: bool | int | str | None = None
    parse: Callable[[object], object] | None = None
    secret: bool = False

    def of(self, text: str, default: bool | int | str | None = None) -> Input:
        """One variable of this kind. default: None if there is none, or if the text has it."""
        return replace(self, text=text, default=default)


def parse_inputs(playbook: str, variables: Mapping[str, object]) -> dict[str, Any]:
    """The values of a playbook's inputs by their names without prefix, without those that may hold a secret.

    variables: those that are set, without wrong ones. A blank one has its default.
    """
    rules = {name: rule for name, rule in INPUTS.items() if playbook in rule.playbooks and not rule.secret}
    spec: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for name, rule in rules.items():
        value = variables.get(name)
        value = _DEFAULTS.get((playbook, name), rule.default) if is_blank(value) else value
        values[name] = rule.parse(value) if rule.parse else _EMPTY.get(rule.type, "") if value is None else value
        spec[name] = {"type": "raw" if rule.parse else rule.type}
    validated = ArgumentSpecValidator(spec).validate(values)
    if validated.error_messages:
        raise ValueError("\n".join(validated.error_messages))
    return {name.removeprefix("kubewin_"): value for name, value in validated.validated_parameters.items()}


def as_list(value: object, separator: str = ",") -> list[str]:
    """The entries of a list, or of text of a survey or a command line; none of nothing."""
    if isinstance(value, (list, tuple)):
        parts = [str(part) for part in value]
    else:
        text = "" if value is None else str(value).strip()
        written = len(text) > 1 and text[0] == "[" and text[-1] == "]"
        parts = re.split(f"[{re.escape(separator)}\n]", text[1:-1] if written else text)
        parts = [part.strip().strip("'\"") if written else part for part in parts]
    return [part.strip() for part in parts if part.strip()]


def _parse_path(value: object) -> str:
    """A path as of the directory where the run was started, empty without one."""
    return "" if is_blank(value) else os.path.realpath(os.path.expanduser(str(value)))


def is_on(value: object) -> bool:
    """A switch as a survey or YAML gives it; off where it is not given."""
    return str(value).lower() in _YES


def list_wrong_inputs(variables: Mapping[str, object]) -> list[str]:
    """A sentence for each input that cannot work. variables: those that are set. A blank one counts as not given."""
    return [
        f"{name} is {_show_value(variables[name])}, {rule.expected}."
        for name, rule in INPUTS.items()
        if not is_blank(variables.get(name)) and not rule.fits(variables[name])
    ]


def is_blank(value: object) -> bool:
    """Whether a value counts as not given: a survey answers with empty text, YAML with null."""
    return value is None or value == ""


def _show_value(value: object) -> str:
    if value in ([], {}) or not str(value).strip():
        return "empty"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _match_number(least: int) -> Callable[[object], bool]:
    # Not of type int alone: -e gives text. True is an int, and no number.
    return lambda value: re.fullmatch(r"[0-9]{1,9}", str(value)) is not None and int(str(value)) >= least


def _match_all(pattern: re.Pattern[str], least: int) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        parts = as_list(value)
        # Separators alone name nothing, which often means all.
        if isinstance(value, Mapping) or (not parts and "," in str(value)):
            return False
        return len(parts) >= least and all(map(pattern.fullmatch, parts))

    return fits


def _are_drivers(value: object) -> bool:
    names = as_list(value)
    return not isinstance(value, Mapping) and bool(names) and set(names) <= set(DRIVERS)


def _parse_drivers(value: object) -> list[str]:
    return list(dict.fromkeys(as_list(value)))


def _is_by_driver(value: object, of: type | tuple[type, ...]) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) <= set(DRIVERS)
        and all(isinstance(item, of) for item in value.values())
    )


def _is_target(value: object) -> bool:
    try:
        parse_target(value)
    except ValueError:
        return False
    return True


def _parse_sorted_target(value: object) -> dict[str, str]:
    return dict(sorted(parse_target(value).items()))


def _declare_choice(*words: str) -> Input:
    return Input(f"expected {', '.join(words[:-1])} or {words[-1]}", lambda value: value in words, choices=words)


def _declare_names(expected: str, pattern: re.Pattern[str], least: int = 0) -> Input:
    return Input(expected, _match_all(pattern, least), type="raw", parse=as_list)


def _match_text(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: value == "" or (isinstance(value, str) and pattern.fullmatch(value) is not None)


_SPACE = Input("expected the name of a namespace", _match_text(NAMESPACE_NAME))
_NODES = _declare_names("expected names of Nodes in lower case", OBJECT_NAME)
_IMAGE = Input("expected an image without spaces", lambda value: isinstance(value, str) and not re.search(r"\s", value))
_TOLERATIONS = Input(
    "expected tolerations as in a pod, such as [{key: team, operator: Exists}]",
    lambda value: (
        isinstance(value, (list, tuple))
        and all(isinstance(toleration, Mapping) and is_toleration(toleration) for toleration in value)
    ),
    type="list",
)
_TARGET = Input(
    "expected releases of kubelet, openshift and wmco, such as kubelet=1.27 or openshift=4.14,wmco=9.0.0, and in a dictionary as text, "
    "because the number 1.30 is 1.3",
    _is_target,
    type="raw",
    parse=_parse_sorted_target,
)
_SECONDS = Input("expected a number of seconds above 0", _match_number(1), type="int")
_SOME_SECONDS = Input("expected a number of seconds", _match_number(0), type="int")
_SWITCH = Input("expected true or false", lambda value: str(value).lower() in _WORDS, type="bool")
_EMPTY: Mapping[str, object] = {"dict": {}, "list": []}
# Where a playbook has another default than the others.
_DEFAULTS: Mapping[tuple[str, str], object] = {
    ("upgrade", "kubewin_batches"): "1",
    # The shell's directory.
    ("gather", "kubewin_output_dir"): os.environ.get("PWD", "."),
    ("build_csi_proxy", "kubewin_output_dir"): os.path.join(os.environ.get("PWD", "."), "kubewin-output"),
}
_DRIVER_CHOICES = f"known drivers are {', '.join(sorted(DRIVERS))}"


_UNCHECKED = Input("", lambda value: True)
_RAW = replace(_UNCHECKED, type="raw")
_LIST = replace(_RAW, parse=as_list)
_PATH = Input("expected a path", lambda value: isinstance(value, str), parse=_parse_path)
_HOSTS = "diagnose enable_csi gather preflight remove status verify"
_CLUSTER = f"{_HOSTS} handover convert_volumes upgrade"


def _assign_playbooks(playbooks: str, **rules: Input) -> dict[str, Input]:
    """Inputs that these playbooks take; the prefix of their names is added."""
    return {f"kubewin_{name}": replace(rule, playbooks=frozenset(playbooks.split())) for name, rule in rules.items()}


INPUTS: dict[str, Input] = {
    **_assign_playbooks(
        _CLUSTER,
        kubeconfig=replace(_RAW, secret=True).of(
            "Kubeconfig file, or its content as a dictionary. A relative path starts where you start the run. Defaults"
            " to C(K8S_AUTH_*), the in-cluster configuration or C(~/.kube/config)."
        ),
        context=_UNCHECKED.of("Context of the kubeconfig file."),
    ),
    **_assign_playbooks(
        f"{_HOSTS} upgrade",
        hosts=_UNCHECKED.of(
            "Group or pattern of the Windows hosts. In an inventory, set it for all hosts and C(localhost), as in "
            "C(group_vars/all.yml).",
            "windows",
        ),
        node_name=_UNCHECKED.of(
            "Host variable: name of the host's Node, if neither name nor address matches. The playbook verifies it. "
            "The inventory plugin C(windows_nodes) sets it."
        ),
    ),
    **_assign_playbooks(
        _HOSTS,
        cluster_only=_SWITCH.of(
            "Work on the cluster alone, without Windows hosts. Otherwise the playbook refuses an inventory without "
            "Windows hosts, because Ansible treats an unreadable inventory as empty.",
            False,
        ),
    ),
    **_assign_playbooks(
        "diagnose enable_csi handover remove status upgrade verify",
        drivers=Input(
            f"expected one or more of {', '.join(sorted(DRIVERS))}", _are_drivers, type="raw", parse=_parse_drivers
        ).of(
            f"Drivers to work on: {', '.join(f'C({driver})' for driver in sorted(DRIVERS))}. C(enable_csi) defaults to the driver whose "
            "controller the cluster has, C(remove) and C(handover) to the one with a node plugin; if there are several, set it. "
            "C(verify), C(diagnose) and the gate of C(upgrade) default to all installed drivers; C(status) always reads all of them.",
        ),
    ),
    **_assign_playbooks(
        "build_csi_proxy diagnose enable_csi gather preflight status upgrade verify",
        output_dir=_PATH.of(
            "Directory on the controller for the result as JSON (C(enable-csi.json), C(status.json), C(diagnose.json), "
            "C(verify.json)). For C(preflight), the directory of "
            "C(readiness.html), C(readiness.json) and C(snapshot.json). For C(gather), the "
            "directory of the archive,"
            " by default where you start the run. For C(upgrade), the directory"
            " of the readiness report. Also without it, every "
            "playbook sets its closing summary as the statistic C(kubewin_summary), and C(preflight) its verdict as "
            "C(kubewin_preflight)."
        ),
    ),
    **_assign_playbooks(
        "enable_csi remove upgrade",
        batches=_declare_names("expected numbers of hosts or percentages, such as 1,25%", _BATCH, 1).of(
            "Sizes of the batches, as numbers or percentages of the hosts on which csi-proxy changes; the last value "
            "repeats. C(upgrade) counts Nodes and defaults to C(1). The first host "
            "is the canary: the second one starts after csi-proxy serves on the first. A rolling update of a node "
            "plugin uses the same batches.",
            "1,25%",
        ),
    ),
    **_assign_playbooks(
        "enable_csi remove status verify",
        skip_unreachable=_SWITCH.of(
            "Skip unreachable hosts and list them in the summary, instead of refusing to start. C(verify) always "
            "verifies the Nodes of the reachable hosts; without this variable it fails afterwards.",
            False,
        ),
    ),
    **_assign_playbooks(
        "enable_csi handover upgrade",
        gate_timeout=_SECONDS.of("Timeout in seconds until every Node is green; with C(handover), for each Node.", 600),
    ),
    **_assign_playbooks(
        "enable_csi handover",
        create_cluster_objects=_SWITCH.of(
            "Create missing objects of the driver's installation, such as the CSIDriver, and only warn about a missing"
            " controller.",
            False,
        ),
    ),
    **_assign_playbooks(
        "diagnose enable_csi preflight upgrade",
        fail_on=_declare_choice("blocked", "unknown", "warning", "never").of(
            "Result that fails the run: C(blocked) (a blocker), C(unknown) (a blocker, or something is unknown), "
            "C(warning) (also a warning), or C(never). With C(enable_csi) only the effects of the run itself count. "
            "Use C(warning) for a nightly check.",
            "blocked",
        ),
    ),
    **_assign_playbooks(
        "enable_csi preflight upgrade",
        suppressions=Input(
            "expected a list of entries, each with id, object, reason and expires",
            lambda value: isinstance(value, (list, tuple)) and all(isinstance(entry, Mapping) for entry in value),
            type="list",
        ).of(
            "Accepted findings: a list of C(id), C(object) (as the report names it, with wildcards), C(reason) and "
            "C(expires) (the last day), such as C([{id: CSI-V11, object: PersistentVolume pv-old-*, reason: moved in "
            'March, expires: "2027-03-31"}]). After that day the finding counts again.'
        ),
    ),
    **_assign_playbooks(
        "enable_csi",
        allow_downgrade=_SWITCH.of("Allow a csi-proxy release lower than the one in place.", False),
    ),
    **_assign_playbooks(
        "enable_csi status",
        proven=Input(
            f"expected names of Nodes by driver, such as {{vsphere: [win-1]}}; {_DRIVER_CHOICES}",
            lambda value: _is_by_driver(value, (list, tuple)),
            type="dict",
        ).of(
            "Proven Nodes by driver, as in C({vsphere: [win-1]}): the statistic that C(verify) sets. The gate accepts "
            "it in place of reading the host."
        ),
    ),
    **_assign_playbooks(
        "preflight",
        target=_TARGET.of(
            "Report for these versions instead of the current ones, as a dictionary or as text, such as "
            "C(openshift=4.14,wmco=9.0.0), in the form of C(kubewin_upgrade_target); see "
            "O(kubewin.csi.preflight_info#module:target)."
        ),
        snapshot_from=_PATH.of(
            "Create the report from the C(snapshot.json) of an earlier run, such as C(reports/snapshot.json). Contacts"
            " no cluster and no host."
        ),
    ),
    **_assign_playbooks(
        "remove",
        remove_csi_proxy=_SWITCH.of(
            "Also remove csi-proxy from the Windows hosts of the inventory. Without C(kubewin_drivers), remove csi-"
            "proxy alone. Set it only as an extra variable. The playbook refuses while a pod mounts its pipes, or a "
            "volume that was mounted through them is in use.",
            False,
        ),
    ),
    **_assign_playbooks(
        "handover",
        handover=_declare_choice("to_platform", "to_kubewin").of(
            "Direction: C(to_platform) (from this collection's node plugin to another) or C(to_kubewin) (the "
            "reverse). One driver at a time."
        ),
        handover_restart_pods=_SWITCH.of(
            "With C(to_platform): after this collection's pod on a node is deleted, also delete the platform's pod "
            "if it ran beside it.",
            False,
        ),
        replace=Input(
            "expected namespace/name of a DaemonSet",
            _match_text(re.compile(f"{NAMESPACE_NAME.pattern}/[a-z0-9][-.a-z0-9]{{0,252}}")),
        ).of(
            "The other DaemonSet as C(namespace/name). Required for C(to_kubewin), and for C(to_platform) if several "
            "provide the driver."
        ),
    ),
    **_assign_playbooks(
        "diagnose",
        workload=Input(
            "expected namespace/name of a pod or of its controller",
            _match_text(re.compile(f"{NAMESPACE_NAME.pattern}/{OBJECT_NAME.pattern}")),
        ).of("Diagnose one workload alone: C(namespace/name) of a pod or of its controller, such as C(shop/orders-0)."),
    ),
    **_assign_playbooks(
        "convert_volumes upgrade verify",
        pod_image=_IMAGE.of(
            "Image of the pods that write and read volumes. It must contain C(cmd), C(ping) and C(tar). Defaults to nanoserver of each "
            "Node's build."
        ),
        pod_tolerations=_TOLERATIONS.of(
            "Additional tolerations of these pods, as in a pod. Taints that mark Windows nodes are always tolerated."
        ),
    ),
    **_assign_playbooks(
        "convert_volumes upgrade",
        namespace=_SPACE.of("Existing namespace of the journal, the lease, the baselines and the records.", "kubewin"),
    ),
    **_assign_playbooks(
        "upgrade verify",
        verify_storage_classes=Input(
            f"expected StorageClasses by driver, such as {{smb: team-share}}; {_DRIVER_CHOICES}",
            lambda value: _is_by_driver(value, str),
            type="dict",
        ).of(
            "StorageClass by driver, as in C({smb: team-share}). Defaults to a class of the driver that fits Windows."
        ),
        verify_timeout=_SECONDS.of(
            "Timeout in seconds for one step, such as attaching and mounting a volume. All Nodes together have twelve times as long.",
            300,
        ),
        verify_namespace=_SPACE.of(
            "Existing namespace for the pods. Without it, each run creates and deletes a namespace."
        ),
    ),
    **_assign_playbooks(
        "upgrade",
        upgrade_name=_UNCHECKED.of(
            "Name of the upgrade. Defaults to a name made from the target. A run with the same name continues the "
            "upgrade; a finished one does not start again."
        ),
        upgrade_hook=_declare_choice("none", "tasks", "wmco").of(
            "What upgrades a Node: C(tasks) your own tasks, C(wmco) the Windows Machine Config Operator, C(none) you "
            "or another program, while the run waits.",
            "none",
        ),
        upgrade_target=_TARGET.of(
            "Target releases, as a dictionary or as text, such as C(kubelet=1.27) or C(openshift=4.14,wmco=9.0.0); "
            "C(kubernetes) is another name of C(kubelet). Without a release of C(kubelet) or C(wmco) each node is "
            "processed once. The playbook refuses a target older than the nodes, and an OpenShift target on another "
            "platform."
        ),
        upgrade_tasks=_PATH.of("Task file that upgrades the node C(kubewin_upgrade_node). Required with C(tasks)."),
        upgrade_nodes=_NODES.of("Upgrade these Nodes only, in this order. Upgrade other Nodes under another name."),
        upgrade_canary=Input("expected the name of a Node", _match_text(OBJECT_NAME)).of(
            "First Node. Defaults to the Node with the fewest volumes."
        ),
        upgrade_pause=_declare_names("expected canary, batches or names of Nodes", OBJECT_NAME).of(
            "Where the run pauses for an approval: C(canary) (after it), C(batches) (before each), or names of Nodes "
            "(before each of them). Separate several with commas."
        ),
        upgrade_confirmed=_declare_names("expected pauses as named by the run that ended there", OBJECT_NAME).of(
            "Approved pauses, as the paused run named them, such as C(canary). Set it beside C(kubewin_upgrade_pause);"
            " the journal keeps it."
        ),
        upgrade_append_only=Input(
            "expected patterns such as *.log,journal/*",
            lambda value: isinstance(value, (str, list, tuple)),
            type="raw",
            parse=as_list,
        ).of(
            "Patterns of files that may grow, such as C(*.log,journal/*); see "
            "O(kubewin.csi.volume_data#module:append_only)."
        ),
        upgrade_windows=replace(_RAW, parse=lambda value: as_list(value, ";")).of(
            "Hours in which nodes may start, such as C(Sat,Sun 22:00-04:00). Give several as a list, or separate "
            "them with semicolons."
        ),
        upgrade_time_zone=_UNCHECKED.of("Time zone of C(kubewin_upgrade_windows).", "UTC"),
        upgrade_stop_on=_LIST.of("Conditions outside the current node that stop the run.", "cluster,nodes,workloads"),
        upgrade_node_timeout=_SECONDS.of(
            "Timeout in seconds for each phase of one node: its drain, your tasks, the gate, the verification and the start of its "
            "workloads. After it, the run terminates the current task.",
            7200,
        ),
        upgrade_wait_timeout=_SOME_SECONDS.of(
            "Seconds to wait for the cluster's update, WMCO, an unavailable node or a window, before the run pauses.",
            0,
        ),
        upgrade_unproven_canary=_SWITCH.of(
            "From a release of WMCO without csi-proxy, upgrade one node without volumes first, unproven.", False
        ),
        upgrade_data=_SWITCH.of(
            "Compare the data on the volumes of Windows workloads before the first and after the last node. Baselines "
            "are kept in C(kubewin_namespace).",
            True,
        ),
    ),
    **_assign_playbooks(
        "convert_volumes",
        convert_claims=_LIST.of("Claims whose in-tree volumes the run converts, as C(namespace/name). Required."),
        convert_volume_handle=_UNCHECKED.of("For Google Cloud: handle of one volume."),
        convert_roll_back=_SWITCH.of("Roll the conversion back.", False),
        convert_allow_managed=_SWITCH.of(
            "Convert objects that Argo CD, Flux, Helm or an operator manages. Pause these first.", False
        ),
        convert_compare_limit=Input("expected a number", _match_number(0), type="int").of(
            "Maximum size in MiB of the data that the run reads of a volume to compare it. A larger volume is refused; C(0) compares "
            "nothing.",
            1024,
        ),
        convert_final=_SWITCH.of(
            "Make the conversion final: restore the policy and unlock the claim. It can no longer be rolled back.",
            False,
        ),
        convert_timeout=_SECONDS.of(
            "Timeout in seconds for one wait, such as reading a volume for its comparison.", 600
        ),
    ),
}
