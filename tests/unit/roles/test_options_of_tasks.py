# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the playbooks and roles give the collection's modules the options that they have, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted(
    [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml"), *ROOT.glob("roles/*/handlers/*.yml")]
)
OURS = "kubewin.csi."
MODULES = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}


def tasks(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, list):
        for one in value:
            yield from tasks(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            name = str(key).removeprefix(OURS)
            if str(key).startswith(OURS) and name in MODULES and isinstance(one, dict):
                yield name, one
            yield from tasks(one)


def options(name: str) -> set[str]:
    documented = yaml.safe_load(import_module(f"ansible_collections.kubewin.csi.plugins.modules.{name}").DOCUMENTATION)
    found = set(documented.get("options") or {})
    for fragment in documented.get("extends_documentation_fragment", []):
        namespace, collection, stem, *part = fragment.split(".")
        module = import_module(f"ansible_collections.{namespace}.{collection}.plugins.doc_fragments.{stem}")
        text = getattr(module.ModuleDocFragment, part[0].upper() if part else "DOCUMENTATION")
        found |= set(yaml.safe_load(text).get("options") or {})
    return found


def test_there_are_tasks() -> None:
    assert len([one for path in FILES for one in tasks(yaml.safe_load(path.read_text(encoding="utf-8")))]) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tasks_give_options_that_exist(path: Path) -> None:
    """A variable that gets another name must not take an option of the same name along."""
    found = tasks(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert {name: set(given) - options(name) for name, given in found if set(given) - options(name)} == {}
