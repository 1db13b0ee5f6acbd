# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every dataclass of plugin_utils: each field is read somewhere, and its docstring names existing fields."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.modules import upgrade, verify

PLUGINS = Path(__file__).parents[4] / "plugins"
PLUGIN_UTILS = PLUGINS / "plugin_utils"

# csi_proxy_info returns these dataclasses with all their fields.
FACTS_RETURNED_WHOLE = PLUGIN_UTILS / "windows" / "model.py"
# Modules that return a dataclass with all its fields, which they document.
DOCUMENTED_BY = {"VerifyResult": verify, "UpgradeStepResult": upgrade}

# "name:" or "one, other:" at the start of a sentence, which is how docstrings here describe fields.
_DESCRIBED = re.compile(r"(?:^|[.)]\s+)((?:[a-z][a-z0-9_]*, )*[a-z][a-z0-9_]*)(?: \([^)]*\))?: ")


@dataclass(frozen=True)
class Shape:
    """A dataclass as its source shows it."""

    name: str
    fields: frozenset[str]
    doc: str


def is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def shapes() -> list[Shape]:
    found = []
    for path in sorted(PLUGIN_UTILS.rglob("*.py")):
        if path == FACTS_RETURNED_WHOLE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and is_dataclass(node):
                names = [
                    one.target.id
                    for one in node.body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                ]
                found.append(Shape(node.name, frozenset(names), " ".join((ast.get_docstring(node) or "").split())))
    return found


def read_names() -> set[str]:
    """Every attribute that is read anywhere in the plugins."""
    return {
        node.attr
        for path in PLUGINS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


READ = read_names()
SHAPES = pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.name)


@SHAPES
def test_every_field_is_read(shape: Shape) -> None:
    module = DOCUMENTED_BY.get(shape.name)
    assert not shape.fields - READ - set(yaml.safe_load(module.RETURN) if module else ())


@SHAPES
def test_the_docstring_names_fields_that_exist(shape: Shape) -> None:
    described = {name for group in _DESCRIBED.findall(shape.doc) for name in group.split(", ")}
    assert described <= shape.fields
