# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts objects of the API and other structures: known-harmless fields stay, the rest becomes type and length. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.redaction.fields import (
    FIELDS,
    HARMLESS_VARIABLE,
    KINDS,
    NAMING,
    OPEN_MAPS,
    PUBLIC_DOMAINS,
)
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.names import is_secret
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.words import mask

_NAME = re.compile(r"[\w./:@^~#\\ -]{1,512}")
_VARIABLE = re.compile(HARMLESS_VARIABLE)
# Copies of an object's manifest.
_COPIES = frozenset(["kubectl.kubernetes.io/last-applied-configuration", "managedFields"])
_MOST_NESTED = 64

Text = Callable[[str], str]


def summarize(value: Any) -> str:
    """What stands in the place of a value that is not shown: its type and length."""
    if isinstance(value, str):
        return mask(value)
    return f"<{type(value).__name__}, {len(value) if hasattr(value, '__len__') else 1}>"


def object_names(kind: str, item: Mapping[str, Any]) -> Iterator[str]:
    """The names and ids in an object's fields that are shown."""
    for field, value in _shown_values("", item if kind in KINDS else {}, 0):
        if field in NAMING and isinstance(value, str) and _NAME.fullmatch(value):
            yield value
            # kubernetes.io/csi/<driver>^<handle>; registry/image@digest
            yield from re.split(r"[\^@]|://", value)


def _shown_values(field: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _MOST_NESTED:
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in FIELDS:
                yield from _shown_values(key, part, depth + 1)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _shown_values(field, part, depth + 1)
    else:
        yield field, value


def redact_object(kind: str, item: Any, text: Text) -> Any:
    """An object of the API. text: redacts a text that people read."""
    if kind not in KINDS:
        return {
            "kind": kind,
            "metadata": {"name": str((item.get("metadata") or {}).get("name", ""))},
            "rest": summarize(item),
        }
    return _walk("", item, text, 0)


def _walk(field: str, value: Any, text: Text, depth: int) -> Any:
    if depth > _MOST_NESTED:
        return summarize(value)
    if isinstance(value, Mapping):
        if field in OPEN_MAPS:
            return _entries(field, value, text)
        shown = {
            key if key in FIELDS else text(str(key)): _walk(key, part, text, depth + 1)
            if key in FIELDS
            else summarize(part)
            for key, part in value.items()
            if key not in _COPIES
        }
        if field == "env" and "value" in value:
            shown["value"] = show_variable(str(value.get("name")), value["value"], text)
        return shown
    if isinstance(value, (list, tuple)):
        if field in ("args", "command") and all(isinstance(part, str) for part in value):
            return show_arguments(value, text)
        return [_walk(field, part, text, depth + 1) for part in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value) if field in NAMING and _NAME.fullmatch(str(value)) else text(str(value))


def _entries(field: str, entries: Mapping[str, Any], text: Text) -> dict[str, Any]:
    """Labels, annotations or parameters."""
    return {
        text(str(key)): _entry(field, str(key), value, text) for key, value in entries.items() if key not in _COPIES
    }


def _entry(of: str, key: str, value: Any, text: Text) -> Any:
    """A label, an annotation or a parameter."""
    if is_secret(key):
        return summarize(value)
    if isinstance(value, str) and of == "annotations":
        domain = key.partition("/")[0]
        if not any(domain == public or domain.endswith(f".{public}") for public in PUBLIC_DOMAINS):
            return summarize(value)
    if key in ("controller-revision-hash", "pod-template-hash", "pod-template-generation"):
        return value
    return (
        text(value) if isinstance(value, str) else value if isinstance(value, (bool, int, float)) else summarize(value)
    )


def show_variable(name: str, value: Any, text: Text) -> Any:
    """The value of a container's variable."""
    shown = not is_secret(name) and _VARIABLE.fullmatch(name)
    return text(str(value)) if shown else value if str(value).lower() in ("true", "false", "") else summarize(value)


def show_arguments(words: Sequence[str], text: Text) -> list[str]:
    """The words of a command: a word behind a flag for a secret is one."""
    shown: list[str] = []
    secret = False
    for word in words:
        flag, equals, _value = word.partition("=")
        shown.append(summarize(word) if secret else text(word))
        secret = (
            not secret
            and word[:1] in ("-", "/")
            and not equals
            and (is_secret(flag.lstrip("-/")) or flag in ("-p", "-u", "/p"))
        )
    return shown


def redact_structure(value: Any, text: Text, name: str = "", depth: int = 0) -> Any:
    """A structure that this collection made, of any fields, with texts from elsewhere."""
    if depth > _MOST_NESTED:
        return summarize(value)
    if isinstance(value, Mapping):
        if "metadata" in value and isinstance(value.get("kind"), str):
            return redact_object(value["kind"], value, text)
        if name in ("annotations", "parameters", "volumeAttributes", "labels"):
            return _entries(name, value, text)
        variable = str(value["name"]) if set(value) >= {"name", "value"} else None
        return {
            text(str(key)): show_variable(variable, part, text) if variable is not None and key == "value"
            else summarize(part) if is_secret(str(key)) and part not in (None, "", [], {}) and not isinstance(part, bool)
            else redact_structure(part, text, str(key), depth + 1)
            for key, part in value.items() if key not in _COPIES
        }  # fmt: skip
    if isinstance(value, (list, tuple)):
        if name in ("args", "command") and all(isinstance(part, str) for part in value):
            return show_arguments(value, text)
        return [redact_structure(part, text, name, depth + 1) for part in value]
    return text(value) if isinstance(value, str) else value


def redact_json(raw: str, text: Text) -> str:
    """A file of JSON that this collection made."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return text(raw)
    return json.dumps(redact_structure(value, text), indent=1, ensure_ascii=False)


def structure_names(value: Any, depth: int = 0) -> Iterable[str]:
    """The names in a structure that this collection made."""
    if depth > _MOST_NESTED:
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            if (
                isinstance(part, str)
                and key in ("name", "namespace", "node", "uid", "claim", "volume", "handle", "driver", "image")
                and _NAME.fullmatch(part)
            ):
                yield part
            elif not isinstance(part, str) and not is_secret(str(key)):
                yield from structure_names(part, depth + 1)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from structure_names(part, depth + 1)
