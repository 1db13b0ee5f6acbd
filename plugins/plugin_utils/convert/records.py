# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record stores of conversions: always two, of which either one is enough to continue.

The newest record has the highest sequence, so that a run killed between the two writes leaves nothing undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..base.grouped import group_values
from ..base.stored import FormatError, LaterFormatError
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.store import LIMIT, ConfigMaps
from . import objects
from .record import STEPS, ConversionRecord, from_json, select_newest

_TEXT = "record.txt"
# Bytes that a record leaves before the first change for what later steps add.
_ROOM = LIMIT // 2


class Records:
    """Records in ConfigMaps of two namespaces, so that deleting one namespace loses nothing."""

    def __init__(self, client: Client, namespaces: Sequence[str]) -> None:
        remedy = "Remove annotations of the claim and its volume that you do not need."
        self._stores = [ConfigMaps(client, namespace, objects.PART, objects.KEY, remedy) for namespace in namespaces]
        # By run: a claim that is converted again has the name of its last run.
        self._sequences: dict[str, int] = {}
        self.warnings: list[str] = []
        # When the conversion of the claim last searched for was made final, empty without such a record.
        self.final = ""

    def find(self, namespace: str, claim: str) -> ConversionRecord | None:
        """Return the newest copy of a claim's unfinished record, None without one.

        A copy that cannot be read is a warning as long as another one can be.
        """
        bad: dict[str, str] = {}
        copies = [record for record in self._read_copies(bad) if (record.namespace, record.claim) == (namespace, claim)]
        newest_ones = _select_newest_copies(copies)
        unfinished = [record for record in newest_ones if record.step != "done"]
        self.final = max(
            (
                record.times.get("forward:done", "")
                for record in newest_ones
                if (record.direction, record.step) == ("forward", "done")
            ),
            default="",
        )
        if len(unfinished) > 1:
            runs = ", ".join(sorted(record.run for record in unfinished))
            raise ClusterError(
                f"claim {namespace}/{claim} has records of {len(unfinished)} unfinished runs ({runs}), expected one. "
                "Move away those of claims that no longer exist.",
                "record_unreadable",
            )
        if bad and not unfinished:
            unreadable = "; ".join(f"{where}: {why}" for where, why in sorted(bad.items()))
            raise ClusterError(
                f"claim {namespace}/{claim} may have an unreadable record: {unreadable}. If it was edited by hand, restore it "
                "from its other copy, or move it away if no conversion needs it.",
                "record_unreadable",
            )
        self.warnings += [f"{where} cannot be read: {why}" for where, why in sorted(bad.items())]
        return unfinished[0] if unfinished else None

    def list_unfinished(self) -> list[ConversionRecord]:
        """Return the newest copy of every unfinished record. `find` reports unreadable ones."""
        return [record for record in _select_newest_copies(self._read_copies({})) if record.step != "done"]

    def _read_copies(self, bad: dict[str, str]) -> Iterator[ConversionRecord]:
        """Read every record. bad: collects why others cannot be read, by location."""
        for store in self._stores:
            for name, text in store.read_all():
                try:
                    record = from_json(text)
                except FormatError as error:
                    bad[store.describe_place(name)] = str(error)
                    continue
                self._sequences[record.run] = max(record.sequence, self._sequences.get(record.run, 0))
                yield record

    def write(self, record: ConversionRecord, step_time: str) -> ConversionRecord:
        """Write to every store; return the record as it was written."""
        sequence = max(record.sequence, self._sequences.get(record.run, 0))
        saved = replace(record, sequence=sequence).prepare_save(step_time)
        self._sequences[record.run] = saved.sequence
        for store in self._stores:
            _write_copy(store, saved)
        return saved


def _write_copy(store: ConfigMaps, record: ConversionRecord) -> None:
    """Write the record to a store. Refuses to replace the record of a later run. A late write of an earlier one is replaced."""
    name = objects.name_record(record.run)

    def refuse_later(text: str) -> None:
        try:
            current = from_json(text)
        except LaterFormatError as error:
            raise ClusterError(
                f"{store.describe_place(name)} was written by another run: {error}", "taken_over"
            ) from error
        except FormatError:
            return
        if current.generation >= record.generation:
            raise ClusterError(
                f"{store.describe_place(name)} was written by another run (generation {current.generation}, this run has "
                f"{record.generation}). Wait for that run to end",
                "taken_over",
            )

    readable = (
        f"Conversion of claim {record.title}, direction {record.direction}, step {record.step}\n"
        f"Run {record.run}, generation {record.generation}\n"
    )
    store.write(
        name, record.to_json(), refuse_later, extra_data={_TEXT: readable}, labels={objects.LOCK: record.run},
        reserved=_ROOM if record.step == STEPS[0] else 0,
    )  # fmt: skip


def _select_newest_copies(copies: Iterable[ConversionRecord]) -> list[ConversionRecord]:
    return [
        select_newest(copies_of_run) for copies_of_run in group_values((copy.run, copy) for copy in copies).values()
    ]
