# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages for users, and the blocks of code in them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
RST = ROOT / "docs" / "docsite" / "rst"
PAGES = [ROOT / "README.md", *sorted((ROOT / "roles").glob("*/README.md")), *sorted(RST.glob("*.rst"))]

_MARKDOWN = re.compile(r"^( *)```(\S+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_RST = re.compile(r"^( *)\.\. code-block:: (\S+)\n(?:\1   :.*\n)*\n((?:\1   .*\n|[ ]*\n)+)", re.MULTILINE)
_PROMPT = re.compile(r"^(?:\$|C:\\>) ")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code. kind: its language."""

    page: str
    kind: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Every block of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for _indent, kind, block in (_MARKDOWN if page.suffix == ".md" else _RST).findall(text):
        yield Block(title(page), kind, textwrap.dedent(block))


def title(page: Path) -> str:
    """A short name of a page."""
    return str(page.relative_to(ROOT)) if page.suffix == ".md" else page.stem


def lines(block: Block) -> Iterator[str]:
    """Every command of a console block: a line with a prompt, with the lines that end a loop."""
    command: list[str] = []
    for line in re.sub(r"\\\n\s*", "", block.text).splitlines():
        if _PROMPT.match(line):
            yield from ["\n".join(command)] if command else []
            command = [line]
        elif command and " do\n" in "\n".join([*command, ""]) and not command[-1].endswith("done"):
            command.append(line)
    yield from ["\n".join(command)] if command else []
