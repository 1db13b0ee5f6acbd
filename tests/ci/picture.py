"""`make picture`: draws in CONTRIBUTING.md which folder of plugin_utils imports which, as the code has it."""

from __future__ import annotations

import ast
from importlib.util import resolve_name
from pathlib import Path

from . import paths

PLUGIN_UTILS = paths.ROOT / "plugins" / "plugin_utils"
PREFIX = "plugins.plugin_utils."
PAGE = paths.ROOT / "CONTRIBUTING.md"
BEGIN, END = "```mermaid\ngraph TD\n", "```\n"


def imported(folder: Path) -> set[str]:
    """The names right under plugin_utils that the files of a folder import."""
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        package = PREFIX + ".".join(path.relative_to(folder.parent).parent.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                module = resolve_name("." * node.level + (node.module or ""), package)
                names = (f"{module}.{one.name}" for one in node.names)
                found.update(name[len(PREFIX) :].split(".")[0] for name in names if name.startswith(PREFIX))
    return found


def arrows(root: Path = PLUGIN_UTILS) -> dict[str, set[str]]:
    """Each folder with the folders that it imports, without those that it reaches by others of them."""
    folders = {path.name for path in root.iterdir() if (path / "__init__.py").exists()}
    direct = {name: imported(root / name) & folders - {name} for name in folders}

    def reached(name: str) -> set[str]:
        return direct[name].union(*(reached(one) for one in direct[name]))

    return {name: direct[name] - set().union(*(reached(one) for one in direct[name])) for name in folders}


def drawing(root: Path = PLUGIN_UTILS) -> str:
    """The arrows as a Mermaid graph."""
    found = arrows(root)
    lines = [f"  {name} --> {' & '.join(sorted(found[name]))}\n" for name in sorted(found) if found[name]]
    return BEGIN + "".join(lines) + END


def redrawn(page: str, picture: str) -> str:
    """The page with the picture in the place of the one that it has."""
    before, begin, rest = page.partition(BEGIN)
    if not begin:
        raise ValueError(f"{paths.short(PAGE)} has no drawing: expected a line ```mermaid and below it `graph TD`")
    return before + picture + rest.partition(END)[2]


def draw() -> int:
    """Write the drawing anew."""
    PAGE.write_text(redrawn(PAGE.read_text(encoding="utf-8"), drawing()), encoding="utf-8")
    return 0
