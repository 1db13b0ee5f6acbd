# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action csi_proxy: csi-proxy as a Windows service, through the host's own connection. Documented in plugins/modules."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ansible.errors import AnsibleError
from ansible.module_utils.common.parameters import remove_values

from ..plugin_utils.actions.cluster_action import find_secrets, read_access, read_variable
from ..plugin_utils.actions.host_results import read_plans
from ..plugin_utils.base.documented import ArgumentSpec
from ..plugin_utils.base.interruption import Interrupted, interruptible
from ..plugin_utils.base.screen import display_line
from ..plugin_utils.base.start import INPUTS
from ..plugin_utils.base.text import mask_values
from ..plugin_utils.kube.connect import CLUSTER_ARG_SPEC, connect
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.kube.labels import SERVING_LABEL
from ..plugin_utils.windows import model, observe, plan, prove
from ..plugin_utils.windows.action import WindowsAction
from ..plugin_utils.windows.cluster_node import ClusterNode
from ..plugin_utils.windows.control import WaitLimits
from ..plugin_utils.windows.desired import CSI_PROXY, build_desired
from ..plugin_utils.windows.errors import ChangeRefusedError, NodeError
from ..plugin_utils.windows.lock import NodeLock, make_lock_owner
from ..plugin_utils.windows.node import WindowsHost

_REMAINDER = "The next run continues it, restores the label and uncordons the Node"


