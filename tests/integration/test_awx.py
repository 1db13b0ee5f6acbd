# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every job template of extensions/awx as AWX runs it: ansible-runner over Receptor, in a container, on the lab.

Surveys are answered with what a job needs; AWX does not send blank answers. Tests follow one another on one lab.
"""

from __future__ import annotations

import base64
import bisect
import json
import os
import random
import re
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from day import DAY
from integration import awx_api, foreign
from integration.kube import also_holds
from integration.mesh import NODES, PROJECT, SUPPORT, Credential, Job, Mesh, Running, Watch, inventory_of, leaks, made
from integration.playbooks import PATIENCE, Run, play
from integration.storage import CLASSES, NAMESPACE, a_namespace, storage_class
from integration.test_every_playbook import CELLS, EMPTY, MAIN, OPERATORS, USED, Cell, Cluster
from integration.upgrading import LEASE, SETS, databases, kubelet
from lab import handle
from lab.handle import Lab, eventually

SURVEYS: dict[str, Any] = yaml.safe_load((PROJECT / "controller" / "surveys.yml").read_text(encoding="utf-8"))[
    "surveys"
]
# It needs Go, which execution environments do not have.
BY_HAND = {"build_csi_proxy"}
# How often a job is cancelled as torture, and at other moments with another seed.
MOMENTS = int(os.environ.get("KUBEWIN_MOMENTS", "20"))
SEED = os.environ.get("KUBEWIN_MOMENTS_SEED", "1")
# Events of an upgrade of one node.
EVENTS = 90
DRIVER = "csi.vsphere.vmware.com"
UPGRADE = "upgrade-one-node.yml"
# Values that enable_csi refuses, by input.
WRONG = {
    "kubewin_drivers": ["vsphere", "nfs"],
    "kubewin_batches": "half",
    "kubewin_gate_timeout": "0",
    "kubewin_fail_on": "blockers",
    "kubewin_allow_downgrade": "down",
    "kubewin_create_cluster_objects": "all",
    "kubewin_skip_unreachable": "win-1",
    "kubewin_cluster_only": "cluster",
}
# What changes something, besides upgrade, whose cancels have a test of their own; each begins again before each of its cancels.
MATRIX = {(cell.playbook, cell.cluster): cell for cell in CELLS}
CANCELLED = (
    replace(MATRIX["enable_csi", USED], cluster=EMPTY),
    replace(MATRIX["remove", EMPTY], variables={"kubewin_remove_csi_proxy": True}),
    MATRIX["handover", EMPTY],
    MATRIX["convert_volumes", USED],
)
CANCELS = MOMENTS // 2
ISOLATION = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {ansible_remote_tmp: /tmp}
  tasks:
    - ansible.builtin.shell: |
        id -u; ls -d /proc/[0-9]* | wc -l; touch /runner/project/x 2>&1; echo "${KUBECONFIG-none} $HOME"; grep CapEff /proc/self/status
      register: found
    - ansible.builtin.set_stats: {data: {isolation: "{{ found.stdout_lines }}"}}
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
        self.files = {UPGRADE: cluster.tasks.read_text(encoding="utf-8"), "isolation.yml": ISOLATION, "wait.yml": WAIT}

    def run(self, playbook: str, answers: dict[str, Any], *, node: str = NODES[0], **more: Any) -> Job:
        """One job. more: extra variables from elsewhere."""
        return self.launch(playbook, answers, node=node, **more).finish()

    def launch(self, playbook: str, answers: dict[str, Any], *, node: str = NODES[0], **more: Any) -> Running:
        """The same without waiting for its end."""
        variables = awx_api.launch_variables(SURVEYS.get(playbook, {"spec": []}), {**answers, **more})
        return self.mesh.launch(
            f"{playbook}.yml", self.inventory, self.credential, variables, node=node, files=self.files
        )


def to_answers(cell: Cell) -> dict[str, Any]:
    """The variables of a cell as answers of its survey, and as extra variables of the template."""
    kinds = {question["variable"]: question["type"] for question in SURVEYS[cell.playbook]["spec"]}
    answers: dict[str, Any] = {
        name: ("no", "yes")[value]
        if isinstance(value, bool) and name in kinds
        else str(value).split(",")
        if kinds.get(name) == "multiselect"
        else value
        for name, value in cell.variables.items()
    }
    if cell.playbook == "upgrade":
        answers |= {"kubewin_upgrade_tasks": UPGRADE, "kubewin_upgrade_nodes": "win-1"}
    if cell.playbook == "gather":
        answers["kubewin_output_dir"] = SUPPORT
    if cell.playbook in ("handover", "remove"):
        answers["kubewin_drivers"] = ["vsphere"]
    return answers


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
        assert watch.reads > 10
        assert watch.found == []
    finally:
        mesh.stop()
        lab.stop()


def test_the_container_holds_nothing_of_its_machine(bench: Bench) -> None:
    job = bench.run("isolation", {}, node=NODES[1])
    assert job.code == 0, f"{job.explanation}\n{job.screen}"
    user, processes, refused, home, capabilities = job.statistics["isolation"]
    assert int(user) >= 10_000
    assert int(processes) < 15
    assert "Read-only file system" in refused
    assert home == "none /runner"
    assert int(capabilities.split()[1], 16) == 0


def test_wrong_answers_are_refused_by_name(bench: Bench) -> None:
    before = bench.lab.audit_size()
    job = bench.run("enable_csi", WRONG)
    assert job.code == 2, job.screen
    assert [name for name in WRONG if f"{name} is " not in job.refusals] == [], job.refusals
    assert job.statistics["kubewin_summary"]["outcome"] == "refused"
    assert bench.lab.audit("kubewin:kubewin", before) == []


@pytest.mark.parametrize(
    "cell",
    [cell for cell in CELLS if cell.cluster == EMPTY and cell.playbook in SURVEYS],
    ids=lambda cell: cell.playbook,
)
def test_template(bench: Bench, cell: Cell) -> None:
    bench.cluster.begin(cell, MAIN)
    answers = to_answers(cell)
    assert awx_api.validate_answers(SURVEYS[cell.playbook], answers) == []
    job = bench.run(cell.playbook, answers)
    summary = job.statistics.get("kubewin_summary")
    assert summary is not None, f"{job.explanation}\n{job.screen}"
    assert job.code == (2 if cell.refused else 0), job.screen
    assert summary["outcome"] == ("refused" if cell.refused else "done"), job.screen
    assert cell.refused in job.refusals
    if cell.playbook == "gather":
        an_archive(bench, "\n".join(summary["lines"]))


def an_archive(bench: Bench, lines: str) -> None:
    """The archive outlives its job. It is unpacked, so that the search for secrets reads what is in it."""
    (name,) = re.findall(rf"{SUPPORT}/(\S+)\.tar\.gz", lines)
    with tarfile.open(bench.mesh.support / f"{name}.tar.gz") as archive:
        # Pythons before 3.11.4 have no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(bench.mesh.support)
    summary = json.loads((bench.mesh.support / name / "summary.json").read_text(encoding="utf-8"))
    assert {host["name"] for host in summary["hosts"]} == {"win-1", "win-2"}
    assert [one for one in summary["missing"] if one["what"].startswith(("host", "cluster"))] == []


def reached(running: Running, events: int) -> bool:
    """Whether a job has reported so many events, or has ended."""
    return len(running.events) >= events or running.over


@pytest.mark.parametrize(
    "moments", [pytest.param(1, marks=pytest.mark.turn(2, 4)), pytest.param(MOMENTS, marks=pytest.mark.torture)]
)
def test_a_cancelled_upgrade_continues_within_a_minute_in_another_container(bench: Bench, moments: int) -> None:
    """Every other one is cancelled by Receptor; of the others the container is killed. Where there is one, this depends on the day."""
    has_the_driver(bench)
    dice, slowest, cut = random.Random(f"{SEED}-{moments}"), 0.0, 0
    first = DAY // 4 % 2 if moments == 1 else 0
    for moment in range(first, first + moments):
        asked = {
            "kubewin_upgrade_name": f"moment-{moment}-of-{moments}",
            "kubewin_upgrade_hook": "tasks",
            "kubewin_upgrade_tasks": "wait.yml",
            "kubewin_upgrade_nodes": "win-1",
        }
        running = bench.launch("upgrade", asked)
        eventually(partial(reached, running, dice.randrange(1, EVENTS)), "it has begun", PATIENCE)
        # Not only between two events.
        running.wait(dice.uniform(0, 1))
        (running.kill if moment % 2 else running.cancel)()
        cancelled = running.finish()
        cut += cancelled.status != "successful"
        former, launched = lease_holder(bench), time.time()
        following = bench.launch("upgrade", asked, node=NODES[1])
        eventually(partial(holds_the_lease, bench, following, former), "it holds the lease", PATIENCE)
        held, job = time.time(), following.finish()
        story = f"seed {SEED}, moment {moment}: {cancelled.status} after {len(cancelled.events)} events"
        assert job.code == 0, f"{story}:\n{job.screen}"
        assert job.statistics["kubewin_summary"]["outcome"] == "done", f"{story}:\n{job.screen}"
        began = made(job.events[0])
        print(f"{story}: begins after {began - launched:.0f} s, continues after {held - launched:.0f} s, ", end="")
        print(f"done after {time.time() - launched:.0f} s")
        # How long a loaded machine takes to start a container is not ours.
        slowest = max(slowest, held - began)
    assert cut, "every job ended before it was cancelled"
    assert slowest <= 60
    assert left_cordoned(bench.lab) == []


def left_cordoned(lab: Lab) -> list[str]:
    """Names of cordoned Nodes."""
    nodes = lab.api.items("/api/v1/nodes")
    return [node["metadata"]["name"] for node in nodes if node["spec"].get("unschedulable")]


@pytest.mark.torture
@pytest.mark.parametrize("cell", CANCELLED, ids=lambda cell: cell.playbook)
def test_a_job_launched_at_once_after_a_cancel_continues_within_a_minute(bench: Bench, cell: Cell) -> None:
    """Cancelled at any moment of its run, which one run without a cancel measures."""
    dice, answers = random.Random(f"{SEED}-{cell.playbook}"), {**to_answers(cell), **bench.cluster.given(cell, MAIN)}
    times: list[float] = []
    cut = 0
    for moment in range(CANCELS + 1):
        if cell.playbook == "handover":
            # Beside the plugin of another owner, to whom the former run handed the nodes, ours is not enabled.
            has_the_driver(bench)
        bench.cluster.begin(cell, MAIN)
        if cell.playbook == "convert_volumes":
            # Every other one rolls back what the former converted.
            answers["kubewin_convert_roll_back"] = ("no", "yes")[moment % 2]
        running = bench.launch(cell.playbook, answers)
        if not moment:
            job = running.finish()
            assert job.code == 0, job.screen
            times = sorted(made(event) for event in job.events)
            continue
        # A moment of that run: so many events, and a time after the last of them.
        at = dice.uniform(times[0], times[-1])
        events = bisect.bisect_right(times, at)
        eventually(partial(reached, running, events), "it has begun", PATIENCE)
        running.wait(at - times[events - 1])
        running.cancel()
        cancelled = time.monotonic()
        former = running.finish()
        cut += former.status != "successful"
        ended = time.monotonic() - cancelled
        job = bench.run(cell.playbook, answers, node=NODES[1])
        took, alone = made(job.events[-1]) - made(job.events[0]), times[-1] - times[0]
        story = f"{cell.playbook}, seed {SEED}, moment {moment}: {former.status} after {len(former.events)} events"
        print(f"{story}, ended after {ended:.0f} s; next job {took:.0f} s, one alone {alone:.0f} s")
        assert ended <= 60, story
        assert took <= alone + 60, f"{story}:\n{job.screen}"
        assert job.code == 0, f"{story}:\n{job.screen}"
        assert left_cordoned(bench.lab) == [], story
    print(f"{cell.playbook}: {cut} of {CANCELS} cancelled before the end")
    assert cut, "every job ended before it was cancelled"


def lease_holder(bench: Bench) -> str:
    """The run that holds the Lease of upgrades, empty if none does."""
    return str(bench.lab.api.get(LEASE)["spec"]["holderIdentity"]) if bench.lab.api.ok(LEASE) else ""


def holds_the_lease(bench: Bench, running: Running, former: str) -> bool:
    """Whether a job took the Lease after another run, or has ended."""
    return running.over or lease_holder(bench) not in ("", former)


def has_the_driver(bench: Bench) -> None:
    """What an upgrade begins with, also after the driver was handed over and removed."""
    bench.lab.api.gone(foreign.path(OPERATORS))
    pods = f"/api/v1/namespaces/{OPERATORS['metadata']['namespace']}/pods"
    eventually(lambda: not bench.lab.api.items(pods), "no plugin of another owner")
    job = bench.run("enable_csi", {"kubewin_drivers": ["vsphere"], "kubewin_batches": "100%"})
    assert job.code == 0, job.screen


@pytest.mark.turn(3, 4)
def test_an_upgrade_that_was_approved_compares_its_data_in_another_container(bench: Bench) -> None:
    has_the_driver(bench)
    lab = bench.lab
    with a_namespace(lab):
        databases(lab, {"orders": ("win-1", "win-2")}, storage_class(lab, "orders", DRIVER))
        asked = {
            "kubewin_upgrade_name": "approved",
            "kubewin_upgrade_target": "kubelet=1.36",
            "kubewin_upgrade_hook": "tasks",
            "kubewin_upgrade_tasks": UPGRADE,
            "kubewin_upgrade_nodes": "win-1,win-2",
            "kubewin_upgrade_pause": "canary",
        }
        more: dict[str, Any] = {
            "kubewin_verify_storage_classes": {"vsphere": "orders"},
            "kubewin_upgrade_append_only": "times.txt",
        }
        first = bench.run("upgrade", asked, **more)
        assert first.code == 0, first.screen
        assert first.statistics["kubewin_summary"]["outcome"] == "paused"
        wanted = "launch the job template of kubewin.csi.upgrade with kubewin_upgrade_confirmed=canary"
        assert first.statistics["kubewin_summary"]["next"] == [wanted]
        assert sorted(kubelet(lab, node) for node in ("win-1", "win-2"))[1] == "v1.36.0"
        # As the workflow does after the approval.
        second = bench.run("upgrade", {**asked, "kubewin_upgrade_confirmed": "canary"}, node=NODES[1], **more)
        assert second.code == 0, second.screen
        assert second.statistics["kubewin_summary"]["outcome"] == "done"
        assert f"{NAMESPACE}/orders: no difference in what was compared" in second.screen
        assert "no baseline" not in second.screen
        assert re.search(r"\b(\d+) of \1 volumes of Windows workloads are unchanged", second.screen)
        assert {kubelet(lab, node) for node in ("win-1", "win-2")} == {"v1.36.0"}
        lab.api.delete(SETS)
    lab.api.gone(f"{CLASSES}/orders")


def test_no_secret_is_written_anywhere(bench: Bench) -> None:
    assert leaks(bench.mesh.folder, bench.credential.secrets) == []


def apply(url: str, variables: dict[str, Any], *words: str, playbook: str = "apply.yml") -> Run:
    """Run a playbook of the project against an AWX."""
    access = {"CONTROLLER_HOST": url, "CONTROLLER_OAUTH_TOKEN": awx_api.TOKEN}
    return play(f"extensions/awx/{playbook}", "localhost,", *words, env=access, variables=variables)


def test_a_second_apply_repairs_the_project_and_rotates_the_token() -> None:
    templates = ("templates", "workflows", "schedules", "roles")
    with awx_api.serve() as (url, api):
        api.sync_results = ["failed"]
        without_templates: dict[str, Any] = {f"controller_{kind}": [] for kind in templates}
        failed = apply(url, {**without_templates, "cluster_token": "token-of-may"})
        assert failed.code == 2
        assert "Project update failed" in failed.screen
        repaired = apply(url, {**without_templates, "cluster_token": "token-of-june"})
        assert repaired.code == 0, repaired.screen
        (project,), (source,) = api.objects["projects"], api.objects["inventory_sources"]
        assert project["status"] == "successful"
        assert api.environment_of_sync(source) == "kubewin.csi"
        tokens = [item["inputs"].get("bearer_token") for item in api.objects["credentials"]]
        assert tokens == ["token-of-june", None]
    assert "token-of" not in failed.screen + repaired.screen


@pytest.mark.torture
def test_apply_creates_all_of_it_once_and_delete_removes_it() -> None:
    teams = ("operator", "approver", "reader")
    settings = {
        "notification_url": "https://hooks.example.com",
        "instance_groups": ["windows"],
        "label": "csi",
        **{f"{name}_teams": [name] for name in teams},
    }
    with awx_api.serve() as (url, api):
        api.add("instance_groups", {"name": "windows"})
        for name in teams:
            api.add("teams", {"name": name, "organization": 1})
        run = apply(url, settings)
        assert run.code == 0, run.screen
        names = {str(item["name"]).removeprefix("production ") for item in api.objects["job_templates"]}
        assert names == set(SURVEYS)
        for item in api.objects["job_templates"]:
            path = item["url"].removeprefix("/api/v2/")
            assert api.documents[f"{path}survey_spec"] == SURVEYS[item["name"].split()[1]]
            assert len(api.associated[f"{path}credentials"]) == 2
            assert len(api.associated[f"{path}labels"]) == 1
        nodes = Counter(item["workflow_job_template"] for item in api.objects["workflow_job_template_nodes"])
        assert [nodes[item["id"]] for item in api.objects["workflow_job_templates"]] == [9, 11, 7, 6, 6]
        assert [item["enabled"] for item in api.objects["schedules"]] == [True, True, False]
        granted = [numbers for path, numbers in api.associated.items() if path.startswith("roles/")]
        assert len(granted) == 5 + 5 + 5 + 5 + 10
        for item, secret in zip(api.objects["credentials"], ("bearer_token", "password"), strict=True):
            # What a person entered.
            item["inputs"] = {**item["inputs"], secret: "entered"}
        written = len(api.writes)
        again = apply(url, settings)
        assert again.code == 0, again.screen
        # awx.awx compares approvals with fields that they do not have.
        kinds = {re.sub("/[0-9]+", "", line) for line in api.writes[written:]}
        assert kinds <= {"PATCH workflow_approval_templates", "POST projects/update"}
        assert all("entered" in item["inputs"].values() for item in api.objects["credentials"])
        deleted = apply(url, settings, "--tags", "all,shared", playbook="delete.yml")
        assert deleted.code == 0, deleted.screen
        kept = {kind for kind, items in api.objects.items() if items}
        # The stand-in keeps what AWX deletes with its owner.
        owned = {"labels", "project_updates", "workflow_job_template_nodes", "workflow_approval_templates"}
        assert kept - owned == {"organizations", "credential_types", "instance_groups", "teams"}
    assert awx_api.TOKEN not in run.screen + again.screen + deleted.screen


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
    assert set(SURVEYS) == {path.stem for path in PROJECT.glob("*.yml")} - {
        "apply",
        "delete",
        "settings",
        "windows_nodes",
    }
    assert set(SURVEYS) == {cell.playbook for cell in CELLS if cell.cluster == EMPTY} - BY_HAND
