# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook on every ansible-core line, with --check and for real, on an empty cluster and on one with workloads.

A test is one cell of that matrix, and its name says which. Each line tries an empty cluster with --check and one with workloads
for real; as torture the main line tries both on both. The cells of a line follow one another on a lab of their own; other
tests check what the playbooks do, here they have to finish, and change nothing with --check. Their account may do
everything: which rights each one needs is tested elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ci import venvs
from integration import convert, foreign
from integration.convert import Story
from integration.kube import also_holds, writes
from integration.playbooks import ROOT, lines, play
from integration.test_connections import mixed
from lab import builds, handle
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


@dataclass(frozen=True, slots=True)
class Cell:
    """One playbook on one cluster. refused: the words of the refusal in which it has to end."""

    cluster: str
    playbook: str
    variables: dict[str, Any] = field(default_factory=dict)
    refused: str = ""


def upgrade(cluster: str, kubelet: str) -> Cell:
    """The owner's own tasks change one node. The target is a text, as on a command line."""
    variables = {
        "kubewin_upgrade_name": f"to-{kubelet}",
        "kubewin_upgrade_target": f"kubelet={kubelet}",
        "kubewin_upgrade_hook": "tasks",
        "kubewin_verify_step_timeout": 300,
    }
    return Cell(cluster, "upgrade", variables)


VERIFY = {"kubewin_verify_namespace": "kubewin", "kubewin_verify_step_timeout": 300, "kubewin_verify_parallel": 2}
# In this order: each cell begins with what the one before it left.
CELLS = (
    Cell(EMPTY, "enable_csi", {"kubewin_batches": "100%"}),
    Cell(EMPTY, "preflight"),
    Cell(EMPTY, "status"),
    Cell(EMPTY, "gather"),
    Cell(EMPTY, "diagnose"),
    Cell(EMPTY, "verify", VERIFY),
    upgrade(EMPTY, "1.35"),
    Cell(EMPTY, "convert_volumes", {"kubewin_convert_claims": "shop/none"}, refused="shop/none"),
    Cell(
        EMPTY,
        "handover",
        {"kubewin_handover": "to_platform", "kubewin_handover_stable_for": 1, "kubewin_quiesce": "none"},
    ),
    Cell(EMPTY, "remove"),
    Cell(
        USED,
        "handover",
        {
            "kubewin_handover": "to_kubewin",
            "kubewin_handover_stable_for": 1,
            "kubewin_replace": f"{UPSTREAMS['metadata']['namespace']}/{UPSTREAMS['metadata']['name']}",
        },
    ),
    Cell(USED, "enable_csi", {"kubewin_batches": "100%"}),
    Cell(USED, "preflight"),
    Cell(USED, "status"),
    Cell(USED, "gather"),
    Cell(USED, "diagnose"),
    Cell(USED, "verify", VERIFY),
    upgrade(USED, "1.36"),
    Cell(USED, "convert_volumes", {"kubewin_convert_claims": f"{convert.NAMESPACE}/{SHOP.claim}"}),
    Cell(USED, "remove", refused=f"pod {convert.NAMESPACE}/{SHOP.name}-0"),
    # It asks no cluster.
    Cell(EMPTY, "build_csi_proxy", {"kubewin_csi_proxy_release": builds.CSI_PROXY_RELEASES[-1]}),
)


def playbooks() -> set[str]:
    return {path.stem for path in (ROOT / "playbooks").glob("*.yml")} - set(ALIASES)


def test_no_playbook_is_forgotten() -> None:
    assert MAIN in lines()
    on = {cluster: {cell.playbook for cell in CELLS if cell.cluster == cluster} for cluster in (EMPTY, USED)}
    assert on[EMPTY] == playbooks()
    assert on[USED] == playbooks() - {"build_csi_proxy"}


