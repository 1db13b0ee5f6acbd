# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to prove a volume. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_needs

# What a run makes.
_VERBS = "get list create patch delete"


def needs(namespace: str, *, owns_namespace: bool, attaches: bool) -> Iterator[Need]:
    """Return the permissions of a verification beyond what planning has read.

    owns_namespace: the namespace is the run's, so it cannot be named yet and what is in it is needed everywhere.
    """
    where = None if owns_namespace else namespace
    yield from list_needs(_VERBS, "", "pods persistentvolumeclaims", where)
    # A web socket is a GET to most API servers, and checked as a create too from 1.35 on.
    yield from list_needs("get create", "", "pods/exec", where)
    yield from list_needs("list", "", "events", where)
    yield from list_needs(_VERBS, "coordination.k8s.io", "leases", where)
    yield from list_needs("get", "", "persistentvolumes")
    if owns_namespace:
        yield from list_needs(_VERBS, "", "namespaces")
    if attaches:
        yield from list_needs("get", "storage.k8s.io", "volumeattachments")
