# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to convert volumes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.kubewin.csi.plugins.module_utils.convert.record import Variant
from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need


def needs(namespaces: Sequence[str], records: Sequence[str], variant: Variant) -> Iterator[Need]:
    """Everything that is asked for from the first change on. records: namespaces of the records."""
    for name in (*records, "kube-system"):
        yield Need("get", "", "namespaces", name=name)
    for verb in ("get", "list", "create", "patch", "delete"):
        yield Need(verb, "", "persistentvolumes")
    for namespace in namespaces:
        claims = ("get", "list", "patch", *(("create", "delete") if variant == "re_claim" else ()))
        for verb in claims:
            yield Need(verb, "", "persistentvolumeclaims", namespace)
        for verb in ("get", "list", "create", "delete"):
            yield Need(verb, "", "pods", namespace)
        # By web socket, which Kubernetes authorizes as both.
        for verb in ("get", "create"):
            yield Need(verb, "", "pods/exec", namespace)
        for resource in ("deployments", "statefulsets"):
            for verb in ("get", "list", "patch"):
                yield Need(verb, "apps", resource, namespace)
    for namespace in records:
        for verb in ("get", "list", "create", "patch", "delete"):
            yield Need(verb, "", "configmaps", namespace)
    for verb in ("get", "create", "patch", "delete"):
        yield Need(verb, "coordination.k8s.io", "leases", records[0])
    for verb in ("get", "list"):
        yield Need(verb, "", "nodes")
        yield Need(verb, "storage.k8s.io", "volumeattachments")
    yield Need("get", "storage.k8s.io", "csinodes")
