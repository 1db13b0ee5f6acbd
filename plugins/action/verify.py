# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a volume on every Windows node and reads it back."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..modules.verify import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction, TaskError
from ..plugin_utils.actions.host_results import HostResult, read_hosts
from ..plugin_utils.actions.interruption import ignore_signals
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.stored import serialize
from ..plugin_utils.base.table import render_table
from ..plugin_utils.kube.client import Client
from ..plugin_utils.kube.holder import identify_process
from ..plugin_utils.verify.apply import Prover, VerifyLimits
from ..plugin_utils.verify.cleanup import PATIENCE, EarlierRun, delete_leftovers, find_earlier_runs
from ..plugin_utils.verify.objects import PREFIX, RunScope
from ..plugin_utils.verify.observe import read_plan, refuse
from ..plugin_utils.verify.plan import VerifyTarget, parse_request
from ..plugin_utils.verify.verdict import Proof, describe_failures, list_proven_nodes

# How many steps all verifications together may take.
_STEPS = 12


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)
    remainder = "Its objects were deleted, except those reported as left"
    _hosts: Sequence[HostResult] = ()

    def read_run(self) -> dict[str, Any]:
        """The Nodes of the play's hosts. TaskError unless they are known."""
        self._hosts = read_hosts(self.task_vars)
        unread = list_unread(self._hosts)
        self.show(*unread)
        if unread and len(unread) == len(self._hosts):
            raise TaskError("\n".join(unread), "host_unusable")
        matches = [(host.name, host.nodes) for host in self._hosts]
        if errors := [error for name, nodes in matches if (error := (nodes.get("errors") or {}).get(name))]:
            raise TaskError("\n".join(errors), "host_unmatched")
        return {"nodes": [node for name, nodes in matches if (node := (nodes.get("matched") or {}).get(name))]}

    def sum_up(self) -> None:
        """The drivers with their proven Nodes. The gate of a later run counts these; in an AWX workflow it gets the statistic."""
        proven, failed_before = self.result.get("proven") or {}, bool(self.result.get("failed"))
        if proven:
            self.set_statistic("kubewin_proven", proven)
        unread = list_unread(self._hosts)
        if unread and not failed_before and not self.inputs["skip_unreachable"]:
            text = "Their Nodes are unknown and were not proven. Repair these hosts, leave them out with --limit, or set kubewin_skip_unreachable."
            self.result.update(failed=True, reason="host_unusable", msg="\n".join([*unread, text]))
        lines = [f"{driver} proven on {', '.join(nodes)}" for driver, nodes in proven.items()]
        failed_now, began = bool(self.result.get("failed")), "proofs" in self.result
        self.result["lines"] = [*lines, *(doubt for host in self._hosts for doubt in list_doubts(host))]
        if self.check_mode or (failed_now and began):
            self.result["next"] = ["verify" if self.check_mode else "diagnose"]
        self.result["outcome"] = ("failed" if began else "refused") if failed_now else "done"

    def work(self, options: Mapping[str, Any]) -> None:
        """Return each proof and what could not be deleted; failed if a volume lost its data or objects are left."""
        run = secrets.token_hex(4)
        scope = RunScope(run, options["namespace"] or f"{PREFIX}-{run}", not options["namespace"])
        request = parse_request(options)
        client = self.connect(options)
        plan = read_plan(client, request)
        steps = plan.describe_steps()
        self.result["plan"] = steps
        self.result["left_out"] = [{"driver": key, "node": node, "why": why} for key, node, why in plan.left_out]
        refuse(client, plan, scope)
        leftovers = find_earlier_runs(client, scope, self.show)
        self.result["earlier"] = [
            {"run": entry.scope.run, "namespace": entry.scope.namespace, "lives": entry.lives} for entry in leftovers
        ]
        ended = [entry for entry in leftovers if not entry.lives]
        if self.check_mode:
            steps += [f"delete leftovers of run {entry.scope.run} in {entry.scope.namespace}" for entry in ended]
            self.show(*steps)
            self.result["changed"] = bool(ended)
            return
        limits = VerifyLimits(step=options["timeout"], whole=_STEPS * options["timeout"])
        prover = Prover(
            client, scope, request, limits, lambda: secrets.token_hex(8), self.show, identify_process(os.getpid())
        )
        proofs = self._prove(client, prover, plan.targets, leftovers)
        self.result.update(
            run=run,
            proofs=[proof.as_dict() for proof in proofs],
            proven=list_proven_nodes(proofs),
            changed=bool(ended or self.result["left"]),
        )
        self._report(describe_failures(proofs))

    def _prove(
        self, client: Client, prover: Prover, targets: Sequence[VerifyTarget], leftovers: Sequence[EarlierRun]
    ) -> list[Proof]:
        """Prove every target, and delete what this run and ended runs created; `left` is what could not be deleted."""
        cleaners = delete_leftovers(client, leftovers, self.show)
        try:
            proofs = prover.run(targets)
        finally:
            ignore_signals()
            prover.cleaner.delete_all()
            self.result["left"] = [serialize(entry) for entry in prover.cleaner.left]
        deadline = time.monotonic() + PATIENCE
        for cleaner in cleaners:
            cleaner.wait_for_namespace(deadline)
        self.result["left"] = [serialize(entry) for cleaner in (*cleaners, prover.cleaner) for entry in cleaner.left]
        return proofs

    def _report(self, failure: str) -> None:
        """Display the report; raise TaskError for a failed proof or for what could not be deleted."""
        for entry in self.result["left"]:
            self.warn(f"{entry['kind']} {entry['name']}: {entry['why']}")
        text = render_report(self.result)
        self.display("", text)
        stuck = [
            f"{entry['kind']} {entry['name']} ({entry['why']})" for entry in self.result["left"] if not entry["kept"]
        ]
        if failure or stuck:
            # Ansible prints all that a failed task returns, and the report is on the screen already.
            self.result.update(shorten_proofs(self.result))
        if failure:
            raise TaskError(failure, "verify_failed")
        if stuck:
            raise TaskError(f"proven, but these objects could not be deleted: {'; '.join(stuck)}", "left_behind")
        self.result["report"] = text


