# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verification from its request to its report."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base.interruption import ignore_signals
from ..base.screen import Screen
from ..kube.client import Client
from ..kube.errors import ClusterError
from .apply import Prover
from .cleanup import PATIENCE, delete_leftovers, find_earlier_runs
from .objects import PREFIX, RunScope
from .observe import read_plan, refuse
from .plan import VerifyRequest
from .verdict import EarlierRun, RemainingObject, describe_failures, list_proven_nodes, render_report, shorten_proof


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What a verification returns, by key; None for what it did not reach."""

    plan: Sequence[str] | None = None
    left_out: Sequence[Mapping[str, str]] | None = None
    earlier: Sequence[EarlierRun] | None = None
    run: str | None = None
    proofs: Sequence[Mapping[str, Any]] | None = None
    proven: Mapping[str, Sequence[str]] | None = None
    left: Sequence[RemainingObject] | None = None
    changed: bool = False
    report: str | None = None


class Verification:
    """Writes a volume on each node and reads it back. result: what is known by now, also after a failure."""

    def __init__(self, client: Client, request: VerifyRequest, screen: Screen) -> None:
        self._client, self._request, self._screen = client, request, screen
        self.result = VerifyResult()

    def run(self, *, check_mode: bool) -> None:
        """Verify, then delete what this run and ended runs created; in check mode only show the plan.

        Raises ClusterError, also if a volume lost its data or objects are left.
        """
        client, screen, run = self._client, self._screen, secrets.token_hex(4)
        scope = RunScope(run, self._request.namespace or f"{PREFIX}-{run}", not self._request.namespace)
        plan = read_plan(client, self._request)
        steps = plan.describe_steps()
        left_out = [{"driver": key, "node": node, "why": why} for key, node, why in plan.left_out]
        self._note(plan=steps, left_out=left_out)
        refuse(client, plan, scope)
        earlier_runs = find_earlier_runs(client, scope, screen.show)
        ended = [earlier.scope for earlier in earlier_runs if not earlier.lives]
        self._note(earlier=earlier_runs)
        if check_mode:
            steps += [f"delete leftovers of run {scope.run} in {scope.namespace}" for scope in ended]
            screen.show(*steps)
            self._note(changed=bool(ended))
            return
        prover = Prover(client, scope, self._request, screen.show)
        left = delete_leftovers(client, earlier_runs, screen.show)
        try:
            proofs = prover.run(plan.targets)
        finally:
            ignore_signals()
            prover.cleaner.delete_all(time.monotonic() + PATIENCE)
            self._note(left=prover.cleaner.left)
        left += prover.cleaner.left
        for entry in left:
            screen.warn(f"{entry.kind} {entry.name}: {entry.why}")
        text = render_report(proofs, plan.left_out, left, earlier_runs)
        screen.display("", text)
        failure = describe_failures(proofs)
        stuck = [f"{entry.kind} {entry.name} ({entry.why})" for entry in left if not entry.kept]
        # Ansible prints all that a failed task returns, and the report is on the screen already.
        failed = bool(failure or stuck)
        shown_proofs = [shorten_proof(proof) if failed else proof.as_dict() for proof in proofs]
        proven = list_proven_nodes(proofs)
        self._note(run=run, proofs=shown_proofs, proven=proven, left=left, changed=bool(ended or left))
        if failure:
            raise ClusterError(failure, "verify_failed")
        if stuck:
            raise ClusterError(f"proven, but these objects could not be deleted: {'; '.join(stuck)}", "left_behind")
        self._note(report=text)

    def _note(self, **fields: Any) -> None:
        self.result = replace(self.result, **fields)
