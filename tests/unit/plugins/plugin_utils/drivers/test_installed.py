# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver of a run whose user names none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.installed import (
    choose_driver,
    find_controllers,
    find_namespace,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from unit.plugins.plugin_utils.drivers.worlds import daemon_set

OPTION = "kubewin_drivers"


def deployment(name: str, namespace: str, *images: str) -> dict[str, Any]:
    containers = [{"name": image.rpartition("/")[2].partition(":")[0], "image": image} for image in images]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


SMB = deployment("csi-smb-controller", "kube-system", "registry.k8s.io/sig-storage/smbplugin:v1.19.1")
RENAMED_EBS = deployment(
    "storage", "infra", "example.org/csi-provisioner:v5.3.0", "example.org/aws-ebs-csi-driver:v1.49.0"
)
APP = deployment("shop", "shop", "example.org/shop:1")


def controllers(*deployments: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    client: Any = SimpleNamespace(list=lambda kind: SimpleNamespace(items=deployments))
    return find_controllers(client)


@pytest.mark.parametrize(("item", "driver"), [(SMB, "smb"), (RENAMED_EBS, "aws_ebs")], ids=["by name", "by image"])
def test_the_only_installed_controller_decides(item: dict[str, Any], driver: str) -> None:
    assert choose_driver(controllers(APP, item), OPTION, "controller") == driver


def test_two_controllers_are_named_and_the_run_asks_for_one() -> None:
    with pytest.raises(ClusterError) as refused:
        choose_driver(controllers(SMB, APP, RENAMED_EBS), OPTION, "controller")
    assert str(refused.value) == (
        "kubewin_drivers is not set: the cluster has the controller of 2 drivers, expected one: aws_ebs (Deployment "
        "infra/storage); smb (Deployment kube-system/csi-smb-controller). Set kubewin_drivers to what this run is for."
    )


def test_without_a_controller_no_driver_is_assumed() -> None:
    with pytest.raises(ClusterError, match="the cluster has no controller of a known driver, expected one"):
        choose_driver(controllers(APP), OPTION, "controller")


@pytest.mark.parametrize(
    ("plugins", "deployments", "namespace"),
    [
        ([], [], "vmware-system-csi"),
        ([], [deployment("vsphere-csi-controller", "openshift-cluster-csi-drivers")], "openshift-cluster-csi-drivers"),
        (
            [daemon_set("ours", home="storage", labels={"app.kubernetes.io/managed-by": "kubewin.csi"})],
            [deployment("vsphere-csi-controller", "openshift-cluster-csi-drivers")],
            "storage",
        ),
        (None, [], "vmware-system-csi"),
    ],
    ids=["neither", "the controller's", "the plugin's", "it may not be read"],
)
def test_a_driver_is_in_the_namespace_of_its_plugin_or_controller(
    plugins: list[dict[str, Any]] | None, deployments: list[dict[str, Any]], namespace: str
) -> None:
    def list_items(kind: kinds.Kind, place: str | None = None) -> Any:
        if plugins is None:
            raise ClusterError("daemonsets is forbidden", "forbidden", 403)
        items = plugins if kind == kinds.DAEMON_SET else deployments
        return SimpleNamespace(items=[item for item in items if place in (None, item["metadata"]["namespace"])])

    client: Any = SimpleNamespace(list=list_items)
    assert find_namespace(client, DRIVERS["vsphere"]) == namespace
