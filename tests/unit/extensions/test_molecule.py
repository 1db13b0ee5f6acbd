# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios of molecule: which of them may touch a user's own hosts, and that each runs its playbook twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab.cluster.nodes import KUBELET_VERSION

ROOT = Path(__file__).parents[3]
MOLECULE = ROOT / "extensions" / "molecule"
GUIDE = (ROOT / "docs" / "docsite" / "rst" / "guide_molecule.rst").read_text(encoding="utf-8")
SCENARIOS = sorted(file.parent.name for file in MOLECULE.glob("*/molecule.yml") if file.parent.name != "default")


def loaded(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def guide() -> dict[str, str]:
    """The guide's table of a user's own hosts, by scenario."""
    return dict(re.findall(r"^   \* - ``(\w+)``\n     - .*\n     - (.*)\n     - \d+ (?:s|min)$", GUIDE, re.MULTILINE))


def test_the_guide_has_every_scenario() -> None:
    assert sorted(guide()) == SCENARIOS


def test_the_commands_work_in_an_installed_collection() -> None:
    """Without galaxy.yml molecule looks for molecule/*/molecule.yml below the current directory, and for no configuration."""
    before_the_lab = GUIDE.partition("Run the scenarios on a lab")[0]
    commands = re.findall(r"^   \$ (?:\w+=\S+ )?molecule (.*)", before_the_lab, re.MULTILINE)
    assert [command.split(" -s ")[0] for command in commands] == ["-c molecule/config.yml test"] * 3
    (folder,) = re.findall(r"^   \$ cd .*/kubewin/csi/(\w+)$", before_the_lab, re.MULTILINE)
    assert (ROOT / folder / "molecule" / "config.yml").is_file()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_for_the_lab_alone_stops_first_on_other_hosts(name: str) -> None:
    first = MOLECULE / name / "side_effect.yml"
    while first.exists() and first.name != "lab_only.yml":
        imported = loaded(first)[0].get("ansible.builtin.import_playbook", "")
        first = (
            first.parent / imported
            if imported.startswith("..") or (first.parent / imported).is_file()
            else Path("none")
        )
    assert (first.name == "lab_only.yml") == (guide()[name] == "Lab only")


def test_the_upgrades_of_all_scenarios_fit_below_the_api_server() -> None:
    """Each upgrades the kubelets of the shared lab by one minor release."""
    preparations = [file.read_text(encoding="utf-8") for file in MOLECULE.glob("*/side_effect.yml")]
    upgrades = sum("before_upgrade.yml" in text for text in preparations)
    kubelets = re.findall(
        r"--kubelet=(\S+)=v1\.(\d+)", (MOLECULE / "default" / "create.yml").read_text(encoding="utf-8")
    )
    assert [node for node, _minor in kubelets] == ["win-1", "win-2", "win-3"]
    (first,) = {int(minor) for _node, minor in kubelets}
    assert upgrades == 3
    assert first + upgrades <= int(KUBELET_VERSION.split(".")[1])


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_runs_its_playbook_a_second_time(name: str) -> None:
    settings = {
        **loaded(MOLECULE / "config.yml")["scenario"],
        **((loaded(MOLECULE / name / "molecule.yml") or {}).get("scenario") or {}),
    }
    steps = settings["test_sequence"]
    assert steps[steps.index("converge") + 1] == "idempotence"
    # A step without its playbook would be left out without a word.
    assert [step for step in steps if step != "idempotence" and not (MOLECULE / name / f"{step}.yml").is_file()] == []