class ActionModule(WindowsAction):
    argument_spec: ClassVar[ArgumentSpec] = {**CLUSTER_ARG_SPEC, **CSI_PROXY}
    task_options = CLUSTER_ARG_SPEC.keys() | {"unchanged"}
    _lock: NodeLock | None = None

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._parent, self._secrets = os.getppid(), frozenset[str]()
        try:
            result = super().run(tmp, task_vars)
        except Interrupted as error:
            result = {"changed": False, "failed": True, "reason": error.reason, "msg": str(error)}
        masked: dict[str, Any] = mask_values(remove_values(result, self._secrets))
        return masked

    def _validate_options(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        options = super()._validate_options(task_vars)
        if options["node"]:
            access = read_access(self._templar, task_vars)
            options |= {name: value for name, value in access.items() if name not in self._task.args}
            self._secrets = find_secrets(CLUSTER_ARG_SPEC, options)
        return options

    def read_run(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Whether a planned driver uses csi-proxy on this host, and what the inputs decide."""
        host, plans = str(task_vars["inventory_hostname"]), read_plans(task_vars)
        matched = (task_vars.get("kubewin_nodes") or {}).get("matched") or {}
        # Before its Node is known by what the host reports, its name decides.
        node = matched.get(host) or read_variable(self._templar, task_vars, "kubewin_node_name") or host
        needed = [plan for plan in plans if plan.pipes and node not in plan.unselected_nodes]
        inputs = task_vars[INPUTS]
        allowed = {"allow_downgrade": inputs["allow_downgrade"]} if "allow_downgrade" in inputs else {}
        return {"needed": not plans or bool(needed), **allowed}

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        desired = build_desired(options)
        source = desired.source
        if source is None or source.is_url:
            return desired
        find: Any = self._find_needle  # ansible carries no types
        try:
            # As each path of the inputs, it starts where the run was started.
            local = os.path.realpath(os.path.expanduser(source.location))
            path = local if os.path.isfile(local) else find("files", source.location)
        except AnsibleError as error:
            raise NodeError(
                "source_missing",
                f"source: {plan.hide_url_secrets(source.location)!r} is neither a URL nor a file on the controller.",
                remedy="Set it to a file there (a relative path starts where you start the run, or in files/), or an http or https URL.",
            ) from error
        return replace(desired, source=replace(source, location=str(Path(path))))

    def work(self, node: WindowsHost, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        if options["unchanged"]:
            return self._require_unchanged(node, desired, options)
        check = bool(self._task.check_mode)
        if not options["node"]:
            return self._converge(node, desired, options, check=check)
        with self._cluster({}):
            # The run has read the Node before, so an API server that does not answer restarts.
            client = connect(options, connect_for=float(options["api_timeout"]))
            cluster_node = ClusterNode(client, options["node"], check, self._show)
            labelled, interrupted = cluster_node.read()
        planned = self._converge(node, desired, options, check=True, settle=interrupted)
        if interrupted and not planned["plan"]:
            # The other run may be alive: from here on it does not stop csi-proxy, unless it holds the host's lock by now.
            with self._cluster({}):
                cluster_node.take_over(cordon=False)
            planned = self._converge(node, desired, options, check=True, settle=True)
        result = self._change(node, desired, options, planned, cluster_node, labelled)
        steps = [*planned["plan"], *(step for step in result["plan"] if step not in planned["plan"])]
        serves = desired.state == "present" and (
            result["csi_proxy"]["serving"] or (cluster_node.dry_run and bool(steps))
        )
        with self._cluster({**result, "changed": True}):
            if interrupted or cluster_node.changed or serves != labelled:
                cluster_node.restore(label=serves)
        changed = result["changed"] or cluster_node.changed
        marks = {"name": options["node"], "labelled": serves or (labelled and desired.state == "present")}
        return {**result, "plan": steps, "diff": planned["diff"], "changed": changed, "node": marks}

    def _change(
        self, node: WindowsHost, desired: model.Desired, options: dict[str, Any], planned: dict[str, Any],
        cluster_node: ClusterNode, labelled: bool,
    ) -> dict[str, Any]:  # fmt: skip
        """Change csi-proxy as planned, with the Node cordoned and without its label while csi-proxy restarts.

        NodeError, after which the Node is as before if csi-proxy serves again.
        """
        steps = {step["step"] for step in planned["plan"]}
        absent = desired.state == "absent"
        restarts = not absent and "stop" in steps and planned["csi_proxy"]["serving"]
        replaces_plugin = labelled and (absent or "start" in steps)
        if (restarts or replaces_plugin) and steps & {"fetch", "push"} and not cluster_node.dry_run:
            # Finds problems of the source while the node and its plugin still work.
            self._converge(node, replace(desired, state="staged"), options)
        try:
            with self._cluster({name: planned[name] for name in ("csi_proxy", "plan")}):
                if steps:
                    cluster_node.take_over(cordon=restarts)
                if restarts:
                    self.show_progress("waiting for volume operations in flight")
                    cluster_node.wait_until_idle(options["quiesce_timeout"])
                if replaces_plugin:
                    cluster_node.remove_label()
            if cluster_node.dry_run or not steps:
                return planned
            return self._converge(node, desired, options, confirm=lambda: self._confirm(cluster_node))
        except NodeError as error:
            # A host that is lost from here on was not left out before its change.
            error.result.setdefault("plan", planned["plan"])
            if not self._restore_after(error, cluster_node) and restarts and error.reason != "taken_over":
                label = f" and without the label {SERVING_LABEL}" if labelled else ""
                error.remedy += f" Node {cluster_node.name} stays cordoned{label} until a run succeeds."
            raise

    def _require_unchanged(self, node: WindowsHost, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        """Read the node. NodeError if it is not as desired any more, or cannot be read."""
        try:
            result = self._converge(node, desired, options, check=True)
            steps = [step["description"] for step in result["plan"] if step["step"] not in prove.HOUSEKEEPING]
            difference = "; ".join(steps)
        except ChangeRefusedError as error:
            # Another run made of it what this one would refuse to change.
            result, difference = error.result, str(error)
        if difference:
            executable = result["csi_proxy"]["executable"] or {}
            host = self._templar.available_variables["inventory_hostname"]
            raise NodeError(
                "changed_meanwhile",
                f"{host}: csi-proxy {executable.get('release') or 'missing'} ({difference.rstrip('.')}), expected {desired.version}, which this run "
                "installed: another run or user changed it meanwhile.",
                remedy="Compare the settings of both runs, then run enable_csi again with the right ones while no other run is active.",
                result=result,
            )
        return result

    def _confirm(self, cluster_node: ClusterNode) -> None:
        with self._cluster({}):
            cluster_node.confirm()

    def _restore_after(self, error: NodeError, cluster_node: ClusterNode) -> bool:
        """Restore the Node after a failure if csi-proxy serves, as after a roll-back; whether that was done."""
        state = error.result.get("csi_proxy")
        if not isinstance(state, dict) or not state["serving"]:
            return False
        try:
            with self._cluster({}):
                cluster_node.restore(label=True)
        except NodeError:
            return False
        return True

    def _converge(
        self, node: WindowsHost, desired: model.Desired, options: dict[str, Any], *, check: bool = False,
        settle: bool = False, confirm: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:  # fmt: skip
        """Bring csi-proxy to the desired state, or plan it; what the task returns."""
        needed = bool(options["needed"])
        if not needed and desired.state == "present":
            state = prove.describe_state(desired, observe.observe(node, desired, with_mounts=True))
            return {"changed": False, "csi_proxy": state, "plan": [], "needed": False, "diff": {}}
        self._lock = self._lock or NodeLock(make_lock_owner(node.clock), node.clock)
        outcome = prove.converge(
            node,
            desired,
            check=check,
            # Not where the task plans for a run that downloads anyway.
            probe=bool(self._templar.available_variables.get("ansible_check_mode")),
            limits=WaitLimits(),
            report=self.show_progress,
            settle=settle,
            confirm=confirm,
            lock=self._lock,
        )
        return {
            "changed": outcome.changed,
            "csi_proxy": prove.describe_state(desired, outcome.snapshot),
            "plan": prove.describe_plan(outcome.steps),
            "needed": needed,
            "diff": outcome.diff,
        }

    @contextlib.contextmanager
    def _cluster(self, result: Mapping[str, Any]) -> Iterator[None]:
        """Requests to the cluster, which end with the run. NodeError, with the result so far, for a ClusterError."""
        try:
            with interruptible(_REMAINDER, self._parent):
                yield
        except ClusterError as error:
            raise NodeError(error.reason, str(error), result=dict(result)) from error

    def _show(self, text: str) -> None:
        display_line(self._display.display, f"  {remove_values(text, self._secrets)}")
