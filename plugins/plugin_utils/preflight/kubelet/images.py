# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers of another Windows build than their node's. Pure.

Source: https://learn.microsoft.com/virtualization/windowscontainers/deploy-containers/version-compatibility
"""

from __future__ import annotations

from collections import defaultdict

from ...drivers.release import match_image
from ..index import Index
from ..walk.steps import NodeToStatus, PodToStart, StepAnswer


class KubeletImages:
    """The images that kubelets of one snapshot start, as far as their tags name a build."""

    def __init__(self, index: Index) -> None:
        self._builds: dict[str, int] = defaultdict(int)
        for node in index.list_nodes(index.windows):
            self._builds[node.build] |= index.bit[node.name]

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Where a container may not start; nothing about other nodes. A RuntimeClass may isolate it by Hyper-V."""
        statuses = NodeToStatus("stage", nodes, pod.workload, f"{pod.workload}: image")
        for build, image in () if pod.placement.runtime_class else pod.admit.builds:
            for node_build, built_nodes in self._builds.items():
                if node_build and match_image(node_build, (build,)) == "no":
                    message = f"image {image} is for Windows build {build}, and the node has build {node_build}"
                    statuses.doubt(
                        built_nodes, "CSI-W09", message, "select nodes by label node.kubernetes.io/windows-build"
                    )
        return statuses.list_stops()
