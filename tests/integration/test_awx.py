# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job template of extensions/awx as AWX runs it: ansible-runner over Receptor, in a container, on the lab.

Surveys are answered with text: what a job needs, and blanks for the rest. Tests follow one another on one lab.
"""

from __future__ import annotations

import base64
import os
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration import awx_api
from integration.kube import also_holds
from integration.mesh import NODES, PROJECT, Credential, Job, Mesh, Running, Watch, inventory_of, leaks
from integration.playbooks import play
from integration.test_every_playbook import CELLS, EMPTY, Cell, Cluster
from lab import handle
from lab.handle import eventually

SURVEYS: dict[str, Any] = yaml.safe_load((PROJECT / "controller" / "surveys.yml").read_text(encoding="utf-8"))[
    "surveys"
]
# What these make is a file, which is gone when a job ends.
FOR_FILES = {"build_csi_proxy", "gather"}
# For a person at a terminal: it names what keeps a job from starting, too.
BY_HAND = {"diagnose"}
# How often a job is cancelled as torture.
MOMENTS = int(os.environ.get("KUBEWIN_MOMENTS", "20"))
UPGRADE = "upgrade-one-node.yml"
# What a person could answer instead, by input. Free texts are left out.
WRONG = {
    "kubewin_drivers": ["vsphere", "nfs"],
    "kubewin_batches": "half",
    "kubewin_quiesce": "drain",
    "kubewin_quiesce_timeout": "soon",
    "kubewin_gate_timeout": "0",
    "kubewin_fail_on": "blockers",
    "kubewin_readiness_gate": "maybe",
    "kubewin_prepull": "2",
    "kubewin_allow_downgrade": "down",
    "kubewin_create_cluster_objects": "all",
    "kubewin_skip_unreachable": "win-1",
    "kubewin_cluster_only": "cluster",
}
LOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {ansible_remote_tmp: /tmp}
  tasks:
    - ansible.builtin.shell: |
        id -u; ls -d /proc/[0-9]* | wc -l; touch /runner/project/x 2>&1; echo "${KUBECONFIG-none} $HOME"; grep CapEff /proc/self/status
      register: seen
    - ansible.builtin.set_stats: {data: {seen: "{{ seen.stdout_lines }}"}}
"""


WAIT = """
- name: Change the machine
  ansible.builtin.pause: {seconds: 2}
"""


class Bench:
    """A lab, a mesh, and what jobs get."""

    def __init__(self, cluster: Cluster, mesh: Mesh) -> None:
        self.cluster, self.mesh, self.lab = cluster, mesh, cluster.lab
        self.credential = Credential.of(self.lab)
        self.inventory = inventory_of(self.lab)
        self.files = {UPGRADE: cluster.tasks.read_text(encoding="utf-8"), "look.yml": LOOK, "wait.yml": WAIT}

    def run(self, playbook: str, answers: dict[str, Any], *, node: str = NODES[0], **more: Any) -> Job:
        """One job; what its survey asks besides is left blank. more: extra variables from elsewhere."""
        return self.launch(playbook, answers, node=node, **more).finish()

    def launch(self, playbook: str, answers: dict[str, Any], *, node: str = NODES[0], **more: Any) -> Running:
        """The same without waiting for its end."""
        asked = [question["variable"] for question in SURVEYS.get(playbook, {"spec": []})["spec"]]
        assert set(answers) <= set(asked)
        given = {**dict.fromkeys(asked, ""), **answers, **more}
        return self.mesh.launch(f"{playbook}.yml", self.inventory, self.credential, given, node=node, files=self.files)


def answers(cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    """The variables of a cell as answers of its survey, and as extra variables of the template."""
    asked = [question["variable"] for question in SURVEYS[cell.playbook]["spec"]]
    given: dict[str, Any] = {
        name: value if isinstance(value, bool) else str(value) for name, value in cell.variables.items()
    }
    if cell.playbook == "upgrade":
        given |= {"kubewin_upgrade_tasks": UPGRADE, "kubewin_upgrade_nodes": "win-1"}
    if cell.playbook in ("handover", "remove"):
        given["kubewin_drivers"] = ["vsphere"]
    here = {name: value for name, value in given.items() if name in asked}
    return here, {name: value for name, value in given.items() if name not in asked}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    lab = handle.start(f"awx-{os.getpid()}", nodes=2, kubelets=dict.fromkeys(("win-1", "win-2"), "v1.34.0"))
    mesh = Mesh(tmp_path_factory.mktemp("mesh"))
    try:
        lab.api.ensure(
            "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubewin-records"}}
        )
        with also_holds(lab, "cluster-admin", "the-templates"), Watch(Credential.of(lab).secrets) as watch:
            yield Bench(Cluster(lab, tmp_path_factory.mktemp("awx")), mesh)
        assert watch.looks > 10
        assert watch.found == []
    finally:
        mesh.stop()
        lab.stop()


def test_the_container_holds_nothing_of_its_machine(bench: Bench) -> None:
    job = bench.run("look", {}, node=NODES[1])
    assert job.code == 0, f"{job.explanation}\n{job.screen}"
    user, processes, refused, home, capabilities = job.statistics["seen"]
    assert int(user) >= 10_000
    assert int(processes) < 15
    assert "Read-only file system" in refused
    assert home == "none /runner"
    assert int(capabilities.split()[1], 16) == 0


def test_wrong_answers_are_refused_by_name(bench: Bench) -> None:
    before = bench.lab.audit_size()
    job = bench.run("enable_csi", WRONG)
    assert job.code == 2, job.screen
    assert set(WRONG) == {question["variable"] for question in SURVEYS["enable_csi"]["spec"]}
    assert [name for name in WRONG if f"{name} is " not in job.refusals] == [], job.refusals
    assert job.statistics["kubewin_summary"]["outcome"] == "refused"
    assert bench.lab.audit("kubewin:kubewin", before) == []


