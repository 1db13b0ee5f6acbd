# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on volumes is noted before and compared after, through the pod that uses them or through one of our own."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.action import volume_data
from integration import storage
from integration.playbooks import ROOT, play
from integration.storage import PODS, claim, pod, runs, storage_class
from lab import handle
from lab.cluster import access, in_tree, workload
from lab.cluster.api import Object, kubeconfig
from lab.handle import Lab, eventually, longer
from unit.plugins.plugin_utils.actions.tasks import run_task

ACCOUNT = "reader"
CLAIMS = ("orders", "films")
DEEP = "/".join(["a" * 60] * 6)
TASK = {
    "kubeconfig": "{{ kubeconfig }}",
    "claims": [f"{storage.NAMESPACE}/{claim}" for claim in CLAIMS],
}
PLAY = [
    {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": [{"name": "Read the data", "kubewin.csi.volume_data": TASK}],
    }
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One node, whose kubelet mounts vSphere volumes without a driver, and two claims that were used once."""
    lab = handle.start(f"data-{os.getpid()}", nodes=1, windows="none", kubelets={"win-1": "v1.26.9"})
    storage.make_namespace(lab)
    storage_class(lab, "thin", "kubernetes.io/vsphere-volume")
    for name in CLAIMS:
        claim(lab, name, "thin")
        pod(lab, name, name, "win-1")
    for name in CLAIMS:
        runs(lab, name)
        storage.gone(lab, f"{PODS}/{name}")
    yield Shop(lab, tmp_path_factory.mktemp("baselines"))
    lab.stop()


class Shop:
    """The lab, its volumes' directories, and the action run as users run it, by an account that may do nothing else."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab = lab
        self.kubeconfig = directory / "kubeconfig"
        self.playbook = directory / "read_data.yml"
        self.playbook.write_text(yaml.safe_dump(PLAY), encoding="utf-8")
        accounts = f"/api/v1/namespaces/{access.NAMESPACE}/serviceaccounts"
        lab.api.ensure(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = lab.api.post(f"{accounts}/{ACCOUNT}/token", request)["status"]["token"]
        content = kubeconfig(lab.state.server, Path(lab.state.ca), ACCOUNT, {"token": token})
        self.kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")

    def bind(self) -> None:
        access.bind(self.lab.api, "kubewin-csi-data", ACCOUNT)
        access.bind(self.lab.api, "kubewin-csi-data-pods", ACCOUNT, storage.NAMESPACE)
        access.bind(self.lab.api, "kubewin-csi-records", ACCOUNT, access.NAMESPACE)

    def baselines(self) -> list[Object]:
        selector = "labelSelector=app.kubernetes.io/part-of=workload-data"
        return self.lab.api.items(f"/api/v1/namespaces/{access.NAMESPACE}/configmaps?{selector}")

    def disk(self, name: str) -> Path:
        volume = self.lab.api.get(f"{storage.CLAIMS}/{name}")["spec"]["volumeName"]
        path = self.lab.api.get(f"{storage.VOLUMES}/{volume}")["spec"]["vsphereVolume"]["volumePath"]
        return self.lab.state.paths.volumes / "csi.vsphere.vmware.com" / in_tree.fcd(path)

    def play(self) -> dict[str, Any]:
        """The action's result in a play."""
        run = play(str(self.playbook), "localhost,", variables={"kubeconfig": str(self.kubeconfig)})
        return run.results("Read the data", "failed")["localhost"]

    def data(self, *claims: str, check: bool = False, **options: Any) -> dict[str, Any]:
        """The action's result, in this process."""
        given: dict[str, Any] = {
            "kubeconfig": str(self.kubeconfig),
            "claims": [f"{storage.NAMESPACE}/{claim}" for claim in claims or CLAIMS],
            "append_only": ["*.log"],
            "limit": 4096,
            "rate": 4096,
            "step_timeout": 300,
        }
        return run_task(volume_data.ActionModule, check=check, **{**given, **options})


def fill(shop: Shop) -> None:
    """The volumes as at the beginning."""
    for name in CLAIMS:
        shutil.rmtree(shop.disk(name))
        shop.disk(name).mkdir()
    orders, films = shop.disk("orders"), shop.disk("films")
    for path, data in {
        "orders.db": b"\x00\x1a\xff" * 3000,
        "Gr\u00fc\u00dfe/\u65e5\u672c.txt": b"2026\r\n",
        "app.log": b"one\r\ntwo\r\n",
        "old.log": b"one\r\ntwo\r\n",
        "gone.txt": b"here",
        "locked.dat": b"mine alone",
        f"{DEEP}/bottom.txt": b"deep down",
    }.items():
        (orders / path).parent.mkdir(parents=True, exist_ok=True)
        (orders / path).write_bytes(data)
    (orders / "here.lnk").symlink_to("orders.db")
    (orders / "there").symlink_to("C:\\Windows\\Temp")
    with (films / "long.mkv").open("wb") as film:
        film.write(b"begin")
        film.seek((2 << 30) - 1)
        film.write(b"\0")


def test_an_account_without_rights_gets_the_missing_rules_and_nothing_is_created(shop: Shop) -> None:
    result = shop.play()
    assert result["reason"] == "forbidden"
    assert '{apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"]}' in result["msg"]
    assert "kubewin-csi-data" in result["msg"]
    assert shop.lab.api.items(PODS) == []
    shop.bind()


def test_without_a_baseline_there_is_nothing_to_compare_with(shop: Shop) -> None:
    result = shop.data(compare=True)
    assert result["reason"] == "refused"
    assert (
        f"there is no baseline of {storage.NAMESPACE}/orders, {storage.NAMESPACE}/films in namespace kubewin. "
        in result["msg"]
    )


def test_unused_volumes_are_read_and_exactly_the_changes_are_reported(shop: Shop) -> None:
    fill(shop)
    plan = shop.data(check=True)["plan"]
    assert plan[0].startswith("stories/orders: read it with a pod of its own, and record it in ")
    assert shop.baselines() == []

    result = shop.data()
    assert result["changed"], result
    orders, films = result["volumes"]
    assert (orders["how"], orders["files"], orders["read_files"]) == ("content", 7, 7)
    assert (films["bytes"], films["read_bytes"]) == (2 << 30, 2 << 30)
    before = shop.baselines()
    assert len(before) == 2
    assert shop.lab.api.items(PODS) == []

    result = shop.data()
    assert not result["changed"]
    assert ", which is kept\n" in result["report"]
    assert shop.baselines() == before

    result = shop.data(compare=True)
    assert [one["verdict"] for one in result["volumes"]] == ["same", "same"]

    disk = shop.disk("orders")
    data = bytearray((disk / "orders.db").read_bytes())
    data[4000] ^= 1
    (disk / "orders.db").write_bytes(data)
    (disk / "Gr\u00fc\u00dfe/\u65e5\u672c.txt").write_bytes(b"2027\r\n")
    (disk / "gone.txt").unlink()
    (disk / "new.txt").write_bytes(b"new")
    (disk / f"{DEEP}/bottom.txt").write_bytes(b"deep DOWN")
    (disk / "here.lnk").unlink()
    (disk / "here.lnk").symlink_to("gone.txt")
    (disk / "there").unlink()
    (disk / "there").symlink_to("C:\\Windows")
    (disk / "old.log").write_bytes(b"one\r\n")
    with (disk / "app.log").open("ab") as log, (disk / "locked.dat").open("rb") as locked:
        log.write(b"three\r\n")
        log.flush()
        fcntl.flock(locked, fcntl.LOCK_EX)
        result = shop.data("orders", compare=True)
    assert result["reason"] == "data_differs"
    (orders,) = result["volumes"]
    assert {one["path"]: one["what"] for one in orders["differences"]} == {
        "orders.db": "changed",
        "Gr\u00fc\u00dfe/\u65e5\u672c.txt": "changed",
        "gone.txt": "missing",
        "new.txt": "added",
        f"{DEEP}/bottom.txt": "changed",
        "here.lnk": "retargeted",
        "there": "retargeted",
        "old.log": "shortened",
    }
    assert [one["path"] for one in orders["not_compared"]] == ["locked.dat"]
    assert "grown as declared: 1 files" in result["report"]
    assert "changed: orders.db: its 9000 bytes changed" in result["msg"]
    assert shop.lab.api.items(PODS) == []


def test_a_volume_in_use_is_listed_through_its_own_pod_and_never_called_equal(shop: Shop) -> None:
    fill(shop)
    body = storage.pod_body("app", "orders", "win-1")
    body["metadata"]["annotations"] = {workload.WRITES: f"{storage.MOUNT}\\app.log"}
    shop.lab.api.post(PODS, body)
    runs(shop.lab, "app")
    assert shop.data("orders", forget=True)["changed"]
    (orders,) = shop.data("orders")["volumes"]
    assert (orders["how"], orders["read_files"]) == ("listing", 0)
    size = (shop.disk("orders") / "app.log").stat().st_size
    eventually(lambda: (shop.disk("orders") / "app.log").stat().st_size > size, "it writes")

    result = shop.data("orders", compare=True)
    (orders,) = result["volumes"]
    assert (orders["verdict"], orders["differences"]) == ("incomplete", [])
    # cmd lists no folder whose path is that long.
    (gap,) = orders["not_compared"]
    assert f"{DEEP}/".startswith(f"{gap['path']}/")
    assert "names and sizes only: 6 files" in result["report"]

    (shop.disk("orders") / "gone.txt").unlink()
    result = shop.data("orders", compare=True)
    assert result["reason"] == "data_differs"
    assert [(one["path"], one["what"]) for one in result["volumes"][0]["differences"]] == [("gone.txt", "missing")]
    storage.gone(shop.lab, f"{PODS}/app")


def test_the_guides_playbook_records_files_and_reports_missing_ones(shop: Shop, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "docsite" / "rst" / "guide_data.rst").read_text(encoding="utf-8")
    found = re.search(r"code-block:: yaml\n\n((?:   .*\n|\n)+)", guide)
    assert found
    text = found[1].replace("[shop/data-orders-0, shop/data-orders-1]", f"[{storage.NAMESPACE}/orders]")
    text = text.replace("~/.kube/config", str(shop.kubeconfig))
    playbook = tmp_path / "read_data.yml"
    playbook.write_text(textwrap.dedent(text), encoding="utf-8")
    shop.bind()
    fill(shop)

    # Its pod starts after the first read of it, however long that takes.
    with shop.lab.settings(start_delay=1.0):
        noted = play(str(playbook), "localhost,")
    assert noted.code == 0, noted.screen
    title = f"{storage.NAMESPACE}/orders"
    assert re.search(
        rf"^  waiting until pod {storage.NAMESPACE}/\S+, which reads {title}, runs on win-1 \(\d+ s of 5 min\)$",
        noted.screen,
        re.M,
    )
    assert f"\n  {title}: listing it\n" in noted.screen
    assert f"\n  {title}: reading 6 files, 0.0 MiB\n" in noted.screen
    planned = play(str(playbook), "localhost,", "--check", "-e", "compare=true")
    assert planned.code == 0, planned.screen
    assert f"{storage.NAMESPACE}/orders: read it with a pod of its own, and compare it" in planned.screen
    (shop.disk("orders") / "gone.txt").unlink()
    # By a job in another container, which has nothing of the first one's.
    compared = play(str(playbook), "localhost,", "-e", "compare=true", apart=tmp_path / "another")
    assert compared.code != 0
    assert "missing: gone.txt: the file is missing" in compared.screen


def test_an_unreadable_volume_is_reported_with_the_reason(shop: Shop) -> None:
    waits: Object = storage.pod_body("waits", "orders", "win-1")
    waits["spec"]["affinity"] = {}
    waits["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    shop.lab.api.post(PODS, waits)
    result = shop.data("orders", compare=True)
    assert result["reason"] == "in_use"
    assert "is used by waits, which do not run" in result["msg"]
    storage.gone(shop.lab, f"{PODS}/waits")

    shop.lab.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": True}})
    result = shop.data("orders", compare=True)
    assert result["reason"] == "no_node"
    assert "win-1: it is cordoned" in result["msg"]
    shop.lab.api.patch("/api/v1/nodes/win-1", {"spec": {"unschedulable": None}})

    for seconds in longer(2):
        result = shop.data("orders", compare=True, image="windows/nanoserver:nosuchtag", step_timeout=int(seconds))
        # Otherwise its node had not tried yet.
        if "Failed to pull image" in result["msg"]:
            break
    assert result["reason"] == "helper_failed"
    assert "Failed to pull image" in result["msg"]
    assert shop.lab.api.items(PODS) == []
