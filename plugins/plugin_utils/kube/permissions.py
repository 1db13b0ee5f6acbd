# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this account has the rules of the shipped ClusterRoles, asked of the API server before the first change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..base.decode import load_yaml
from . import kinds
from .access import EXAMPLE, Need, bind_command, list_role_needs, list_rules
from .client import Client
from .errors import ClusterError

FILES = Path(__file__).resolve().parents[3] / "roles" / "csi_driver" / "files"
SHIPPED = "roles/csi_driver/files/kubewin-rbac.yaml"

# A ClusterRole and the namespace in which it is bound, None for everywhere.
Binding: TypeAlias = "tuple[str, str | None]"


def require_roles(client: Client, bindings: Sequence[Binding], work: str) -> None:
    """Refuse a run without the rules of shipped ClusterRoles, or in a namespace that cannot be used, before its first change.

    work: such as "an upgrade". ClusterError refused for a namespace, forbidden with the missing rules and the commands that bind the roles.
    """
    for namespace in dict.fromkeys(namespace for _role, namespace in bindings if namespace):
        if problem := explain_unusable(client, namespace):
            raise ClusterError(
                f"Namespace {namespace}: it {problem[0]}, expected the namespace for {work}; nothing was changed. {problem[1]}",
                "refused",
            )
    missing = find_missing_rules(client, bindings)
    if not missing:
        return
    user = client.read_username()
    example = "" if user else f" ({EXAMPLE} is an example: name your account)"
    raise ClusterError(
        f"{user or 'this account'} lacks permissions for {work}; nothing was changed. Apply {SHIPPED}, then bind its "
        f"roles{example}: {'; '.join(list_bind_commands(missing, user))}. Missing rules: "
        f"{'; '.join(list_rules(need for needs in missing.values() for need in needs))}",
        "forbidden",
        403,
    )


def find_missing_rules(
    client: Client, bindings: Collection[Binding], unneeded: Collection[str] = ()
) -> dict[Binding, list[Need]]:
    """What this account lacks of shipped ClusterRoles; one that is not shipped has no rules. unneeded: objects that need no rule.

    The API server is asked for all rules of a namespace at once, and then for each need that none of them allows.
    """
    shipped, missing, allowed = load_roles(), dict[Binding, list[Need]](), dict[Need, bool]()
    rules = client.list_granted_rules({namespace for _name, namespace in bindings})
    for name, namespace in bindings:
        for need in list_role_needs(shipped.get(name, {}), namespace):
            if need.name in unneeded:
                continue
            if need not in allowed:
                is_granted = any(map(need.is_granted, rules.get(need.namespace, ())))
                allowed[need] = is_granted or client.is_allowed(need)
            if not allowed[need]:
                missing.setdefault((name, namespace), []).append(need)
    return missing


def list_bind_commands(bindings: Iterable[Binding], user: str) -> tuple[str, ...]:
    """The kubectl commands that bind these ClusterRoles. user: name of the account, empty if it is unknown."""
    return tuple(bind_command(role, namespace or "", user) for role, namespace in bindings)


def explain_unusable(client: Client, namespace: str) -> tuple[str, str] | None:
    """Why nothing can be created in a namespace, and the remedy; None where it can, or where this account may not read it."""
    try:
        live = client.get(kinds.NAMESPACE, namespace)
    except ClusterError as error:
        if error.status != 403:
            raise
        return None
    if live is None:
        return "does not exist", f"Correct its name, or create it: kubectl create namespace {namespace}"
    if "deletionTimestamp" in live["metadata"]:
        return "is being deleted", "Wait until it is deleted and create it again, or set another one."
    return None


def load_roles() -> dict[str, Mapping[str, Any]]:
    roles: dict[str, Mapping[str, Any]] = {}
    for path in sorted(FILES.glob("kubewin-*rbac.yaml")):
        document = load_yaml(path.read_text(encoding="utf-8"))
        roles |= {role["metadata"]["name"]: role for role in document.get("items") or [document]}
    return roles
