# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts objects of the API and other structures: known-harmless fields stay, the rest becomes type and length. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from .fields import FIELDS, HARMLESS_VARIABLE, KINDS, NAMING, OPEN_MAPS, PUBLIC_DOMAINS
from .harmless_words import mask
from .names import is_secret

_NAME = re.compile(r"[\w./:@^~#\\ -]{1,512}")
_VARIABLE = re.compile(HARMLESS_VARIABLE)
# Fields of structures of this collection that name something too.
_ALSO_NAMING = frozenset(["node", "claim", "volume", "handle"])
# Copies of an object's manifest.
_COPIES = frozenset(["kubectl.kubernetes.io/last-applied-configuration", "managedFields"])
_MOST_NESTED = 64

Text = Callable[[str], str]


def summarize(value: Any) -> str:
    """What stands in the place of a value that is not shown: its type and length."""
    if isinstance(value, str):
        return mask(value)
    return f"<{type(value).__name__}, {len(value) if hasattr(value, '__len__') else 1}>"


def list_object_names(kind: str, item: Mapping[str, Any]) -> Iterator[str]:
    """The names and ids in an object's fields that are shown."""
    return _list_names("", item, NAMING, FIELDS.__contains__, 0) if kind in KINDS else iter(())


def list_structure_names(value: Any) -> Iterator[str]:
    """The names and ids in a structure that this collection made."""
    return _list_names("", value, NAMING | _ALSO_NAMING, lambda key: not is_secret(key), 0)


def _list_names(
    field: str, value: Any, naming: Collection[str], reads: Callable[[str], bool], depth: int
) -> Iterator[str]:
    if isinstance(value, (Mapping, list, tuple)) and depth <= _MOST_NESTED:
        parts = value.items() if isinstance(value, Mapping) else ((field, part) for part in value)
        for key, part in parts:
            if key == field or reads(str(key)):
                yield from _list_names(str(key), part, naming, reads, depth + 1)
    elif field in naming and isinstance(value, str) and _NAME.fullmatch(value):
        yield value
        # kubernetes.io/csi/<driver>^<handle>; registry/image@digest
        yield from re.split(r"[\^@]|://", value)


def redact_object(kind: str, item: Any, text: Text) -> Any:
    """An object of the API. text: redacts a text that people read."""
    if kind not in KINDS:
        name = str((item.get("metadata") or {}).get("name", ""))
        return {"kind": kind, "metadata": {"name": name}, "rest": summarize(item)}
    return _redact("", item, text, 0, listed=True)


def redact_structure(value: Any, text: Text) -> Any:
    """A structure that this collection made, of any fields, with texts from elsewhere."""
    return _redact("", value, text, 0, listed=False)


def _redact(field: str, value: Any, text: Text, depth: int, *, listed: bool) -> Any:
    """listed: in an object of the API, where only listed fields are shown, names as they are."""
    if depth > _MOST_NESTED:
        return summarize(value)
    if isinstance(value, Mapping):
        if not listed and "metadata" in value and isinstance(value.get("kind"), str):
            return redact_object(value["kind"], value, text)
        if field in (OPEN_MAPS if listed else ("annotations", "parameters", "volumeAttributes", "labels")):
            return {
                text(str(key)): _redact_entry(field, str(key), part, text)
                for key, part in value.items()
                if key not in _COPIES
            }
        shown = {}
        for key, part in value.items():
            name = str(key)
            if name in _COPIES:
                continue
            if name == "value" and (field == "env" or "name" in value):
                shown[name] = _redact_variable(str(value.get("name")), part, text)
            elif (
                (name in FIELDS)
                if listed
                else (part in (None, "", [], {}) or isinstance(part, bool) or not is_secret(name))
            ):
                shown[name if listed else text(name)] = _redact(name, part, text, depth + 1, listed=listed)
            else:
                shown[text(name)] = summarize(part)
        return shown
    if isinstance(value, (list, tuple)):
        if field in ("args", "command") and all(isinstance(part, str) for part in value):
            return _redact_arguments(value, text)
        return [_redact(field, part, text, depth + 1, listed=listed) for part in value]
    if not isinstance(value, str) or (listed and field in NAMING and _NAME.fullmatch(value)):
        return value
    return text(value)


def _redact_entry(of: str, key: str, value: Any, text: Text) -> Any:
    """A label, an annotation or a parameter."""
    if isinstance(value, (bool, int, float)) and not is_secret(key):
        return value
    domain = key.partition("/")[0]
    public = of != "annotations" or any(
        domain == public_domain or domain.endswith(f".{public_domain}") for public_domain in PUBLIC_DOMAINS
    )
    if is_secret(key) or not isinstance(value, str) or not public:
        return summarize(value)
    hashed = key in ("controller-revision-hash", "pod-template-hash", "pod-template-generation")
    return value if hashed else text(value)


def _redact_variable(name: str, value: Any, text: Text) -> Any:
    shown = not is_secret(name) and _VARIABLE.fullmatch(name)
    return text(str(value)) if shown else value if str(value).lower() in ("true", "false", "") else summarize(value)


def _redact_arguments(words: Sequence[str], text: Text) -> list[str]:
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


def redact_json(raw: str, text: Text) -> str:
    """A file of JSON that this collection made."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return text(raw)
    return json.dumps(redact_structure(value, text), indent=1, ensure_ascii=False)
