# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of an upgrade in the record store."""

from __future__ import annotations

import re
from dataclasses import replace

from ..base.stored import FormatError, LaterFormatError
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.store import LIMIT, ConfigMaps
from .explain import describe
from .journal import Journal, from_json
from .lease import PART

_JSON, _TEXT = "journal.json", "journal.txt"
# Maximum length of the readable text beside the journal.
_READABLE = 100_000
# Bytes that a new journal leaves for what a run adds, so that an upgrade whose journal gets too large does not begin.
_ROOM = LIMIT // 2
NAMES = re.compile(r"[a-z0-9]([-a-z0-9.]{0,60}[a-z0-9])?\Z")


class JournalStore:
    """Stores the journal of one upgrade. written: whether it was written to. warnings: about journals, for the user."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        remedy = "Scale down workloads with volumes that you do not need during the upgrade."
        self._maps = ConfigMaps(client, namespace, PART, _JSON, remedy)
        self._name, self._object = name, f"kubewin-upgrade-{name}"
        self.warnings: list[str] = []
        self.written = False

    @property
    def location(self) -> str:
        return self._maps.describe_place(self._object)

    def read(self) -> Journal | None:
        """Read the journal, None if there is none. ClusterError if it cannot be read."""
        text = self._maps.read(self._object)
        try:
            return None if text is None else from_json(text)
        except FormatError as error:
            raise ClusterError(
                f"the journal of upgrade {self._name} cannot be read: {self.location}: {error}. If it was edited by hand, restore "
                "it; or, if no node is being upgraded (no cordon or taint of this collection), delete it and start again",
                "journal_unreadable",
            ) from error

    def find_unfinished(self) -> list[Journal]:
        """Return unfinished upgrades with other names. An unreadable journal is a warning."""
        journals = []
        for name, text in self._maps.read_all():
            try:
                journals.append(from_json(text))
            except FormatError as error:
                warning = f"{self._maps.describe_place(name)} may be the journal of an unfinished upgrade, and cannot be read: {error}"
                if warning not in self.warnings:
                    self.warnings.append(warning)
        return [journal for journal in journals if journal.name != self._name and journal.state != "finished"]

    def keep(self, journal: Journal) -> Journal:
        """Write the journal, and return it as it was written. ClusterError taken_over if a later run wrote it."""
        kept = replace(journal, sequence=journal.sequence + 1)
        text, people = kept.to_json(), describe(kept)
        self._maps.write(
            self._object, text, lambda current_text: self._refuse_takeover(kept, current_text),
            extra_data={_TEXT: people[:_READABLE]}, reserved=0 if journal.sequence else _ROOM,
        )  # fmt: skip
        self.written = True
        return kept

    def _refuse_takeover(self, journal: Journal, text: str) -> None:
        try:
            current = from_json(text)
        except LaterFormatError as error:
            raise ClusterError(f"{self.location} was taken over by a later run: {error}", "taken_over") from error
        except FormatError:
            return
        if (current.generation, current.sequence) > (journal.generation, journal.sequence) or (
            current.generation == journal.generation and current.sequence == journal.sequence and current != journal
        ):
            raise ClusterError(
                f"{self.location} was taken over by a later run (generation {current.generation}, this run "
                f"has {journal.generation}). Wait for that run to end",
                "taken_over",
            )
