# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this account may do what is about to be done, asked of the API server before the first change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from . import kinds
from .access import EXAMPLE, Need, bind_commands, find_missing_needs, has_rule, list_role_needs, list_rules
from .client import Client
from .errors import ClusterError

FILES = Path(__file__).resolve().parents[3] / "roles" / "csi_driver" / "files"
SHIPPED = "roles/csi_driver/files/kubewin-rbac.yaml"


def require(client: Client, desired: Iterable[Need], work: str, roles: str) -> None:
    """Refuse a run that lacks permissions, or works in a namespace that does not exist, before its first change.

    work: such as "an upgrade". roles: names of the ClusterRoles that have all needs, as text. ClusterError
    refused for a namespace, forbidden with the missing rules and the commands that bind them.
    """
    needs = tuple(desired)
    for namespace in dict.fromkeys(need.namespace for need in needs if need.namespace):
        if not exists(client, namespace):
            raise ClusterError(
                f"Namespace {namespace}: it does not exist, expected the namespace for {work}; nothing was changed. Correct "
                f"its name, or create it: kubectl create namespace {namespace}",
                "refused",
            )
    missing = find_missing_needs(needs, client.is_allowed)
    if not missing:
        return
    chosen = _load_named(roles)
    user = client.read_username()
    unshipped = [need for need in missing if not any(has_rule(role, need) for role in chosen.values())]
    remedies = []
    if commands := bind_commands(missing, chosen, user):
        example = "" if user else f" ({EXAMPLE} is an example: name your account)"
        remedies.append(f"Apply {SHIPPED}, then bind its roles{example}: {'; '.join(commands)}.")
    if unshipped:
        remedies.append(
            f"Add to a role of this account, because no shipped role has it: {'; '.join(list_rules(unshipped))}."
        )
    raise ClusterError(
        f"{user or 'this account'} lacks permissions for {work}; nothing was changed. {' '.join(remedies)} Missing rules: "
        f"{'; '.join(list_rules(missing))}",
        "forbidden",
        403,
    )


def require_roles(client: Client, bindings: Sequence[tuple[str, str | None]], work: str) -> None:
    """Refuse a run without the rights of shipped ClusterRoles, as `require`. bindings: each with its namespace, None for everywhere."""
    shipped = load_roles()
    needs = [need for name, namespace in bindings for need in list_role_needs(shipped[name], namespace)]
    require(client, needs, work, ", ".join(name for name, _namespace in bindings))


def list_bind_commands(client: Client, missing: Iterable[Need], roles: str) -> tuple[str, ...]:
    """The kubectl commands that bind to this account what it lacks, as far as these ClusterRoles have it. roles: as of require."""
    return bind_commands(missing, _load_named(roles), client.read_username())


def _load_named(names: str) -> dict[str, Mapping[str, Any]]:
    shipped = load_roles()
    return {name: shipped[name] for name in re.findall(r"[\w-]+", names) if name in shipped}


def exists(client: Client, namespace: str) -> bool:
    """Whether a namespace exists, True where this account may not read it."""
    try:
        return client.get(kinds.NAMESPACE, namespace) is not None
    except ClusterError as error:
        if error.status != 403:
            raise
        return True


def load_roles() -> dict[str, Mapping[str, Any]]:
    """The shipped ClusterRoles by name."""
    roles: dict[str, Mapping[str, Any]] = {}
    for path in sorted(FILES.glob("kubewin-*rbac.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        roles |= {role["metadata"]["name"]: role for role in document.get("items") or [document]}
    return roles
