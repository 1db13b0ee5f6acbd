# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python side of the execution environment, built as its Containerfile builds it, without a container engine.

Kerberos is left out, because it needs the image's C libraries; tests/kerberos_tests has it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from integration.mesh import PROJECT
from integration.playbooks import PATIENCE, ROOT, lane

DEFINITION = yaml.safe_load((ROOT / "execution-environment.yml").read_text(encoding="utf-8"))["dependencies"]
COLLECTIONS = ROOT / ".collections"
PLAYBOOKS = sorted(path.stem for path in PROJECT.glob("*.yml") if path.stem not in ("settings", "windows_nodes"))


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the packages of the image, as the newest versions are today."""
    folder = tmp_path_factory.mktemp("image")
    playbook, _environment = lane(DEFINITION["ansible_core"]["package_pip"].partition("=")[2].removesuffix(".0"))
    run(folder, str(Path(playbook).parent / "python"), "-m", "venv", str(folder / "venv"))
    packages = [DEFINITION[name]["package_pip"] for name in ("ansible_core", "ansible_runner")]
    for collection in (ROOT, COLLECTIONS / "ansible_collections" / "kubernetes" / "core"):
        packages += ["-r", str(collection / "requirements.txt")]
    installed = run(folder, "pip", "install", "--quiet", *packages)
    assert installed.returncode == 0, installed.stderr
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as in the image: nothing of the machine but its PATH."""
    environment = {
        "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        # Nothing listens there.
        "K8S_AUTH_HOST": "https://127.0.0.1:9",
        "K8S_AUTH_API_KEY": "token",
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.torture
def test_the_packages_fit_together(image: Path) -> None:
    checked = run(image, "pip", "check")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.torture
@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_ansible_of_the_image_reads_each_playbook_of_the_project(image: Path, playbook: str) -> None:
    checked = run(image, "ansible-playbook", "-i", "localhost,", "--syntax-check", str(PROJECT / f"{playbook}.yml"))
    assert checked.returncode == 0, checked.stderr


@pytest.mark.torture
def test_a_job_in_the_image_ends_with_its_summary(image: Path) -> None:
    shutil.copytree(PROJECT, image / "job" / "project")
    for name, content in (("inventory/hosts", "localhost\n"), ("env/extravars", '{"kubewin_cluster_only": "yes"}')):
        (image / "job" / name).parent.mkdir()
        (image / "job" / name).write_text(content, encoding="utf-8")
    job = run(image, "ansible-runner", "run", "job", "-p", "preflight.yml", "--ident", "1")
    assert job.returncode == 2, job.stderr
    assert "no response from the API server" in job.stdout
    assert "errantly sent data" not in job.stdout + job.stderr
    files = (image / "job" / "artifacts" / "1" / "job_events").glob("*.json")
    events = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    (statistics,) = [event["event_data"]["artifact_data"] for event in events if event["event"] == "playbook_on_stats"]
    assert statistics["kubewin_summary"]["outcome"] == "refused"
