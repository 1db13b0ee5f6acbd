# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook on every ansible-core line, with --check and for real, on an empty cluster and on one with workloads.

A test is one cell of that matrix, and its name says which. Each line tries all for real, on a cluster with workloads or, what makes
and clears it, on an empty one. The main line tries these on both, and adds an empty one with --check; build_csi_proxy has tests of its
own there. As torture each line tries both on both. The cells of a line share a lab. Each of them makes the state that it
begins with, so it runs alone too, and after any other; in their order little has to be made. What changes in the cluster, on the
hosts and in the output directory is asserted: with --check nothing. Their account may do everything: which rights each one
needs is tested elsewhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import objects
from ci import venvs
from integration import convert, foreign, upgrading
from integration.convert import Story
from integration.kube import PROVEN, VSPHERE, also_holds, label, remove_driver, writes
from integration.playbooks import ROOT, lines, play
from integration.test_connections import mixed
from lab import handle
from lab.cluster import vsphere
from lab.handle import Lab, eventually, ready

MAIN = venvs.MAIN.removeprefix("core-")
EMPTY, USED = "empty", "with workloads"
NODES = ("win-1", "win-2")
# How each host is reached; the inventory has what breaks tasks on localhost besides. test_connections has all of them.
TRANSPORTS = ("ntlm-https", "ssh")
SHOP = Story("web")
OPERATORS = foreign.operator("vmware-vsphere-csi-driver-node-windows", vsphere.DRIVER)
UPSTREAMS = foreign.upstream()
# A playbook that is none of users' own: enable-csi.yml is enable_csi.yml.
ALIASES = ("enable-csi",)


# Node plugins at the beginning of a cell: none and no csi-proxy, ours with the old csi-proxy, or another owner's, beside ours or alone.
NONE, OURS, BOTH, THEIRS = "none", "ours", "both", "theirs"
OLD, NEW = "1.1.3", "1.3.0"


@dataclass(frozen=True, slots=True)
class Cell:
    """One playbook on one cluster. refused: the words of the refusal in which it has to end. leaves: what a real run changes,
    with its value afterwards, as `Cluster.observe` returns it; files: patterns of what it writes into the output directory."""

    cluster: str
    playbook: str
    variables: dict[str, Any] = field(default_factory=dict)
    begins: str = OURS
    refused: str = ""
    leaves: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def upgrade(cluster: str, kubelet: str) -> Cell:
    """The owner's own tasks change one node. The target is a text, as on a command line."""
    variables = {
        "kubewin_upgrade_name": f"to-{kubelet}",
        "kubewin_upgrade_target": f"kubelet={kubelet}",
        "kubewin_upgrade_hook": "tasks",
        "kubewin_verify_timeout": 300,
    }
    return Cell(cluster, "upgrade", variables, leaves={"kubelet": f"v{kubelet}.0"})


VERIFY = {"kubewin_verify_namespace": "kubewin", "kubewin_verify_timeout": 300}
# A change of csi-proxy and one of the node plugin, each batch after the one before.
CHANGE = {"kubewin_batches": "1,100%", "vsphere_csi_resources": {"driver": {"limits": {"memory": "600Mi"}}}}
# In this order each cell finds most of what it begins with.
CELLS = (
    Cell(
        EMPTY,
        "enable_csi",
        {"kubewin_batches": "100%"},
        begins=NONE,
        leaves={"csi-proxy": [OLD, OLD], "plugin": "ours", "memory": "unlimited"},
        files=("enable-csi.json",),
    ),
    Cell(EMPTY, "preflight", files=("readiness.json", "snapshot.json")),
    Cell(EMPTY, "status", files=("status.json",)),
    Cell(EMPTY, "gather", files=("*.tar.gz",)),
    Cell(EMPTY, "diagnose", files=("diagnose.json",)),
    Cell(EMPTY, "verify", VERIFY, leaves={"claims": 2}, files=("verify.json",)),
    upgrade(EMPTY, "1.35"),
    Cell(
        EMPTY, "convert_volumes", {"kubewin_convert_claims": "shop/none"}, refused="Namespace shop: it does not exist"
    ),
    Cell(
        EMPTY,
        "handover",
        {"kubewin_handover": "to_platform"},
        begins=BOTH,
        leaves={"plugin": "theirs", "memory": ""},
    ),
    Cell(EMPTY, "remove", leaves={"plugin": "none", "memory": ""}),
    Cell(
        USED,
        "handover",
        {
            "kubewin_handover": "to_kubewin",
            "kubewin_replace": f"{UPSTREAMS['metadata']['namespace']}/{UPSTREAMS['metadata']['name']}",
        },
        begins=THEIRS,
        leaves={"plugin": "ours", "memory": "unlimited"},
    ),
    Cell(
        USED,
        "enable_csi",
        CHANGE,
        leaves={"csi-proxy": [NEW, NEW], "memory": "600Mi"},
        files=("enable-csi.json",),
    ),
    Cell(USED, "preflight", files=("readiness.json", "snapshot.json")),
    Cell(USED, "status", files=("status.json",)),
    Cell(USED, "gather", files=("*.tar.gz",)),
    Cell(USED, "diagnose", files=("diagnose.json",)),
    Cell(USED, "verify", VERIFY, leaves={"claims": 2}, files=("verify.json",)),
    upgrade(USED, "1.36"),
    Cell(
        USED,
        "convert_volumes",
        {"kubewin_convert_claims": f"{convert.NAMESPACE}/{SHOP.claim}"},
        leaves={"volume": "csi"},
    ),
    Cell(USED, "remove", refused=f"pod {convert.NAMESPACE}/{SHOP.name}-0"),
    # It asks no cluster.
    Cell(
        EMPTY,
        "build_csi_proxy",
        {},
        files=("csi-proxy-*.exe", "csi-proxy-*.exe.sha256"),
    ),
)
# They read alone, or write files alone.
READING = ("build_csi_proxy", "diagnose", "gather", "preflight", "status")


