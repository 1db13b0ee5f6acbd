# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A csi-proxy release, a driver's release and its mode come to nodes that upgrade.yml empties, by the tasks that the guide shows.

The stories follow one another on one lab, each beginning with what the one before left.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.changes import at_rest, images, mode, plugins
from integration.kube import also_holds
from integration.playbooks import ROOT, play
from integration.storage import make_namespace, storage_class
from integration.test_upgrade import NEW, OLD, releases, wanted
from integration.upgrading import LEASE, Witness, an_account, closed, databases, journal, running, volumes
from lab import handle
from lab.handle import Lab, eventually

pytestmark = pytest.mark.torture

DISK = DRIVERS["azure_disk"]
NODES = ("win-1", "win-2")
DATABASES = {"db-a": ("win-1", "win-2"), "db-b": ("win-2", "win-1")}
GUIDE = ROOT / "docs" / "docsite" / "rst" / "guide_upgrade.rst"


@pytest.fixture(scope="module")
def used() -> Iterator[Lab]:
    """Azure Disk through the old release of csi-proxy, and a database on each node."""
    lab = handle.start(f"kinds-{os.getpid()}", nodes=len(NODES))
    make_namespace(lab)
    with an_account(lab), ExitStack() as roles:
        for name in ("cluster-objects", "roll", "azure-disk"):
            roles.enter_context(also_holds(lab, f"kubewin-csi-{name}"))
        inventory = {**wanted(lab, OLD), **ASKED, **BEFORE}
        run = play("playbooks/enable-csi.yml", lab.state.inventories["ntlm-http"], variables=inventory)
        assert run.code == 0, run.screen
        controller(lab)
        databases(lab, DATABASES, storage_class(lab, "fast", DISK.name, {"csi.storage.k8s.io/fstype": "ntfs"}))
        yield lab
    lab.stop()


ASKED: dict[str, Any] = {"kubewin_drivers": "azure_disk", "kubewin_create_cluster_objects": True}
BEFORE = {"azure_disk_csi_mode": "csi_proxy", "azure_disk_csi_version": "1.34.3"}


def controller(lab: Lab) -> None:
    """The driver's own Linux controller, by name and images; its work is the lab's."""
    name, labels = DISK.controller.deployments[0], {"app": "disk-controller"}
    containers = [
        {"name": DISK.controller.container, "image": "mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v1.34.4"},
        {"name": "csi-provisioner", "image": "registry.k8s.io/sig-storage/csi-provisioner:v5.3.0"},
        {"name": "csi-attacher", "image": "registry.k8s.io/sig-storage/csi-attacher:v4.9.0"},
    ]
    pod = {"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": containers}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    path = f"/apis/apps/v1/namespaces/{DISK.namespace}/deployments"
    lab.api.ensure(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    eventually(lambda: bool((lab.api.get(f"{path}/{name}").get("status") or {}).get("readyReplicas")), f"{name} runs")


def upgraded(lab: Lab, name: str, folder: Path, **inventory: Any) -> None:
    """One upgrade by the guide's tasks, of an inventory that names what is wanted; nothing that was there is another one after it."""
    (shown,) = re.findall(r"( +)# csi-proxy-on-one-node.yml\n((?:\1.*\n)+)", GUIDE.read_text(encoding="utf-8"))
    tasks, hosts = folder / "csi-proxy-on-one-node.yml", folder / "inventory.yml"
    tasks.write_text(textwrap.dedent(shown[1]), encoding="utf-8")
    content = yaml.safe_load(Path(lab.state.inventories["ntlm-http"]).read_text(encoding="utf-8"))
    content["all"]["vars"] |= {**ASKED, **inventory}
    # As the inventory of the tutorial: a relative path starts where the run is started.
    content["all"]["vars"]["kubewin_kubeconfig"] = os.path.relpath(lab.state.kubeconfigs["kubewin"], ROOT)
    hosts.write_text(yaml.safe_dump(content), encoding="utf-8")
    how = {
        "kubewin_upgrade_name": name,
        "kubewin_upgrade_hook": "tasks",
        "kubewin_upgrade_tasks": str(tasks),
        "kubewin_upgrade_append_only": "times.txt",
        "kubewin_verify_namespace": "kubewin",
        "kubewin_verify_storage_classes": {"azure_disk": "fast"},
        "kubewin_verify_timeout": 30,
        "kubewin_output_dir": str(folder / "kept"),
    }
    before = volumes(lab, list(DATABASES))
    with Witness(lab, list(DATABASES)) as witness:
        run = play("playbooks/upgrade.yml", hosts, variables=how, timeout=600, env={"PWD": str(ROOT)})
        assert run.code == 0, run.screen
        for database in DATABASES:
            running(lab, database)
    witness.nothing_is_missing()
    assert volumes(lab, list(DATABASES)) == before
    assert closed(lab) == {}
    assert not lab.api.ok(LEASE)
    assert journal(lab, name)["state"] == "finished"
    assert set(plugins(lab, DISK)) == set(NODES)
    assert at_rest(lab, DISK)


def test_a_release_of_csi_proxy(used: Lab, tmp_path: Path) -> None:
    before = plugins(used, DISK)
    assert releases(used) == {OLD}
    upgraded(used, "csi-proxy", tmp_path, **BEFORE, **wanted(used, NEW))
    assert releases(used) == {NEW}
    assert set(plugins(used, DISK).values()).isdisjoint(before.values())


def test_a_release_of_the_driver(used: Lab, tmp_path: Path) -> None:
    before = images(used, DISK)
    release = {**BEFORE, "azure_disk_csi_version": "1.34.4"}
    upgraded(used, "driver", tmp_path, **release, **wanted(used, NEW))
    after = images(used, DISK)
    assert all(after[node] != before[node] and after[node].endswith("v1.34.4") for node in NODES), after


def test_from_csi_proxy_to_host_process(used: Lab, tmp_path: Path) -> None:
    assert mode(used, DISK) == "csi_proxy"
    before = plugins(used, DISK)
    release = {"azure_disk_csi_mode": "host_process", "azure_disk_csi_version": "1.34.4"}
    upgraded(used, "host-process", tmp_path, **release, **wanted(used, NEW))
    assert mode(used, DISK) == "host_process"
    assert set(plugins(used, DISK).values()).isdisjoint(before.values())
