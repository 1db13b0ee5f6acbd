# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What README and guides show can be typed: playbooks that exist, variables that are documented, values and options that fit."""

from __future__ import annotations

import importlib
import itertools
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import CLUSTER_ARG_SPEC
from ansible_collections.kubewin.csi.plugins.plugin_utils.inputs import wrong

ROOT = Path(__file__).parents[3]
RST = ROOT / "docs" / "docsite" / "rst"
PAGES = [ROOT / "README.md", *sorted(RST.glob("*.rst"))]
DOCUMENTED = "".join((RST / name).read_text(encoding="utf-8") for name in ("variables.rst", "guide_build.rst"))
PREFIX = "kubewin.csi."
# Reference and explanation, and how-tos that show tasks, an inventory, the lab or code.
WITHOUT_COMMANDS = [
    *("exit_codes", "findings", "glossary"),
    *("guide_data", "guide_inventory", "guide_lab", "guide_new_driver"),
    *("how_it_works", "platforms", "rbac", "readiness_report", "variables"),
]


def commands(page: Path) -> list[list[str]]:
    """Every ansible-playbook line of a page that names one of our playbooks, in words."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    lines = re.findall(r"^\s*\$ (ansible-playbook .*)$", text, re.MULTILINE)
    found = [shlex.split(line, comments=True) for line in lines]
    return [words for words in found if any(word.startswith(PREFIX) for word in words)]


def test_every_other_page_shows_a_command() -> None:
    assert [page.stem for page in PAGES if not commands(page)] == WITHOUT_COMMANDS


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in WITHOUT_COMMANDS], ids=lambda page: page.stem
)
def test_a_command_names_a_playbook_that_is_there_and_variables_that_it_takes(page: Path) -> None:
    for words in commands(page):
        (playbook,) = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
        assert (ROOT / "playbooks" / f"{playbook}.yml").is_file(), words
        given = dict(after.split("=", 1) for word, after in itertools.pairwise(words) if word == "-e")
        for name in given:
            if name.startswith("kubewin_"):
                assert f"``{name}``" in DOCUMENTED, (name, words)
        assert wrong(given) == []


def tasks(found: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every task of one of our modules in it, with its options."""
    if isinstance(found, list):
        for one in found:
            yield from tasks(one)
    elif isinstance(found, dict):
        for key, value in found.items():
            if key.startswith(PREFIX) and isinstance(value, dict):
                yield key.removeprefix(PREFIX), value
            elif key in ("tasks", "block"):
                yield from tasks(value)


def modules() -> list[tuple[str, dict[str, Any]]]:
    """Of all pages."""
    found: list[tuple[str, dict[str, Any]]] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        indented = re.findall(r"code-block:: yaml\n\n(( +).*\n(?:\2.*\n|\n)*)", text)
        blocks += [textwrap.dedent(block) for block, _indent in indented]
        for block in blocks:
            if PREFIX in block:
                found += tasks(yaml.safe_load(block))
    return found


def test_a_task_has_options_that_its_module_takes() -> None:
    shown = modules()
    assert [name for name, _options in shown].count("workload_data") == 2
    for name, options in shown:
        module = importlib.import_module(f"ansible_collections.kubewin.csi.plugins.modules.{name}")
        taken = {**CLUSTER_ARG_SPEC, **module.ARGUMENT_SPEC}
        assert set(options) <= set(taken), name
        assert {key for key, spec in module.ARGUMENT_SPEC.items() if spec.get("required")} <= set(options), name


def test_a_how_to_begins_with_a_command() -> None:
    for page in RST.glob("guide_*.rst"):
        text = page.read_text(encoding="utf-8")
        if page.stem in ("guide_lab", "guide_new_driver"):
            continue
        assert ".. code-block::" in text.split("\n---", 1)[0], page.stem


def test_the_glossary_is_short_and_sorted() -> None:
    terms = re.findall(r"^   (\S.*)$", (RST / "glossary.rst").read_text(encoding="utf-8"), re.MULTILINE)
    assert terms == sorted(terms, key=str.casefold)
    assert 1 < len(terms) <= 25


def test_links_of_the_readme_work_outside_the_repository() -> None:
    base = "https://github.com/kubewin/csi/blob/main/"
    raw = "https://raw.githubusercontent.com/kubewin/csi/main/"
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[0].read_text(encoding="utf-8")):
        assert link.startswith(("https://", "#")), link
        for prefix in (base, raw):
            if link.startswith(prefix):
                assert (ROOT / link.removeprefix(prefix)).is_file(), link


def test_how_upgrade_data_and_conversion_are_used_is_in_the_readme() -> None:
    played = {word for words in commands(PAGES[0]) for word in words}
    assert {f"{PREFIX}upgrade", f"{PREFIX}convert_volumes", f"{PREFIX}enable_csi"} <= played
