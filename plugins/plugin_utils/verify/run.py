# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verification from its request to its report."""

from __future__ import annotations

import secrets
import time
from typing import Any

from ..base.interruption import ignore_signals
from ..base.screen import Screen
from ..base.stored import serialize
from ..kube.client import Client
from ..kube.errors import ClusterError
from .apply import Prover
from .cleanup import PATIENCE, delete_leftovers, find_earlier_runs
from .objects import PREFIX, RunScope
from .observe import read_plan, refuse
from .plan import VerifyRequest
from .render import render_report, shorten_proof
from .verdict import describe_failures, list_proven_nodes


def verify(
    client: Client, request: VerifyRequest, screen: Screen, returned: dict[str, Any], *, check_mode: bool = False
) -> None:
    """Write a volume on each node and read it back; delete what this run and ended runs created.

    Raises ClusterError, also if a volume lost its data or objects are left. returned: takes the result, also of a failure. check_mode: only
    show the plan.
    """
    run = secrets.token_hex(4)
    scope = RunScope(run, request.namespace or f"{PREFIX}-{run}", not request.namespace)
    plan = read_plan(client, request)
    steps = returned["plan"] = plan.describe_steps()
    returned["left_out"] = [{"driver": key, "node": node, "why": why} for key, node, why in plan.left_out]
    refuse(client, plan, scope)
    earlier_runs = find_earlier_runs(client, scope, screen.show)
    returned["earlier"] = [earlier.as_dict() for earlier in earlier_runs]
    ended = [earlier.scope for earlier in earlier_runs if not earlier.lives]
    if check_mode:
        steps += [f"delete leftovers of run {scope.run} in {scope.namespace}" for scope in ended]
        screen.show(*steps)
        returned["changed"] = bool(ended)
        return
    prover = Prover(client, scope, request, screen.show)
    cleaners = delete_leftovers(client, earlier_runs, screen.show)
    try:
        proofs = prover.run(plan.targets)
    finally:
        ignore_signals()
        prover.cleaner.delete_all()
        returned["left"] = [serialize(entry) for entry in prover.cleaner.left]
    deadline = time.monotonic() + PATIENCE
    for cleaner in cleaners:
        cleaner.wait_for_namespace(deadline)
    left = [entry for cleaner in (*cleaners, prover.cleaner) for entry in cleaner.left]
    returned.update(
        run=run,
        proofs=[proof.as_dict() for proof in proofs],
        proven=list_proven_nodes(proofs),
        left=[serialize(entry) for entry in left],
        changed=bool(ended or left),
    )
    for entry in left:
        screen.warn(f"{entry.kind} {entry.name}: {entry.why}")
    text = render_report(proofs, plan.left_out, left, earlier_runs)
    screen.display("", text)
    failure = describe_failures(proofs)
    stuck = [f"{entry.kind} {entry.name} ({entry.why})" for entry in left if not entry.kept]
    if failure or stuck:
        # Ansible prints all that a failed task returns, and the report is on the screen already.
        returned["proofs"] = [shorten_proof(proof) for proof in proofs]
    if failure:
        raise ClusterError(failure, "verify_failed")
    if stuck:
        raise ClusterError(f"proven, but these objects could not be deleted: {'; '.join(stuck)}", "left_behind")
    returned["report"] = text
