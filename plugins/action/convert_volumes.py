# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Converts in-tree volumes to native CSI volumes, or rolls that back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..modules.convert_volumes import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.convert.options import RunOptions, parse_run_options
from ..plugin_utils.convert.run import ConversionResult, Conversions
from ..plugin_utils.kube.client import Client
from ..plugin_utils.kube.permissions import require_roles


class ActionModule(ClusterAction):
    """Converts the volumes of claims. An interruption ends it between two requests."""

    argument_spec = read_argument_spec(DOCUMENTATION)
    remainder = "Run again to continue, or roll back"
    _results: Sequence[ConversionResult] = ()

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the state of each claim; failed if one is refused or could not be converted."""
        request = parse_run_options(options)
        client = self.connect(options)
        refuse(client, request)
        runs = Conversions(client, request, self.show)
        self._results = results = runs.prepare()
        done = False
        try:
            self._convert(runs, results)
            done = True
        finally:
            for warning in runs.warnings:
                self.warn(warning)
            self.display("", *describe_results(results, check=self.check_mode))
            # Ansible prints all that a failed task returns, and the rest is on the screen already.
            self.result["results"] = [
                result.as_dict() if done else {"claim": result.desired.title, "status": result.status}
                for result in results
            ]

    def sum_up(self) -> None:
        """While a conversion can be rolled back, name both ways to end it."""
        next_playbook = f"convert_volumes -e kubewin_convert_claims={','.join(self.inputs['convert_claims'])}"
        if self.check_mode or self.result.get("failed"):
            self.result.update(lines=[], next=[next_playbook])
        if self.check_mode:
            return
        self.set_statistic("kubewin_convert", {result.desired.title: result.status for result in self._results})
        claims = [result.desired.title for result in self._results if result.status == "reversible"]
        end = f"convert_volumes -e kubewin_convert_claims={','.join(claims)} -e"
        text = f"Check the workloads of {', '.join(claims)}. Then make the conversion final, or roll it back."
        ends = [f"{end} kubewin_convert_final=true", f"{end} kubewin_convert_roll_back=true"]
        if not self.result.get("failed"):
            self.result.update(lines=[text] if claims else [], next=ends if claims else [])

    def _convert(self, runs: Conversions, results: Sequence[ConversionResult]) -> None:
        """Convert the claims, or in check mode only find out whether that would change anything."""
        if refused := [result for result in results if result.status == "refused"]:
            blockers = [
                finding.line() for result in refused for finding in result.findings if finding.severity == "blocker"
            ]
            raise TaskError("\n".join(["Nothing was changed. Blockers:", *blockers]), "refused")
        try:
            runs.run(results, check=self.check_mode)
        finally:
            planned = self.check_mode and any(result.status == "to_do" for result in results)
            self.result["changed"] = planned or any(result.actions for result in results)
        if failures := [result for result in results if result.status == "failed"]:
            text = "\n".join(f"{result.desired.title}: {result.message}" for result in failures)
            raise TaskError(text, failures[0].reason)


def refuse(client: Client, request: RunOptions) -> None:
    """Raise ClusterError for what would fail half way: a namespace that does not exist, or a permission."""
    namespaces = request.record_namespaces
    of_claims = dict.fromkeys(desired.namespace for desired in request.desired)
    bindings = [
        ("kubewin-csi-convert", None),
        *(("kubewin-csi-convert-workloads", name) for name in of_claims),
        *(("kubewin-csi-records", name) for name in namespaces),
    ]
    require_roles(client, bindings, "a conversion")


def describe_results(results: Sequence[ConversionResult], *, check: bool) -> Iterator[str]:
    """Each claim with its state, and below it what would be done and has to be known, or what was done."""
    for result in results:
        record, state = result.record, result.status.replace("_", " ")
        volume = f" (volume {record.volume}, {record.target_handle})" if record and not check else ""
        yield f"{result.desired.title}: {state}" + (f", {result.message}" if result.message else "") + volume
        if check:
            yield from (f"  note: {finding.message}" for finding in result.findings)
            yield from (f"  {step['description']}" for step in result.plan)
        else:
            yield from (f"  {action}" for action in result.actions)
