# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that comes from a cluster or a host and is shown: nothing in it acts on a terminal or changes how a line reads. Pure.

Control characters start terminal escapes, and bidirectional overrides show a text in another order than it is written.
Both are shown as private-use characters, which do nothing. Texts of API objects are masked where they are shown, so they are written
back as they were read; what a host or a pod prints is masked where it is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

# Plane 15 is for private use: character N is shown as U+F0000 + N.
MASKED = 0xF0000

_ACTING = (
    *(code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)),
    *range(0x7F, 0xA0),
    # Direction marks, overrides and isolates: https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
    0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A),
    # Line and paragraph separator, at which some readers break a line.
    0x2028, 0x2029,
)  # fmt: skip
_HARMLESS = {code: MASKED + code for code in _ACTING}
# Those of them that a JSON encoder which keeps to UTF-8 leaves as they are, as bytes.
_UNESCAPED = re.compile("|".join(chr(code) for code in _ACTING if code >= 0x7F).encode())
# A carriage return takes back what a line shows, unless the line ends there.
_RETURN = re.compile(r"\r(?!\n)")


def mask_controls(text: str) -> str:
    """The same text with nothing in it that acts. Line ends and tabs stay. Once more changes nothing."""
    return _RETURN.sub(chr(MASKED + 0x0D), text.translate(_HARMLESS))


def escape_controls(document: bytes) -> bytes:
    """The same JSON, in UTF-8, with an escape for each character that acts: what reads it gets the texts as they were."""
    return _UNESCAPED.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), document)


def mask_values(value: Any) -> Any:
    """The same for all texts of a structure of JSON's types."""
    if isinstance(value, Mapping):
        return {mask_values(key): mask_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_values(item) for item in value]
    return mask_controls(value) if isinstance(value, str) else value


@cache
def share_text(value: Any) -> str:
    """The text of a value, one object for equal texts; empty without a value. For texts of which a cluster has few."""
    return str(value) if value else ""


def join_lines(text: str) -> str:
    return " ".join(mask_controls(text).split())


def join_field_lines(record: Any, *names: str) -> None:
    """Make one line each of these fields of a frozen dataclass; for its __post_init__."""
    for name in names:
        object.__setattr__(record, name, join_lines(getattr(record, name)))
