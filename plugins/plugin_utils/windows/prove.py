# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Success is what was observed: the loop of observe, plan, apply and observe again, and the result that users get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from ..base.stored import serialize
from . import model, observe, plan, stage
from .apply import HostApplier
from .control import WaitLimits
from .errors import ChangedError, ChangeRefusedError, ChannelError, NodeError
from .findings import list_findings
from .lock import SILENCE, NodeLock, make_lock_owner
from .model import Desired, Drift, HostSnapshot, Service
from .node import WindowsHost

_ROUNDS = 6
"""Attempts before another program is assumed to change the node."""

HOUSEKEEPING = ("prune", "clear_lock")
"""Steps whose failure leaves a working node; the next run retries them."""


@dataclass(frozen=True, slots=True)
class ConvergeResult:
    changed: bool
    snapshot: HostSnapshot
    steps: tuple[plan.PlanStep, ...]
    diff: dict[str, Any]


def converge(
    node: WindowsHost,
    desired: Desired,
    *,
    check: bool = False,
    probe: bool = False,
    limits: WaitLimits | None = None,
    report: Callable[[str], None] = lambda text: None,
    settle: bool = False,
    confirm: Callable[[], None] = lambda: None,
    lock: NodeLock | None = None,
) -> ConvergeResult:
    """Bring a node to the desired state, and prove it.

    check: change nothing. probe: with check, see that the node can download what is planned. settle: wait for the lock of another
    run also when nothing is to be changed. confirm: raises if the service may not be stopped any more; called under the lock,
    right before the stop. lock: of a task that converges twice: what its plan waited for another run counts in its change.

    Raises NodeError (with the observed state merged into its ``result``) for every refusal and failure.
    """
    limits = limits or WaitLimits()
    lock = lock or NodeLock(make_lock_owner(node.clock), node.clock)

    def read() -> HostSnapshot:
        return _read_settled(node, desired, limits)

    first = snapshot = read()
    host_plan = first_plan = _make_plan(desired, snapshot, lock)
    if settle and not first_plan.steps and snapshot.lock is not None:
        first = snapshot = _wait_for_lock(node, lock, limits, snapshot, read, report, check=check)
        host_plan = first_plan = _make_plan(desired, snapshot, lock)
    steps = list(first_plan.steps)
    diff = preview(desired, snapshot, first_plan.steps)
    if not steps:
        return ConvergeResult(False, snapshot, (), diff)
    cause: BaseException | None = None
    applier: HostApplier | None = None
    try:
        for tried in range(_ROUNDS):
            snapshot = _wait_for_lock(node, lock, limits, snapshot, read, report, check=check)
            if check:
                _check_source(node, desired, host_plan, probe=probe)
                return ConvergeResult(True, first, tuple(steps), diff)
            host_plan = _make_plan(desired, snapshot, lock)
            steps += [step for step in host_plan.steps if step not in steps]
            if host_plan.steps:
                applier = HostApplier(node, desired, lock, limits, report, read, confirm)
                try:
                    applier.apply(host_plan, snapshot)
                    cause = None
                except ChangedError as surprise:
                    report(f"reading again: {surprise}")
                    cause = surprise.__cause__
                    node.clock.sleep(limits.poll * 2**tried)
                snapshot = read()
                lock.held = lock.held and snapshot.lock is not None and snapshot.lock.identity == lock.me.identity
                host_plan = _make_plan(desired, snapshot, lock)
            if not lock.held and all(step.kind in HOUSEKEEPING for step in host_plan.steps):
                return ConvergeResult(True, snapshot, tuple(steps), diff)
    except NodeError as error:
        if not isinstance(error, ChannelError):
            error.result.setdefault("csi_proxy", _describe_state_after(desired, read, first))
        error.result.setdefault("plan", describe_plan(tuple(steps)))
        raise
    finally:
        if lock.held and applier is not None:
            _release_lock(applier)
    if isinstance(cause, NodeError):
        raise cause
    remaining = "; ".join(step.description for step in host_plan.steps)
    raise NodeError(
        "not_converged",
        f"After {_ROUNDS} attempts the node still differs from the request: {remaining}.",
        remedy="Find the program that changes the service at the same time, then run the play again.",
        result={"csi_proxy": describe_state(desired, snapshot)},
    )


def _read_settled(node: WindowsHost, desired: Desired, limits: WaitLimits) -> HostSnapshot:
    """Read a host. A service that is marked for deletion goes with its last handle, such as that of a line of an earlier run."""
    deadline = node.clock.monotonic() + limits.killed
    while True:
        snapshot = observe.observe(node, desired)
        is_pending = snapshot.service is not None and snapshot.service.delete_pending
        if not is_pending or node.clock.monotonic() > deadline:
            return snapshot
        node.clock.sleep(limits.poll)


def _check_source(node: WindowsHost, desired: Desired, host_plan: plan.HostPlan, *, probe: bool) -> None:
    """Check that the executable of the plan can be downloaded or sent. Raises NodeError if not."""
    if desired.source is None:
        return
    if probe and host_plan.has("fetch"):
        stage.probe(node, desired, desired.source)
    if host_plan.has("push"):
        stage.check_local_file(desired, desired.source)


