# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decodes text from a cluster or a host. Whatever the text holds, each function returns a value or raises DecodeError. Pure.

Such text may be nested, long or large on purpose: a decoder's RecursionError, OverflowError or lack of memory must not end a run.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable
from typing import Any, NoReturn

import yaml

DEPTH = 64
"""Levels of nesting in an annotation or a record; ours have at most ten."""

SIZE = 32 << 20
"""Characters or bytes of a text; etcd keeps at most 1.5 MiB of an object, compressed texts hold several times that."""

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


class DecodeError(ValueError):
    """A text that is not valid, with the reason."""


def load_yaml(text: str) -> Any:
    """A file of this collection, with PyYAML's loader in C where it has one: it is forty times as fast."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def decode(decoder: Callable[[Any], Any], data: Any) -> Any:
    """What a library's decoder makes of foreign data. Raises DecodeError for anything that it raises."""
    try:
        return decoder(data)
    except RecursionError as error:
        raise DecodeError("it is nested too deeply") from error
    except Exception as error:
        raise DecodeError(str(error)) from error


def decode_raw(value: Any) -> Any:
    """A value of which parts were left raw, with these decoded too."""
    from msgspec import Raw, json

    if isinstance(value, Raw):
        return json.decode(value)
    if isinstance(value, dict):
        return {key: decode_raw(part) for key, part in value.items()}
    return [decode_raw(part) for part in value] if isinstance(value, list) else value


def read_json(text: str | bytes) -> Any:
    """JSON of at most SIZE characters and DEPTH levels, numbers finite. Raises DecodeError."""
    if len(text) > SIZE:
        raise DecodeError(f"it has {len(text):,} characters, expected at most {SIZE:,}")
    value = decode(_parse, text)
    level = [value]
    for _level in range(DEPTH):
        if not level:
            break
        inner = (
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, (dict, list))
        )
        level = [child for children in inner for child in children]
    if level:
        raise DecodeError(f"it is nested more than {DEPTH} levels deep")
    return value


def read_object(text: str | bytes) -> dict[str, Any]:
    """A JSON object, as read_json reads it."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise DecodeError(f"it is a JSON {type(value).__name__}, expected an object")
    return value


def read_number(text: Any) -> int | None:
    """A whole number of at most 19 decimal digits, None for anything else."""
    digits = str(text).strip()
    return int(digits) if _NUMBER.fullmatch(digits) else None


def inflate(packed: bytes) -> bytes:
    """What zlib or gzip compressed, at most SIZE bytes of it. Raises DecodeError."""
    # 32 is added to the size of the window to detect either header (zlib.decompressobj).
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
    content: bytes = decode(lambda data: stream.decompress(data, SIZE), packed)
    if not stream.eof:
        raise DecodeError(f"it is cut, or has more than {SIZE:,} bytes uncompressed")
    return content


def _parse(text: str | bytes) -> Any:
    return json.loads(text, parse_float=_parse_finite, parse_constant=_refuse)


def _parse_finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise DecodeError(f"{text} is not a finite number")
