# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory reads of a cluster: four requests, more only where a list has several pages."""

from __future__ import annotations

from collections.abc import Iterable

from ..catalog.wmco import OPERATOR_NAMESPACE
from ..kube import kinds
from ..kube.client import Client
from .address import INSTANCE
from .observation import Observation


def observe(client: Client, annotations: Iterable[str]) -> Observation:
    """Read Windows Nodes, CSINodes and the ConfigMap of instances.

    Raises ClusterError, whose text names the rule that is missing: half an inventory is called none.
    """
    kubernetes = client.read_version()
    nodes = client.list_windows_nodes()
    csi_nodes = client.list(kinds.CSI_NODE).items
    return Observation.from_objects(
        server=client.server,
        read_at=client.now().isoformat(timespec="seconds"),
        kubernetes=kubernetes,
        nodes=nodes,
        csi_nodes=csi_nodes,
        instances=client.get(kinds.CONFIG_MAP, INSTANCE, OPERATOR_NAMESPACE),
        annotations=annotations,
    )