def modes(matrix: type[Matrix], cell: Cell) -> tuple[str, ...]:
    """How a cell runs on a line. What others are tried on is made by enable_csi and cleared by remove."""
    if matrix.whole or (cell.cluster == EMPTY and cell.playbook in ("enable_csi", "remove", "build_csi_proxy")):
        return "check", "real"
    return ("check",) if cell.cluster == EMPTY else ("real",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each line its cells."""
    if metafunc.cls is not None and issubclass(metafunc.cls, Matrix):
        cells = [(cell, mode) for cell in CELLS for mode in modes(metafunc.cls, cell)]
        names = [f"{cell.playbook} {cell.cluster}-{mode}" for cell, mode in cells]
        metafunc.parametrize(("cell", "mode"), cells, ids=names)


class Matrix:
    """The cells of one line. whole: each cluster with --check and for real."""

    core: str
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
        cluster.prepare(cell)
        before, pods = cluster.lab.audit_size(), cluster.shop()
        run = play(
            f"playbooks/{cell.playbook}.yml",
            cluster.inventory,
            *(["--check"] if mode == "check" else []),
            core=self.core,
            variables=cluster.given(cell, self.core),
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
        if mode == "check":
            # An eviction has its dry run in the body, which the audit log does not keep: its pod stays.
            assert [one for one in writes(cluster.lab, before) if not one.endswith("/eviction")] == [], title
            assert [pod["metadata"]["uid"] for pod in cluster.shop()] == [pod["metadata"]["uid"] for pod in pods], title


class Cluster:
    """A lab, and what cells begin with."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.inventory = mixed(lab, folder, TRANSPORTS)
        self.tasks = folder / "upgrade-one-node.yml"
        words = [sys.executable, "-m", "integration.upgrading", lab.name, "{{ node_upgrade_node }}", "v{{ wanted }}.0"]
        task = {
            "name": "Change the machine",
            "ansible.builtin.command": {"argv": words, "chdir": str(ROOT / "tests")},
            "environment": {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / '.collections'}"},
            "vars": {"wanted": "{{ kubewin_upgrade_target | split('=') | last }}"},
            "changed_when": True,
        }
        self.tasks.write_text(json.dumps([task]), encoding="utf-8")

    def given(self, cell: Cell, core: str) -> dict[str, Any]:
        """The variables of a run."""
        output = str(self.folder / cell.cluster.replace(" ", "-"))
        given = {"kubewin_output_dir": output, **cell.variables}
        if cell.playbook != "build_csi_proxy":
            given["kubewin_drivers"] = "vsphere"
        elif core != MAIN:
            # What the machine's Go makes is the same under every line.
            given["kubewin_go"] = self.compiled(f"csi-proxy-{cell.variables['kubewin_csi_proxy_release']}.exe")
        if cell.playbook == "upgrade":
            node = next((pod["spec"]["nodeName"] for pod in self.shop()), NODES[0])
            given |= {"kubewin_upgrade_tasks": str(self.tasks), "kubewin_upgrade_nodes": node}
        return given

    def compiled(self, exe: str) -> str:
        """A go command that is the machine's own, but compiles nothing: its executable is one that the lab has."""
        go = self.folder / "compiled-go"
        built = self.lab.state.paths.directory / "artifacts" / exe
        go.write_text(f'#!/bin/sh\n[ "$1" = build ] || exec go "$@"\nexec cp -- {built} "$3"\n', encoding="utf-8")
        go.chmod(0o755)
        return str(go)

    def prepare(self, cell: Cell) -> None:
        """Plant what a cell needs and does not find."""
        api = self.lab.api
        if cell == Cell(EMPTY, "handover", cell.variables) and not api.ok(foreign.path(OPERATORS)):
            self.serves(foreign.plant(api, OPERATORS, "vmware-vsphere-csi-driver-operator"))
        if cell.cluster == USED and not api.ok(SHOP.workload):
            api.gone(foreign.path(OPERATORS))
            self.serves(foreign.plant(api, UPSTREAMS, "helm"))
            convert.prepare(self.lab)
            convert.plant(self.lab, SHOP)

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


for _core in lines():
    _name = f"TestOn{_core.replace('.', '')}"
    globals()[_name] = type(_name, (Matrix,), {"core": _core, "__doc__": f"Every playbook under ansible-core {_core}."})


@pytest.mark.torture
class TestWholeMatrix(Matrix):
    """Every playbook under the main line, with --check and for real on both clusters."""

    core, whole = MAIN, True
