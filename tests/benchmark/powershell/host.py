# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that stand-in modules look at and change: files, access lists, services, registry values, pipes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Node:
    """A file (``content`` set) or a directory. ``grants`` maps a user to the rights given to it."""

    content: bytes | None = None
    inherits: bool = True
    grants: dict[str, str] = field(default_factory=dict)

    def digest(self, algorithm: str) -> str:
        return hashlib.new(algorithm, self.content or b"").hexdigest()


@dataclass(slots=True)
class Service:
    """``settings`` are the options of ``win_service`` that were given a value."""

    settings: dict[str, Any] = field(default_factory=dict)
    state: str = "stopped"


@dataclass(slots=True)
class Host:
    """One host. Paths and registry keys are compared without case, as Windows does."""

    nodes: dict[str, Node] = field(default_factory=lambda: {key("C:\\"): Node()})
    services: dict[str, Service] = field(default_factory=dict)
    registry: dict[tuple[str, str], tuple[Any, str]] = field(default_factory=dict)
    starts: int = 0
    modules: list[str] = field(default_factory=list)

    def pipes(self) -> list[str]:
        """A csi-proxy that runs serves these."""
        running = self.services.get("csi-proxy", Service()).state == "started"
        groups = ("disk-v1", "filesystem-v1", "system-v1alpha1", "volume-v1")
        return [f"csi-proxy-{group}" for group in groups] if running else []


def key(path: str) -> str:
    """The form in which paths are compared."""
    return path.replace("/", "\\").rstrip("\\").lower()


def parent(path: str) -> str:
    return key(path).rpartition("\\")[0]
