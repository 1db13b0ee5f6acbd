# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several conversions: observe all of them before the first change, then convert one after the other."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..base.findings import Finding
from ..base.stored import serialize
from ..kube import kinds
from ..kube.client import Client
from ..kube.errors import ClusterError
from ..kube.holder import identify_process
from ..kube.lease import Lease, LeaseSubject, bind_client
from . import actions as do
from . import explain
from .apply import ConversionStoppedError, Converter
from .begin import create_record
from .decide import decide_step
from .eligibility import ConversionRequest, evaluate
from .objects import build_labels, name_lease, parse_lock
from .observe import ConversionObserver, read_facts
from .options import RunOptions
from .record import ConversionRecord
from .records import Records

Status = Literal["to_do", "native", "nothing", "refused", "converted", "reversible", "rolled_back", "failed", "not_run"]


@dataclass(slots=True)
class ConversionResult:
    desired: ConversionRequest
    status: Status
    record: ConversionRecord | None = None
    findings: tuple[Finding, ...] = ()
    actions: Sequence[str] = ()
    message: str = ""
    reason: str = ""
    plan: list[dict[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        record = self.record
        return {
            "claim": self.desired.title,
            "status": self.status,
            "run": record.run if record else "",
            "direction": record.direction if record else "",
            "step": record.step if record else "",
            "volume": record.volume if record else "",
            "handle": record.target_handle if record else "",
            "findings": [serialize(finding) for finding in self.findings],
            "plan": self.plan,
            "actions": list(self.actions),
            "msg": self.message,
            "reason": self.reason,
        }


def _explain_no_rollback(claim: str, final: str) -> str:
    """Explain why a claim is not rolled back. final: when its conversion was made final, empty without a conversion."""
    ended = f"was made final at {final}" if final else "does not exist"
    return f"a conversion of {claim} {ended}, so there is nothing to roll back"


def _is_another(current: ConversionRecord, planned: ConversionRecord | None) -> bool:
    """Whether a record is not the planned one. A conversion that another run began meanwhile, with the same request, is continued."""
    if planned is None or current.direction != planned.direction:
        return True
    return bool(planned.sequence) and current.key != planned.key


class Conversions:
    """Converts claims. notify: progress callback."""

    def __init__(self, client: Client, options: RunOptions, notify: Callable[[str], None]) -> None:
        self._client, self._options, self._notify = client, options, notify
        self.warnings: list[str] = []

    def prepare(self) -> list[ConversionResult]:
        """Observe every claim; change nothing. `run` applies none of it: it observes again under the lease of each claim."""
        return [self._prepare(desired) for desired in self._options.desired]

    def _prepare(self, desired: ConversionRequest) -> ConversionResult:
        records = Records(self._client, self._options.record_namespaces)
        record = self._find(desired, records)
        claims = [request.claim for request in self._options.desired if request.namespace == desired.namespace]
        return self._plan(desired, record, records, claims)

    def _find(self, desired: ConversionRequest, records: Records) -> ConversionRecord | None:
        record = records.find(desired.namespace, desired.claim)
        self.warnings += [text for text in records.warnings if text not in self.warnings]
        lock = self._read_lock(desired.namespace, desired.claim)
        if record is None and lock and self._options.roll_back:
            raise ClusterError(
                f"PersistentVolumeClaim {desired.title} is locked by run {lock}, and its record is in "
                "neither record namespace. Set that of its run (record_namespace; "
                f"kubewin_namespace). {'; '.join(records.warnings)}".strip(),
                "record_unreadable",
            )
        return record

    def _read_lock(self, namespace: str, claim: str) -> str:
        """Return the run that locks the claim, empty without a lock."""
        live = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, claim, namespace)
        return parse_lock(live)[0] if live is not None else ""

    def _has_begun(self, record: ConversionRecord) -> bool:
        """Whether the run of a record may have changed anything. If not, recorded facts such as replicas may be outdated."""
        return (
            record.step != "lock"
            or record.direction == "rollback"
            or self._read_lock(record.namespace, record.claim) == record.lock
        )

    def _plan(
        self, desired: ConversionRequest, stored: ConversionRecord | None, records: Records, first: Collection[str]
    ) -> ConversionResult:
        """Plan the conversion of a claim. stored: its record."""
        if stored is not None and (self._options.roll_back or self._has_begun(stored)):
            # What is only to be unlocked is final, and its claim may have no lock any more.
            goes_back = self._options.roll_back and stored.direction == "forward" and not stored.has_reached("unlock")
            record = stored.roll_back("requested") if goes_back else stored
            return ConversionResult(
                desired, "to_do", record, plan=explain.describe_steps(record, final=self._options.final)
            )
        if self._options.roll_back:
            return ConversionResult(desired, "nothing", message=_explain_no_rollback(desired.title, records.final))
        return self._evaluate(desired, records, first)

    def _evaluate(self, desired: ConversionRequest, records: Records, first: Collection[str]) -> ConversionResult:
        """Evaluate a claim whose conversion has not begun."""
        # Before and after, so that a run that stopped a workload shows in one of them.
        before = records.list_unfinished()
        observed = read_facts(self._client, desired)
        other_records = [record for record in (*before, *records.list_unfinished()) if record.title != desired.title]
        observed = replace(observed, records=other_records)
        entry = evaluate(observed, desired, first)
        if [finding.id for finding in entry.findings] == ["CSI-B02"]:
            return ConversionResult(desired, "native", message=entry.findings[0].message)
        if entry.refused:
            return ConversionResult(desired, "refused", findings=entry.findings)
        record = create_record(observed, entry, desired, secrets.token_hex(4))
        return ConversionResult(
            desired, "to_do", record, entry.findings, plan=explain.describe_steps(record, final=self._options.final)
        )

    def run(self, results: Sequence[ConversionResult], *, check: bool = False) -> None:
        """Convert the claims that were not refused, until one fails. results: of `prepare`, which this completes.

        A conversion in progress comes first: it may have stopped the workload of another one. check: change nothing, and fail where
        such a conversion would stop.
        """
        failed = False
        for result in sorted(results, key=lambda result: not (result.record and result.record.sequence)):
            if failed:
                result.status, result.message = "not_run", "another conversion failed before this one began"
                result.plan = []
                continue
            try:
                if check:
                    self._check_next_move(result.record)
                else:
                    self._convert(result)
            except ClusterError as error:
                failed, result.plan = True, []
                result.status, result.message, result.reason = "failed", str(error), error.reason
            except BaseException:
                result.status, result.message, result.reason = "failed", "the run was terminated", "interrupted"
                raise

    def _check_next_move(self, record: ConversionRecord | None) -> None:
        """Raise ConversionStoppedError if a conversion in progress would stop before its next change or wait."""
        view = ConversionObserver(self._client, final=self._options.final)
        while record is not None and record.sequence:
            move = decide_step(record, view.observe(record))
            if isinstance(move, do.StopConversion):
                raise ConversionStoppedError(explain.describe_stop(record, move), move.reason)
            record = move.record if isinstance(move, do.SaveRecord) else None

    def _create_lease(self, desired: ConversionRequest) -> Lease:
        """Return the Lease of a claim, which is taken before anything that it protects is read."""
        lease = LeaseSubject(
            namespace=self._options.record_namespaces[0],
            name=name_lease(desired.namespace, desired.claim),
            labels=build_labels(),
            work=f"the conversion of {desired.title}",
        )
        return Lease(self._client, lease, identify_process(os.getpid()), self._notify)

    def _convert(self, result: ConversionResult) -> None:
        lease = self._create_lease(result.desired)
        lease.take()

        client = bind_client(self._client, lease.confirm)
        records = Records(client, self._options.record_namespaces)
        converter = Converter(client, records, self._options, self._notify, lease.check)
        try:
            record = self._plan_under_lease(result, records, converter)
            if record is None:
                return
            until = converter.run(record)
        except ClusterError as error:
            begun = converter.record
            if begun is None or isinstance(error, ConversionStoppedError) or error.reason == "taken_over":
                raise
            raise ConversionStoppedError(f"{error} {explain.describe_state(begun)}", error.reason) from error
        finally:
            result.record = converter.record or result.record
            result.actions = converter.actions
            lease.end()
        record = converter.record or record
        if until:
            restoration = f", and the policy is restored to {record.policy}" if record.policy != "Retain" else ""
            result.status, result.message = "reversible", f"{until}: run again with {explain.FINAL}{restoration}"
        elif self._options.roll_back and record.direction == "forward":
            result.status = "nothing"
            result.message = _explain_no_rollback(result.desired.title, record.times.get("forward:done", ""))
        else:
            result.status = "converted" if record.direction == "forward" else "rolled_back"
            result.message = record.rollback_reason

    def _plan_under_lease(
        self, result: ConversionResult, records: Records, converter: Converter
    ) -> ConversionRecord | None:
        """Return the record to continue or to begin, read under the lease; None if nothing is left to do.

        ClusterError if another run changed the conversion since the plan was made.
        """
        desired = result.desired
        stored = self._find(desired, records)
        if stored is not None:
            converter.fence(stored)
            # Requests of the run before arrived until now, or are refused from here on.
            stored = self._find(desired, records)
        current = self._plan(desired, stored, records, ())
        result.findings = current.findings or result.findings
        if current.status == "refused":
            lines = "\n".join(finding.line() for finding in current.findings if finding.severity == "blocker")
            raise ClusterError(f"it was not changed. New obstacles:\n{lines}", "refused")
        if current.record is None:
            result.record, result.status, result.message = None, current.status, current.message
            return None
        if _is_another(current.record, result.record):
            raise ClusterError(
                f"PersistentVolumeClaim {desired.title} was changed by another run meanwhile: found "
                f"{explain.describe_conversion(current.record)}, expected {explain.describe_conversion(result.record)}. Run again for a new plan.",
                "conflict",
            )
        result.record = current.record
        return current.record.take_over() if current.record.sequence else current.record
