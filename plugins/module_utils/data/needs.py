# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to look at volumes' data. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need


def needs(namespaces: Sequence[str], records: str) -> tuple[Need, ...]:
    """Everything that a run asks of the API; the pod that it makes included. records: namespace of the baselines, empty for none."""
    wanted: list[tuple[str, str, str | None, tuple[str, ...]]] = [
        ("", "persistentvolumes", None, ("get",)),
        ("", "nodes", None, ("list",)),
        ("storage.k8s.io", "csinodes", None, ("list",)),
    ]
    for namespace in namespaces:
        wanted += [
            ("", "pods", namespace, ("get", "list", "create", "delete")),
            # A web socket is a GET to most API servers, and checked as a create too from 1.35 on.
            ("", "pods/exec", namespace, ("get", "create")),
            ("", "events", namespace, ("list",)),
            ("", "persistentvolumeclaims", namespace, ("get",)),
        ]
    if records:
        wanted.append(("", "configmaps", records, ("get", "list", "create", "patch", "delete")))
    found = [Need(verb, group, resource, at) for group, resource, at, verbs in wanted for verb in verbs]
    return (*found, *((Need("get", "", "namespaces", records, records),) if records else ()))
