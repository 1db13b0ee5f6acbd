# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several conversions: observe all of them before the first change, then convert them, one at a time for each workload."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import actions as do
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import explain
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.apply import Converter, Outcome, StoppedError
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.begin import begin, groups
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.decide import next_move
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import (
    Request,
    evaluate,
    without_leftovers,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.objects import labels, lease_name, locked_by
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observe import View, facts
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.options import RunOptions
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import Record
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.records import Records, Store
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.lease import About, Lease, bind_client

Status = Literal["to_do", "native", "nothing", "refused", "converted", "reversible", "rolled_back", "failed", "not_run"]


@dataclass(slots=True)
class Result:
    """How one claim stands."""

    claim: str
    status: Status
    record: Record | None = None
    findings: tuple[Finding, ...] = ()
    actions: tuple[str, ...] = ()
    message: str = ""
    reason: str = ""
    plan: list[dict[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For a module's result."""
        record = self.record
        return {
            "claim": self.claim,
            "status": self.status,
            "run": record.run if record else "",
            "variant": record.variant if record else "",
            "direction": record.direction if record else "",
            "step": record.step if record else "",
            "volume": record.target.name if record else "",
            "handle": record.target.handle if record else "",
            "findings": [serialize(finding) for finding in self.findings],
            "plan": self.plan,
            "actions": list(self.actions),
            "msg": self.message,
            "reason": self.reason,
        }


def _same(record: Record, desired: Request, *, roll_back: bool) -> None:
    """Refuse to continue a conversion that was begun with another request: it would succeed with another result."""
    if roll_back or record.direction == "rollback":
        return
    storage_class = str(record.objects["new"]["spec"].get("storageClassName") or "")
    differ = [
        f"{what} {began or 'none'}, requested is {asked}"
        for what, began, asked in (
            ("variant", record.variant, desired.variant),
            ("storage_class", storage_class, desired.storage_class),
            ("volume_name", record.new.name, desired.volume_name),
        )
        if asked and asked != began
    ]
    if differ:
        raise ClusterError(
            f"the conversion of {record.namespace}/{record.claim} is at step {record.step} and began with "
            f"{'; '.join(differ)}. Continue it with the same options, or roll it back first (state rolled_back, "
            "kubewin_convert_roll_back=true).",
            "refused",
        )


def _not_rolled_back(claim: str, final: str) -> str:
    """Why a claim is not rolled back. final: when its conversion was made final, empty without a conversion."""
    ended = f"was made final at {final}" if final else "does not exist"
    return f"a conversion of {claim} {ended}, so there is nothing to roll back"


def _is_another(now: Record, planned: Record | None) -> bool:
    """Whether it is not what was planned. A conversion that another run began meanwhile, with the same request, is continued."""
    if planned is None or now.direction != planned.direction:
        return True
    return bool(planned.sequence) and now.key != planned.key


class Runs:
    """All of them. cluster: its uid. stores: makes the two record stores with a client, for each thread its own."""

    def __init__(
        self, client: Client, cluster: str, order: RunOptions, stores: Callable[[Client], Sequence[Store]], lease_namespace: str,
        notify: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._client, self._cluster, self._options, self._stores = client, cluster, order, stores
        self._lease_namespace, self._notify = lease_namespace, notify
        self._failed, self._stopped = threading.Event(), threading.Event()
        self.warnings: list[str] = []

    def stop(self) -> None:
        """Stop every conversion before its next change; the next run continues from there."""
        self._stopped.set()
        self._failed.set()

    def prepare(self) -> list[Result]:
        """Observe every claim; change nothing. `run` applies none of it: it observes again under the lease of each claim."""
        return [self._prepare(desired) for desired in self._options.desired]

    def _prepare(self, desired: Request) -> Result:
        records = Records(self._stores(self._client), self._cluster)
        found = self._find(desired, records)
        together = [one.claim for one in self._options.desired if one.namespace == desired.namespace]
        return self._plan(desired, found, records, together)

    def _find(self, desired: Request, records: Records) -> Record | None:
        """The record of the claim that is not done."""
        lock = self._locked(desired.namespace, desired.claim)
        found = records.find(desired.namespace, desired.claim, lock)
        self.warnings += [text for text in records.warnings if text not in self.warnings]
        if found is None and lock and self._options.roll_back:
            raise ClusterError(
                f"PersistentVolumeClaim {desired.namespace}/{desired.claim} is locked by run {lock}, and its record is in "
                "none of the given stores. Name the stores of that run (record_dir, record_namespace, "
                "second_record_namespace; kubewin_output_dir, kubewin_convert_namespace, "
                f"kubewin_convert_second_namespace). {'; '.join(records.warnings)}".strip(),
                "record_unreadable",
            )
        return found

    def _locked(self, namespace: str, claim: str) -> str:
        """The run that the claim is locked by, empty when it is not."""
        live = self._client.get(kinds.PERSISTENT_VOLUME_CLAIM, claim, namespace)
        return locked_by(live)[0] if live is not None else ""

    def _has_begun(self, record: Record) -> bool:
        """Whether its run may have changed anything; otherwise what it recorded, such as replicas, may be old by now."""
        return (
            record.step != "lock"
            or record.direction == "rollback"
            or self._locked(record.namespace, record.claim) == record.lock
        )

    def _plan(self, desired: Request, found: Record | None, records: Records, first: Collection[str]) -> Result:
        """What is to be done with the claim. found: its record."""
        name = f"{desired.namespace}/{desired.claim}"
        if found is not None and (self._options.roll_back or self._has_begun(found)):
            _same(found, desired, roll_back=self._options.roll_back)
            # What is only to be unlocked is final, and its claim may have no lock any more.
            goes_back = self._options.roll_back and found.direction == "forward" and not found.reached("unlock")
            record = found.rolled_back("requested") if goes_back else found
            return Result(name, "to_do", record, plan=explain.steps(record, final=self._options.final))
        result = (
            Result(name, "nothing", message=_not_rolled_back(name, records.final))
            if self._options.roll_back
            else self._evaluate(desired, records, first)
        )
        result.plan = [*self._leftovers(records), *result.plan]
        return result

    def _leftovers(self, records: Records) -> list[dict[str, str]]:
        """The steps that remove what requests of earlier runs created after these runs had ended."""
        view = View(self._client, final=False)
        moves = [next_move(record, view.observe(record)) for record in records.done]
        return [explain.leftover_step(move) for move in moves if isinstance(move, (do.DeleteVolume, do.StopHelper))]

    def _evaluate(self, desired: Request, records: Records, first: Collection[str]) -> Result:
        """A claim whose conversion has not begun."""
        name = f"{desired.namespace}/{desired.claim}"
        # Before and after, so that a run that stopped a workload shows in one of them.
        before = records.open_ones()
        observed = facts(self._client, desired)
        others = [one for one in (*before, *records.open_ones()) if f"{one.namespace}/{one.claim}" != name]
        observed = without_leftovers(replace(observed, records=others), records.done)
        entry = evaluate(observed, desired, first)
        if [finding.id for finding in entry.findings] == ["CSI-B02"]:
            return Result(name, "native", message=entry.findings[0].message)
        if entry.refused:
            return Result(name, "refused", findings=entry.findings)
        record = begin(observed, entry, desired, self._cluster, secrets.token_hex(4))
        return Result(name, "to_do", record, entry.findings, plan=explain.steps(record, final=self._options.final))

    def run(self, results: Sequence[Result]) -> None:
        """Convert the claims that were not refused. results: of `prepare`, which this completes."""
        to_do = {result.record.run: result for result in results if result.record is not None}
        lanes = [
            [to_do[record.run] for record in lane]
            for lane in groups([one.record for one in to_do.values() if one.record])
        ]
        lanes += [[result] for result in results if result.status in ("native", "nothing")]
        with ThreadPoolExecutor(max_workers=self._options.parallel) as pool:
            try:
                for lane in [pool.submit(self._convert_lane, lane) for lane in lanes]:
                    lane.result()
            except BaseException:
                # Interrupted: leaving the pool waits for its threads.
                self.stop()
                raise

    def _convert_lane(self, results: Sequence[Result]) -> None:
        for result in results:
            if self._failed.is_set():
                result.status, result.message = "not_run", "another conversion failed before this one began"
                continue
            (desired,) = [one for one in self._options.desired if f"{one.namespace}/{one.claim}" == result.claim]
            try:
                self._convert(result, desired)
            except ClusterError as error:
                self._failed.set()
                result.status, result.message, result.reason = "failed", str(error), error.reason

    def _lease(self, desired: Request) -> Lease:
        """Named after the claim, so that it is taken before anything that it protects is read."""
        about = About(
            namespace=self._lease_namespace,
            name=lease_name(desired.namespace, desired.claim),
            labels=labels(),
            what=f"the conversion of {desired.namespace}/{desired.claim}",
        )
        return Lease(self._client, about, identify_process(os.getpid()), self._notify)

    def _convert(self, result: Result, desired: Request) -> None:
        lease = self._lease(desired)
        lease.take()

        def check() -> None:
            lease.check()
            if self._stopped.is_set():
                raise ClusterError("the run was terminated. Run again to continue, or roll back", "interrupted")

        def confirm() -> None:
            lease.confirm()
            check()

        client = bind_client(self._client, confirm)
        records = Records(self._stores(client), self._cluster)
        converter = Converter(
            client, records, self._options.limits, self._notify, final=self._options.final, check=check
        )
        try:
            record = self._planned(result, desired, records, converter)
            if record is None:
                return
            outcome = converter.run(record)
        except ClusterError as error:
            begun = converter.record
            if begun is None or isinstance(error, StoppedError) or error.reason == "taken_over":
                raise
            raise StoppedError(f"{error} {explain.standing(begun)}", error.reason) from error
        finally:
            result.record = converter.record or result.record
            result.actions = converter.actions
            lease.end()
        if outcome.until:
            result.status, result.message = "reversible", self._until(outcome)
        elif self._options.roll_back and outcome.record.direction == "forward":
            result.status = "nothing"
            result.message = _not_rolled_back(result.claim, outcome.record.times.get("forward:done", ""))
        else:
            result.status = "converted" if outcome.record.direction == "forward" else "rolled_back"
            result.message = outcome.record.rollback_reason

    def _planned(self, result: Result, desired: Request, records: Records, converter: Converter) -> Record | None:
        """The record to continue or to begin, by what is read under the lease; None when nothing is left to do.

        ClusterError if another run changed the conversion since the plan was made.
        """
        found = self._find(desired, records)
        if found is not None:
            converter.fence(found)
            # Requests of the run before arrived until now, or are refused from here on.
            found = self._find(desired, records)
        if found is None:
            for record in records.done:
                converter.tidy(record)
        now = self._plan(desired, found, records, ())
        result.findings = now.findings or result.findings
        if now.status == "refused":
            lines = "\n".join(finding.line() for finding in now.findings if finding.severity == "blocker")
            raise ClusterError(f"it was not changed. New obstacles:\n{lines}", "refused")
        if now.record is None:
            result.record, result.status, result.message = None, now.status, now.message
            return None
        if _is_another(now.record, result.record):
            raise ClusterError(
                f"PersistentVolumeClaim {result.claim} was changed by another run meanwhile: found "
                f"{explain.describe_conversion(now.record)}, expected {explain.describe_conversion(result.record)}. Run again for a new plan.",
                "conflict",
            )
        result.record = now.record
        return now.record.taken_over() if now.record.sequence else now.record

    def _until(self, outcome: Outcome) -> str:
        """How the user ends the time in which a conversion can be rolled back."""
        policy = outcome.record.policy
        back = f", and the policy is restored to {policy}" if policy != "Retain" else ""
        return f"{outcome.until}: run again with {explain.FINAL}{back}"
