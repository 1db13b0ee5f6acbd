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
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, from_json, newest
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.lease import PART

_JSON, _TEXT = "journal.json", "journal.txt"
# Maximum length of the readable text beside the journal.
_READABLE = 100_000
# Bytes that a new journal leaves for what a run adds, so that an upgrade whose journal gets too large does not begin.
_ROOM = LIMIT // 2
NAMES = re.compile(r"[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?\Z")


class Pages:
    """One upgrade's journal. folder: on this machine, None without one; what cannot be written there is reported in warnings.

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
        """Where it is stored, as text."""
        files = f" and {self._folder / self._file(_TEXT)}" if self._folder else ""
        return f"{self._maps.where(self._object)}{files}"

    @property
    def _object(self) -> str:
        return f"kubewin-upgrade-{self._name}"

    def _file(self, which: str) -> str:
        return f"upgrade-{self._name}.{which.partition('.')[2]}"

    def read(self) -> Journal | None:
        """The newest copy, None when this upgrade was never begun. ClusterError when none of them can be read."""
        texts: dict[str, str] = {}
        live = self._maps.read(self._object)
        if live is not None:
            texts[self._maps.where(self._object)] = live
        if self._files is not None:
            name = self._file(_JSON)
            try:
                copy = self._files.read(name)
            except (OSError, UnicodeDecodeError) as error:
                self.warnings.append(f"{self._files.where(name)} cannot be read: {error}")
            else:
                texts |= {self._files.where(name): copy} if copy is not None else {}
        found, bad = {}, []
        for store, text in texts.items():
            try:
                found[store] = from_json(text)
            except FormatError as error:
                bad.append(f"{store}: {error}")
        if bad and not found:
            raise ClusterError(
                f"the journal of upgrade {self._name} cannot be read: {'; '.join(bad)}. Restore it; or, if no node "
                "is being upgraded (no cordon or taint of this collection), delete it and start again",
                "journal_unreadable",
            )
        self.warnings += bad
        return newest(found)

    def beside(self) -> list[Journal]:
        """Upgrades under other names that were begun and are not finished. What cannot be read is left out: its own run says so."""
        found = []
        for _object, text in self._maps.all():
            with contextlib.suppress(FormatError):
                found.append(from_json(text))
        return [one for one in found if one.name != self._name and one.state != "finished"]

    def keep(self, journal: Journal) -> Journal:
        """Write it; answers with it as it was written. ClusterError taken_over when a later run has it."""
        kept = replace(journal, sequence=journal.sequence + 1)
        text, people = kept.as_json(), describe(kept)
        self._maps.write(
            self._object, text, lambda other: self._meet(kept, other),
            beside={_TEXT: people[:_READABLE]}, room=0 if journal.sequence else _ROOM,
        )  # fmt: skip
        self.written = True
        self._copy({_JSON: text, _TEXT: people})
        return kept

    def _meet(self, journal: Journal, text: str) -> None:
        """It was written meanwhile. A later run that did that has it."""
        try:
            other = from_json(text)
        except FormatError:
            return
        if (other.generation, other.sequence) > (journal.generation, journal.sequence) or (
            other.generation == journal.generation and other.sequence == journal.sequence and other != journal
        ):
            raise ClusterError(
                f"{self._maps.where(self._object)} was taken over by a later run (generation {other.generation}, this run "
                f"has {journal.generation}). Wait for that run to end",
                "taken_over",
            )

    def _copy(self, data: dict[str, str]) -> None:
        if self._files is None:
            return
        try:
            for which, text in data.items():
                self._files.write(self._file(which), text)
        except OSError as error:
            # The cluster has it; this copy is for readers, and for a deleted ConfigMap.
            if not self.warnings:
                self.warnings.append(f"the journal's copy cannot be written to {self._folder}: {error}")
