# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project of extensions/awx on a real AWX 24.6.1, with the lab's clusters: `AWX_SOURCE=... make torture`.

real_awx.py says what it needs. Tests follow one another on one AWX.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import time
import urllib.error
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration import awx_api, foreign, real_awx
from integration.kube import ACCOUNT, also_holds
from integration.mesh import COMMANDS, IMAGE, NODES, PROJECT, SUPPORT, Credential, Mesh, leaks
from integration.playbooks import ROOT, Run, lane, play
from integration.real_awx import ENDED, Awx, Object
from integration.test_awx import CANCELLED, CANCELS, MATRIX, SEED, SURVEYS, UPGRADE, WAIT, left_cordoned, to_answers
from integration.test_every_playbook import CELLS, EMPTY, MAIN, OPERATORS, OURS, USED, Cell, Cluster, upgrade
from lab import handle
from lab.cluster.api import Api, ApiError
from lab.handle import Lab, eventually

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not real_awx.SOURCE, reason="AWX_SOURCE names no checkout of ansible/awx 24.6.1"),
]
ENABLE = MATRIX["enable_csi", EMPTY]
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
# Its claim does not exist.
BLOCKED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "orders"},
    "spec": {
        "selector": {"matchLabels": {"app": "orders"}},
        "template": {
            "metadata": {"labels": {"app": "orders"}},
            "spec": {
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "containers": [{"name": "app", "image": "registry.example.com/app:1"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "orders"}}],
            },
        },
    },
}


class Repository:
    """The project of AWX, which a git server has."""

    def __init__(self, folder: Path, awx: Awx) -> None:
        self.folder = folder / "project"
        shutil.copytree(PROJECT, self.folder)
        self._git("init", "-q", "-b", "main")
        self.url = awx.start_git(folder) + "/project"

    def commit(self, files: dict[str, str]) -> None:
        """Add files to the project."""
        for name, content in files.items():
            (self.folder / name).write_text(content, encoding="utf-8")
        self._git("add", ".")
        self._git("-c", "user.name=tests", "-c", "user.email=tests@example.com", "commit", "-qm", "Add files")

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.folder, check=True)


