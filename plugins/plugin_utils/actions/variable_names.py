# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variables may be set for a playbook, by their names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from ..catalog.registry import DRIVERS
from ..windows.desired import CSI_PROXY
from .driver_options import map_variables
from .inputs import INPUTS

DRIVER_ROLES = tuple(f"{driver}_csi" for driver in sorted(DRIVERS))
TAKE_DRIVERS = frozenset({"enable_csi", "handover", "upgrade"})
# Roles whose variables a user sets, and the playbooks that take them.
ROLES: Mapping[str, frozenset[str]] = {
    "csi_proxy": frozenset({"enable_csi", "remove"}),
    **dict.fromkeys(DRIVER_ROLES, TAKE_DRIVERS),
}
# Inventories may hold variables of this role, for playbooks that call it directly.
INNER_ROLE = "csi_driver"
# Options of roles that the playbook itself decides, and what to do instead.
DECIDED: Mapping[str, str] = {
    "csi_proxy_state": "enable_csi installs, remove removes",
    "csi_proxy_node": "kubewin_node_name names the Node of a host",
}
# Options of csi_proxy that no variable sets.
_OF_TASKS = frozenset({"from_variables", "unchanged"})
# How alike a name is to one of ours that is a slip of the pen. Other projects have names like <driver>_csi_enabled.
_SLIP = 0.75
# Extra variables of AWX and Automation Platform in a job of a workflow (awx/main/models/unified_jobs.py, awx_meta_vars), whose jobs share
# the answers of its survey.
_OF_A_WORKFLOW = ("awx_workflow_job_id", "tower_workflow_job_id")
# Statistics that the playbooks set: a workflow of AWX hands them to its next jobs as extra variables.
STATISTICS = frozenset({"kubewin_preflight", "kubewin_convert", "kubewin_summary", "kubewin_upgrade"})
# Facts that tasks of the playbooks set.
FACTS = frozenset({"kubewin_hosts_to_change", "kubewin_inputs", "kubewin_upgrade_result"})
# What the inventory plugin windows_nodes says of a host.
INVENTORY = frozenset(
    f"kubewin_{name}"
    for name in (
        "build", "cluster", "instance", "instance_user", "node", "owner", "platform", "read_at", "registered_drivers",
        "unreachable_because",
    )
)  # fmt: skip


def find_role(name: str) -> str:
    """The role whose prefix a name has, empty without one."""
    return next((role for role in (*ROLES, INNER_ROLE) if name.startswith(f"{role}_")), "")


@cache
def list_role_variables(role: str) -> frozenset[str]:
    """The variables that a user may set of a role in ROLES."""
    if role in DRIVER_ROLES:
        return frozenset(map_variables(role.removesuffix("_csi")))
    return frozenset(f"{role}_{option}" for option in CSI_PROXY.keys() - _OF_TASKS)


def find_refused_variables(
    playbook: str, variables: Iterable[str], extra: Iterable[str], typed: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Sentences for variables that cannot be meant, and for those that another playbook takes.

    variables: names set outside the playbook, in the inventory or as extra variables. extra: those among them that are extra
    variables. typed: those among these that were given one by one (-e name=value), so for this run alone.
    """
    names = set(variables) | set(extra)
    is_shared = not set(extra).isdisjoint(_OF_A_WORKFLOW)
    wrong: list[str] = []
    elsewhere: list[str] = []
    for name in sorted(names):
        takers = _find_takers(name)
        if takers is None and name not in extra and _is_of_another_project(name):
            elsewhere.append(f"{name} is not a variable of this collection and is ignored.")
        elif takers is None:
            wrong += _explain_unknown(playbook, name, name in extra)
        elif takers and playbook not in takers and name in typed:
            wrong.append(_explain_elsewhere(playbook, name, takers))
        elif takers and playbook not in takers and name in extra and not is_shared:
            elsewhere.append(_explain_elsewhere(playbook, name, takers))
    return wrong, elsewhere


def _find_takers(name: str) -> frozenset[str] | None:
    """The playbooks that take a variable; empty if it applies to none of them, None if it is unknown."""
    if name in INPUTS:
        return INPUTS[name].playbooks
    if name in STATISTICS or name in INVENTORY:
        return frozenset()
    role = find_role(name)
    if role in ROLES and name not in DECIDED and name in list_role_variables(role):
        return ROLES[role]
    return None


def _is_of_another_project(name: str) -> bool:
    """Whether a name with the prefix of a driver's role resembles none of its options, as Kubespray's vsphere_csi_enabled."""
    role = find_role(name)
    return role in DRIVER_ROLES and name not in DECIDED and not _find_nearest(name, list_role_variables(role), _SLIP)


def _explain_unknown(playbook: str, name: str, extra: bool) -> Iterator[str]:
    role = find_role(name)
    is_ours = name.startswith(("kubewin_", "_kubewin_")) or role in ROLES or (role == INNER_ROLE and extra)
    if name in DECIDED:
        yield f"{name} is set, but the playbook sets it: {DECIDED[name]}. Remove the variable."
    elif is_ours:
        near = _find_nearest(name, [*INPUTS, *(list_role_variables(role) if role in ROLES else ())])
        meant = f"Did you mean {near}? " if near else ""
        yield f"{name} is not a variable of this collection. {meant}Use another prefix for your own variable."
    elif extra:
        # Without our prefix it may belong to another project, unless it is a near miss of one of ours.
        names = [
            *INPUTS,
            *(option for role, takers in ROLES.items() if playbook in takers for option in list_role_variables(role)),
        ]
        for near in get_close_matches(name, names, 1, 0.92):
            yield f"{name} is not a variable of this collection. Did you mean {near}? Give your own variable another name."


def _explain_elsewhere(playbook: str, name: str, takers: Iterable[str]) -> str:
    near = _find_nearest(name, [input_name for input_name, rule in INPUTS.items() if playbook in rule.playbooks])
    takes = " or ".join(sorted(takers))
    meant = f" Did you mean {near}?" if near else ""
    return f"{name} is set for {playbook}, which does not use it; it is an input of {takes}.{meant}"


def _find_nearest(name: str, names: Iterable[str], least: float = 0.6) -> str:
    """The nearest name, empty when none is near. A common prefix alone makes none near."""

    def bare(full_name: str) -> str:
        prefix = next((f"{role}_" for role in ROLES if full_name.startswith(f"{role}_")), "kubewin_")
        return full_name.removeprefix("_").removeprefix(prefix)

    full_names = {bare(full_name): full_name for full_name in names}
    return next((full_names[bare_name] for bare_name in get_close_matches(bare(name), full_names, 1, least)), "")
