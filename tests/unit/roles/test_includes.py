# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file whose name depends on results of a run holds no static import: ansible-core 2.16 ends such a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined, UndefinedError

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = re.compile(r'include_tasks: *"(?P<folder>[\w/]*)\{\{ (?P<name>.*) \}\}"')
# What 2.16 knows when it loads a file: variables of roles and the command line, no facts and no results.
KNOWN: dict[str, object] = {"_kubewin_inventory_hosts": []}


def included_by_results() -> Iterator[Path]:
    """Files of tasks that are included by an expression which is unknown before the run."""
    for file in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]:
        for found in INCLUDE.finditer(file.read_text(encoding="utf-8")):
            try:
                Environment(undefined=StrictUndefined).from_string(f"{{{{ {found['name']} }}}}").render(KNOWN)
            except UndefinedError:
                for name in re.findall(r"'(\w+\.yml)'", found["name"]):
                    yield file.parent / found["folder"] / name


@pytest.mark.parametrize("file", sorted(set(included_by_results())), ids=lambda file: file.name)
def test_it_includes_and_does_not_import(file: Path) -> None:
    assert re.findall(r"import_\w+: .*", file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("file", sorted((ROOT / "playbooks" / "tasks").glob("*.yml")), ids=lambda file: file.name)
def test_an_include_names_the_folder_of_its_file(file: Path) -> None:
    """Ansible searches a bare name in the current directory first, where a user may have a csi_proxy.yml too."""
    bare = re.findall(r"include_tasks: (?!\"?\.\./tasks/)(.*)", file.read_text(encoding="utf-8"))
    assert bare == []
