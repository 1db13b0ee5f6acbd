# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparing Kubernetes objects: what a server-side apply would really change. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Action = Literal["none", "create", "update"]

# Written by the server, never part of a request.
_BOOKKEEPING = ("resourceVersion", "managedFields", "uid", "creationTimestamp", "generation", "selfLink")
_BOOKKEEPING_ANNOTATIONS = ("deprecated.daemonset.template.generation",)


@dataclass(frozen=True, slots=True)
class Change:
    """What applying one object would do. validated: by a dry run on the API server."""

    kind: str
    namespace: str | None
    name: str
    action: Action
    before: dict[str, Any]
    after: dict[str, Any]
    validated: bool

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("kind", "namespace", "name", "action", "validated")}

    def diff(self) -> dict[str, Any]:
        """As Ansible's --diff wants it."""
        note = "" if self.validated else " (not validated by the server: its namespace does not exist yet)"
        return {
            "before_header": self.title,
            "after_header": self.title + note,
            "before": self.before or "",
            "after": self.after,
        }


def strip_bookkeeping(live: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of an object without status and the server's bookkeeping."""
    result = {key: copy.deepcopy(value) for key, value in live.items() if key != "status"}
    metadata = result.get("metadata", {})
    for key in _BOOKKEEPING:
        metadata.pop(key, None)
    annotations = metadata.get("annotations", {})
    for key in _BOOKKEEPING_ANNOTATIONS:
        annotations.pop(key, None)
    if not annotations:
        metadata.pop("annotations", None)
    return result


def compare_object(
    definition: Mapping[str, Any], live: Mapping[str, Any] | None, dry_run: Mapping[str, Any] | None
) -> Change:
    """Compare the live object with the server's dry run of ours.

    dry_run None: the server could not validate it, because its namespace does not exist yet; the definition itself is
    what would be created.
    """
    before = strip_bookkeeping(live) if live is not None else {}
    after = strip_bookkeeping(dry_run if dry_run is not None else definition)
    action: Action = "create" if live is None else "none" if before == after else "update"
    metadata = definition["metadata"]
    return Change(
        kind=str(definition["kind"]),
        namespace=metadata.get("namespace"),
        name=str(metadata["name"]),
        action=action,
        before=before,
        after=after,
        validated=dry_run is not None,
    )