def list_unread(hosts: Sequence[HostResult]) -> list[str]:
    """Why hosts were not read, a line a host."""
    return [f"{host.name}: {host.unread}" for host in hosts if host.unread]


def list_doubts(host: HostResult) -> list[str]:
    """Why the next volume will not be mounted on a host, although some are proven now."""
    service, doubts = host.state.get("service") or {}, []
    if service and not host.state["serving"]:
        doubts.append(
            f"csi-proxy is {service['state']} and does not serve. The next mount of a volume fails there, whatever this "
            "run proved. Run enable_csi."
        )
    doubts += [finding["message"] for finding in host.state.get("findings") or () if finding["severity"] == "blocker"]
    return [f"{host.name}: {doubt}" for doubt in doubts]


def render_report(result: Mapping[str, Any]) -> str:
    """A line for each driver and node, then what was left out, what is still there, and the verdict in words."""
    proofs: Sequence[Mapping[str, Any]] = result.get("proofs") or []
    rows = [
        [
            proof["node"],
            proof["driver"],
            "not tried" if proof["verdict"] == "not_run" else proof["verdict"],
            f"{proof['seconds']:g}",
            describe_proof(proof),
        ]
        for proof in sorted(proofs, key=lambda proof: (proof["node"], proof["driver"]))
    ]
    rows += [
        [target["node"], target["driver"], "skipped", "-", target["why"]] for target in result.get("left_out") or []
    ]
    lines = [render_table(("NODE", "DRIVER", "VERDICT", "SECONDS", "WHAT"), rows)]
    for remaining in result.get("left") or []:
        lines += ["", f"not deleted: {remaining['kind']} {remaining['name']}: {remaining['why']}"]
    for run in result.get("earlier") or []:
        done = f"kept: {run['lives']}" if run["lives"] else "deleted"
        lines += ["", f"earlier run {run['run']} in namespace {run['namespace']}: {done}"]
    proven = sum(proof["verdict"] == "proven" for proof in proofs)
    lines += ["", f"{proven} of {len(proofs)} volumes kept their data"]
    return "\n".join(lines)


def shorten_proofs(result: Mapping[str, Any]) -> dict[str, Any]:
    """The proofs that a failed task returns: their verdicts, and what failed."""
    proofs = []
    for proof in result.get("proofs") or ():
        verdict = {key: proof[key] for key in ("node", "driver", "verdict", "error", "remedy") if proof[key]}
        failed = [step for step in proof["steps"] if not step["ok"]]
        proofs.append({**verdict, **({"steps": failed} if failed else {})})
    return {"proofs": proofs}


def describe_proof(proof: Mapping[str, Any]) -> str:
    steps: Sequence[Mapping[str, Any]] = proof["steps"]
    wrote = next((step for step in steps if step["step"] == "write" and step["ok"]), None)
    sentence = []
    if wrote is not None:
        sentence.append(f"written on {wrote['node']}")
    for count, node in enumerate(proof["read_on"]):
        sentence.append(f"read back on {node}" + (" by its next pod" if count == 0 else ""))
    text = ", ".join(sentence)
    if proof["note"] and proof["verdict"] == "proven":
        text += f"; {proof['note']}"
    if proof["error"]:
        where = next((f" ({step['step']} on {step['node']})" for step in steps if not step["ok"]), "")
        text += (", then " if text else "") + f"{proof['error']}{where}"
    return text + (f" -> {proof['remedy']}" if proof["remedy"] else "")
