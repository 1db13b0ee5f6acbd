# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every included file has a fixed name: ansible-core 2.16 and 2.18 end a run at a static import in a file whose name is computed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/*/*.yml"), *ROOT.glob("extensions/**/*.yml")])
KEYWORDS = ("include_tasks", "import_tasks")
# The user's own file of tasks, and a file of a folder that molecule names.
OF_USERS = {"{{ kubewin_inputs.upgrade_tasks }}"}
OF_MOLECULE = "{{ lookup('ansible.builtin.env', 'MOLECULE_SCENARIO_DIRECTORY') }}/"


def includes(content: Any) -> Iterator[str]:
    """The file of every include and import of tasks, however deep it is nested."""
    if isinstance(content, list):
        for entry in content:
            yield from includes(entry)
    elif isinstance(content, dict):
        for key, value in content.items():
            if str(key).rpartition(".")[2] in KEYWORDS:
                yield str(value["file"] if isinstance(value, dict) else value)
            else:
                yield from includes(value)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_path_of_an_include_is_computed(file: Path) -> None:
    paths = set(includes(list(yaml.safe_load_all(file.read_text(encoding="utf-8"))))) - OF_USERS
    assert [path for path in paths if "{{" in path.removeprefix(OF_MOLECULE)] == []


@pytest.mark.parametrize("file", sorted((ROOT / "playbooks" / "tasks").glob("*.yml")), ids=lambda file: file.name)
def test_a_file_of_tasks_has_tasks(file: Path) -> None:
    """Ansible imports an empty file without a word."""
    assert yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", sorted((ROOT / "playbooks" / "tasks").glob("*.yml")), ids=lambda file: file.name)
def test_an_include_names_the_folder_of_its_file(file: Path) -> None:
    """Ansible searches a bare name in the current directory first, where a user may have a csi_proxy.yml too."""
    bare = re.findall(r"include_tasks: (?!\"?\.\./tasks/)(.*)", file.read_text(encoding="utf-8"))
    assert bare == []
