# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node of the lab is upgraded by its owner's own tasks: the machine goes away, and comes back with another kubelet.

python -m integration.upgrading <lab> <node> <kubelet>
"""

from __future__ import annotations

import sys
from typing import Any

from lab import state
from lab.cluster import nodes
from lab.handle import Lab, eventually


def kubelet(lab: Lab, node: str) -> str:
    found: str = lab.api.get(f"{nodes.NODES}/{node}")["status"]["nodeInfo"]["kubeletVersion"]
    return found


def upgrade(lab: Lab, node: str, version: str) -> None:
    """Its workloads have to be gone: nothing here asks them."""
    path = f"{nodes.NODES}/{node}"
    assert lab.api.get(path)["spec"].get("unschedulable"), f"{node} is changed though it is not cordoned"
    left = [
        pod for pod in on(lab, node) if any("persistentVolumeClaim" in one for one in pod["spec"].get("volumes") or [])
    ]
    assert not left, f"{node} is changed though pods with volumes are there"
    if kubelet(lab, node) == version:
        return
    nodes.reboot(lab.api, node)
    lab.api.patch(f"{path}/status", {"status": {"nodeInfo": {"kubeletVersion": version}}})
    # As after any boot, what runs there is started anew.
    for pod in on(lab, node):
        lab.delete_pod(pod)
    eventually(lambda: all("deletionTimestamp" not in pod["metadata"] for pod in on(lab, node)), f"{node} is up again")


def on(lab: Lab, node: str) -> list[dict[str, Any]]:
    return lab.api.items(f"/api/v1/pods?fieldSelector=spec.nodeName={node}")


if __name__ == "__main__":
    upgrade(Lab(state.load(sys.argv[1])), sys.argv[2], sys.argv[3])