@pytest.mark.parametrize(
    "cell",
    [cell for cell in CELLS if cell.cluster == EMPTY and cell.playbook in SURVEYS],
    ids=lambda cell: cell.playbook,
)
def test_template(bench: Bench, cell: Cell) -> None:
    bench.cluster.prepare(cell)
    here, more = answers(cell)
    job = bench.run(cell.playbook, here, **more)
    summary = job.statistics.get("kubewin_summary")
    assert summary is not None, f"{job.explanation}\n{job.screen}"
    assert job.code == (2 if cell.refused else 0), job.screen
    assert summary["outcome"] == ("refused" if cell.refused else "done"), job.screen
    assert cell.refused in job.refusals


def test_no_secret_is_written_anywhere(bench: Bench) -> None:
    assert leaks(bench.mesh.folder, bench.credential.secrets) == []


def reached(running: Running, events: int) -> bool:
    """Whether a job has reported so many events, or has ended."""
    return len(running.events) >= events or running.over


@pytest.mark.parametrize("moments", [2, pytest.param(MOMENTS, marks=pytest.mark.torture)])
def test_a_cancelled_upgrade_is_finished_by_the_next_job_in_another_container(bench: Bench, moments: int) -> None:
    bench.cluster.prepare(CELLS[0])
    assert bench.run("enable_csi", {"kubewin_drivers": ["vsphere"], "kubewin_batches": "100%"}).code == 0
    for moment in range(moments):
        asked = {
            "kubewin_upgrade_name": f"moment-{moment}-of-{moments}",
            "kubewin_upgrade_hook": "tasks",
            "kubewin_upgrade_tasks": "wait.yml",
            "kubewin_upgrade_nodes": "win-1",
        }
        running = bench.launch("upgrade", asked)
        # A whole upgrade of one node has more events than the last moment.
        least = 4 + moment * 110 // moments
        eventually(partial(reached, running, least), "it has begun")
        running.cancel()
        cancelled = running.finish()
        begun = time.monotonic()
        job = bench.run("upgrade", asked, node=NODES[1])
        took = time.monotonic() - begun
        assert job.code == 0, f"cancelled after {len(cancelled.events)} events:\n{job.screen}"
        assert job.statistics["kubewin_summary"]["outcome"] == "done"
        print(f"moment {moment}: {cancelled.status} after {len(cancelled.events)} events, finished in {took:.0f} s")
    assert [node["spec"].get("unschedulable") for node in bench.lab.api.items("/api/v1/nodes")].count(True) == 0


@pytest.mark.torture
def test_apply_creates_all_of_it_once() -> None:
    given = {"notification_url": "https://hooks.example.com", "execution_environment_image": "quay.io/example/kubewin"}
    with awx_api.serve() as (url, api):
        access = {"CONTROLLER_HOST": url, "CONTROLLER_OAUTH_TOKEN": awx_api.TOKEN}
        run = play("extensions/awx/apply.yml", "localhost,", env=access, variables=given)
        assert run.code == 0, run.screen
        names = {str(one["name"]).removeprefix("production ") for one in api.objects["job_templates"]}
        assert names == {name for name in SURVEYS if not name.startswith("workflow_")}
        for one in api.objects["job_templates"]:
            path = one["url"].removeprefix("/api/v2/")
            assert api.documents[f"{path}survey_spec"] == SURVEYS[one["name"].split()[1]]
            assert len(api.associated[f"{path}credentials"]) == 2
        nodes = Counter(one["workflow_job_template"] for one in api.objects["workflow_job_template_nodes"])
        assert [nodes[one["id"]] for one in api.objects["workflow_job_templates"]] == [4, 6]
        assert len(api.objects["schedules"]) == len(api.objects["inventory_sources"]) == 1
        for one, secret in zip(api.objects["credentials"], ("bearer_token", "password"), strict=True):
            # As AWX shows what a person entered.
            one["inputs"] = {**one["inputs"], secret: "$encrypted$"}
        written = len(api.writes)
        again = play("extensions/awx/apply.yml", "localhost,", env=access, variables=given)
        assert again.code == 0, again.screen
        # awx.awx compares approvals with fields that they do not have.
        assert {line.split("/")[0] for line in api.writes[written:]} <= {"PATCH workflow_approval_templates"}
        assert all("$encrypted$" in one["inputs"].values() for one in api.objects["credentials"])
    assert awx_api.TOKEN not in run.screen + again.screen


@pytest.mark.parametrize("offset", range(4))
def test_a_secret_is_found_however_it_is_written(tmp_path: Path, offset: int) -> None:
    secret, around = "Pa$$-w\u00f6rd-0123456789", b"x" * offset
    for text in (secret.encode(), secret.encode("utf-16-le")):
        for content in (text, base64.b64encode(around + text + b"yz")):
            (tmp_path / "log").write_bytes(b"before" + content)
            assert leaks(tmp_path, [secret]) == ["log"], content
    (tmp_path / "log").write_bytes(secret[:-1].encode())
    assert leaks(tmp_path, [secret]) == []


def test_every_survey_belongs_to_a_template_of_the_matrix() -> None:
    templates = {name for name in SURVEYS if not name.startswith("workflow_")}
    assert templates == {path.stem for path in PROJECT.glob("*.yml")} - {"apply", "settings", "windows_nodes"}
    assert templates == {cell.playbook for cell in CELLS if cell.cluster == EMPTY} - FOR_FILES - BY_HAND
