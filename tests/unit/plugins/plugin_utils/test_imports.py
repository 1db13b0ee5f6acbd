# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which folder of plugin_utils may import which: features stand on those below them, and deciding code does no I/O."""

from __future__ import annotations

import ast
from importlib.util import resolve_name
from pathlib import Path

import pytest

PLUGIN_UTILS = Path(__file__).parents[4] / "plugins" / "plugin_utils"
PREFIX = "ansible_collections.kubewin.csi.plugins.plugin_utils."

# From the lowest to the highest, each with the folders that it may import.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "catalog": {"base"},
    "kube": {"base", "catalog"},
    "drivers": {"base", "catalog", "kube"},
    "windows": {"base", "catalog", "kube"},
    "preflight": {"base", "catalog", "kube", "drivers"},
    "verify": {"base", "catalog", "kube", "drivers"},
    "data": {"base", "kube", "verify"},
    "inventory": {"base", "catalog", "kube", "drivers"},
    "upgrade": {"base", "catalog", "kube", "drivers", "preflight"},
    "support": {"base", "catalog", "kube", "drivers", "windows", "preflight"},
    "convert": {"base", "catalog", "kube", "drivers", "preflight", "verify", "data"},
}
MAY_IMPORT["actions"] = set(MAY_IMPORT)
# What talks to the API server or to files: no file that decides imports it.
TALKS = {
    "kube.apply",
    "kube.client",
    "kube.connect",
    "kube.fencing",
    "kube.lease",
    "kube.permissions",
    "kube.quiesce",
    "kube.store",
    "kube.streams",
    "kube.transport",
    "base.files",
}
PERFORMS = {
    "apply",
    "baselines",
    "cleanup",
    "gate",
    "installed",
    "journal_store",
    "lease",
    "lease_keeper",
    "observe",
    "observed_uses",
    "play",
    "read",
    "records",
    "report",
    "run",
}


def imports(path: Path) -> set[str]:
    """What a file imports of plugin_utils, as "kube.client"."""
    package = PREFIX + ".".join(path.relative_to(PLUGIN_UTILS).parent.parts)
    modules = [
        (resolve_name("." * node.level + (node.module or ""), package), node.names)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    return {
        found
        for module, names in modules
        if f"{module}.".startswith(PREFIX)
        for found in ({f"{module[len(PREFIX) :]}.{one.name}".strip(".") for one in names} | {module[len(PREFIX) :]})
    }


def files(folder: str) -> list[Path]:
    return [path for path in (PLUGIN_UTILS / folder).rglob("*.py") if path.name != "__init__.py"]


def test_each_folder_has_a_rule() -> None:
    assert {path.name for path in PLUGIN_UTILS.iterdir() if (path / "__init__.py").exists()} == set(MAY_IMPORT)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_what_is_below_it(folder: str) -> None:
    wrong = {
        f"{path.relative_to(PLUGIN_UTILS)} imports {name}"
        for path in files(folder)
        for name in imports(path)
        if name.split(".")[0] in MAY_IMPORT and name.split(".")[0] not in MAY_IMPORT[folder] | {folder}
    }
    assert not wrong


@pytest.mark.parametrize("folder", [name for name in MAY_IMPORT if name not in {"kube", "windows", "actions"}])
def test_code_that_decides_does_no_io(folder: str) -> None:
    wrong = {
        f"{path.relative_to(PLUGIN_UTILS)} imports {name}"
        for path in files(folder)
        if path.stem not in PERFORMS
        for name in imports(path)
        if name in TALKS or performs(folder, name)
    }
    assert not wrong


def test_no_action_imports_another_one() -> None:
    actions = sorted((PLUGIN_UTILS.parent / "action").glob("*.py"))
    wrong = {
        f"{path.name}: {ast.unparse(node)}"
        for path in actions
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level == 1
    }
    assert actions
    assert not wrong


def performs(folder: str, module: str) -> bool:
    """Whether it is one of the folder's files that do I/O."""
    names = module.split(".")
    path = (PLUGIN_UTILS / "/".join(names)).with_suffix(".py")
    return names[0] == folder and names[-1] in PERFORMS and path.exists()
