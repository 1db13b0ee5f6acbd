# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workflows give what the tooling asks for, and run what it has."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ci import machine, paths, venvs
from integration import real_awx
from unit.plugins.shown import BESIDE, blocks

GITHUB = paths.ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SETUP = yaml.safe_load((GITHUB / "actions" / "setup" / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in WORKFLOWS:
        for name, job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].items():
            yield f"{file.stem}: {name}", job


def given(action: str, name: str) -> str:
    """An input that the setup gives to another action."""
    (found,) = (step["with"][name] for step in SETUP if step.get("uses", "").startswith(f"{action}@"))
    return str(found)


def commands() -> str:
    return "\n".join(step["run"] for _name, job in jobs() for step in job["steps"] if "run" in step)


def test_the_setup_installs_what_the_tooling_would_ask_for() -> None:
    (line,) = (found for step in SETUP for found in step.get("run", "").splitlines() if "apt-get install" in found)
    packages = {word for word in line.partition("--no-install-recommends")[2].split() if not word.startswith("-")}
    # GitHub's images have a Chrome.
    assert packages == {*machine.NEEDED, *machine.FOR_CHECKS, *machine.FOR_WINE}


def test_the_nightly_run_installs_what_the_tests_of_kerberos_need() -> None:
    (line,) = (found for found in commands().splitlines() if "krb5-kdc" in found)
    assert set(line.partition("--no-install-recommends")[2].split()) == set(machine.FOR_KERBEROS)


def test_the_nightly_run_fetches_the_awx_of_its_tests_as_contributors_do() -> None:
    page = next(page for page in BESIDE if page.name == "CONTRIBUTING.md")
    (block,) = (block.text for block in blocks(page) if "AWX_SOURCE" in block.text)
    needed = [line.removeprefix("$ ") for line in block.splitlines()]
    assert f" -b {real_awx.RELEASE} " in block
    assert [line for line in commands().splitlines() if line in needed] == needed


def test_the_setup_has_a_python_for_every_line_and_a_new_enough_go() -> None:
    pythons = given("actions/setup-python", "python-version").split()
    assert [name for name, lines in venvs.LANES.items() if lines[0] not in pythons] == []
    major, minor = given("actions/setup-go", "go-version").split(".")
    assert (int(major), int(minor)) >= machine.go_needed()


def test_every_line_has_its_unit_tests() -> None:
    (cores,) = (
        job["strategy"]["matrix"]["core"]
        for _name, job in jobs()
        if "core" in job.get("strategy", {}).get("matrix", {})
    )
    assert {f"core-{core}" for core in cores} == set(venvs.CORES)


def test_every_target_is_one_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (paths.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = set(re.findall(r"^\s*(?:AWX_SOURCE=\S+ )?make ([a-z-]+)", commands(), re.MULTILINE))
    assert called <= targets
    assert {"check", "unit", "lab-tests", "torture"} <= called


@pytest.mark.parametrize("file", [*WORKFLOWS, GITHUB / "actions" / "setup" / "action.yml"], ids=lambda file: file.stem)
def test_actions_of_others_are_pinned_by_commit_with_their_release(file: Path) -> None:
    used = re.findall(r"uses: (?!\./)(.*)", file.read_text(encoding="utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", one)] == []


@pytest.mark.parametrize(("name", "job"), list(jobs()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_job_ends_and_keeps_no_credentials(name: str, job: dict[str, Any]) -> None:
    assert job["timeout-minutes"] <= 350, name
    checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert [step for step in checkouts if step["with"].get("persist-credentials") is not False] == []


def test_scripts_that_actionlint_does_not_read_are_shell() -> None:
    scripts = [step["run"] for _name, job in jobs() for step in job["steps"] if "wsl-bash" in step.get("shell", "")]
    assert scripts
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script, text=True, check=False, capture_output=True)
        assert done.stderr == ""


def test_files_that_the_windows_workflow_starts_are_there() -> None:
    named = {word.replace("\\", "/") for word in commands().split() if re.match(r"tests\W.*\.(sh|ps1|yml)$", word)}
    assert {"tests/real_windows/prepare.ps1", "tests/real_windows/accept.sh"} <= named
    assert [name for name in named if not (paths.ROOT / name).is_file()] == []


def test_the_controller_in_wsl_starts_the_plays_as_the_script_says(tmp_path: Path) -> None:
    program = tmp_path / "controller" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"; env\n', encoding="utf-8")
    program.chmod(0o755)
    command = ["bash", "tests/real_windows/accept.sh", "--transcripts", "a b", "ssh"]
    done = subprocess.run(
        command, cwd=paths.ROOT, env={"HOME": str(tmp_path)}, text=True, check=True, capture_output=True
    )
    first, *variables = done.stdout.splitlines()
    assert first == "-m real_windows --binaries binaries --transcripts a b ssh"
    assert f"ANSIBLE_COLLECTIONS_PATH={tmp_path}/collections" in variables
    assert f"KUBEWIN_WINDOWS_CA={paths.ROOT}/.work/windows.pem" in variables
