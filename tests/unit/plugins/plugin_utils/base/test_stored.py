# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A record of another release is refused: it says its version, and a form that changes gets another one."""

from __future__ import annotations

import hashlib
import json
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError, read
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import record
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory import observation
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts import snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade import journal


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Outer:
    name: str
    parts: tuple[Inner, ...] = ()
    by_name: typing.Mapping[str, Inner] = field(default_factory=dict)
    free: typing.Mapping[str, Any] = field(default_factory=dict)


WHOLE: dict[str, Any] = {
    "schema": 1,
    "name": "a",
    "parts": [{"size": 1}, {"size": 2}],
    "by_name": {"b": {"size": 3}},
    "free": {"anything": {"goes": [1]}},
}


@pytest.mark.parametrize(
    ("place", "unknown"),
    [
        ((), "new"),
        (("parts", 1), "parts.1.new"),
        (("by_name", "b"), "by_name.b.new"),
    ],
)
def test_a_field_of_a_later_release_is_refused(place: tuple[Any, ...], unknown: str) -> None:
    text = json.dumps(WHOLE)
    assert read(Outer, text, 1).by_name["b"] == Inner(3)
    spoiled = json.loads(text)
    part = spoiled
    for step in place:
        part = part[step]
    part["new"] = True
    with pytest.raises(FormatError, match=f"it has the field {unknown}, which this release does not know"):
        read(Outer, json.dumps(spoiled), 1)


def _describe(kind: Any, *outer: Any) -> str:
    """The form that a type has as JSON: names of fields and their types, whatever the classes are called."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        parts = (f"{one.name}: {_describe(hints[one.name], kind, *outer)}" for one in fields(kind))
        return "..." if kind in outer else f"{{{', '.join(parts)}}}"
    origin = typing.get_origin(kind)
    if origin is None:
        return str(getattr(kind, "__name__", kind))
    name = "Union" if origin in (typing.Union, types.UnionType) else getattr(origin, "__name__", str(origin))
    return f"{name}[{', '.join(_describe(inner, *outer) for inner in typing.get_args(kind))}]"


# By what is stored: its form, its version, and the digest of the form that belongs to that version.
FORMS: dict[str, tuple[Any, int, str]] = {
    "journal": (journal.Journal, journal.SCHEMA, "381a95b7c518f04d"),
    "conversion": (record.ConversionRecord, record.SCHEMA, "7765c5bb712bc346"),
    "baseline": (manifest.Manifest, manifest.SCHEMA, "0007d64db5742cab"),
    "inventory": (observation.Observation, observation.SCHEMA, "dbde5a9499d21045"),
    "snapshot": (snapshot.Snapshot, snapshot.SNAPSHOT_VERSION, "26bf5982a2296025"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_changes_gets_another_version(name: str) -> None:
    form, version, digest = FORMS[name]
    found = hashlib.sha256(f"{version}: {_describe(form)}".encode()).hexdigest()[:16]
    assert found == digest, "the form of a stored record changed: raise its version, then write its digest here"
