# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to prove a volume. Pure."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need

_STORAGE = "storage.k8s.io"
_LEASES = ("coordination.k8s.io", "leases")


def needs(namespace: str, *, own: bool, attaches: bool) -> tuple[Need, ...]:
    """Everything that a run asks of the API beyond what it has looked at by then.

    own: the namespace is the run's, so it cannot be named yet and what is in it is needed everywhere.
    """
    where = None if own else namespace
    wanted: list[tuple[str, str, str | None, tuple[str, ...]]] = [
        ("", "pods", where, ("get", "list", "create", "patch", "delete")),
        # A web socket is a GET to most API servers, and checked as a create too from 1.35 on.
        ("", "pods/exec", where, ("get", "create")),
        ("", "events", where, ("list",)),
        ("", "persistentvolumeclaims", where, ("get", "list", "create", "patch", "delete")),
        (*_LEASES, where, ("get", "list", "create", "patch", "delete")),
        ("", "persistentvolumes", None, ("get",)),
    ]
    if own:
        wanted.append(("", "namespaces", None, ("get", "list", "create", "patch", "delete")))
    if attaches:
        wanted.append((_STORAGE, "volumeattachments", None, ("get",)))
    return tuple(Need(verb, group, resource, at) for group, resource, at, verbs in wanted for verb in verbs)
