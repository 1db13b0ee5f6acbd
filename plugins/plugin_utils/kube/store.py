# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record store: what a later run needs is text under a name, each in a ConfigMap of its own.

Journals of upgrades, records of conversions and baselines of data all live here.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..base.decode import inflate
from . import kinds
from .client import FIELD_MANAGER, Client
from .errors import ClusterError
from .labels import MANAGED_BY, MANAGER, PART_OF

# Bytes of all values of a ConfigMap (ValidateConfigMap in kubernetes/kubernetes, pkg/apis/core/validation/validation.go).
LIMIT = 1 << 20
# Bytes of the largest text that is stored readable, not compressed.
_READABLE = 200_000
_TRIES = 3


class TooLargeError(ClusterError):
    """A ConfigMap does not hold a text of that size."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """A text as it was read or written last. version: resourceVersion of its ConfigMap."""

    text: str
    version: str


class ConfigMaps:
    """Texts in one namespace.

    part: what they are, by label. key: of the text in its ConfigMap, with ``.gz`` if it is compressed. remedy: for a text that is too large.
    """

    def __init__(self, client: Client, namespace: str, part: str, key: str, remedy: str) -> None:
        self._client, self._namespace, self._part, self._key = client, namespace, part, key
        self._remedy = remedy
        self._known: dict[str, KnownText] = {}

    def describe_place(self, name: str) -> str:
        return f"ConfigMap {self._namespace}/{name}"

    def read(self, name: str) -> str | None:
        """A text, None when there is none. An empty one when it cannot be unpacked."""
        live = self._client.get(kinds.CONFIG_MAP, name, self._namespace)
        return None if live is None else self._remember(live)

    def read_all(self, **labels: str) -> Iterator[tuple[str, str]]:
        """(name, text) of each, with these labels."""
        for item in self._list(labels):
            yield item["metadata"]["name"], self._remember(item)

    def write(
        self, name: str, text: str, check_other: Callable[[str], None] = lambda _text: None, *,
        extra_data: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None, reserved: int = 0,
    ) -> None:  # fmt: skip
        """Write a text, bound to what was read or written here last. One that was deleted meanwhile is made again.

        check_other: gets a text that another run wrote, and raises if that one counts. extra_data: more keys with readable text.
        reserved: bytes to leave free for what is added later. TooLargeError when it does not fit.
        """
        content = self._pack(name, text, extra_data or {}, reserved)
        for _attempt in range(_TRIES):
            try:
                live = self._send(name, content, labels or {})
            except ClusterError as error:
                # 404 of a text that was never there is its namespace's.
                if error.status != 409 and (error.status != 404 or name not in self._known):
                    raise
                self._read_again(name, text, check_other)
            else:
                self._known[name] = KnownText(text, live["metadata"]["resourceVersion"])
                return
        raise ClusterError(
            f"{self.describe_place(name)} changes faster than it can be written. Find out what else writes it.",
            "conflict",
            409,
        )

    def list_names(self, **labels: str) -> list[str]:
        return [item["metadata"]["name"] for item in self._list(labels)]

    def forget(self, only: Collection[str] | None = None, **labels: str) -> list[str]:
        """Delete the texts with these labels; answers with their names. only: none but the texts of these names."""
        items = [item for item in self._list(labels) if only is None or item["metadata"]["name"] in only]
        names = [item["metadata"]["name"] for item in items]
        for name, item in zip(names, items, strict=True):
            self._client.discard(kinds.CONFIG_MAP, item)
            self._known.pop(name, None)
        return names

    def _list(self, labels: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        selector = ",".join(f"{key}={value}" for key, value in {PART_OF: self._part, **labels}.items())
        return self._client.list(kinds.CONFIG_MAP, self._namespace, label_selector=selector).items

    def _pack(
        self, name: str, text: str, extra_data: Mapping[str, str], reserved: int
    ) -> dict[str, dict[str, str | None]]:
        """Data and binaryData of the ConfigMap. A key without a value is removed."""
        whole = text.encode()
        packed = gzip.compress(whole, mtime=0) if len(whole) > _READABLE else b""
        limit = LIMIT - reserved - sum(len(value.encode()) for value in extra_data.values())
        if len(packed) > limit:
            raise TooLargeError(
                f"{self.describe_place(name)}: its text has {len(packed)} bytes compressed, expected at most {limit}. {self._remedy}",
                "too_large",
            )
        return {
            "data": {**extra_data, self._key: None if packed else text},
            "binaryData": {f"{self._key}.gz": base64.b64encode(packed).decode() if packed else None},
        }

    def _send(
        self, name: str, content: Mapping[str, Mapping[str, str | None]], labels: Mapping[str, str]
    ) -> dict[str, Any]:
        last = self._known.get(name)
        labels = {MANAGED_BY: MANAGER, PART_OF: self._part, **labels}
        if last is None:
            filled = {
                part: {key: value for key, value in values.items() if value is not None}
                for part, values in content.items()
            }
            metadata = {"name": name, "namespace": self._namespace, "labels": labels}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **filled}
            return self._client.create_new(kinds.CONFIG_MAP, body, dry_run=False)
        patch = {"metadata": {"labels": labels, "resourceVersion": last.version}, **content}
        return self._client.patch(kinds.CONFIG_MAP, name, self._namespace, patch, FIELD_MANAGER)

    def _read_again(self, name: str, text: str, check_other: Callable[[str], None]) -> None:
        """It was written or deleted meanwhile: by another run, by a try of ours whose answer was lost, or it only got a label."""
        before = self._known.pop(name, None)
        current = self.read(name)
        if current not in (None, text, before.text if before else None):
            check_other(current)

    def _remember(self, live: Mapping[str, Any]) -> str:
        text, packed = (live.get("data") or {}).get(self._key), (live.get("binaryData") or {}).get(f"{self._key}.gz")
        try:
            text = text if text is not None else inflate(base64.b64decode(packed or "", validate=True)).decode()
        except ValueError:
            text = ""
        self._known[live["metadata"]["name"]] = KnownText(text, live["metadata"]["resourceVersion"])
        return text
