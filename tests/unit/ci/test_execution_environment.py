# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The execution environment has this release, a tested ansible-core, and nothing that its page does not explain."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ci import paths, venvs
from packaging.requirements import Requirement

WHOLE = yaml.safe_load((paths.ROOT / "execution-environment.yml").read_text(encoding="utf-8"))
DEFINITION = WHOLE["dependencies"]
PAGE = paths.ROOT / "docs" / "docsite" / "rst" / "guide_execution_environment.rst"
# What the tests of its ansible-core line run with, and of Kerberos.
TESTED = ("core-2.21", "libs", "kerberos", "tests")


def lines(name: str) -> list[str]:
    """Lines of a requirement file of the collection, without comments."""
    text = (paths.ROOT / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_image_has_this_release_and_a_tested_ansible_core() -> None:
    version = yaml.safe_load((paths.ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert DEFINITION["galaxy"]["collections"] == [{"name": "kubewin.csi", "version": version}]
    core = DEFINITION["ansible_core"]["package_pip"]
    assert core.removeprefix("ansible-core~=").removesuffix(".0") in {
        name.removeprefix("core-") for name in venvs.CORES
    }


@pytest.mark.parametrize(
    "line",
    [DEFINITION["ansible_core"]["package_pip"], DEFINITION["ansible_runner"]["package_pip"]]
    + [line for name in ("requirements.txt", "meta/ee-requirements.txt") for line in lines(name) if "-r " not in line],
)
def test_the_image_takes_packages_as_they_are_tested(line: str) -> None:
    pins = dict(
        pin.split("==")
        for name in TESTED
        for pin in re.findall(r"^[\w-]+==[\w.]+", "\n".join(lines(f"tests/requirements/{name}.txt")), re.MULTILINE)
    )
    requirement = Requirement(line)
    assert requirement.specifier.contains(pins[requirement.name])


def test_the_image_has_no_runner_that_writes_beside_its_events_and_no_client_of_a_subscription() -> None:
    assert not Requirement(DEFINITION["ansible_runner"]["package_pip"]).specifier.contains("2.4.2")
    assert DEFINITION["exclude"]["system"] == ["openshift-clients"]


def test_the_workflow_builds_the_same_image_from_the_tarball_of_its_commit(tmp_path: Path) -> None:
    workflow = yaml.safe_load((paths.ROOT / ".github/workflows/execution-environment.yml").read_text(encoding="utf-8"))
    (build,) = (
        step for step in workflow["jobs"]["build"]["steps"] if step.get("name", "").startswith("Build the image")
    )
    make = tmp_path / "bin" / "make"
    make.parent.mkdir()
    make.write_text(
        "#!/bin/sh\nmkdir -p .work/release; echo tarball > .work/release/kubewin-csi-1.0.0.tar.gz\n", "utf-8"
    )
    make.chmod(0o755)
    (tmp_path / "execution-environment.yml").symlink_to(paths.ROOT / "execution-environment.yml")
    search = {"PATH": f"{make.parent}{os.pathsep}{os.environ['PATH']}", "IMAGE": "kubewin-ee:ci"}
    subprocess.run(["bash", "-e"], cwd=tmp_path, env=search, input=build["run"], text=True, check=True)
    built = yaml.safe_load((tmp_path / "image" / "execution-environment.yml").read_text(encoding="utf-8"))
    (file,) = built.pop("additional_build_files")
    assert (tmp_path / "image" / file["src"]).is_file()
    collection = {"name": f"{file['dest']}/{file['src']}", "type": "file"}
    assert built == {**WHOLE, "dependencies": {**DEFINITION, "galaxy": {"collections": [collection]}}}


def test_the_base_image_is_pinned_by_its_digest() -> None:
    assert re.fullmatch(r"[a-z0-9./-]+:[a-z0-9.-]+@sha256:[0-9a-f]{64}", WHOLE["images"]["base_image"]["name"])


def test_kerberos_is_added_to_the_connections_of_every_controller() -> None:
    packages = [line for line in lines("meta/ee-requirements.txt") if not line.startswith("-r ")]
    assert [line.replace("[kerberos]", "") for line in packages] == [
        line for line in lines("requirements.txt") if line.startswith(("pypsrp", "pywinrm"))
    ]


def test_the_page_gives_a_reason_for_each_package() -> None:
    table = (
        PAGE.read_text(encoding="utf-8").partition("What is in the image")[2].partition("meta/execution-environment")[0]
    )
    explained = set(re.findall(r"``([\w.-]+)``", table))
    packages = [re.split(r"[>\[ ]", line)[0] for line in lines("requirements.txt")]
    packages += [line.split()[0] for line in lines("bindep.txt") if "rpm" in line]
    packages += [line.split()[0] for line in DEFINITION["system"]]
    packages += [DEFINITION["python_interpreter"]["package_system"], "ansible-core", "ansible-runner", "kubewin.csi"]
    assert set(packages) <= explained
