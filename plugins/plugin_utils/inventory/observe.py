# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory reads of a cluster: four requests, more only where a list has several pages."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.facts import Observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError

INSTANCES = "windows-instances"


def observe(client: Client, server: str, *, instances_in: str | None, annotations: Iterable[str]) -> Observation:
    """Read Windows Nodes, CSINodes and the ConfigMap of instances in that namespace (None: not asked for).

    Raises ClusterError, whose text names the rule that is missing: half an inventory is called none.
    """
    kubernetes = client.read_version()
    nodes = client.list_windows_nodes()
    csi_nodes = client.list(kinds.CSI_NODE).items
    return Observation.from_objects(
        server=server,
        read_at=client.now().isoformat(timespec="seconds"),
        kubernetes=kubernetes,
        nodes=nodes,
        csi_nodes=csi_nodes,
        instances=None if instances_in is None else _read_instances(client, instances_in),
        annotations=annotations,
    )


def _read_instances(client: Client, namespace: str) -> dict[str, object] | None:
    try:
        return client.get(kinds.CONFIG_MAP, INSTANCES, namespace)
    except ClusterError as error:
        if error.status != 403:
            raise
        raise ClusterError(
            f"{error} If no Windows Machine Config Operator runs, remove windows_instances from the option sources instead.",
            error.reason,
            error.status,
        ) from error
