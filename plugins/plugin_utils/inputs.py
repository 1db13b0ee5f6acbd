# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inputs of the playbooks: which playbook takes which, and what each may be. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.target import KEYS, ONLY_JUDGED, read
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.options import tolerates
from ansible_collections.kubewin.csi.plugins.plugin_utils.lists import as_list

_BATCH = re.compile(r"[1-9][0-9]*%?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SIZE = re.compile(r"[1-9][0-9]*([.][0-9]+)?([KMGTPE]i|[kMGTPE])?")
# As the filter bool reads them.
_YES = frozenset({"true", "yes", "on", "y", "t", "1"})
_WORDS = _YES | {"false", "no", "off", "n", "f", "0"}


@dataclass(frozen=True, slots=True)
class Input:
    """One variable. expected: what it may be, for people. playbooks: those that take it."""

    expected: str
    fits: Callable[[object], bool]
    playbooks: frozenset[str] = frozenset()


def switched(value: object, *, default: bool) -> bool:
    """A switch as a survey or YAML gives it; the default where it is not given."""
    return default if blank(value) else str(value).lower() in _YES


def wrong(given: Mapping[str, object]) -> list[str]:
    """A sentence for each input that cannot work. given: the variables that are set. A blank one counts as not given."""
    return [
        f"{name} is {_shown(given[name])}; {rule.expected}."
        for name, rule in INPUTS.items()
        if not blank(given.get(name)) and not rule.fits(given[name])
    ]


def blank(value: object) -> bool:
    """Whether a value counts as not given: a survey answers with empty text, YAML with null."""
    return value is None or value == ""


def _shown(value: object) -> str:
    if value in ([], {}) or not str(value).strip():
        return "empty"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _number(least: int) -> Callable[[object], bool]:
    # Not of type int alone: -e gives text. True is an int, and no number.
    return lambda value: re.fullmatch(r"[0-9]{1,9}", str(value)) is not None and int(str(value)) >= least


def _all(pattern: re.Pattern[str], least: int) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        parts = as_list(value)
        # Separators alone name nothing, which often means all.
        if isinstance(value, Mapping) or (not parts and "," in str(value)):
            return False
        return len(parts) >= least and all(map(pattern.fullmatch, parts))

    return fits


def _drivers(value: object) -> bool:
    names = as_list(value)
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


_ANY = Input("", lambda value: True)
_HOSTS = "enable_csi preflight remove status verify"
_CLUSTER = f"{_HOSTS} handover convert_volumes upgrade"


def _of(playbooks: str, **rules: Input) -> dict[str, Input]:
    """Inputs that these playbooks take; the prefix of their names is added."""
    return {f"kubewin_{name}": replace(rule, playbooks=frozenset(playbooks.split())) for name, rule in rules.items()}


INPUTS: dict[str, Input] = {
    **_of(
        f"{_CLUSTER} build_csi_proxy",
        own_variables=Input("names of variables are expected", _all(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), 0)),
    ),
    **_of(_CLUSTER, kubeconfig=_ANY, context=_ANY),
    **_of(_HOSTS, hosts=_ANY, node_name=_ANY, cluster_only=_SWITCH),
    **_of(
        "enable_csi handover remove status upgrade verify",
        drivers=Input(f"{_KNOWN}: name one or more of them", _drivers),
    ),
    **_of("build_csi_proxy enable_csi preflight convert_volumes status upgrade", output_dir=_ANY),
    **_of(
        "enable_csi remove upgrade",
        batches=Input("numbers of hosts or percentages are expected, such as 1,25%", _all(_BATCH, 1)),
    ),
    **_of("enable_csi remove status verify", skip_unreachable=_SWITCH),
    **_of("enable_csi handover upgrade", gate_timeout=_SECONDS, create_cluster_objects=_SWITCH),
    **_of("enable_csi handover", quiesce=_one_of("cordon", "none"), quiesce_timeout=_SOME_SECONDS),
    **_of("enable_csi preflight upgrade", cluster_name=_ANY, fail_on=_ANY, suppressions=_ANY),
    **_of(
        "enable_csi",
        allow_downgrade=_SWITCH,
        node_timeout=_SECONDS,
        prepull=_SWITCH,
        prepull_timeout=_SECONDS,
        readiness_gate=_SWITCH,
    ),
    **_of(
        "enable_csi status",
        proven=Input(
            f"names of Nodes by driver are expected, such as {{vsphere: [win-1]}}; {_KNOWN}",
            lambda value: _by_driver(value, (list, tuple)),
        ),
    ),
    **_of(
        "preflight",
        target=Input(
            f"{', '.join(KEYS)} are known, such as openshift=4.14,wmco=9.0.0 or driver=smb,mode=host_process, {_AS_TEXT}",
            _judged,
        ),
        snapshot_from=_ANY,
        hold_operator=_SWITCH,
        pseudonyms=_SWITCH,
    ),
    **_of("remove", remove_csi_proxy=_SWITCH, remove_while_in_use=_SWITCH, remove_timeout=_SECONDS),
    **_of(
        "handover",
        handover=_one_of("to_platform", "to_kubewin"),
        handover_restart_pods=_SWITCH,
        handover_stable_for=_SOME_SECONDS,
        replace=Input(
            "namespace/name of a DaemonSet is expected",
            _text(re.compile(f"{_LABEL.pattern}/[a-z0-9][-.a-z0-9]{{0,252}}")),
        ),
    ),
    **_of("verify", verify_nodes=_NODES, verify_move=_SWITCH),
    **_of(
        "upgrade verify",
        verify_storage_classes=Input(
            f"StorageClasses by driver are expected, such as {{smb: team-share}}; {_KNOWN}",
            lambda value: _by_driver(value, str),
        ),
        verify_image=_IMAGE,
        verify_size=Input("a size above 0 is expected, such as 10Gi", _text(_SIZE)),
        verify_namespace=_SPACE,
        verify_tolerations=_TOLERATIONS,
        verify_parallel=_COUNT,
        verify_step_timeout=_SECONDS,
        verify_timeout=_SECONDS,
    ),
    **_of(
        "upgrade",
        upgrade_name=_ANY,
        upgrade_hook=_one_of("none", "tasks", "wmco"),
        upgrade_target=Input(
            f"releases of kubelet, openshift and wmco are expected, such as kubelet=1.27 or openshift=4.14,wmco=9.0.0, {_AS_TEXT}",
            _target,
        ),
        upgrade_tasks=Input("the path of a file is expected", lambda value: isinstance(value, str)),
        upgrade_nodes=_NODES,
        upgrade_canary=Input("the name of a Node is expected", _text(_NAME)),
        upgrade_pause=Input("canary, batches or names of Nodes are expected", _all(_NAME, 0)),
        upgrade_confirmed=Input("pauses are expected as the run that ended there named them", _all(_NAME, 0)),
        upgrade_growing=Input(
            "patterns are expected, such as *.log,journal/*", lambda value: isinstance(value, (str, list, tuple))
        ),
        upgrade_windows=_ANY,
        upgrade_time_zone=_ANY,
        upgrade_stop_on=_ANY,
        upgrade_namespace=_SPACE,
        upgrade_operator_namespace=_SPACE,
        upgrade_node_timeout=_SECONDS,
        upgrade_hand_timeout=_SECONDS,
        upgrade_patience=_SOME_SECONDS,
        upgrade_unproven_canary=_SWITCH,
        upgrade_delete_unowned=_SWITCH,
        upgrade_data=_SWITCH,
    ),
    **_of(
        "convert_volumes",
        convert_claims=_ANY,
        convert_storage_class=_ANY,
        convert_volume_name=_ANY,
        convert_volume_handle=_ANY,
        convert_project=_ANY,
        convert_namespace=_SPACE,
        convert_second_namespace=_SPACE,
        convert_image=_IMAGE,
        convert_tolerations=_TOLERATIONS,
        convert_roll_back=_SWITCH,
        convert_allow_managed=_SWITCH,
        convert_variant=_one_of("in_place", "re_claim"),
        convert_compare=_one_of("content", "none"),
        convert_compare_limit=_SOME,
        convert_final=_SWITCH,
        convert_parallel=_COUNT,
        convert_step_timeout=_SECONDS,
    ),
    **_of("build_csi_proxy", csi_proxy_release=_ANY, csi_proxy_sign_command=_ANY, go=_ANY, go_proxy=_ANY, go_env=_ANY),
}
