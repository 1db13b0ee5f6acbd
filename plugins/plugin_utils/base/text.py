# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge for text that comes from a cluster or a host: nothing in it acts on a terminal or changes how a line reads. Pure.

Control characters start terminal escapes, and bidirectional overrides show a text in another order than it is written.
Both are carried as private-use characters, which do nothing, and become themselves again in what is sent back: an
annotation of another user is written as it was read. Private-use characters that were there before stay what they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

# Plane 15 is for private use: character N is carried as U+F0000 + N.
_CARRIED = 0xF0000

_ACTING = (
    *(code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)),
    *range(0x7F, 0xA0),
    # Direction marks, overrides and isolates: https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters
    0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A),
    # Line and paragraph separator, at which some readers break a line.
    0x2028, 0x2029,
)  # fmt: skip
_HARMLESS = {code: _CARRIED + code for code in _ACTING}
# A carriage return takes back what a line shows, unless the line ends there.
_RETURN = re.compile(r"\r(?!\n)")
_CARRIERS = {**_HARMLESS, 0x0D: _CARRIED + 0x0D}
# Precedes a private-use character that stands for itself.
_ITSELF = chr(_CARRIED + 0x3000)
_CARRIER_CHARACTERS = _ITSELF + "".join(map(chr, _CARRIERS.values()))
_GENUINE = re.compile(f"[{_CARRIER_CHARACTERS}]")
_SENT_BACK = re.compile(f"{_ITSELF}([{_CARRIER_CHARACTERS}])|[{_CARRIER_CHARACTERS}]")

# The same in JSON, as bytes. A pair of backslashes comes first, so that what follows it is not taken for an escape.
_JSON = re.compile(
    rb"\\\\|(?P<ours>\\u[dD][bB]8[0-9a-cA-C]\\u[dD][c-fC-F][0-9a-fA-F]{2}|\xf3[\xb0-\xb3][\x80-\xbf]{2})"
    rb"|\\u(?P<code>[0-9a-fA-F]{4})|\\r\\n|\\(?P<short>[bfr])"
    rb"|(?P<raw>\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9])"
)
_SHORT = {b"b": 0x08, b"f": 0x0C, b"r": 0x0D}
# Without any of these a page of megabytes needs no substitution. One search from backslash to backslash takes a fifth of
# the time of searches for each of them.
_ESCAPE_MARKS = re.compile(rb"\\(?:[bfr]|u(?:00[01789]|06|20|[dD]))")
_RAW_MARKS = (b"\xc2", b"\xd8\x9c", b"\xe2\x80", b"\xe2\x81", b"\xf3")


def mask_controls(text: str) -> str:
    """The same text with nothing in it that acts. Line ends and tabs stay. For what is shown; once more changes nothing."""
    return _RETURN.sub(chr(_CARRIED + 0x0D), text.translate(_HARMLESS))


def encode_controls(text: str) -> str:
    """The same for what may be sent back: ``decode_controls`` gives the text as it was. Once, where the text comes in."""
    return mask_controls(_GENUINE.sub(lambda match: _ITSELF + match[0], text))


def encode_json_controls(data: bytes) -> bytes:
    """The same JSON, of which each text decodes to what ``encode_controls`` makes of it."""
    return _JSON.sub(_encode_json_match, data) if _is_suspect(data) else data


def decode_json(data: bytes, decoder: Callable[[bytes], Any], encoder: Callable[[Any], bytes] | None = None) -> Any:
    """What decoder makes of the same JSON as ``encode_json_controls`` returns.

    encoder: writes JSON of what decoder makes. If decoder skips most fields, a search of what it keeps takes a quarter of the time.
    """
    if encoder is not None:
        value = decoder(data)
        if not _is_suspect(encoder(value)):
            return value
    return decoder(encode_json_controls(data))


def _is_suspect(data: bytes) -> bool:
    return (
        b"\x7f" in data
        or _ESCAPE_MARKS.search(data) is not None
        or (not data.isascii() and any(mark in data for mark in _RAW_MARKS))
    )


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


def decode_controls(value: T) -> T:
    """What is sent back, as it was read: a text, or a structure that JSON is made of."""
    decoded: Any = value
    if isinstance(value, str):
        decoded = value if value.isascii() else _SENT_BACK.sub(_decode_match, value)
    elif isinstance(value, dict):
        decoded = {decode_controls(key): decode_controls(item) for key, item in value.items()}
    elif isinstance(value, (list, tuple)):
        decoded = [decode_controls(item) for item in value]
    return decoded  # type: ignore[no-any-return]  # of the type it had


def _decode_match(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    return match[0] if match[0] == _ITSELF else chr(ord(match[0]) - _CARRIED)


def _encode_json_match(match: re.Match[bytes]) -> bytes:
    if (carrier_bytes := match["ours"]) is not None:
        character = json.loads(b'"%s"' % carrier_bytes)
        return _escape(ord(_ITSELF)) + carrier_bytes if character in _CARRIER_CHARACTERS else carrier_bytes
    if (code := match["code"]) is not None:
        code_point = int(code, 16)
    elif (short := match["short"]) is not None:
        code_point = _SHORT[short]
    elif (raw := match["raw"]) is not None:
        code_point = ord(raw.decode())
    else:
        return match[0]
    carrier = _CARRIERS.get(code_point)
    return match[0] if carrier is None else _escape(carrier)


def _escape(code: int) -> bytes:
    """A character above U+FFFF in JSON."""
    return b"\\u%04x\\u%04x" % (0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code & 0x3FF))
