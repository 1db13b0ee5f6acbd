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
# Pages for contributors, and for users of a part. Their links need not work elsewhere.
BESIDE = [ROOT / "CONTRIBUTING.md", ROOT / "extensions" / "awx" / "README.md"]

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
    """Every command of a console block: a line with a prompt, and the lines that end its loop or are its here-document.

    Any other line is output, which belongs into a block of text: AssertionError.
    """
    command: list[str] = []
    for line in re.sub(r"\\\n\s*", "", block.text).splitlines():
        if _PROMPT.match(line):
            yield from ["\n".join(command)] if command else []
            command = [line]
        elif line.strip():
            assert _goes_on("\n".join(command)), f"{block.page}: no prompt before {line!r}"
            command.append(line)
    yield from ["\n".join(command)] if command else []


def _goes_on(command: str) -> bool:
    """Whether the shell reads another line: a loop without its end, or a here-document."""
    document = re.search(r"<<(\w+)$", command, re.MULTILINE)
    if document:
        return not command.endswith(f"\n{document[1]}")
    return bool(re.search(r" do$", command, re.MULTILINE)) and not command.endswith("done")
