# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the data of claims before a change, or compare it with what was saved: one claim after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import TaskError
from ..base.stored import serialize
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.permissions import explain_unusable, require_roles
from .baselines import Baselines
from .compare import LOST, compare_manifests, format_report
from .manifest import Manifest, describe_manifest, summarize_counts
from .observe import ReadableClaim, VolumeReader
from .read import ReadLimits

# In a result; baselines hold everything.
_SHOWN = 1000
# Errors that are not of one claim.
_OF_ALL = frozenset({"configuration", "forbidden", "refused", "unauthorized", "unreachable"})


def check_options(options: Mapping[str, Any]) -> list[str]:
    """Return the claims as namespace/name. Raises TaskError for a wrong option."""
    if not options["record_namespace"]:
        raise TaskError("record_namespace is empty, expected an existing namespace for the baselines.", "refused")
    if not options["claims"] and not options["forget"]:
        raise TaskError("claims is empty; name one or more PersistentVolumeClaims.", "refused")
    for claim in options["claims"]:
        namespace, _slash, name = claim.partition("/")
        if not namespace or not name or "/" in name:
            raise TaskError(f"claims has {claim!r}, expected namespace/name.", "refused")
    for name in ("limit", "rate", "timeout", "step_timeout"):
        if options[name] < 1:
            raise TaskError(f"{name} is {options[name]}, expected at least 1.", "refused")
    return list(dict.fromkeys(options["claims"]))


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of a claim. volume: its entry of RV(volumes). report: as text. lost: what it adds to RV(lost)."""

    volume: Mapping[str, Any]
    report: str
    lost: Sequence[str] = ()


class DataRun:
    """Save or compare the data of claims, as namespace/name. results, changed: what is done by now, also if the run fails."""

    def __init__(
        self, client: Client, options: Mapping[str, Any], claims: list[str], notify: Callable[[str], None]
    ) -> None:
        self._client, self._options, self._claims = client, options, claims
        self._baselines = Baselines(client, options["record_namespace"], options["name"])
        limits = ReadLimits(options["limit"] << 20, options["rate"] << 20, options["timeout"])
        self._readers = {
            namespace: VolumeReader(client, namespace, options, limits, notify)
            for namespace in dict.fromkeys(claim.partition("/")[0] for claim in claims)
        }
        # Why namespaces of claims cannot be used.
        self._unusable: dict[str, str] = {}
        self.results: list[ClaimResult] = []
        self.changed = False

    def as_dict(self) -> dict[str, Any]:
        """The results, as the task returns them."""
        report = "\n".join(result.report for result in self.results if result.report)
        lost = {"lost": [line for result in self.results for line in result.lost]} if self._options["compare"] else {}
        return {
            "volumes": [result.volume for result in self.results],
            "report": report,
            "changed": self.changed,
            **lost,
        }

    def forget(self, *, dry_run: bool) -> bool:
        """Delete the baselines; return whether there were any."""
        baselines = self._baselines
        return bool(baselines.list_recorded(self._claims) if dry_run else baselines.forget(self._claims))

    def refuse(self) -> None:
        """Raise ClusterError for what would fail half way."""
        options = self._options
        bindings = [("kubewin-csi-data", None), ("kubewin-csi-records", options["record_namespace"])]
        for namespace in self._readers if options["keep_going"] else ():
            if problem := explain_unusable(self._client, namespace):
                self._unusable[namespace] = f"its namespace {problem[0]}"
        bindings += [
            ("kubewin-csi-data-pods", namespace) for namespace in self._readers if namespace not in self._unusable
        ]
        require_roles(self._client, bindings, "reading volumes")
        if options["compare"] and not options["keep_going"]:
            absent = [claim for claim in self._claims if self._baselines.read(claim) is None]
            if absent:
                raise ClusterError(
                    f"{self._describe_absence(', '.join(absent))}. Record one with compare=false while the data is "
                    "known to be correct.",
                    "refused",
                )

    def _describe_absence(self, claims: str) -> str:
        return f"there is no baseline of {claims} in namespace {self._options['record_namespace']}"

    def plan(self) -> Iterator[str]:
        """Describe what would be done, a line a claim."""
        for claim in self._claims:
            namespace, _slash, name = claim.partition("/")
            if why := self._unusable.get(namespace):
                yield f"{claim}: cannot be read: {why}"
                continue
            try:
                yield self._describe_plan(claim, self._readers[namespace].find(name), self._baselines.read(claim))
            except ClusterError as error:
                if not self._options["keep_going"] or error.reason in _OF_ALL:
                    raise
                yield f"{claim}: cannot be read: {error}"

    def needs_write(self) -> bool:
        return not self._options["compare"] and any(self._baselines.read(claim) is None for claim in self._claims)

    def _describe_plan(self, claim: str, target: ReadableClaim, before: Manifest | None) -> str:
        through = (
            f"list it through pod {target.using.pod}" if target.using is not None else "read it with a pod of its own"
        )
        if self._options["compare"]:
            return f"{claim}: {through}, and compare it with the baseline of {before.taken if before else 'never'}"
        if before is not None:
            return f"{claim}: keep the baseline of {before.taken}"
        return f"{claim}: {through}, and record it in {self._baselines.describe_location(claim)}"

    def run(self) -> None:
        """Read one claim after the other."""
        for claim in self._claims:
            if why := self._unusable.get(claim.partition("/")[0]):
                self.results.append(self._skip(claim, why))
                continue
            try:
                self.results.append(self._read(claim))
            except ClusterError as error:
                if not self._options["keep_going"] or error.reason in _OF_ALL:
                    raise
                self.results.append(self._skip(claim, str(error)))

    def _skip(self, claim: str, why: str, *, noted: bool = True) -> ClaimResult:
        compares = self._options["compare"]
        mark = {"noted": True} if compares and noted else {}
        result = "not compared" if compares else "not recorded"
        return ClaimResult({"claim": claim, "why": why, **mark}, f"{claim}: {result}: {why}")

    def _read(self, claim: str) -> ClaimResult:
        compares, before = self._options["compare"], self._baselines.read(claim)
        if before is not None and not compares:
            entry: dict[str, Any] = {"claim": claim, "volume": before.volume, "how": before.how}
            entry |= summarize_counts(before)
            text = f"{describe_manifest(before)}; this is the baseline of {before.taken}, which is kept"
            return ClaimResult(entry, text)
        if compares and before is None:
            return self._skip(claim, self._describe_absence("it"), noted=False)
        reader = self._readers[claim.partition("/")[0]]
        after = reader.take(reader.find(claim.partition("/")[2]), before)
        entry = {"claim": claim, "volume": after.volume, "how": after.how}
        entry |= summarize_counts(after)
        if before is None:
            kept = self._baselines.write(claim, after, self._options["append_only"])
            self.changed = True
            return ClaimResult(entry, describe_manifest(kept))
        comparison = compare_manifests(before, after, self._options["append_only"])
        entry |= {
            "verdict": comparison.verdict,
            "differences": [serialize(difference) for difference in comparison.differences[:_SHOWN]],
            "not_compared": [{"path": gap.path, "why": gap.why} for gap in comparison.not_compared[:_SHOWN]],
        }
        lost = [difference for difference in comparison.differences if difference.what in LOST]
        lines = [f"{claim}: {gap.what}: {gap.path}: {gap.detail}" for gap in lost[:_SHOWN]]
        return ClaimResult(entry, format_report(before, after, comparison), lines)
