# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CONTRIBUTING.md shows the code as it is: the drawing of plugin_utils, and paths that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ci import paths, picture

PAGE = picture.PAGE.read_text(encoding="utf-8")
# What the page names briefly is in a role, in plugin_utils or on the Windows side.
BASES = (
    paths.ROOT,
    paths.ROOT / "roles" / "csi_proxy",
    picture.PLUGIN_UTILS,
    paths.ROOT / "plugins" / "plugin_utils" / "windows",
)


def test_the_drawing_is_that_of_the_code() -> None:
    assert picture.redrawn(PAGE, picture.drawing()) == PAGE, "`make picture` draws it anew"


def test_an_arrow_that_others_reach_is_left_out(tmp_path: Path) -> None:
    for name, imported in {"low": "", "middle": "low.a", "high": "low.a middle.b"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        lines = [f"from ..{one} import thing\n" for one in imported.split()]
        (tmp_path / name / "file.py").write_text("".join(lines))
    assert picture.drawing(tmp_path) == "```mermaid\ngraph TD\n  high --> middle\n  middle --> low\n```\n"


def test_a_page_without_a_drawing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"CONTRIBUTING\.md has no drawing"):
        picture.redrawn("# Contributing\n", picture.drawing())


def test_every_file_and_folder_that_the_page_names_is_there() -> None:
    named = [one for one in re.findall(r"`([\w./-]+)`", PAGE) if "/" in one and not one.startswith("...")]
    made = (".work/logs",)
    assert len(named) > 30
    missing = [one for one in named if one not in made and not any((base / one).exists() for base in BASES)]
    assert missing == []
