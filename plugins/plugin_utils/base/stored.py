# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dataclasses as JSON's types, and back from JSON that may have been edited by hand. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from .decode import read_json


class FormatError(ValueError):
    """It is not of that form; says where, what was found and what is expected."""


class LaterFormatError(FormatError):
    """A later release wrote it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}: a later release wrote it; run that release")


def serialize(record: Any) -> dict[str, Any]:
    """The fields of a dataclass in JSON's types. A record inside it that has as_dict() is what that returns."""
    return {field.name: _serialize_value(getattr(record, field.name)) for field in fields(record)}


def serialize_known(record: Any) -> dict[str, Any]:
    """Serialize without the fields that are None."""
    return {name: value for name, value in serialize(record).items() if value is not None}


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
    check_version(data.pop("schema"), schema)
    return restore(kind, data)


def check_version(version: Any, schema: int) -> None:
    """Raise FormatError for another version than this release writes."""
    if version != schema:
        later = isinstance(version, int) and version > schema
        raise (LaterFormatError if later else FormatError)(f"its schema version is {version}, expected {schema}")


def restore(kind: Any, data: Any) -> Any:
    """JSON's types as a dataclass. Raises FormatError when they do not fit, or have a field that this release does not know."""
    import msgspec

    try:
        record = msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise FormatError(str(error)) from error
    if unknown := next(_list_unknown_fields(data, record), ""):
        # Ignored, it would be lost with the next write.
        raise LaterFormatError(f"it has the field {unknown}, which this release does not know")
    return record


def _list_unknown_fields(data: Any, record: Any, path: str = "") -> Iterator[str]:
    """The fields of data that are none of the dataclass that was made of it, or of one inside it."""
    if is_dataclass(record):
        known = {field.name for field in fields(record)}
        for name, value in data.items():
            if name not in known:
                yield f"{path}{name}"
            else:
                yield from _list_unknown_fields(value, getattr(record, name), f"{path}{name}.")
    elif isinstance(record, Mapping):
        for name, value in data.items():
            yield from _list_unknown_fields(value, record[name], f"{path}{name}.")
    elif isinstance(record, (tuple, list)):
        for number, (value, item) in enumerate(zip(data, record, strict=True)):
            yield from _list_unknown_fields(value, item, f"{path}{number}.")
