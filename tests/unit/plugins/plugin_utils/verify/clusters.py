# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Objects of a cluster for the tests of what a proof decides."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.nodes import ProofNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import VerifyTarget

WINDOWS = {"key": "os", "value": "Windows", "effect": "NoSchedule"}
ALL = tuple(driver.name for driver in DRIVERS.values())


def node(
    name: str, *, build: str = "10.0.20348", taints: list[dict[str, str]] | None = None, cordoned: bool = False,
    ready: bool = True, drivers: tuple[str, ...] = ALL, labels: dict[str, str] | None = None,
) -> ProofNode:  # fmt: skip
    """A Windows node as the API returns it, with its CSINode."""
    body: dict[str, Any] = {
        "metadata": {"name": name, "labels": {"kubernetes.io/os": "windows", **(labels or {})}},
        "spec": {"taints": [WINDOWS] if taints is None else taints, "unschedulable": cordoned},
        "status": {
            "nodeInfo": {"kernelVersion": build},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletDown"}],
        },
    }
    return ProofNode.from_objects(body, {"spec": {"drivers": [{"name": one} for one in drivers]}})


def storage_class(
    name: str, provisioner: str, parameters: dict[str, str] | None = None, *, default: bool = False
) -> dict[str, Any]:
    """A StorageClass; the parameter fstype is written as csi.storage.k8s.io/fstype."""
    known = {"fstype": "csi.storage.k8s.io/fstype"}
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": provisioner,
        "parameters": {known.get(key, key): value for key, value in (parameters or {}).items()},
    }


def target(driver: str = "vsphere", name: str = "win-1") -> VerifyTarget:
    """One driver on one node."""
    return VerifyTarget(
        driver=driver,
        provisioner=DRIVERS[driver].name,
        node=name,
        storage_class="fast",
        access_mode="ReadWriteOnce",
        keeps=False,
        attaches=True,
        elsewhere=(),
    )
