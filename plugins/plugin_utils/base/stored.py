# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses as JSON's types, and back from JSON that may have been edited by hand. Pure."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .decode import read_json

# Working out the hints of a class takes longer than restoring one of it.
_hints = cache(get_type_hints)


class FormatError(ValueError):
    """It is not of that form; says where, what was found and what is expected."""


def serialize(record: Any) -> dict[str, Any]:
    """The fields of a dataclass in JSON's types. A record inside it that has as_dict() is what that returns."""
    return {field.name: _serialize_value(getattr(record, field.name)) for field in fields(record)}


def _serialize_value(value: Any) -> Any:
    if is_dataclass(value):
        return value.as_dict() if hasattr(value, "as_dict") else serialize(value)
    if isinstance(value, (list, tuple)):
        return [_serialize_value(item) for item in value]
    return {name: _serialize_value(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def read(kind: Any, text: str, schema: int) -> Any:
    """A stored text as `kind`. Raises FormatError when it is of another schema version, or does not fit."""
    try:
        data = read_json(text)
    except ValueError as error:
        raise FormatError(f"it is not JSON ({error})") from error
    if not isinstance(data, dict) or "schema" not in data:
        raise FormatError("it has no schema version")
    if (version := data.pop("schema")) != schema:
        raise FormatError(f"its schema version is {version}, expected {schema}")
    return restore(kind, data)


def restore(kind: Any, data: Any, path: str = "") -> Any:
    """`found`, of which JSON was made, as `kind`: a dataclass, or what its fields are annotated with."""
    if kind is Any:
        return data
    if is_dataclass(kind):
        return _restore_fields(kind, data, path)
    origin, of = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _check(data, str(data) in of, f"one of {', '.join(of)}", path)
    if origin in (Union, types.UnionType):
        return None if data is None else restore(of[0], data, path)
    if origin is tuple:
        items = _check(data, isinstance(data, (list, tuple)), "a list", path)
        return tuple(restore(of[0], item, f"{path}[{number}]") for number, item in enumerate(items))
    if origin is Mapping:
        named = _check(data, isinstance(data, dict), "names with values", path)
        return {name: restore(of[1], item, _extend_path(path, name)) for name, item in named.items()}
    # True is an int, and no number.
    fits = isinstance(data, kind) and (kind is bool or not isinstance(data, bool))
    return _check(data, fits, {str: "text", int: "a number", bool: "true or false"}[kind], path)


def _restore_fields(kind: Any, data: Any, path: str) -> Any:
    values = _check(data, isinstance(data, dict), "names with values", path)
    known_fields = {field.name: field for field in fields(kind)}
    lacking = [
        name
        for name, field in known_fields.items()
        if name not in values and field.default is MISSING and field.default_factory is MISSING
    ]
    for problem, names in (
        ("lacks", lacking),
        ("has unknown fields", [name for name in values if name not in known_fields]),
    ):
        if names:
            raise FormatError(f"{path or 'it'} {problem}: {', '.join(names)}")
    hints = _hints(kind)
    return kind(**{name: restore(hints[name], value, _extend_path(path, name)) for name, value in values.items()})


def _check(data: Any, fits: bool, expected: str, path: str) -> Any:
    if not fits:
        raise FormatError(f"{path or 'it'} is {data!r}, expected {expected}")
    return data


def _extend_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
