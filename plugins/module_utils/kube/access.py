# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to do, as RBAC rules. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace


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


def each(verbs: str, group: str, resources: str, namespace: str | None = None, name: str = "") -> Iterator[Need]:
    """Each of these verbs for each of these resources, both separated by blanks."""
    for resource in resources.split():
        for verb in verbs.split():
            yield Need(verb, group, resource, namespace, name)


def missing(needs: Iterable[Need], allowed: Callable[[Need], bool]) -> tuple[str, ...]:
    """The rules this account lacks, each once."""

    def is_met(need: Need) -> bool:
        return allowed(need) or (bool(need.instead) and all(allowed(other) for other in need.instead))

    # A rule for each object, with all verbs that it lacks.
    lacking: dict[Need, list[str]] = {}
    for need in needs:
        if not is_met(need):
            lacking.setdefault(replace(need, verb="", instead=()), []).append(need.verb)
    return tuple(dict.fromkeys(need.rule(tuple(dict.fromkeys(verbs))) for need, verbs in lacking.items()))


def bind_command(role: str, namespace: str = "", account: str = "kubewin:kubewin") -> str:
    """The kubectl command that binds a ClusterRole, in a namespace or cluster-wide. account: namespace:name of the ServiceAccount."""
    where, kind = (f"-n {namespace} ", "rolebinding") if namespace else ("", "clusterrolebinding")
    return f"kubectl {where}create {kind} {role} --clusterrole={role} --serviceaccount={account}"