def playbooks() -> set[str]:
    return {path.stem for path in (ROOT / "playbooks").glob("*.yml")} - set(ALIASES)


def test_no_playbook_is_forgotten() -> None:
    assert MAIN in lines()
    on = {cluster: {cell.playbook for cell in CELLS if cell.cluster == cluster} for cluster in (EMPTY, USED)}
    assert on[EMPTY] == playbooks()
    assert on[USED] == playbooks() - {"build_csi_proxy"}


def test_every_playbook_that_can_change_something_changes_something_on_every_line() -> None:
    real = {cell.playbook for cell in CELLS if "real" in modes(Matrix, cell) and not cell.refused and cell.leaves}
    assert real == playbooks() - set(READING)


def modes(matrix: type[Matrix], cell: Cell) -> tuple[str, ...]:
    """How a cell runs on a line. What others are tried on is made by enable_csi and cleared by remove."""
    if matrix.whole:
        return "check", "real"
    if cell.playbook == "build_csi_proxy" and matrix.core == MAIN:
        # test_build_csi_proxy.
        return ()
    check = ("check",) if matrix.core == MAIN and cell.cluster == EMPTY else ()
    made_or_cleared = cell.playbook in ("enable_csi", "remove", "build_csi_proxy")
    if cell.variables == CHANGE and matrix.core != MAIN:
        return ()
    return (*check, "real") if cell.cluster == USED or made_or_cleared else check


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each line its cells."""
    if metafunc.cls is not None and issubclass(metafunc.cls, Matrix):
        cells = [(cell, mode) for cell in CELLS for mode in modes(metafunc.cls, cell)]
        names = [f"{cell.playbook} {cell.cluster}-{mode}" for cell, mode in cells]
        metafunc.parametrize(("cell", "mode"), cells, ids=names)


class Matrix:
    """The cells of one line. whole: each cluster with --check and for real."""

    core = MAIN
    whole = False

    @pytest.fixture(scope="class")
    def cluster(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
        name = f"matrix-{self.core.replace('.', '')}-{os.getpid()}"
        lab = handle.start(name, nodes=len(NODES), kubelets=dict.fromkeys(NODES, "v1.34.0"))
        records = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubewin-records"}}
        lab.api.ensure("/api/v1/namespaces", records)
        with also_holds(lab, "cluster-admin", "the-matrix"):
            yield Cluster(lab, tmp_path_factory.mktemp("matrix"))
        lab.stop()

    def test_cell(self, cluster: Cluster, cell: Cell, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
        cluster.begin(cell, self.core)
        output = cluster.folder / f"{cell.playbook}-{cell.cluster}-{mode}".replace(" ", "-")
        begun, pods = cluster.lab.audit_size(), cluster.shop()
        before = cluster.observe(cell, begun)
        run = play(
            f"playbooks/{cell.playbook}.yml",
            cluster.inventory,
            *(["--check"] if mode == "check" else []),
            core=self.core,
            variables={"kubewin_output_dir": str(output), **cluster.given(cell, self.core)},
        )
        title = f"{cell.playbook}, {mode}, {cell.cluster} cluster, ansible-core {self.core}"
        if cell.refused:
            assert run.code != 0, f"{title} was not refused:\n{run.screen}"
            assert any(cell.refused in json.dumps(one["result"]) for one in run.failures), f"{title}:\n{run.screen}"
        else:
            assert run.code == 0, f"{title}:\n{run.screen}"
        # Whatever the outcome: the end of every run has it, as text and as the job's statistic.
        assert run.ends, f"{title} ended without a summary:\n{run.screen}"
        assert bool(run.ends[-1]["failure"]) == bool(cell.refused), f"{title}:\n{run.screen}"
        if cell.playbook == "upgrade":
            with capsys.disabled():
                print(f"\nlines on the screen: {title}, one node {len(run.lines)}")
            assert len(run.lines) <= (340 if mode == "real" else 160), f"{title}:\n{run.screen}"
            assert bool(run.changed) or mode == "real", f"{title} announces nothing:\n{run.screen}"
        changes = cell.leaves if mode == "real" and not cell.refused else {}
        assert all(before[name] != value for name, value in changes.items()), f"{title} began with its result: {before}"
        assert cluster.observe(cell, begun) == {**before, **changes}, f"{title}:\n{run.screen}"
        if mode == "real":
            assert [name for name in cell.files if not any(output.glob(name))] == [], f"{title}:\n{run.screen}"
            # Its summary, and no other playbook's.
            written = {path.name for path in output.glob("*.json")} & {
                "diagnose.json",
                "enable-csi.json",
                "status.json",
                "verify.json",
            }
            assert written <= set(cell.files), f"{title} wrote {written}"
        if mode == "check" or cell.playbook in READING:
            assert writes(cluster.lab, begun) == [], title
            assert [pod["metadata"]["uid"] for pod in cluster.shop()] == [pod["metadata"]["uid"] for pod in pods], title


class Cluster:
    """A lab, and what cells begin with."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.inventory = mixed(lab, folder, TRANSPORTS)
        self.tasks = folder / "upgrade-one-node.yml"
        for host in NODES:
            lab.agent(host).control("snapshot", id="new")
        task = upgrading.change_task(lab, "v{{ kubewin_upgrade_target | split('=') | last }}.0")
        self.tasks.write_text(json.dumps([task]), encoding="utf-8")

    def given(self, cell: Cell, core: str) -> dict[str, Any]:
        """The variables of a run."""
        given = dict(cell.variables)
        if cell.playbook == "upgrade":
            given |= {"kubewin_upgrade_tasks": str(self.tasks), "kubewin_upgrade_nodes": self.upgraded(cell)}
        if cell.playbook == "enable_csi":
            release = cell.leaves["csi-proxy"][0]
            artifact = next(found for found in self.lab.state.artifacts if found.release == release)
            given |= {"csi_proxy_version": release, "csi_proxy_source": artifact.http_url}
            given |= {"csi_proxy_checksum": artifact.sha256}
        return given

    def upgraded(self, cell: Cell) -> str:
        """The node that an upgrade changes: where the workload runs, or one that was not upgraded."""
        others = [node for node in NODES if upgrading.kubelet(self.lab, node) != cell.leaves["kubelet"]]
        return next((pod["spec"]["nodeName"] for pod in self.shop()), others[0] if others else NODES[0])

    def observe(self, cell: Cell, since: int) -> dict[str, Any]:
        """What the playbooks change: on the hosts, and in the cluster. kubelet: the cell's, if a node has it. claims: created since."""
        ours, api = vsphere_daemon_set(self.lab), self.lab.api
        owner = "ours" if ours else "theirs" if any(map(api.ok, map(foreign.path, (OPERATORS, UPSTREAMS)))) else "none"
        limits = (
            [
                ((container.get("resources") or {}).get("limits") or {}).get("memory", "unlimited")
                for container in ours["spec"]["template"]["spec"]["containers"]
                if container["name"] == VSPHERE.container
            ]
            if ours
            else []
        )
        volume = f"{convert.VOLUMES}/{SHOP.volume}"
        target = cell.leaves.get("kubelet", "")
        created = [
            one for one in writes(self.lab, since) if one.startswith("create ") and "/persistentvolumeclaims" in one
        ]
        return {
            "csi-proxy": [self.release(host) for host in NODES],
            "plugin": owner,
            "memory": next(iter(limits), ""),
            "kubelet": next((target for node in NODES if upgrading.kubelet(self.lab, node) == target), ""),
            "volume": ("csi" if "csi" in api.get(volume)["spec"] else "in-tree") if api.ok(volume) else "",
            "claims": len(created) if cell.playbook == "verify" else 0,
        }

    def release(self, host: str) -> str:
        """The release of the csi-proxy that runs on a host, empty without one."""
        processes = self.lab.agent(host).control("state")["state"]["processes"]
        return next((str(one["release"]) for one in processes if one["image"] == "csi-proxy.exe"), "")

    def begin(self, cell: Cell, core: str) -> None:
        """Make what a cell begins with, as far as it is not there."""
        if cell.playbook == "build_csi_proxy":
            return
        api, ours = self.lab.api, vsphere_daemon_set(self.lab) is not None
        if cell.cluster == EMPTY and api.ok(SHOP.workload):
            self.clear()
        if cell.begins != BOTH:
            api.gone(foreign.path(OPERATORS))
        if cell.begins == NONE:
            remove_driver(self.lab)
            for host in NODES:
                self.lab.agent(host).control("restore", id="new")
            return
        # A change needs the old csi-proxy, and any other cell one that serves.
        stale = any(self.release(host) != OLD if cell.variables == CHANGE else not self.release(host) for host in NODES)
        if stale or (not ours and cell.begins != THEIRS):
            self.enable(core)
            ours = True
        if cell.begins == THEIRS and ours:
            remove_driver(self.lab)
        if cell.begins == THEIRS:
            for node in NODES:
                label(self.lab, node)
        other = {BOTH: (OPERATORS, "vmware-vsphere-csi-driver-operator"), THEIRS: (UPSTREAMS, "helm")}.get(cell.begins)
        if other and not api.ok(foreign.path(other[0])):
            self.serves(foreign.plant(api, *other))
        if cell.cluster == USED and not api.ok(SHOP.workload):
            convert.prepare(self.lab)
            convert.plant(self.lab, SHOP)

    def enable(self, core: str) -> None:
        """Bring csi-proxy and our plugin to what the first cell leaves."""
        variables = {**self.given(CELLS[0], core), "csi_proxy_allow_downgrade": True}
        if vsphere_daemon_set(self.lab) is None:
            remove_driver(self.lab)
        run = play("playbooks/enable_csi.yml", self.inventory, core=core, variables=variables)
        assert run.code == 0, run.screen

    def clear(self) -> None:
        """Delete the workload with its volume, and the record of its conversion: another volume gets the same name."""
        for path in (SHOP.workload, f"{convert.CLAIMS}/{SHOP.claim}", f"{convert.VOLUMES}/{SHOP.volume}"):
            self.lab.api.gone(path)
            eventually(lambda: not self.shop(), "the workload is gone")
        eventually(lambda: not self.lab.api.ok(f"{convert.VOLUMES}/{SHOP.volume}"), "its volume is gone")
        for namespace in (convert.RECORDS, convert.COPIES):
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            for name in [one["metadata"]["name"] for one in self.lab.api.items(path)]:
                if name.startswith(objects.name_record("")):
                    self.lab.api.gone(f"{path}/{name}")

    def serves(self, daemon_set: dict[str, Any]) -> None:
        """Wait until another owner's plugin is Ready on every node."""
        namespace, uid = daemon_set["metadata"]["namespace"], daemon_set["metadata"]["uid"]

        def pods() -> list[str]:
            found = self.lab.api.items(f"/api/v1/namespaces/{namespace}/pods")
            ours = [one for one in found if uid in [own["uid"] for own in one["metadata"].get("ownerReferences") or []]]
            return sorted(one["spec"]["nodeName"] for one in ours if ready(one))

        eventually(lambda: pods() == list(NODES), "another owner's plugin on every node")
        eventually(lambda: all(self.lab.registered(node) for node in NODES), "its driver on every node")

    def shop(self) -> list[dict[str, Any]]:
        """The workload's pods."""
        return self.lab.pods(f"app={SHOP.name}", convert.NAMESPACE)


def vsphere_daemon_set(lab: Lab) -> dict[str, Any] | None:
    """Our node plugin, None without it."""
    path = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/daemonsets/{VSPHERE.daemonset}"
    found = lab.api.get(path) if lab.api.ok(path) else None
    # Upstream's has the same name. Ours waits for csi-proxy.
    return found if found and PROVEN in found["spec"]["template"]["spec"]["nodeSelector"] else None


for _core in lines():
    _name = f"On{_core.replace('.', '')}"
    _text = f"Every playbook under ansible-core {_core}"
    globals()[f"Test{_name}"] = type(f"Test{_name}", (Matrix,), {"core": _core, "__doc__": f"{_text}."})
    _whole = {"core": _core, "whole": True, "__doc__": f"{_text}, with --check and for real on both clusters."}
    globals()[f"TestWhole{_name}"] = pytest.mark.torture(type(f"TestWhole{_name}", (Matrix,), _whole))
