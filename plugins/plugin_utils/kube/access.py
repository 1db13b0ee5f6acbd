# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to do, as RBAC rules. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

_SERVICE_ACCOUNT = "system:serviceaccount:"
# The account of the guides.
EXAMPLE = "kubewin:kubewin"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing the account must be allowed.

    group, resource: as in RBAC, "pods/log" for a subresource. namespace: where, None is cluster-wide. name: the one
    object that it is about, empty for all of them. instead: allowing all of these does as well, when there are any.
    """

    verb: str
    group: str
    resource: str
    namespace: str | None = None
    name: str = ""
    instead: tuple[Need, ...] = ()

    def rule(self, verbs: tuple[str, ...] = ()) -> str:
        """As a rule to add to a role. verbs: instead of the need's own."""
        allowed = ", ".join(f'"{verb}"' for verb in verbs or (self.verb,))
        names = f', resourceNames: ["{self.name}"]' if self.name else ""
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"]{names}, verbs: [{allowed}]}}'


def list_needs(verbs: str, group: str, resources: str, namespace: str | None = None, name: str = "") -> Iterator[Need]:
    """Each of these verbs for each of these resources, both separated by blanks."""
    for resource in resources.split():
        for verb in verbs.split():
            yield Need(verb, group, resource, namespace, name)


def list_role_needs(role: Mapping[str, Any], namespace: str | None = None) -> Iterator[Need]:
    """What a ClusterRole allows. namespace: where it is bound, None for everywhere."""
    for rule in role.get("rules") or ():
        for group in rule["apiGroups"]:
            for name in rule.get("resourceNames") or ("",):
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Need(verb, group, resource, namespace, name)


def find_missing_needs(needs: Iterable[Need], allowed: Callable[[Need], bool]) -> tuple[Need, ...]:
    """The needs that are not met."""
    return tuple(
        need
        for need in needs
        if not allowed(need) and not (need.instead and all(allowed(alternative) for alternative in need.instead))
    )


def list_rules(needs: Iterable[Need]) -> tuple[str, ...]:
    """The needs as rules to add to a role, one for each object with all verbs, with the namespace of the role."""
    verbs: dict[Need, list[str]] = {}
    for need in needs:
        verbs.setdefault(replace(need, verb="", instead=()), []).append(need.verb)
    rules = (
        need.rule(tuple(dict.fromkeys(of_need))) + (f" in namespace {need.namespace}" if need.namespace else "")
        for need, of_need in verbs.items()
    )
    return tuple(dict.fromkeys(rules))


def has_rule(role: Mapping[str, Any], need: Need) -> bool:
    """Whether a rule of a ClusterRole has the need, where the role is bound in its namespace or everywhere."""
    return any(
        need.group in rule.get("apiGroups", ())
        and need.resource in rule.get("resources", ())
        and need.verb in rule.get("verbs", ())
        and (not rule.get("resourceNames") or need.name in rule["resourceNames"])
        for rule in role.get("rules", ())
    )


def bind_commands(needs: Iterable[Need], roles: Mapping[str, Mapping[str, Any]], user: str) -> tuple[str, ...]:
    """The kubectl commands after which the needs are met, as far as these ClusterRoles have them. user: name of the account."""
    named = ((need, next((name for name, role in roles.items() if has_rule(role, need)), "")) for need in needs)
    return tuple(dict.fromkeys(bind_command(role, need.namespace or "", user) for need, role in named if role))


def bind_command(role: str, namespace: str = "", user: str = "") -> str:
    """The kubectl command that binds a ClusterRole, in a namespace or cluster-wide. user: name of the account, empty if it is unknown."""
    where, kind = (f"-n {namespace} ", "rolebinding") if namespace else ("", "clusterrolebinding")
    account = user.removeprefix(_SERVICE_ACCOUNT)
    subject = f"--user={shlex.quote(user)}" if account == user and user else f"--serviceaccount={account or EXAMPLE}"
    return f"kubectl {where}create {kind} {role} --clusterrole={role} {subject}"
