# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baselines of data, one ConfigMap for each claim."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ..base.stored import FormatError
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.store import ConfigMaps, TooLargeError
from .manifest import Manifest, from_json, summarize

PART = "workload-data"
KEY = "baseline.json"
# Which set a baseline belongs to, as a label.
SET = "kubewin.io/baseline-set"


class Baselines:
    """One set of baselines. namespace: of their ConfigMaps."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._maps = ConfigMaps(client, namespace, PART, KEY, "Compare the other claims without this one.")
        self._name = name

    def describe_location(self, claim: str) -> str:
        """Describe where the baseline of a claim (namespace/name) is stored."""
        return self._maps.describe_place(self._name_object(claim))

    def read(self, claim: str) -> Manifest | None:
        """Read the baseline of a claim, None without one. Raises ClusterError if it cannot be read."""
        text = self._maps.read(self._name_object(claim))
        try:
            return None if text is None else from_json(text)
        except FormatError as error:
            raise ClusterError(
                f"the baseline of {claim} cannot be read: {self.describe_location(claim)}: {error}. If it was edited by hand, "
                "remove it (forget=true), then record a new one.",
                "baseline_unreadable",
            ) from error

    def write(self, claim: str, manifest: Manifest, append_only: Sequence[str]) -> Manifest:
        """Write a baseline; return it as it was written: with digests of folders if it is too large.

        Raises ClusterError conflict if another run wrote one since `read`.
        """
        try:
            self._store(claim, manifest)
        except TooLargeError:
            manifest = summarize(manifest, append_only)
            self._store(claim, manifest)
        return manifest

    def list_recorded(self, claims: Sequence[str] = ()) -> list[str]:
        """List the ConfigMaps of the set, or of these claims."""
        names = {self._name_object(claim) for claim in claims}
        return [name for name in self._maps.list_names(**self._labels) if not claims or name in names]

    def forget(self, claims: Sequence[str] = ()) -> list[str]:
        """Delete the set, or these claims, from the cluster; return the ConfigMaps' names."""
        return self._maps.forget(self.list_recorded(claims), **self._labels)

    @property
    def _labels(self) -> dict[str, str]:
        return {SET: _hash_name(self._name)}

    def _store(self, claim: str, manifest: Manifest) -> None:
        note = f"Content of the volume of {claim}, for {self._name}. {manifest.taken}\n"

        def refuse(_text: str) -> None:
            raise ClusterError(
                f"{self.describe_location(claim)} was written by another run meanwhile. Run again.", "conflict"
            )

        self._maps.write(
            self._name_object(claim), manifest.to_json(), refuse, extra_data={"about.txt": note}, labels=self._labels
        )

    def _name_object(self, claim: str) -> str:
        return f"kubewin-data-{_hash_name(f'{self._name}/{claim}')}"


def _hash_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
