# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record store: what a later run needs is text under a name, in ConfigMaps or in files.

Journals of upgrades, records of conversions and baselines of data all live here. A text that one ConfigMap cannot hold is compressed
and divided over several; the first one names the others and their checksum, so that a reader sees the old text or the new one.
Each try of a write has pieces under names of its own, so writers at the same time never remove each other's.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.decode import inflate, read_json
from ansible_collections.kubewin.csi.plugins.module_utils.files import write_whole
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import FIELD_MANAGER, Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.module_utils.kube.times import moment

# Bytes that one ConfigMap holds; Kubernetes refuses more than 1 MiB, names and a readable text included.
_PIECE = 600 << 10
# Bytes, compressed, of the largest text.
LIMIT = 3 << 20
_TRIES = 3
# In the first ConfigMap of a divided text.
_PIECES, _SUM = "pieces", "sha256"
# On the others: of which text they are a part.
OF = "kubewin.io/piece-of"
# Pieces that no text names are those of a writer that ended, once they are as old as this.
_ORPHANED = timedelta(hours=1)


class TooLargeError(ClusterError):
    """The store does not hold a text of that size."""


@dataclass(frozen=True, slots=True)
class Known:
    """A text as it was read or written last. pieces: names of the ConfigMaps that it was divided over."""

    text: str
    version: str
    pieces: tuple[str, ...] = ()


