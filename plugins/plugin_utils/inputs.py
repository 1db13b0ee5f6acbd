# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inputs of the playbooks may be. Pure: what a cluster or a host has to say comes later, from who asks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.target import KEYS, ONLY_JUDGED, read
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wishes import tolerates

_BATCH = re.compile(r"[1-9][0-9]*%?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SIZE = re.compile(r"[1-9][0-9]*([.][0-9]+)?([KMGTPE]i|[kMGTPE])?")
# As the filter bool reads them.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"})


@dataclass(frozen=True, slots=True)
class Input:
    """One variable. expected: what it may be, for people."""

    expected: str
    fits: Callable[[object], bool]


def listed(value: object) -> list[str]:
    """A list, or text with commas as a survey gives it."""
    parts = value if isinstance(value, (list, tuple)) else str("" if value is None else value).split(",")
    return [str(part).strip() for part in parts]


def wrong(given: Mapping[str, object]) -> list[str]:
    """A sentence for each input that cannot work. given: those that were set; names that are none of these say nothing."""
    return [
        f"{name} is {_shown(given[name])}; {rule.expected}."
        for name, rule in INPUTS.items()
        if name in given and not rule.fits(given[name])
    ]


def _shown(value: object) -> str:
    if value is None or value in ("", [], {}):
        return "empty"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _number(least: int) -> Callable[[object], bool]:
    # Not of type int alone: -e gives text. True is an int, and no number.
    return lambda value: re.fullmatch(r"[0-9]{1,9}", str(value)) is not None and int(str(value)) >= least


def _all(pattern: re.Pattern[str], least: int) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        parts = listed(value)
        parts = [] if parts == [""] else parts
        return not isinstance(value, Mapping) and len(parts) >= least and all(map(pattern.fullmatch, parts))

    return fits


def _drivers(value: object) -> bool:
    names = [name for name in listed(value) if name]
    return not isinstance(value, Mapping) and bool(names) and set(names) <= set(DRIVERS)


def _by_driver(value: object, of: type | tuple[type, ...]) -> bool:
    return (
        isinstance(value, Mapping) and set(value) <= set(DRIVERS) and all(isinstance(one, of) for one in value.values())
    )


def _target(value: object) -> bool:
    try:
        return not set(ONLY_JUDGED) & set(read(value))
    except ValueError:
        return False


def _judged(value: object) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True


def _one_of(*words: str) -> Input:
    return Input(f"{', '.join(words[:-1])} or {words[-1]} is expected", lambda value: value in words)


def _text(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: value == "" or (isinstance(value, str) and pattern.fullmatch(value) is not None)


_SPACE = Input("the name of a namespace is expected", _text(_LABEL))
_NODES = Input("names of Nodes in lower case are expected", _all(_NAME, 0))
_IMAGE = Input(
    "an image without spaces is expected", lambda value: isinstance(value, str) and not re.search(r"\s", value)
)
_TOLERATIONS = Input(
    "tolerations are expected as in a pod, such as [{key: team, operator: Exists}]",
    lambda value: (
        isinstance(value, (list, tuple)) and all(isinstance(one, Mapping) and tolerates(one) for one in value)
    ),
)
_SECONDS = Input("a number of seconds above 0 is expected", _number(1))
_SOME_SECONDS = Input("a number of seconds is expected", _number(0))
_SWITCH = Input("true or false is expected", lambda value: str(value).lower() in _WORDS)
_SOME = Input("a number is expected", _number(0))
_COUNT = Input("a number above 0 is expected", _number(1))
_AS_TEXT = "and in a dictionary as text, since the number 1.30 is 1.3"
_KNOWN = f"known drivers are {', '.join(sorted(DRIVERS))}"

INPUTS: dict[str, Input] = {
    "kubewin_drivers": Input(f"{_KNOWN}: name one or more of them", _drivers),
    "kubewin_batches": Input("numbers of hosts or percentages are expected, such as 1,25%", _all(_BATCH, 1)),
    "kubewin_quiesce": _one_of("cordon", "none"),
    "kubewin_quiesce_timeout": _SOME_SECONDS,
    "kubewin_gate_timeout": _SECONDS,
    "kubewin_node_timeout": _SECONDS,
    "kubewin_prepull_timeout": _SECONDS,
    "kubewin_remove_timeout": _SECONDS,
    "kubewin_handover_stable_for": _SOME_SECONDS,
    "kubewin_verify_step_timeout": _SECONDS,
    "kubewin_verify_timeout": _SECONDS,
    "kubewin_verify_parallel": _COUNT,
    "kubewin_skip_unreachable": _SWITCH,
    "kubewin_cluster_only": _SWITCH,
    "kubewin_allow_downgrade": _SWITCH,
    "kubewin_prepull": _SWITCH,
    "kubewin_create_cluster_objects": _SWITCH,
    "kubewin_readiness_gate": _SWITCH,
    "kubewin_remove_csi_proxy": _SWITCH,
    "kubewin_remove_while_in_use": _SWITCH,
    "kubewin_handover_restart_pods": _SWITCH,
    "kubewin_verify_move": _SWITCH,
    "kubewin_handover": _one_of("to_platform", "to_kubewin"),
    "kubewin_replace": Input(
        "namespace/name of a DaemonSet is expected", _text(re.compile(f"{_LABEL.pattern}/[a-z0-9][-.a-z0-9]{{0,252}}"))
    ),
    "kubewin_verify_nodes": _NODES,
    "kubewin_verify_storage_classes": Input(
        f"StorageClasses by driver are expected, such as {{smb: team-share}}; {_KNOWN}",
        lambda value: _by_driver(value, str),
    ),
    "kubewin_verify_image": _IMAGE,
    "kubewin_verify_size": Input("a size above 0 is expected, such as 10Gi", _text(_SIZE)),
    "kubewin_verify_namespace": _SPACE,
    "kubewin_verify_tolerations": _TOLERATIONS,
    "kubewin_upgrade_hook": _one_of("none", "tasks", "wmco"),
    "kubewin_upgrade_target": Input(
        f"releases of kubelet, openshift and wmco are expected, such as kubelet=1.27 or openshift=4.14,wmco=9.0.0, {_AS_TEXT}",
        _target,
    ),
    "kubewin_target": Input(
        f"{', '.join(KEYS)} are known, such as openshift=4.14,wmco=9.0.0 or driver=smb,mode=host_process, {_AS_TEXT}",
        _judged,
    ),
    "kubewin_upgrade_tasks": Input("the path of a file is expected", lambda value: isinstance(value, str)),
    "kubewin_upgrade_nodes": _NODES,
    "kubewin_upgrade_canary": Input("the name of a Node is expected", _text(_NAME)),
    "kubewin_upgrade_pause": Input("canary, batches or names of Nodes are expected", _all(_NAME, 0)),
    "kubewin_upgrade_confirmed": Input("pauses are expected as the run that ended there named them", _all(_NAME, 0)),
    "kubewin_upgrade_growing": Input(
        "patterns are expected, such as *.log,journal/*", lambda value: isinstance(value, (str, list, tuple))
    ),
    "kubewin_upgrade_namespace": _SPACE,
    "kubewin_upgrade_operator_namespace": _SPACE,
    "kubewin_upgrade_node_timeout": _SECONDS,
    "kubewin_upgrade_hand_timeout": _SECONDS,
    "kubewin_upgrade_patience": _SOME_SECONDS,
    "kubewin_upgrade_unproven_canary": _SWITCH,
    "kubewin_upgrade_delete_unowned": _SWITCH,
    "kubewin_upgrade_data": _SWITCH,
    "kubewin_rebind_namespace": _SPACE,
    "kubewin_rebind_second_namespace": _SPACE,
    "kubewin_rebind_image": _IMAGE,
    "kubewin_rebind_tolerations": _TOLERATIONS,
    "kubewin_rebind_undo": _SWITCH,
    "kubewin_rebind_allow_managed": _SWITCH,
    "kubewin_rebind_variant": _one_of("in_place", "re_claim"),
    "kubewin_rebind_compare": _one_of("content", "none"),
    "kubewin_rebind_compare_limit": _SOME,
    "kubewin_rebind_final": _SWITCH,
    "kubewin_rebind_parallel": _COUNT,
    "kubewin_rebind_step_timeout": _SECONDS,
    "kubewin_proven": Input(
        f"names of Nodes by driver are expected, such as {{vsphere: [win-1]}}; {_KNOWN}",
        lambda value: _by_driver(value, (list, tuple)),
    ),
}
