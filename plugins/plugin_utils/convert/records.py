# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Record stores of conversions: always two, of which either one is enough to continue.

A store is a ConfigMap in a namespace, or a file in a directory that outlives the run. The newest record has the
highest sequence, so that a run killed between the two writes leaves nothing undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.grouped import group_values
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.options import list_record_namespaces
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import (
    STEPS,
    ConversionRecord,
    from_json,
    select_newest,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT, ConfigMaps, Files

_TEXT = "record.txt"
# Bytes that a record leaves before the first change for what later steps add.
_ROOM = LIMIT // 2


class RecordError(ClusterError):
    """A record cannot be read or written; nothing may be done without one."""


class RecordDirectory:
    """Records in a directory on the controller."""

    def __init__(self, path: str) -> None:
        self._files = Files(path)
        # As read or written last, None before that.
        self._known: dict[str, str] | None = None

    def read(self) -> list[tuple[str, str]]:
        """Read every record: (location, text)."""
        pattern = f"{objects.name_record('*')}.json"
        try:
            self._known = texts = dict(self._files.read_all(pattern))
            return [(self._files.describe_place(name), text) for name, text in texts.items()]
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(
                f"{self._files.describe_place(pattern)} cannot be read: {error}", "record_unreadable"
            ) from error

    def write(self, record: ConversionRecord) -> None:
        """Write the record to disk. Refuses to replace the record of a later run."""
        name, text = f"{objects.name_record(record.run)}.json", record.to_json()
        try:
            texts = self._known if self._known is not None else dict(self._files.read_all(name))
            if (current := self._files.read(name)) not in (None, texts.get(name)):
                _refuse_later(self._files.describe_place(name), current, record)
            self._files.write(name, text)
            self._known = {**texts, name: text}
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(
                f"the record cannot be written to {self._files.describe_place(name).removeprefix('file ')}: {error}, expected "
                "a writable directory that outlives the run. Fix it, or set another record_dir.",
                "record_unwritable",
            ) from error


class RecordNamespace:
    """Records in ConfigMaps of a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        remedy = "Remove annotations of the claim and its volume that you do not need."
        self._maps = ConfigMaps(client, namespace, objects.PART, objects.KEY, remedy)

    def read(self) -> list[tuple[str, str]]:
        """Read every record: (location, text)."""
        return [(self._maps.describe_place(name), text) for name, text in self._maps.read_all()]

    def write(self, record: ConversionRecord) -> None:
        """Write the record. Refuses to replace the record of a later run."""
        name = objects.name_record(record.run)

        def meet(current: str) -> None:
            _refuse_later(self._maps.describe_place(name), current, record)

        readable = (
            f"Conversion of claim {record.namespace}/{record.claim}, direction {record.direction}, step {record.step}\n"
            f"Run {record.run}, generation {record.generation}\n"
        )
        self._maps.write(
            name, record.to_json(), meet, beside={_TEXT: readable}, labels={objects.LOCK: record.run},
            room=_ROOM if record.step == STEPS[0] else 0,
        )  # fmt: skip


def _refuse_later(where: str, current: str | None, record: ConversionRecord) -> None:
    """Refuse to replace the record of a later run. A late write of an earlier run is replaced."""
    try:
        record_there = from_json(current or "")
    except FormatError:
        return
    if record_there.generation >= record.generation:
        raise RecordError(
            f"{where} was written by another run (generation {record_there.generation}, this run has {record.generation}). "
            "Wait for that run to end",
            "taken_over",
        )


Store: TypeAlias = RecordDirectory | RecordNamespace


def open_stores(client: Client, options: Mapping[str, Any]) -> list[Store]:
    """Open the record stores. The cluster comes first, since it refuses a run that was taken over, and a directory does not."""
    stores: list[Store] = [RecordNamespace(client, name) for name in list_record_namespaces(options)]
    return [*stores, RecordDirectory(options["record_dir"])] if options["record_dir"] else stores


class Records:
    """The record stores of one cluster. Ignores records of other clusters in a shared directory."""

    def __init__(self, stores: Sequence[Store], cluster: str) -> None:
        if len(stores) < 2:
            raise RecordError(
                "one record store is set, expected two. Set record_dir, a directory that outlives this run, or "
                "second_record_namespace",
                "configuration",
            )
        self._stores, self._cluster = tuple(stores), cluster
        # By run: a claim that is converted again has the name of its last run.
        self._sequences: dict[str, int] = {}
        # By run: which versions of its record the stores have.
        self._versions: dict[str, set[tuple[str, int, int]]] = {}
        self.warnings: list[str] = []
        # When the conversion of the claim last searched for was made final, empty without such a record.
        self.final = ""
        # The records of that claim that are done, one for each run.
        self.done: list[ConversionRecord] = []

    def find(self, namespace: str, claim: str, lock: str) -> ConversionRecord | None:
        """Return the newest copy of a claim's unfinished record, None without one. lock: on the claim now.

        A copy that cannot be read is a warning as long as another one can be; and so is one that is done while the claim
        still has its lock: the cluster was restored to a time before that.
        """
        copies: dict[str, ConversionRecord] = {}
        bad: dict[str, str] = {}
        for where, record in self._read_copies(bad):
            if (record.namespace, record.claim) != (namespace, claim):
                continue
            if record.step == "done" and record.lock == lock:
                self.warnings.append(
                    f"{where}: run {record.run} is done, but claim {namespace}/{claim} still has its lock, as "
                    "after a restore of the cluster. This copy is ignored"
                )
            else:
                copies[where] = record
        newest_ones = _select_newest_copies(copies.items())
        unfinished = [record for record in newest_ones if record.step != "done"]
        self.done = [record for record in newest_ones if record.step == "done"]
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
            raise RecordError(
                f"claim {namespace}/{claim} has records of {len(unfinished)} unfinished runs ({runs}), expected one. "
                "Move away those of claims that no longer exist.",
                "record_unreadable",
            )
        if bad and not unfinished:
            unreadable = "; ".join(f"{where}: {why}" for where, why in sorted(bad.items()))
            raise RecordError(
                f"claim {namespace}/{claim} may have an unreadable record: {unreadable}. Restore it from its other copy, or "
                "move it away if no conversion needs it.",
                "record_unreadable",
            )
        self.warnings += [f"{where} cannot be read: {why}" for where, why in sorted(bad.items())]
        return unfinished[0] if unfinished else None

    def list_unfinished(self) -> list[ConversionRecord]:
        """Return the newest copy of every unfinished record. `find` reports unreadable ones."""
        return [record for record in _select_newest_copies(self._read_copies({})) if record.step != "done"]

    def _read_copies(self, bad: dict[str, str]) -> Iterator[tuple[str, ConversionRecord]]:
        """Read every record of this cluster with its location. bad: collects why others cannot be read."""
        for where, text in (copy for store in self._stores for copy in store.read()):
            try:
                record = from_json(text)
            except FormatError as error:
                bad[where] = str(error)
                continue
            self._sequences[record.run] = max(record.sequence, self._sequences.get(record.run, 0))
            self._versions.setdefault(record.run, set()).add((record.key, record.generation, record.sequence))
            if record.cluster == self._cluster:
                yield where, record

    def differ(self, run: str) -> bool:
        """Whether the stores, as they were read, have different versions of a run's record."""
        return len(self._versions.get(run, ())) > 1

    def write(self, record: ConversionRecord, when: str) -> ConversionRecord:
        """Write to every store; return the record as it was written."""
        sequence = max(record.sequence, self._sequences.get(record.run, 0))
        saved = replace(record, sequence=sequence).prepare_save(when)
        self._sequences[record.run] = saved.sequence
        for store in self._stores:
            store.write(saved)
        return saved


def _select_newest_copies(copies: Iterable[tuple[str, ConversionRecord]]) -> list[ConversionRecord]:
    """Return the newest copy of each run's record."""
    return [
        select_newest(dict(copies_of_run))
        for copies_of_run in group_values((copy[1].run, copy) for copy in copies).values()
    ]
