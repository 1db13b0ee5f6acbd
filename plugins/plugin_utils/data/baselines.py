# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Baselines of data in the record store, with copies in files on the controller."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compact import summarize
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import Manifest, MissingBaseline, from_json
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import ConfigMaps, Files, TooLargeError

PART = "workload-data"
KEY = "baseline.jsonl"
# Which set a baseline belongs to, as a label.
SET = "kubewin.io/baseline-set"


class BaselineError(ClusterError):
    """A baseline cannot be read or written."""


class Baselines:
    """One set of baselines. client: None to keep them in files alone. namespace: of their ConfigMaps. folder: None for no files."""

    def __init__(self, client: Client | None, namespace: str, name: str, folder: str | None) -> None:
        remedy = "Compare the other claims without this one."
        self._maps = ConfigMaps(client, namespace, PART, KEY, remedy) if client is not None else None
        self._files = Files(folder) if folder else None
        self._name = name

    def describe_location(self, claim: str) -> str:
        """Describe where the baseline of a claim (namespace/name) is stored."""
        stores = [self._maps.describe_place(self._name_object(claim))] if self._maps is not None else []
        stores += [self._files.describe_place(_name_file(claim))] if self._files is not None else []
        return " and ".join(stores)

    def read(self, claim: str) -> Manifest | MissingBaseline | None:
        """Read the baseline of a claim, None without one. Raises BaselineError if no store has one that can be read."""
        bad = ""
        text = self._maps.read(self._name_object(claim)) if self._maps is not None else None
        if text is not None and self._maps is not None:
            try:
                return from_json(text)
            except FormatError as error:
                bad = f"{self._maps.describe_place(self._name_object(claim))}: {error}"
        if self._files is not None:
            try:
                copy = self._files.read(_name_file(claim))
                if copy is not None:
                    return from_json(copy)
            except (FormatError, OSError, UnicodeDecodeError) as error:
                bad = f"{bad}; {self._files.describe_place(_name_file(claim))}: {error}".lstrip("; ")
        if bad:
            raise BaselineError(
                f"the baseline of {claim} cannot be read: {bad}. Record a new one (renew=true).", "baseline_unreadable"
            )
        return None

    def replace(self, claim: str) -> None:
        """Read the version of a baseline that is to be replaced."""
        if self._maps is not None:
            self._maps.read(self._name_object(claim))

    def write(
        self, claim: str, manifest: Manifest | MissingBaseline, append_only: Sequence[str]
    ) -> Manifest | MissingBaseline:
        """Write a baseline; return it as it was written: with digests of folders if it is too large.

        Raises BaselineError conflict if another run wrote one since `read` or `replace`.
        """
        if self._maps is not None:
            try:
                self._keep(self._maps, claim, manifest)
            except TooLargeError:
                if isinstance(manifest, MissingBaseline):
                    raise
                manifest = summarize(manifest, append_only)
                self._keep(self._maps, claim, manifest)
        if self._files is not None:
            try:
                self._files.write(_name_file(claim), manifest.to_json())
            except OSError as error:
                raise BaselineError(
                    f"the baseline {self._files.describe_place(_name_file(claim)).removeprefix('file ')} cannot be written: "
                    f"{error}. Nothing was changed. Free space, or set another directory.",
                    "refused",
                ) from error
        return manifest

    def list_recorded(self, claims: Sequence[str] = ()) -> list[str]:
        """List the ConfigMaps of the set, or of these claims."""
        names = self._maps.list_names(**self._labels) if self._maps is not None else []
        return [name for name in names if not claims or name in self._name_objects(claims)]

    def forget(self, claims: Sequence[str] = ()) -> list[str]:
        """Delete the set, or these claims, from the cluster; return the ConfigMaps' names. Files stay."""
        if self._maps is None:
            return []
        return self._maps.forget(self._name_objects(claims) if claims else None, **self._labels)

    @property
    def _labels(self) -> dict[str, str]:
        return {SET: _hash_name(self._name)}

    def _name_objects(self, claims: Sequence[str]) -> set[str]:
        return {self._name_object(claim) for claim in claims}

    def _keep(self, maps: ConfigMaps, claim: str, manifest: Manifest | MissingBaseline) -> None:
        note = f"Content of the volume of {claim}, for {self._name}. {manifest.taken}\n"

        def meet(_text: str) -> None:
            where = maps.describe_place(self._name_object(claim))
            raise BaselineError(f"{where} was written by another run meanwhile. Run again.", "conflict")

        maps.write(self._name_object(claim), manifest.to_json(), meet, beside={"about.txt": note}, labels=self._labels)

    def _name_object(self, claim: str) -> str:
        return f"kubewin-data-{_hash_name(f'{self._name}/{claim}')}"


def _name_file(claim: str) -> str:
    # Neither namespaces nor claims hold an underscore.
    return f"{claim.replace('/', '_')}.jsonl"


def _hash_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