class Bench:
    """An AWX with its mesh.

    alone: seconds of a job that nobody cancels, by playbook. cut: how many were cancelled before their end.
    """

    def __init__(self, folder: Path) -> None:
        self.alone: dict[str, float] = {}
        self.cut: Counter[str] = Counter()
        self.awx = Awx(real_awx.prepare(), folder)
        with ExitStack() as ending:
            images = {real_awx.OWN_IMAGE: {"PATH": f"{Path(lane('2.16')[0]).parent}:{COMMANDS}"}}
            self.mesh = Mesh(folder / "mesh", real_awx.CONTROL, images, own=folder / "jobs")
            ending.callback(self.mesh.stop)
            ending.callback(self.awx.stop)
            self.awx.start_database()
            self.awx.start_services()
            paths = [f"{ROOT}:{ROOT}:ro", f"{self.mesh.support}:{SUPPORT}:rw"]
            self.awx.request("PATCH", "settings/jobs/", {"AWX_ISOLATION_SHOW_PATHS": paths})
            self.token = self.awx.request("POST", "tokens/", {"scope": "write"})["token"]
            self.project = Repository(folder / "git", self.awx)
            self._ending = ending.pop_all()

    def stop(self) -> None:
        """End all of it."""
        self._ending.close()

    def apply(self, lab: Lab, name: str, playbook: str = "apply.yml") -> Run:
        """Run a playbook of the project for a lab as the cluster `name`."""
        credential = Credential.of(lab)
        given = {
            "project_url": self.project.url,
            "execution_environment_image": IMAGE,
            "cluster_name": name,
            "cluster_host": credential.host,
            "cluster_token": credential.token,
            "cluster_certificate": credential.authority,
            "windows_user": credential.user,
            "windows_password": credential.password,
            "windows_variables": {
                **variables_of(lab),
                "ansible_winrm_ca_trust_path": f"/runner/project/{name}.crt",
            },
        }
        access = {"CONTROLLER_HOST": self.awx.url, "CONTROLLER_OAUTH_TOKEN": self.token}
        return play(f"extensions/awx/{playbook}", "localhost,", env=access, variables=given)

    def add(self, lab: Lab, name: str, files: dict[str, str]) -> None:
        """Apply the project for a lab, with more files, read its inventory, and tell AWX the ports of the lab's hosts."""
        self.project.commit({f"{name}.crt": Path(lab.state.ca).read_text(encoding="utf-8"), **files})
        run = self.apply(lab, name)
        assert run.code == 0, run.screen
        source = self.awx.find("inventory_sources/", f"{name} Windows nodes")
        update = self.awx.request("POST", f"inventory_sources/{source['id']}/update/", {})
        assert self.awx.wait(update["url"])["status"] == "successful", self.awx.read_output(update["url"])
        hosts = {host["name"]: host for host in self.awx.list(f"inventories/{source['inventory']}/hosts/")}
        assert set(hosts) == {host.node for host in lab.state.hosts}
        for host in lab.state.hosts:
            known = json.loads(hosts[host.node]["variables"])
            content = {"variables": json.dumps({**known, "ansible_port": host.https})}
            self.awx.request("PATCH", f"hosts/{hosts[host.node]['id']}/", content)

    def run(self, name: str, answers: dict[str, Any], **prompts: Any) -> Object:
        """The job of a job template of the first cluster when it has ended."""
        return self.awx.wait(self.awx.launch("job_templates/", f"production {name}", answers, **prompts))

    def summary(self, job: Object) -> Object:
        """The summary that a job leaves."""
        assert "kubewin_summary" in job["artifacts"], self.explain(job)
        found: Object = job["artifacts"]["kubewin_summary"]
        return found

    def explain(self, job: Object) -> str:
        """What a person would read of a job."""
        return f"{job['name']}: {job['status']} {job['job_explanation']}\n{self.awx.read_output(job['url'])}"


