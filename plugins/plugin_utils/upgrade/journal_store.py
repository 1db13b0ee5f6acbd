# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of an upgrade in the record store, with copies in files on the controller."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from pathlib import Path

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT, ConfigMaps, Files
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.explain import describe
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, from_json, select_newest
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease import PART

_JSON, _TEXT = "journal.json", "journal.txt"
# Maximum length of the readable text beside the journal.
_READABLE = 100_000
# Bytes that a new journal leaves for what a run adds, so that an upgrade whose journal gets too large does not begin.
_ROOM = LIMIT // 2
NAMES = re.compile(r"[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?\Z")


class JournalStore:
    """Stores the journal of one upgrade. folder: on this machine, None without one; what cannot be written there is reported in warnings.

    written: whether it was written to.
    """

    def __init__(self, client: Client, namespace: str, name: str, folder: Path | None) -> None:
        remedy = "Scale down workloads with volumes that you do not need during the upgrade."
        self._maps = ConfigMaps(client, namespace, PART, _JSON, remedy)
        self._folder, self._files = folder, Files(folder) if folder else None
        self._name = name
        self.warnings: list[str] = []
        self.written = False

    @property
    def location(self) -> str:
        """The objects and files of the journal, as text."""
        files = f" and {self._folder / self._name_file(_TEXT)}" if self._folder else ""
        return f"{self._maps.describe_place(self._object)}{files}"

    @property
    def _object(self) -> str:
        return f"kubewin-upgrade-{self._name}"

    def _name_file(self, key: str) -> str:
        return f"upgrade-{self._name}.{key.partition('.')[2]}"

    def read(self) -> Journal | None:
        """Read the newest copy, None if there is none. ClusterError if no copy can be read."""
        texts: dict[str, str] = {}
        live = self._maps.read(self._object)
        if live is not None:
            texts[self._maps.describe_place(self._object)] = live
        if self._files is not None:
            name = self._name_file(_JSON)
            try:
                copy = self._files.read(name)
            except (OSError, UnicodeDecodeError) as error:
                self.warnings.append(f"{self._files.describe_place(name)} cannot be read: {error}")
            else:
                texts |= {self._files.describe_place(name): copy} if copy is not None else {}
        journals, bad = {}, []
        for store, text in texts.items():
            try:
                journals[store] = from_json(text)
            except FormatError as error:
                bad.append(f"{store}: {error}")
        if bad and not journals:
            raise ClusterError(
                f"the journal of upgrade {self._name} cannot be read: {'; '.join(bad)}. Restore it; or, if no node "
                "is being upgraded (no cordon or taint of this collection), delete it and start again",
                "journal_unreadable",
            )
        self.warnings += bad
        return select_newest(journals)

    def find_unfinished(self) -> list[Journal]:
        """Return unfinished upgrades with other names. Omits unreadable journals, which their own runs report."""
        journals = []
        for _object, text in self._maps.read_all():
            with contextlib.suppress(FormatError):
                journals.append(from_json(text))
        return [journal for journal in journals if journal.name != self._name and journal.state != "finished"]

    def keep(self, journal: Journal) -> Journal:
        """Write the journal, and return it as it was written. ClusterError taken_over if a later run wrote it."""
        kept = replace(journal, sequence=journal.sequence + 1)
        text, people = kept.to_json(), describe(kept)
        self._maps.write(
            self._object, text, lambda current_text: self._refuse_takeover(kept, current_text),
            beside={_TEXT: people[:_READABLE]}, room=0 if journal.sequence else _ROOM,
        )  # fmt: skip
        self.written = True
        self._copy({_JSON: text, _TEXT: people})
        return kept

    def _refuse_takeover(self, journal: Journal, text: str) -> None:
        """Refuse to replace the journal of a later run."""
        try:
            current = from_json(text)
        except FormatError:
            return
        if (current.generation, current.sequence) > (journal.generation, journal.sequence) or (
            current.generation == journal.generation and current.sequence == journal.sequence and current != journal
        ):
            raise ClusterError(
                f"{self._maps.describe_place(self._object)} was taken over by a later run (generation {current.generation}, this run "
                f"has {journal.generation}). Wait for that run to end",
                "taken_over",
            )

    def _copy(self, data: dict[str, str]) -> None:
        if self._files is None:
            return
        try:
            for key, text in data.items():
                self._files.write(self._name_file(key), text)
        except OSError as error:
            # The cluster has it; this copy is for readers, and for a deleted ConfigMap.
            if not self.warnings:
                self.warnings.append(f"the journal's copy cannot be written to {self._folder}: {error}")