class ConfigMaps:
    """Texts in one namespace. part: what they are, by label. key: of the text in its ConfigMap."""

    def __init__(self, client: Client, namespace: str, part: str, key: str) -> None:
        self._client, self._namespace, self._part, self._key = client, namespace, part, key
        self._known: dict[str, Known] = {}

    def where(self, name: str) -> str:
        """Where a text is stored, as text."""
        return f"ConfigMap {self._namespace}/{name}"

    def read(self, name: str) -> str | None:
        """A text, None when there is none. An empty one when its pieces do not belong together."""
        live = self._client.get(kinds.CONFIG_MAP, name, self._namespace)
        return None if live is None else self._know(live)

    def all(self, **labels: str) -> Iterator[tuple[str, str]]:
        """(name, text) of each, with these labels."""
        for item in self._listed(self._part, labels):
            yield item["metadata"]["name"], self._know(item)

    def write(
        self, name: str, text: str, meet: Callable[[str], None] = lambda _other: None, *,
        beside: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Write a text, bound to what was read or written here last. One that was deleted meanwhile is made again.

        meet: gets a text that another run wrote, and raises if that one counts. beside: more keys with readable text.
        TooLargeError when it does not fit.
        """
        packed, former = self._packed(name, text), set[str]()
        for _again in range(_TRIES):
            known = self._known.get(name)
            pieces = self._pieces(name, packed, labels or {})
            for definition in pieces.values():
                self._client.create(definition)
            data: dict[str, str | None] = (
                {_PIECES: json.dumps(list(pieces)), _SUM: _sum(packed)} if pieces else {self._key: text}
            )
            try:
                live = self._send(name, data | dict(beside or {}), known, labels or {})
            except ClusterError as error:
                if error.status == 404 and known is not None:
                    del self._known[name]
                elif error.status != 409:
                    raise
                else:
                    self._meet(name, text, meet)
                former.update(pieces)
                continue
            self._known[name] = Known(text, live["metadata"]["resourceVersion"], tuple(pieces))
            former.update(known.pieces if known is not None else ())
            if pieces and self._joined(tuple(pieces), _sum(packed)) is None:
                # Another run removed the text, pieces and all, as it was written.
                continue
            if pieces or former:
                self._clear(name, former)
            return
        raise ClusterError(
            f"{self.where(name)} changes faster than it can be written. Find out what else writes it", "conflict", 409
        )

    def named(self, **labels: str) -> list[str]:
        """The names of the texts with these labels."""
        return [item["metadata"]["name"] for item in self._listed(self._part, labels)]

    def forget(self, only: Collection[str] | None = None, **labels: str) -> list[str]:
        """Delete the texts with these labels and all of their pieces, also those that no text names; answers with the texts' names.

        only: none but the texts of these names.
        """
        texts, pieces = self._listed(self._part, labels), self._listed(self._piece, labels)
        if only is not None:
            short = {_short(name) for name in only}
            texts = tuple(item for item in texts if item["metadata"]["name"] in only)
            pieces = tuple(item for item in pieces if item["metadata"]["labels"].get(OF) in short)
        for item in (*texts, *pieces):
            self._client.discard(kinds.CONFIG_MAP, item)
        names = [item["metadata"]["name"] for item in texts]
        for name in names:
            self._known.pop(name, None)
        return names

    @property
    def _piece(self) -> str:
        return f"{self._part}-piece"

    def _listed(self, part: str, labels: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        selector = ",".join(f"{key}={value}" for key, value in {PART_OF: part, **labels}.items())
        return self._client.list(kinds.CONFIG_MAP, self._namespace, label_selector=selector).items

    def _metadata(self, name: str, labels: Mapping[str, str], part: str = "") -> dict[str, Any]:
        labels = {MANAGED_BY: MANAGER, PART_OF: part or self._part, **labels}
        return {"name": name, "namespace": self._namespace, "labels": labels}

    def _send(
        self, name: str, data: Mapping[str, str | None], known: Known | None, labels: Mapping[str, str]
    ) -> dict[str, Any]:
        metadata = self._metadata(name, labels)
        if known is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
            return self._client.create_new(kinds.CONFIG_MAP, body, dry_run=False)
        # What the text was stored as before goes in the same write.
        former: tuple[str, ...] = (_PIECES, _SUM) if known.pieces else (self._key,)
        data = {**{key: None for key in former if key not in data}, **data}
        patch = {"metadata": {"labels": metadata["labels"], "resourceVersion": known.version}, "data": data}
        return self._client.patch(kinds.CONFIG_MAP, name, self._namespace, patch, FIELD_MANAGER)

    def _meet(self, name: str, text: str, meet: Callable[[str], None]) -> None:
        """It was written meanwhile: by another run, by a try of ours whose answer was lost, or it only got a label."""
        before = self._known.get(name)
        live = self._client.get(kinds.CONFIG_MAP, name, self._namespace)
        if live is None:
            self._known.pop(name, None)
            return
        found = self._know(live)
        if found not in (text, before.text if before else None):
            meet(found)

    def _know(self, live: Mapping[str, Any]) -> str:
        name = live["metadata"]["name"]
        for _again in range(_TRIES):
            data = live.get("data") or {}
            pieces = _names(data.get(_PIECES)) if data.get(self._key) is None else ()
            text = self._joined(pieces, str(data.get(_SUM))) if pieces else str(data.get(self._key) or "")
            self._known[name] = Known(text or "", live["metadata"]["resourceVersion"], pieces)
            if text is not None:
                return text
            # Another run may have written it meanwhile, and removed the pieces of before.
            later = self._client.get(kinds.CONFIG_MAP, name, self._namespace)
            if later is None or later["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]:
                return ""
            live = later
        return ""

    # Pieces

    def _packed(self, name: str, text: str) -> bytes:
        """The text to divide, compressed; empty when one ConfigMap holds it."""
        whole = text.encode()
        packed = gzip.compress(whole, mtime=0) if len(whole) > _PIECE else b""
        if len(packed) > LIMIT:
            raise TooLargeError(
                f"{self.where(name)}: the text has {len(packed)} bytes compressed, expected at most {LIMIT}",
                "too_large",
            )
        return packed

    def _pieces(self, name: str, packed: bytes, labels: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        stem = f"{name}.{secrets.token_hex(6)}"
        found: dict[str, dict[str, Any]] = {}
        for number, start in enumerate(range(0, len(packed), _PIECE)):
            content = base64.b64encode(packed[start : start + _PIECE]).decode()
            metadata = self._metadata(f"{stem}.{number}", {**labels, OF: _short(name)}, part=self._piece)
            found[metadata["name"]] = {
                "apiVersion": "v1", "kind": "ConfigMap", "immutable": True, "metadata": metadata, "binaryData": {"piece": content},
            }  # fmt: skip
        return found

    def _joined(self, pieces: tuple[str, ...], checksum: str) -> str | None:
        """The whole text, None when the pieces are not those of that checksum."""
        found = []
        for piece in pieces:
            live = self._client.get(kinds.CONFIG_MAP, piece, self._namespace)
            found.append(str(((live or {}).get("binaryData") or {}).get("piece", "")))
        try:
            packed = b"".join(base64.b64decode(one, validate=True) for one in found)
            return inflate(packed).decode() if _sum(packed) == checksum else None
        except ValueError:
            return None

    def _clear(self, name: str, former: Collection[str]) -> None:
        """Delete the pieces of the text that was replaced, and old ones that no text names: those of other writers are young."""
        now, kept = self._client.now(), self._known[name].pieces
        for item in self._listed(self._piece, {OF: _short(name)}):
            metadata = item["metadata"]
            made = moment(metadata.get("creationTimestamp"))
            old = made is not None and now - made > _ORPHANED
            if metadata["name"] not in kept and (old or metadata["name"] in former):
                self._client.discard(kinds.CONFIG_MAP, item)


class Files:
    """Texts in a directory of the controller, for their owner alone. OSError and UnicodeDecodeError are the caller's."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def where(self, name: str) -> str:
        """Where a text is stored, as text."""
        return f"file {self._folder / name}"

    def read(self, name: str) -> str | None:
        """A text, None when there is none."""
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def all(self, pattern: str) -> Iterator[tuple[str, str]]:
        """(name, text) of each; a directory that does not exist has none."""
        for path in sorted(self._folder.glob(pattern)):
            yield path.name, path.read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Write a text whole; the disk has it when this returns."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(str(self._folder), name, text.encode())


def _names(text: object) -> tuple[str, ...]:
    try:
        found = read_json(str(text))
    except ValueError:
        return ()
    return tuple(str(one) for one in found) if isinstance(found, list) else ()


def _sum(packed: bytes) -> str:
    return hashlib.sha256(packed).hexdigest()


def _short(name: str) -> str:
    """A name as the value of a label."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]
