# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the journal of an upgrade is kept: a ConfigMap in the cluster, and files beside it on the controller."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import FIELD_MANAGER, Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrade_lease import PART
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.removal import PART_OF
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import MANAGED_BY, MANAGER
from ansible_collections.kubewin.csi.plugins.module_utils.files import write_whole
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import BadJournal, Journal, from_json, newest
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.picture import unpack
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.told import told

_JSON, _TEXT = "journal.json", "journal.txt"
NAMES = re.compile(r"[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?\Z")


class Pages:
    """One upgrade's journal. folder: on this machine, None without one; what cannot be written there is told in warnings.

    written: whether it was written to. check: raises when this run may write no more.
    """

    def __init__(
        self, client: Client, namespace: str, name: str, folder: Path | None, check: Callable[[], None] = lambda: None
    ) -> None:
        self._client, self._namespace, self._folder, self._check = client, namespace, folder, check
        self._name = name
        self._version: str | None = None
        self.warnings: list[str] = []
        self.written = False

    @property
    def place(self) -> str:
        """Where it is, for people."""
        files = f" and {self._folder / self._file(_TEXT)}" if self._folder else ""
        return f"ConfigMap {self._namespace}/{self._object}{files}"

    @property
    def _object(self) -> str:
        return f"kubewin-upgrade-{self._name}"

    def _file(self, which: str) -> str:
        return f"upgrade-{self._name}.{which.partition('.')[2]}"

    def read(self) -> Journal | None:
        """The newest copy, None when this upgrade was never begun. ClusterError when none of them can be read."""
        texts: dict[str, str] = {}
        live = self._client.get(kinds.CONFIG_MAP, self._object, self._namespace)
        if live is not None:
            self._version = live["metadata"]["resourceVersion"]
            texts[f"ConfigMap {self._namespace}/{self._object}"] = str((live.get("data") or {}).get(_JSON, ""))
        path = self._folder / self._file(_JSON) if self._folder else None
        if path is not None and path.exists():
            try:
                texts[f"file {path}"] = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                self.warnings.append(f"{path} cannot be read: {error}")
        found, bad = {}, []
        for place, text in texts.items():
            try:
                found[place] = from_json(text)
                unpack(found[place].before)
            except ValueError as error:
                found.pop(place, None)
                bad.append(f"{place}: {error}")
        if bad and not found:
            raise ClusterError(
                f"the journal of upgrade {self._name} cannot be read: {'; '.join(bad)}. Restore it; or, when you know that no node is "
                "under way (no cordon and no taint of ours), delete it and begin anew",
                "journal_unreadable",
            )
        self.warnings += bad
        return newest(found)

    def beside(self) -> list[Journal]:
        """Upgrades under other names that were begun and are not finished. What cannot be read is left out: its own run says so."""
        found = []
        for item in self._client.list(kinds.CONFIG_MAP, self._namespace, label_selector=f"{PART_OF}={PART}").items:
            with contextlib.suppress(BadJournal):
                found.append(from_json(str((item.get("data") or {}).get(_JSON, ""))))
        return [one for one in found if one.name != self._name and one.state != "finished"]

    def keep(self, journal: Journal) -> Journal:
        """Write it; answers with it as it was written. ClusterError taken_over when a later run has it."""
        kept = replace(journal, sequence=journal.sequence + 1)
        data = {_JSON: kept.as_json(), _TEXT: told(kept)}
        for _again in range(3):
            try:
                made = self._write(data)
            except ClusterError as error:
                if error.status not in (404, 409):
                    raise
                self._meet(kept)
                continue
            self._version = made["metadata"]["resourceVersion"]
            self.written = True
            self._copy(data)
            return kept
        raise ClusterError(
            f"ConfigMap {self._namespace}/{self._object} changes faster than it can be written", "conflict", 409
        )

    def _write(self, data: dict[str, str]) -> dict[str, Any]:
        self._check()
        labels = {MANAGED_BY: MANAGER, PART_OF: PART}
        if self._version is None:
            metadata = {"name": self._object, "namespace": self._namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            self._client.create(body)
            live = self._client.get(kinds.CONFIG_MAP, self._object, self._namespace)
            if live is None or (live.get("data") or {}).get(_JSON) != data[_JSON]:
                raise ClusterError(
                    f"ConfigMap {self._namespace}/{self._object} was made by somebody else", "conflict", 409
                )
            return live
        body = {"metadata": {"resourceVersion": self._version, "labels": labels}, "data": data}
        return self._client.patch(kinds.CONFIG_MAP, self._object, self._namespace, body, FIELD_MANAGER)

    def _meet(self, journal: Journal) -> None:
        """It was written by somebody else: a later run, which then has it; an earlier try of ours, or a person's label."""
        live = self._client.get(kinds.CONFIG_MAP, self._object, self._namespace)
        if live is None:
            self._version = None
            return
        self._version = live["metadata"]["resourceVersion"]
        try:
            other = from_json(str((live.get("data") or {}).get(_JSON, "")))
        except BadJournal:
            return
        if (other.term, other.sequence) > (journal.term, journal.sequence) or (
            other.term == journal.term and other.sequence == journal.sequence and other != journal
        ):
            raise ClusterError(
                f"ConfigMap {self._namespace}/{self._object} was taken over by a later run (term {other.term}, ours is {journal.term}); "
                "let that one end",
                "taken_over",
            )

    def _copy(self, data: dict[str, str]) -> None:
        if self._folder is None:
            return
        try:
            for which, text in data.items():
                write_whole(str(self._folder), self._file(which), text.encode())
        except OSError as error:
            # The cluster has it; this copy is for people, and for the day on which the ConfigMap is gone.
            if not self.warnings:
                self.warnings.append(f"the journal's copy cannot be written to {self._folder}: {error}")
