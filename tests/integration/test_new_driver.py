# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide that adds a seventh driver, followed word by word in a copy of the collection, up to a green node."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.kube import also_holds
from integration.playbooks import ROOT, play
from lab import handle
from lab.cluster import access
from lab.handle import Lab

GUIDE = Path("docs/docsite/rst/guide_new_driver.rst")
KEY = "example_disk"
# What a checkout holds besides what tools put there.
KEPT = (
    "ansible.cfg",
    "docs",
    "extensions",
    "galaxy.yml",
    "meta",
    "playbooks",
    "plugins",
    "pyproject.toml",
    "roles",
    "tests",
)
BLOCK = re.compile(
    r"^\.\. code-block:: (?P<kind>\S+)\n(?:   :caption: (?P<file>\S+)\n)?\n(?P<text>(?:   .*\n|\n)+)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the guide: a file to write, a change to a file, or commands."""

    kind: str
    file: str
    text: str


def blocks(guide: Path) -> list[Block]:
    found = BLOCK.finditer(guide.read_text(encoding="utf-8"))
    return [Block(one["kind"], one["file"] or "", textwrap.dedent(one["text"]).rstrip() + "\n") for one in found]


def follow(block: Block, checkout: Path) -> str:
    """Do what a reader does with a block; what the commands printed."""
    if block.kind == "console":
        lines = [line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")]
        return run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], checkout)
    if block.kind == "diff":
        return run(["git", "apply", "-"], checkout, block.text)
    path = checkout / block.file
    assert not path.exists(), f"{block.file} is there already"
    path.write_text(block.text, encoding="utf-8")
    return ""


def run(command: list[str], checkout: Path, given: str = "") -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    # Tests in the copy import the copy, and are no part of this run.
    for name in [name for name in environment if name.startswith(("PYTEST_", "COV_")) or name == "PYTHONPATH"]:
        del environment[name]
    environment["GIT_CEILING_DIRECTORIES"] = str(checkout.parent)
    done = subprocess.run(
        command, cwd=checkout, input=given, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout with the link tree that `make` keeps."""
    copy = tmp_path_factory.mktemp("newcomer") / "kubewin.csi"
    copy.mkdir()
    for name in KEPT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(source, copy / name)
    collections = copy / ".collections" / "ansible_collections"
    (collections / "kubewin").mkdir(parents=True)
    (collections / "kubewin" / "csi").symlink_to(copy)
    (collections / "kubernetes").symlink_to(ROOT / ".collections" / "ansible_collections" / "kubernetes")
    return copy


@pytest.fixture(scope="module")
def printed(checkout: Path) -> list[str]:
    """What the guide's steps print, done in the copy."""
    steps = blocks(checkout / GUIDE)
    assert [step.kind for step in steps] == ["python", "diff", "yaml+jinja", "console", "console"]
    return [follow(step, checkout) for step in steps]


@pytest.fixture(scope="module")
def one() -> Iterator[Lab]:
    made = handle.start(f"newcomer-{os.getpid()}", nodes=1)
    # The roles of a driver name its objects, so that a new one has its own.
    rbac = "rbac.authorization.k8s.io"
    written = {"verbs": ["get", "create", "patch"]}
    account, role = f"kubewin-{KEY.replace('_', '-')}-csi-node", f"kubewin-csi-{KEY.replace('_', '-')}"
    rules = [
        {**written, "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [account]},
        {**written, "apiGroups": [rbac], "resources": ["clusterroles", "clusterrolebindings"], "resourceNames": [account]},
        {"verbs": ["bind"], "apiGroups": [rbac], "resources": ["clusterroles"], "resourceNames": [account]},
        {**written, "apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "resourceNames": ["example-disk-csi-windows"]},
        {**written, "apiGroups": ["storage.k8s.io"], "resources": ["csidrivers"], "resourceNames": ["disk.csi.example.com"]},
        {**written, "apiGroups": ["apps"], "resources": ["daemonsets"], "resourceNames": ["csi-example-disk-node-win"]},
    ]  # fmt: skip
    made.api.ensure(f"{access.RBAC}/clusterroles", {
        "apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules,
    })  # fmt: skip
    access.bind(made.api, role, access.ACCOUNT)
    with also_holds(made, "kubewin-csi-cluster-objects"):
        yield made
    made.stop()


def test_the_guide_leads_to_a_driver_that_holds_what_every_driver_holds(checkout: Path, printed: list[str]) -> None:
    assert re.search(r"\d+ passed", printed[-1]), printed[-1]
    made = {path.name for path in (checkout / "tests/unit/manifests").glob(f"{KEY}-*")}
    assert made == {f"{KEY}-csi_proxy-{version}.manifest" for version in ("1.4.2", "1.5.0")}
    page = (checkout / "roles" / f"{KEY}_csi" / "README.md").read_text(encoding="utf-8")
    assert not re.search("gce|gke|google", page, re.IGNORECASE)


@pytest.mark.turn(3, 4)
@pytest.mark.usefixtures("printed")
def test_the_playbooks_deploy_it_and_a_second_run_changes_nothing(checkout: Path, one: Lab) -> None:
    variables = {"kubewin_drivers": KEY, "kubewin_create_cluster_objects": "yes"}
    inventory = one.state.inventories["ntlm-http"]
    first, second = (
        play("playbooks/enable-csi.yml", inventory, *arguments, variables=variables, root=checkout)
        for arguments in ((), ("--tags", "driver"))
    )
    assert first.code == 0, first.screen
    assert [row["verdict"] for row in first.summary["nodes"]] == ["green"]
    drivers = one.api.get("/apis/storage.k8s.io/v1/csinodes/win-1")["spec"]["drivers"]
    assert [entry["name"] for entry in drivers] == ["disk.csi.example.com"]
    assert (second.code, second.changed) == (0, []), second.screen
