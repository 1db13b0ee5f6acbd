# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to convert volumes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Variant
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_needs


def needs(namespaces: Sequence[str], records: Sequence[str], variant: Variant) -> Iterator[Need]:
    """Return the permissions of a conversion. records: namespaces of the records."""
    for name in records:
        yield from list_needs("get", "", "namespaces", name=name)
    yield from list_needs("get list create patch delete", "", "persistentvolumes")
    for namespace in namespaces:
        claims = "get list patch create delete" if variant == "re_claim" else "get list patch"
        yield from list_needs(claims, "", "persistentvolumeclaims", namespace)
        yield from list_needs("get list create delete", "", "pods", namespace)
        # By web socket, which Kubernetes authorizes as both.
        yield from list_needs("get create", "", "pods/exec", namespace)
        yield from list_needs("get list patch", "apps", "deployments statefulsets", namespace)
    for namespace in records:
        yield from list_needs("get list create patch delete", "", "configmaps", namespace)
    yield from list_needs("get create patch delete", "coordination.k8s.io", "leases", records[0])
    yield from list_needs("get list", "", "nodes")
    yield from list_needs("get list", "storage.k8s.io", "volumeattachments")
    yield from list_needs("list", "storage.k8s.io", "csinodes")
