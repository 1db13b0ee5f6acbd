# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The permissions that an account needs to compare the data of volumes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_needs


def needs(namespaces: Sequence[str], records: str) -> Iterator[Need]:
    """Return the permissions of a run, including its helper pod. records: namespace of the baselines and Leases."""
    yield from list_needs("get", "", "persistentvolumes")
    yield from list_needs("list", "", "nodes")
    yield from list_needs("list", "storage.k8s.io", "csinodes")
    for namespace in namespaces:
        yield from list_needs("get list create delete", "", "pods", namespace)
        # A web socket is a GET to most API servers, and checked as a create too from 1.35 on.
        yield from list_needs("get create", "", "pods/exec", namespace)
        yield from list_needs("list", "", "events", namespace)
        yield from list_needs("get", "", "persistentvolumeclaims", namespace)
    yield from list_needs("get list create patch delete", "", "configmaps", records)
    yield from list_needs("get create patch delete", "coordination.k8s.io", "leases", records)
    yield Need("get", "", "namespaces", records, records)