def _make_plan(desired: Desired, snapshot: HostSnapshot, lock: NodeLock) -> plan.HostPlan:
    live = snapshot.lock is not None and snapshot.lock.identity != lock.me.identity and not lock.is_stale(snapshot.lock)
    # The lock of a run that lives is nothing to clear away.
    try:
        return plan.plan(desired, replace(snapshot, lock=None, lock_leftovers=()) if live else snapshot)
    except ChangeRefusedError as refusal:
        refusal.result["csi_proxy"] = describe_state(desired, snapshot)
        raise


def _wait_for_lock(
    node: WindowsHost, lock: NodeLock, limits: WaitLimits, snapshot: HostSnapshot, read: Callable[[], HostSnapshot],
    report: Callable[[str], None], *, check: bool,
) -> HostSnapshot:  # fmt: skip
    """Wait while another run holds the lock and may be alive. NodeError ``locked`` names it if it still renews it after ``limits.lock``.

    check: of a run that is not known to be alive nothing is waited for; the change itself will wait.
    """
    begun = node.clock.monotonic()
    while snapshot.lock is not None and snapshot.lock.identity != lock.me.identity and not lock.is_stale(snapshot.lock):
        if check and not lock.is_alive(snapshot.lock):
            break
        waited = node.clock.monotonic() - begun
        if waited > limits.lock:
            raise lock.build_held_error(snapshot.lock, waited)
        report(
            f"waiting for {lock.describe(snapshot.lock)}; if its run has ended, this run takes it over after {SILENCE:.0f} s"
        )
        node.clock.sleep(5.0)
        snapshot = read()
    return snapshot


def _release_lock(applier: HostApplier) -> None:
    try:
        applier.release()
    except NodeError:
        applier.lock.held = False  # the next run takes it over


def _describe_state_after(desired: Desired, read: Callable[[], HostSnapshot], before: HostSnapshot) -> dict[str, Any]:
    try:
        return describe_state(desired, read())
    except NodeError:
        return describe_state(desired, before)


def preview(desired: Desired, snapshot: HostSnapshot, steps: tuple[plan.PlanStep, ...]) -> dict[str, dict[str, Any]]:
    """What differs, before and after, as Ansible's diff wants it; nothing where no step changes anything."""
    drifts = plan.compare_with_desired(desired, snapshot) if steps else ()
    if steps and desired.state == "staged":
        drifts = (Drift("staged_sha256", snapshot.staged_sha256, desired.sha256),)
    if steps and desired.state == "absent" and snapshot.owns_install_dir:
        drifts = (*drifts, Drift("install_dir", model.INSTALL_DIR, None))
    items = [serialize(drift) for drift in drifts]
    return {
        side: {item["item"]: item[key] for item in items} for side, key in (("before", "found"), ("after", "expected"))
    }


def describe_service(service: Service) -> dict[str, Any]:
    return {
        "name": service.name,
        "state": model.STATE_NAMES.get(service.state, "unknown"),
        "command_line": service.command_line,
        "start_mode": service.start_mode,
        "recovery": service.recovery and serialize(service.recovery),
    }


def describe_executable(snapshot: HostSnapshot) -> dict[str, Any] | None:
    """The service's executable, None without a service."""
    if snapshot.service is None:
        return None
    path = snapshot.service.executable
    return {"path": path, "sha256": snapshot.executable_sha256, "release": plan.find_release(snapshot)}


def describe_state(desired: Desired, snapshot: HostSnapshot) -> dict[str, Any]:
    """The ``csi_proxy`` part of a result."""
    service = snapshot.service
    return {
        "observed_at": f"{datetime.fromtimestamp(snapshot.observed_at, timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "host": serialize(snapshot.host),
        "managed_by": plan.find_manager(snapshot),
        "service": service and {**describe_service(service), "pid": service.pid or None},
        "executable": describe_executable(snapshot),
        "pipes": list(snapshot.pipes),
        "pipes_by": "listing" if snapshot.pipes_listed else "opening",
        "serving": plan.is_serving(desired.required_pipes, snapshot),
        "missing_pipes": list(plan.find_missing_pipes(desired.required_pipes, snapshot)),
        "drift": [serialize(item) for item in plan.compare_with_desired(desired, snapshot)],
        "findings": [serialize(finding) for finding in list_findings(snapshot)],
    }


def shorten_failed_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a failed task returns of a state and a plan: what later tasks need, and findings with a remedy."""
    part = dict(result)
    if part.get("csi_proxy"):
        observed = dict(part["csi_proxy"])
        service = observed.get("service")
        observed["service"] = service and {key: service[key] for key in ("name", "state", "pid")}
        observed["findings"] = [finding for finding in observed.get("findings") or () if finding["severity"] != "note"]
        part["csi_proxy"] = observed
    return part


def describe_plan(steps: tuple[plan.PlanStep, ...]) -> list[dict[str, str]]:
    return [{"step": step.kind, "description": step.description} for step in steps]
