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
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.options import record_namespaces
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import STEPS, Record, from_json, newest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT, ConfigMaps, Files

_TEXT = "record.txt"
# Bytes that a record leaves before the first change for what later steps add.
_ROOM = LIMIT // 2


class RecordError(ClusterError):
    """A record cannot be read or written; nothing may be done without one."""


class Folder:
    """A directory on the controller."""

    def __init__(self, path: str) -> None:
        self._files = Files(path)
        # As read or written last, None before that.
        self._known: dict[str, str] | None = None

    def read(self) -> list[tuple[str, str]]:
        """(where it is stored, text) of every record in it."""
        pattern = f"{objects.record_name('*')}.json"
        try:
            self._known = known = dict(self._files.all(pattern))
            return [(self._files.where(name), text) for name, text in known.items()]
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"{self._files.where(pattern)} cannot be read: {error}", "record_unreadable") from error

    def write(self, record: Record) -> None:
        """The disk has it when this returns. A run that was taken over writes no more."""
        name, text = f"{objects.record_name(record.run)}.json", record.as_json()
        try:
            known = self._known if self._known is not None else dict(self._files.all(name))
            if (found := self._files.read(name)) not in (None, known.get(name)):
                _refuse_later(self._files.where(name), found, record)
            self._files.write(name, text)
            self._known = {**known, name: text}
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(
                f"the record cannot be written to {self._files.where(name).removeprefix('file ')}: {error}, expected "
                "a writable directory that outlives the run. Fix it, or set another record_dir.",
                "record_unwritable",
            ) from error


class Space:
    """ConfigMaps in a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        remedy = "Remove annotations of the claim and its volume that you do not need."
        self._maps = ConfigMaps(client, namespace, objects.PART, objects.KEY, remedy)

    def read(self) -> list[tuple[str, str]]:
        """Every record in it."""
        return [(self._maps.where(name), text) for name, text in self._maps.all()]

    def write(self, record: Record) -> None:
        """A run that was taken over writes no more."""
        name = objects.record_name(record.run)

        def meet(found: str) -> None:
            _refuse_later(self._maps.where(name), found, record)

        readable = (
            f"Conversion of claim {record.namespace}/{record.claim}, direction {record.direction}, step {record.step}\n"
            f"Run {record.run}, generation {record.generation}\n"
        )
        self._maps.write(
            name, record.as_json(), meet, beside={_TEXT: readable}, labels={objects.LOCK: record.run},
            room=_ROOM if record.step == STEPS[0] else 0,
        )  # fmt: skip


def _refuse_later(where: str, found: str | None, record: Record) -> None:
    """Refuse to replace what a run wrote that took over; a late write of an earlier one is replaced."""
    try:
        other = from_json(found or "")
    except FormatError:
        return
    if other.generation >= record.generation:
        raise RecordError(
            f"{where} was written by another run (generation {other.generation}, this run has {record.generation}). "
            "Wait for that run to end",
            "taken_over",
        )


Store: TypeAlias = Folder | Space


def open_stores(client: Client, options: Mapping[str, Any]) -> list[Store]:
    """Where records are kept. The cluster comes first: it refuses a run that was taken over, and a directory would not."""
    stores: list[Store] = [Space(client, name) for name in record_namespaces(options)]
    return [*stores, Folder(options["record_dir"])] if options["record_dir"] else stores


class Records:
    """Both stores, for one cluster, which its uid identifies: a directory may have the records of others too, which are left alone."""

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
        self.done: list[Record] = []

    def find(self, namespace: str, claim: str, lock: str) -> Record | None:
        """The record of a claim that is not done yet, the newest copy of it; None when there is none. lock: on the claim now.

        A copy that cannot be read is a warning as long as another one can be; and so is one that is done while the claim
        still has its lock: the cluster was restored to a time before that.
        """
        copies: dict[str, Record] = {}
        bad: dict[str, str] = {}
        for where, record in self._copies(bad):
            if (record.namespace, record.claim) != (namespace, claim):
                continue
            if record.step == "done" and record.lock == lock:
                self.warnings.append(
                    f"{where}: run {record.run} is done, but claim {namespace}/{claim} still has its lock, as "
                    "after a restore of the cluster. This copy is ignored"
                )
            else:
                copies[where] = record
        newest_ones = _newest(copies.items())
        open_ones = [one for one in newest_ones if one.step != "done"]
        self.done = [one for one in newest_ones if one.step == "done"]
        self.final = max(
            (
                one.times.get("forward:done", "")
                for one in newest_ones
                if (one.direction, one.step) == ("forward", "done")
            ),
            default="",
        )
        if len(open_ones) > 1:
            runs = ", ".join(sorted(one.run for one in open_ones))
            raise RecordError(
                f"claim {namespace}/{claim} has records of {len(open_ones)} unfinished runs ({runs}), expected one. "
                "Move away those of claims that no longer exist.",
                "record_unreadable",
            )
        if bad and not open_ones:
            unreadable = "; ".join(f"{where}: {why}" for where, why in sorted(bad.items()))
            raise RecordError(
                f"claim {namespace}/{claim} may have an unreadable record: {unreadable}. Restore it from its other copy, or "
                "move it away if no conversion needs it.",
                "record_unreadable",
            )
        self.warnings += [f"{where} cannot be read: {why}" for where, why in sorted(bad.items())]
        return open_ones[0] if open_ones else None

    def open_ones(self) -> list[Record]:
        """The newest copy of every record of this cluster that is not done yet. `find` reports what cannot be read, or refuses."""
        return [one for one in _newest(self._copies({})) if one.step != "done"]

    def _copies(self, bad: dict[str, str]) -> Iterator[tuple[str, Record]]:
        """Every record of this cluster, with where it is. bad: takes why others cannot be read."""
        for where, text in (found for store in self._stores for found in store.read()):
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

    def write(self, record: Record, when: str) -> Record:
        """Write to both stores; answers with the record as it stands there."""
        sequence = max(record.sequence, self._sequences.get(record.run, 0))
        saved = replace(record, sequence=sequence).saved(when)
        self._sequences[record.run] = saved.sequence
        for store in self._stores:
            store.write(saved)
        return saved


def _newest(copies: Iterable[tuple[str, Record]]) -> list[Record]:
    """The newest copy of each run's record."""
    return [newest(dict(some)) for some in group_values((one[1].run, one) for one in copies).values()]