def variables_of(lab: Lab) -> dict[str, Any]:
    """What the lab's hosts share, without what credentials have."""
    content = yaml.safe_load(Path(lab.state.inventories["ntlm-https"]).read_text(encoding="utf-8"))["all"]
    shared = {**content["vars"], **content["children"]["windows"]["vars"]}
    secret = ("ansible_user", "ansible_password", "kubewin_kubeconfig")
    return {name: value for name, value in shared.items() if name not in secret}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    began = time.monotonic()
    made = Bench(tmp_path_factory.mktemp("awx"))
    print(f"AWX answers after {time.monotonic() - began:.0f} s")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def cluster(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    lab = handle.start(f"real-awx-{os.getpid()}", nodes=2, kubelets=dict.fromkeys(("win-1", "win-2"), "v1.34.0"))
    records = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubewin-records"}}
    lab.api.ensure("/api/v1/namespaces", records)
    with also_holds(lab, "cluster-admin", "the-templates"):
        made = Cluster(lab, tmp_path_factory.mktemp("cluster"))
        bench.add(lab, "production", {UPGRADE: made.tasks.read_text(encoding="utf-8"), "wait.yml": WAIT})
        yield made
    lab.stop()


def activity(bench: Bench, since: int) -> list[str]:
    """What AWX says was changed."""
    found = bench.awx.list("activity_stream/", id__gt=since, order_by="id")
    return [f"{item['operation']} {item['object1']} {sorted(item['changes'])}" for item in found]


def latest(bench: Bench) -> int:
    """The number of the last change that AWX noted."""
    return int(bench.awx.request("GET", "activity_stream/?order_by=-id&page_size=1")["results"][0]["id"])


def test_a_second_apply_changes_nothing(bench: Bench, cluster: Cluster) -> None:
    before = latest(bench)
    again = bench.apply(cluster.lab, "production")
    assert again.code == 0, again.screen
    # AWX does not compare secrets.
    assert activity(bench, before) == ["update credential ['inputs']"] * 2


@pytest.mark.parametrize("playbook", SURVEYS)
def test_the_stand_in_refuses_the_answers_that_awx_refuses(bench: Bench, playbook: str) -> None:
    spec = SURVEYS[playbook]["spec"]
    wrong = {question["variable"]: ["something"] if question["type"] == "multiselect" else 7 for question in spec}
    for answers in (wrong, {}):
        expected = awx_api.validate_answers(SURVEYS[playbook], answers)
        if expected:
            with pytest.raises(urllib.error.HTTPError) as refused:
                bench.awx.launch("job_templates/", f"production {playbook}", answers)
            content = json.loads(refused.value.read())
            assert (refused.value.code, content) == (400, {"variables_needed_to_start": expected})


@pytest.mark.parametrize(
    "cell",
    [cell for cell in CELLS if cell.cluster == EMPTY and cell.playbook in SURVEYS],
    ids=lambda cell: cell.playbook,
)
def test_template(bench: Bench, cluster: Cluster, cell: Cell) -> None:
    cluster.begin(cell, MAIN)
    answers = to_answers(cell)
    job = bench.run(cell.playbook, answers)
    assert json.loads(job["extra_vars"]) == awx_api.launch_variables(SURVEYS[cell.playbook], answers)
    summary = bench.summary(job)
    assert job["status"] == ("failed" if cell.refused else "successful"), bench.explain(job)
    assert summary["outcome"] == ("refused" if cell.refused else "done"), bench.explain(job)
    assert cell.refused in summary["failure"]
    assert job["execution_node"] in NODES
    print(f"{cell.playbook}: {job['elapsed']:.0f} s")


def steps(bench: Bench, workflow: str) -> dict[str, str]:
    """How the nodes of a workflow ended that were started."""
    nodes = bench.awx.list(f"{workflow}workflow_nodes/")
    return {
        node["identifier"]: node["summary_fields"]["job"]["status"] for node in nodes if "job" in node["summary_fields"]
    }


def explain_steps(bench: Bench, url: str) -> str:
    """What a person would read of the jobs of a workflow."""
    nodes = bench.awx.list(f"{url}workflow_nodes/")
    jobs = [node["related"]["job"] for node in nodes if node["related"].get("job", "").startswith("/api/v2/jobs/")]
    return "\n".join(bench.explain(bench.awx.request("GET", job)) for job in jobs)


def decide(bench: Bench, workflow: str, node: str, decision: str) -> str:
    """Approve or deny an approval of a workflow when it waits; its name."""
    bench.awx.wait(workflow, lambda job: steps(bench, workflow).get(node) == "pending" or job["status"] in ENDED)
    assert steps(bench, workflow).get(node) == "pending", explain_steps(bench, workflow)
    nodes = bench.awx.list(f"{workflow}workflow_nodes/", identifier=node)
    approval = nodes[0]["summary_fields"]["job"]
    bench.awx.request("POST", f"workflow_approvals/{approval['id']}/{decision}/", {})
    return str(approval["name"])


def prepare(bench: Bench, cluster: Cluster, cell: Cell) -> dict[str, Any]:
    """Make what a cell begins with; the answers to its survey, and what the survey does not ask."""
    if cell.playbook in ("handover", "upgrade"):
        # Beside the plugin of another owner, to whom the former run handed the nodes, ours is not enabled.
        cluster.lab.api.gone(foreign.path(OPERATORS))
        enabled = bench.run("enable_csi", {"kubewin_drivers": ["vsphere"], "kubewin_batches": "100%"})
        assert enabled["status"] == "successful", bench.explain(enabled)
    cluster.begin(cell, MAIN)
    return {**cluster.given(cell, MAIN), **to_answers(cell)}


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow. before: its steps before the change, the last of them an approval; then: those after a change that succeeded."""

    name: str
    cell: Cell
    before: tuple[str, str] = ("plan", "approve_plan")
    then: tuple[str, ...] = ()

    @property
    def leaves(self) -> dict[str, Any]:
        """What it changes that `Cluster.observe` returns. csi-proxy is the release that the collection recommends."""
        return {name: value for name, value in self.cell.leaves.items() if name in ("plugin", "kubelet", "volume")}


PREFLIGHT = ("preflight", "approve_ready")
WORKFLOWS = (
    Workflow("enable CSI", ENABLE, PREFLIGHT, ("verify",)),
    Workflow("upgrade nodes", MATRIX["upgrade", EMPTY], PREFLIGHT, ("approve_others", "others", "verify")),
    Workflow("hand over nodes", MATRIX["handover", EMPTY], then=("verify",)),
    Workflow("convert volumes", MATRIX["convert_volumes", USED]),
    Workflow("remove CSI", MATRIX["remove", EMPTY]),
)
each_workflow = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.name)


def launch(bench: Bench, cluster: Cluster, workflow: Workflow) -> str:
    """Make what a workflow begins with, and launch it with the answers of its survey; its address."""
    if workflow.leaves.get("volume") == cluster.observe(workflow.cell, 0)["volume"]:
        # It is converted.
        cluster.clear()
    answers = prepare(bench, cluster, workflow.cell)
    asked = {question["variable"] for question in SURVEYS[workflow.cell.playbook]["spec"]}
    given = {name: value for name, value in answers.items() if name in asked}
    if workflow.cell.playbook == "upgrade":
        given["kubewin_upgrade_nodes"] = "win-1,win-2"
    return bench.awx.launch("workflow_job_templates/", f"production {workflow.name}", given)


def finish(bench: Bench, url: str, workflow: Workflow) -> dict[str, str]:
    """Approve what a workflow asks after a change that succeeded; how its steps ended, which all have to be successful from there on."""
    for step in workflow.then:
        if step.startswith("approve"):
            decide(bench, url, step, "approve")
    ended, found = bench.awx.wait(url), steps(bench, url)
    assert ended["status"] == "successful", explain_steps(bench, url)
    return found


@each_workflow
def test_a_workflow_that_is_denied_changes_nothing(bench: Bench, cluster: Cluster, workflow: Workflow) -> None:
    url = launch(bench, cluster, workflow)
    before = cluster.observe(workflow.cell, 0)
    text = decide(bench, url, workflow.before[-1], "deny")
    assert text.startswith("Approve the change: ")
    assert bench.awx.wait(url)["status"] == "failed"
    assert steps(bench, url) == dict(zip(workflow.before, ("successful", "failed"), strict=True))
    assert cluster.observe(workflow.cell, 0) == before


@each_workflow
def test_a_workflow_changes_the_cluster_after_its_approval(bench: Bench, cluster: Cluster, workflow: Workflow) -> None:
    url = launch(bench, cluster, workflow)
    decide(bench, url, workflow.before[-1], "approve")
    found = finish(bench, url, workflow)
    assert found == dict.fromkeys((*workflow.before, "change", *workflow.then), "successful")
    assert workflow.leaves.items() <= cluster.observe(workflow.cell, 0).items()


@contextlib.contextmanager
def read_only(lab: Lab) -> Iterator[None]:
    """A policy of the cluster refuses what the account writes, for the length of a block."""
    base = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpol"
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "read-only"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"request.userInfo.username != '{ACCOUNT}'", "message": "a freeze"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "read-only"},
        "spec": {"policyName": "read-only", "validationActions": ["Deny"]},
    }
    account = Api(lab.state.server, Path(lab.state.ca), token=Credential.of(lab).token)
    probe = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "probe"}}

    def refuses() -> bool:
        try:
            account.post("/api/v1/namespaces?dryRun=All", probe)
        except ApiError as error:
            return "a freeze" in str(error)
        return False

    lab.api.ensure(f"{base}icies", policy)
    lab.api.ensure(f"{base}icybindings", binding)
    eventually(refuses, "the policy is in force")
    try:
        yield
    finally:
        lab.api.gone(f"{base}icybindings/read-only")
        lab.api.gone(f"{base}icies/read-only")
        eventually(lambda: not refuses(), "the policy is gone")


@each_workflow
def test_a_change_that_fails_is_diagnosed_and_repeated_after_an_approval(
    bench: Bench, cluster: Cluster, workflow: Workflow
) -> None:
    """Between the plan and the change the cluster freezes changes."""
    if workflow.cell.playbook == "upgrade":
        # The upgrade to the former release is finished.
        workflow = replace(workflow, cell=upgrade(EMPTY, "1.36"))
    url = launch(bench, cluster, workflow)
    bench.awx.wait(url, lambda job: steps(bench, url).get(workflow.before[-1]) == "pending" or job["status"] in ENDED)
    with read_only(cluster.lab):
        decide(bench, url, workflow.before[-1], "approve")
        bench.awx.wait(url, lambda job: steps(bench, url).get("approve_retry") == "pending" or job["status"] in ENDED)
    assert decide(bench, url, "approve_retry", "approve") == "Approve another try: the change failed"
    found = finish(bench, url, workflow)
    assert found.pop("diagnose") in ("successful", "failed")
    assert found.pop("change") == "failed"
    assert found == dict.fromkeys((*workflow.before, "approve_retry", "retry", *workflow.then), "successful")
    assert workflow.leaves.items() <= cluster.observe(workflow.cell, 0).items()


def test_a_plan_that_is_refused_ends_a_workflow_before_an_approval(bench: Bench, cluster: Cluster) -> None:
    handover = next(workflow for workflow in WORKFLOWS if workflow.name == "hand over nodes")
    # There is no other plugin.
    url = launch(bench, cluster, replace(handover, cell=replace(handover.cell, begins=OURS)))
    assert bench.awx.wait(url)["status"] == "failed"
    assert steps(bench, url) == {"plan": "failed"}


def test_a_blocker_ends_a_workflow_before_an_approval(bench: Bench, cluster: Cluster) -> None:
    cluster.lab.api.ensure(DEPLOYMENTS, BLOCKED)
    workflow = bench.awx.launch("workflow_job_templates/", "production enable CSI", to_answers(ENABLE))
    ended = bench.awx.wait(workflow)
    cluster.lab.api.gone(f"{DEPLOYMENTS}/orders")
    assert ended["status"] == "failed"
    assert steps(bench, workflow) == {"preflight": "failed", "preflight_blocked": "failed"}


@pytest.fixture(scope="module")
def staging(bench: Bench) -> Iterator[Lab]:
    """A second cluster in the same AWX."""
    lab = handle.start(f"real-awx-staging-{os.getpid()}")
    with also_holds(lab, "cluster-admin", "the-templates"):
        bench.add(lab, "staging", {})
        yield lab
    lab.stop()


@pytest.mark.parametrize("slices", [2, 3])
def test_slices_share_the_hosts(bench: Bench, staging: Lab, slices: int) -> None:
    # A change for each.
    limits = {"vsphere_csi_resources": {"driver": {"limits": {"memory": f"{slices}00Mi"}}}}
    answers = {"kubewin_batches": "100%", **limits}
    url = bench.awx.launch("job_templates/", "staging enable_csi", answers, job_slice_count=slices)
    ended = bench.awx.wait(url)
    jobs = [bench.awx.request("GET", node["related"]["job"]) for node in bench.awx.list(f"{url}workflow_nodes/")]
    assert ended["status"] == "successful", "\n".join(map(bench.explain, jobs))
    hosts = [row["host"] for job in jobs for row in bench.summary(job)["nodes"] if row["host"]]
    assert (len(jobs), sorted(hosts)) == (slices, sorted(host.name for host in staging.state.hosts))
    assert {bench.summary(job)["verdict"] for job in jobs} == {"green"}


CHANGING = (*CANCELLED, replace(MATRIX["upgrade", EMPTY], begins=OURS))


def begin(bench: Bench, cluster: Cluster, cell: Cell, moment: int) -> dict[str, Any]:
    """Prepare a cell, and answer its survey. moment: how often that was before."""
    answers = prepare(bench, cluster, cell)
    if cell.playbook == "convert_volumes":
        # Every other one rolls back what the former converted.
        answers["kubewin_convert_roll_back"] = ("no", "yes")[moment % 2]
    if cell.playbook == "upgrade":
        answers |= {"kubewin_upgrade_name": f"moment-{moment}", "kubewin_upgrade_tasks": "wait.yml"}
        del answers["kubewin_upgrade_target"]
    return answers


def ended_or_past(moment: float, job: Object) -> bool:
    """Whether a job has ended or a moment is over."""
    return job["status"] in ENDED or time.monotonic() > moment


def launch_changing(bench: Bench, cell: Cell, answers: dict[str, Any]) -> str:
    """Launch what changes something, and wait until it runs."""
    url = bench.awx.launch("job_templates/", f"production {cell.playbook}", answers)
    bench.awx.wait(url, lambda job: job["status"] in (*ENDED, "running"))
    return url


@pytest.mark.parametrize("moment", range(1, CANCELS + 1))
@pytest.mark.parametrize("cell", CHANGING, ids=lambda cell: cell.playbook)
def test_a_job_launched_at_once_after_a_cancel_ends_within_a_minute(
    bench: Bench, cluster: Cluster, cell: Cell, moment: int
) -> None:
    """Cancelled by the API at any moment of its run, which one run without a cancel measures."""
    if cell.playbook not in bench.alone:
        job = bench.awx.wait(launch_changing(bench, cell, begin(bench, cluster, cell, 0)))
        assert job["status"] == "successful", bench.explain(job)
        bench.alone[cell.playbook] = job["elapsed"]
    alone = bench.alone[cell.playbook]
    answers = begin(bench, cluster, cell, moment)
    running = launch_changing(bench, cell, answers)
    after = random.Random(f"{SEED}-{cell.playbook}-{moment}").uniform(0, alone)
    bench.awx.wait(running, partial(ended_or_past, time.monotonic() + after))
    cancelled = time.monotonic()
    # One that has ended cannot be cancelled.
    with contextlib.suppress(urllib.error.HTTPError):
        bench.awx.request("POST", f"{running}cancel/", {})
    following = bench.awx.launch("job_templates/", f"production {cell.playbook}", answers)
    former = bench.awx.wait(running)
    ended = time.monotonic() - cancelled
    bench.cut[cell.playbook] += former["status"] == "canceled"
    job = bench.awx.wait(following)
    story = f"{cell.playbook}, seed {SEED}, moment {moment}: {former['status']} after {former['elapsed']:.0f} s"
    print(f"{story}, ended after {ended:.0f} s; next job {job['elapsed']:.0f} s, one alone {alone:.0f} s")
    assert ended <= 60, story
    assert job["status"] == "successful", f"{story}:\n{bench.explain(job)}"
    assert job["elapsed"] <= alone + 60, f"{story}:\n{bench.explain(job)}"
    assert left_cordoned(cluster.lab) == [], story
    assert bench.cut[cell.playbook] or moment < CANCELS, "every job ended before it was cancelled"


def test_delete_removes_what_apply_created(bench: Bench, cluster: Cluster) -> None:
    run = bench.apply(cluster.lab, "production", "delete.yml")
    assert run.code == 0, run.screen
    kinds = ("job_templates", "workflow_job_templates", "schedules", "inventories", "credentials")
    left = [item["name"] for kind in kinds for item in bench.awx.list(f"{kind}/") if "production" in item["name"]]
    assert left == []


def test_no_secret_is_written_anywhere(bench: Bench, cluster: Cluster) -> None:
    bench.awx.dump_database()
    found = leaks(bench.awx.folder, Credential.of(cluster.lab).secrets)
    # AWX encrypts what it has stored, and PostgreSQL keeps the row before that in its files for a while.
    assert [name for name in found if not name.startswith("database/")] == []
