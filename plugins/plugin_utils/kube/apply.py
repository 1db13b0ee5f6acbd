# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies objects: reads all of them first, then writes only those that differ.

Each write is bound to the object as it was compared: what another run or user wrote in between is read and compared first, and a request
that arrives late, when another run has changed the object, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import kinds
from .client import Client
from .compare import Change, compare_object
from .errors import ClusterError, is_stale_write

# Writes of others between the two requests of a comparison, before it is made over both states.
_TRIES = 8
# Of no object that exists. A server-side apply with it creates an object, and conflicts if there is one; tried on kube-apiserver 1.36.
_ABSENT = "1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes, in the order of the definitions, and what the server warned of."""

    changes: tuple[Change, ...]
    warnings: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was, or would be, written."""
        return any(item.action != "none" for item in self.changes)


class Applier:
    """Server-side apply of a list of objects with one read before the first write. force: take fields over from other managers."""

    def __init__(self, client: Client, *, force: bool = False) -> None:
        self._client = client
        self._force = force
        self._warnings: dict[str, None] = {}
        self._versions: dict[str, str] = {}

    def plan(self, definitions: Sequence[Mapping[str, Any]]) -> Outcome:
        """What applying would change. Refusals of any object are raised here, before anything is written."""
        coming = _list_names(definitions)
        changes = tuple(self._read(item, coming) for item in definitions)
        return Outcome(changes=changes, warnings=tuple(self._warnings))

    def apply(self, definitions: Sequence[Mapping[str, Any]]) -> Outcome:
        """Plan, then write what differs, in order.

        Objects of a namespace made by the same call are validated after it exists.
        """
        planned = self.plan(definitions)
        done: list[Change] = []
        coming = _list_names(definitions)
        for definition, item in zip(definitions, planned.changes, strict=True):
            done.append(self._write(definition, item, coming))
        return Outcome(changes=tuple(done), warnings=tuple(self._warnings))

    def _write(self, definition: Mapping[str, Any], planned: Change, coming: set[tuple[str, str]]) -> Change:
        metadata, path = definition["metadata"], _find_path(definition)
        for tries_left in reversed(range(_TRIES)):
            if planned.action == "none":
                break
            body = {**definition, "metadata": {**metadata, "resourceVersion": self._versions[path]}}
            try:
                answer = self._client.apply(body, dry_run=False, force=self._force)
            except ClusterError as error:
                if not tries_left or not is_stale_write(error):
                    raise
                planned = self._read(definition, coming)
                continue
            self._warnings.update(dict.fromkeys(answer.warnings))
            return compare_object(definition, None if planned.action == "create" else planned.before, answer.body)
        return planned

    def _read(self, definition: Mapping[str, Any], coming: set[tuple[str, str]]) -> Change:
        kind = kinds.find_kind(definition)
        name, namespace = definition["metadata"]["name"], definition["metadata"].get("namespace")
        if kind.namespaced and namespace is None:
            raise ClusterError(f"{kind.kind} {name} has no namespace", "invalid")
        for tries_left in reversed(range(_TRIES)):
            live = self._client.get(kind, name, namespace)
            self._versions[kind.path(namespace, name)] = _ABSENT if live is None else str(_version(live))
            try:
                answer = self._client.apply(definition, dry_run=True, force=self._force)
            except ClusterError as error:
                if error.status == 404 and live is None and not _list_required(definition).isdisjoint(coming):
                    return compare_object(definition, None, None)
                raise
            # What others wrote in between, as a kubelet does to its Node, is no change of ours.
            if live is None or not tries_left or _version(live) == _version(answer.body):
                break
        self._warnings.update(dict.fromkeys(answer.warnings))
        return compare_object(definition, live, answer.body)


def _list_names(definitions: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(str(item["kind"]), str(item["metadata"]["name"])) for item in definitions}


def _list_required(definition: Mapping[str, Any]) -> set[tuple[str, str]]:
    """What has to exist before the server validates an object: its namespace, and the role that it binds."""
    role = definition.get("roleRef") or {}
    return {
        (kinds.NAMESPACE.kind, str(definition["metadata"].get("namespace"))),
        (str(role.get("kind")), str(role.get("name"))),
    }


def _find_path(definition: Mapping[str, Any]) -> str:
    metadata = definition["metadata"]
    return kinds.find_kind(definition).path(metadata.get("namespace"), metadata["name"])


def _version(live: Mapping[str, Any]) -> str | None:
    """The state of an object. The server's answer to a dry run has that of the object it compared with."""
    version: str | None = live["metadata"].get("resourceVersion")
    return version
