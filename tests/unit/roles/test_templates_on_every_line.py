# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What templates in YAML files must not hold, since the lines of ansible-core read it differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/*/**/*.yml")])


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for one in pair for text in texts(one))
    elif isinstance(value, list):
        yield from (text for one in value for text in texts(one))


def templates(path: Path) -> list[str]:
    found = [text for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) for text in texts(one)]
    conditions = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
    return [match for text in found for match in conditions.findall(text)]


def test_there_are_templates() -> None:
    assert sum(len(templates(path)) for path in FILES) > 100


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_template_holds_a_backslash(path: Path) -> None:
    """ansible-core 2.16 doubles it where 2.19 does not; in some texts it then is a syntax error."""
    assert [text for text in templates(path) if "\\" in text] == []
