# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to do, as RBAC rules. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

_SERVICE_ACCOUNT = "system:serviceaccount:"
# The account of the guides.
EXAMPLE = "kubewin:kubewin"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing the account must be allowed.

    group, resource: as in RBAC, "pods/log" for a subresource. namespace: where, None is cluster-wide. name: the one
    object that it is about, empty for all of them.
    """

    verb: str
    group: str
    resource: str
    namespace: str | None = None
    name: str = ""

    def is_granted(self, rule: Mapping[str, Any]) -> bool:
        """Whether a rule allows that; as Kubernetes' RBAC authorizer reads one (plugin/pkg/auth/authorizer/rbac/rbac.go)."""
        names = rule.get("resourceNames") or ()
        subresource = self.resource.partition("/")[2]
        return (
            not {self.verb, "*"}.isdisjoint(rule.get("verbs") or ())
            and not {self.group, "*"}.isdisjoint(rule.get("apiGroups") or ())
            and not {self.resource, "*", f"*/{subresource}"}.isdisjoint(rule.get("resources") or ())
            and (not names or bool(self.name and self.name in names))
        )

    def rule(self, verbs: tuple[str, ...] = ()) -> str:
        """As a rule to add to a role. verbs: instead of the need's own."""
        allowed = ", ".join(f'"{verb}"' for verb in verbs or (self.verb,))
        names = f', resourceNames: ["{self.name}"]' if self.name else ""
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"]{names}, verbs: [{allowed}]}}'


def list_role_needs(role: Mapping[str, Any], namespace: str | None = None) -> Iterator[Need]:
    """What a ClusterRole allows. namespace: where it is bound, None for everywhere."""
    for rule in role.get("rules") or ():
        for group in rule["apiGroups"]:
            for name in rule.get("resourceNames") or ("",):
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Need(verb, group, resource, namespace, name)


def list_rules(needs: Iterable[Need]) -> tuple[str, ...]:
    """The needs as rules to add to a role, one for each object with all verbs, with the namespace of the role."""
    verbs: dict[Need, list[str]] = {}
    for need in needs:
        verbs.setdefault(replace(need, verb=""), []).append(need.verb)
    rules = (
        need.rule(tuple(dict.fromkeys(of_need))) + (f" in namespace {need.namespace}" if need.namespace else "")
        for need, of_need in verbs.items()
    )
    return tuple(dict.fromkeys(rules))


def bind_command(role: str, namespace: str = "", user: str = "") -> str:
    """The kubectl command that binds a ClusterRole, in a namespace or cluster-wide. user: name of the account, empty if it is unknown."""
    where, kind = (f"-n {namespace} ", "rolebinding") if namespace else ("", "clusterrolebinding")
    account = user.removeprefix(_SERVICE_ACCOUNT)
    subject = f"--user={shlex.quote(user)}" if account == user and user else f"--serviceaccount={account or EXAMPLE}"
    return f"kubectl {where}create {kind} {role} --clusterrole={role} {subject}"
