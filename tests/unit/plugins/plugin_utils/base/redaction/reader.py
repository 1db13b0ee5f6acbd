# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reader with tools gets out of a text, and the cases of the formats. Shared by tests."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_plus

FORMATS = Path(__file__).parent / "formats"


def readings(text: str, depth: int = 2) -> Iterator[str]:
    """The text as it stands, and unescaped, decoded and joined in every way."""
    yield text
    yield text.replace("\x00", "")
    yield unquote_plus(text)
    yield html.unescape(text)
    yield re.sub(r"\\(.)", r"\1", text)
    yield re.sub(r"[\^`](.)", r"\1", text)
    yield re.sub(r"\\?\r?\n[ \t]*", "", text)
    for token in re.findall(r"(?:[A-Za-z0-9+/_-]{4,}(?:\s|\\n)*)+={0,2}", text) if depth else ():
        bare = re.sub(r"\s|\\n", "", token).rstrip("=").replace("-", "+").replace("_", "/")
        for begin in range(4):
            piece = bare[begin:]
            piece = piece[: len(piece) - (len(piece) % 4 == 1)]
            raw = base64.b64decode(piece + "=" * (-len(piece) % 4))
            yield raw.replace(b"\0", b"").decode("latin-1")
            yield from readings(raw.decode("utf-8", "ignore"), depth - 1)
            yield raw[: len(raw) // 2 * 2].decode("utf-16-le", "ignore")
    for token in re.findall(r"(?:[0-9a-fA-F]{2}){4,}", text):
        yield bytes.fromhex(token).replace(b"\0", b"").decode("utf-8", "ignore")


def survives(planted: str, text: str) -> bool:
    """Whether any reading of a text has the secret."""
    return any(planted in reading for reading in readings(text))


def part_survives(planted: str, text: str) -> str:
    """A part of eight characters of the secret that any reading of a text has, empty if there is none."""
    parts = [planted[at : at + 8] for at in range(len(planted) - 7)]
    return next((part for reading in readings(text) for part in parts if part in reading), "")


@dataclass(frozen=True, slots=True)
class Format:
    """A text with a place for a secret. unnamed: nothing in the text says that a secret stands there."""

    title: str
    text: str
    unnamed: bool

    def plant(self, secret: str) -> str:
        return self.text.replace("@@", secret)


def read_formats() -> list[Format]:
    """The cases of every file in ``formats``."""
    found = []
    for path in sorted(FORMATS.glob("*.txt")):
        for block in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            title, _newline, text = block.partition("\n")
            lines = [line for line in text.split("\n") if not line.startswith("# ") or "@@" in line]
            unnamed = title.endswith(" | strong")
            found.append(
                Format(f"{path.stem}, {title.removesuffix(' | strong')}", "\n".join(lines).rstrip("\n"), unnamed)
            )
    return found
