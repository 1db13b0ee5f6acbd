# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply a driver's objects, and roll its running DaemonSet if its template changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..catalog.base import Driver
from ..kube import kinds
from ..kube.apply import Applier, Outcome
from ..kube.client import Client
from ..kube.definitions import find_daemon_set
from ..kube.errors import ClusterError
from ..kube.labels import MODE, is_absent_or_ours
from ..kube.permissions import require_roles
from .observed_uses import read_uses
from .rollout.apply import FailedTemplate, Notify, Roller, RollResult, make_roll_lease
from .rollout.decide import RollOptions, RollState, RollStep, find_state, list_refusals
from .rollout.evaluate import GateRules, evaluate
from .rollout.observe import RolloutTarget, RolloutView
from .rollout.snapshot import ObservedHost, hash_template
from .uses import explain_fixed_mode


@dataclass(frozen=True, slots=True)
class DeployRequest:
    """A driver's objects as they should be. hosts: state of the Windows hosts."""

    driver: Driver
    definitions: Sequence[dict[str, Any]]
    options: RollOptions
    hosts: Sequence[ObservedHost] = ()

    @property
    def plugin(self) -> dict[str, Any]:
        """The definition of the DaemonSet."""
        return find_daemon_set(list(self.definitions))

    @property
    def name(self) -> str:
        return str(self.plugin["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.plugin["metadata"]["namespace"])


@dataclass(frozen=True, slots=True)
class DeployPlan:
    """What deploying changes. definitions: objects that this run applies. state: of the Nodes, None if no DaemonSet of
    ours runs, or nothing of it changes."""

    definitions: Sequence[dict[str, Any]]
    outcome: Outcome
    options: RollOptions
    state: RollState | None = None

    @property
    def rolls(self) -> bool:
        """Whether pods of this run's Nodes have another template."""
        return self.state is not None and bool(self.state.old)

    @property
    def needs_lease(self) -> bool:
        """Whether a running DaemonSet changes."""
        changes = any(change.kind == "DaemonSet" and change.action != "none" for change in self.outcome.changes)
        return self.state is not None and (self.rolls or changes)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What was applied. roll: None without a running DaemonSet of ours."""

    outcome: Outcome
    roll: RollResult | None = None

    @property
    def template(self) -> str:
        """Hash of the DaemonSet's pod template, empty if the DaemonSet was left to other runs."""
        return next((hash_template(change.after) for change in self.outcome.changes if change.kind == "DaemonSet"), "")


def plan(client: Client, request: DeployRequest) -> DeployPlan:
    """Compare with the cluster. ClusterError roll_refused or canary_failed if a rolling update must not begin."""
    outcome, options = Applier(client).plan(request.definitions), request.options
    change = next(change for change in outcome.changes if change.kind == "DaemonSet")
    live = None if change.action == "create" else client.get(kinds.DAEMON_SET, request.name, request.namespace)
    if live is None or not is_absent_or_ours(live) or (change.action == "none" and _is_rolled_out(live)):
        return DeployPlan(request.definitions, outcome, options)
    if refusal := explain_fixed_mode(request.driver, _read_mode(live), _read_mode(request.plugin)):
        raise ClusterError(f"DaemonSet {request.namespace}/{request.name}: {refusal}. Remove it first.", "roll_refused")
    view = _make_view(client, request)
    view.load()
    picture = view.picture({**live, "spec": change.after["spec"]})
    evaluation = evaluate(picture, GateRules())
    state = find_state(picture, evaluation, options)
    failed = FailedTemplate.from_object(live)
    if failed is not None and failed.template == hash_template(change.after) and failed.node in state.expected:
        options = _retry_canary(failed, options, state, f"DaemonSet {request.namespace}/{request.name}")
        state = find_state(picture, evaluation, options)
    same_template = live["spec"]["template"] == change.after["spec"]["template"]
    if not same_template and not state.order and state.outdated_elsewhere and not state.down:
        # The first run with Nodes of the DaemonSet applies the template, and checks it there.
        other_definitions = [item for item in request.definitions if item is not request.plugin]
        outcome = Applier(client).plan(other_definitions)
        return DeployPlan(other_definitions, outcome, options, state)
    if state.old or not same_template:
        refused = list_refusals(picture, evaluation, state, lambda: read_uses(client, request.driver))
        if refused:
            raise ClusterError("\n".join(refused), "roll_refused")
        if state.old:
            require_roles(client, [("kubewin-csi-roll", request.namespace)], "an update of the node plugin")
    return DeployPlan(request.definitions, outcome, options, state)


def _retry_canary(failed: FailedTemplate, options: RollOptions, state: RollState, subject: str) -> RollOptions:
    """Begin with the Node on which the template failed; ClusterError canary_failed if that is not of this run."""
    if options.nodes and failed.node not in options.nodes:
        raise ClusterError(
            f"{subject}: the pod template of this run failed on the canary {failed.node} ({failed.message}), expected one that "
            f"works. No pod was replaced. Correct the options, or repair {failed.node} and first run with it.",
            "canary_failed",
        )
    other_nodes = (name for name in options.nodes or state.expected if name != failed.node)
    return replace(options, nodes=(failed.node, *other_nodes))


def deploy(client: Client, request: DeployRequest, notify: Notify, applied: Callable[[Outcome], None]) -> Deployment:
    """Apply what differs. Where a running DaemonSet changes, hold its Lease, read everything again, and replace its pods.

    applied: called once objects were written. ClusterError as of plan, and locked if another run keeps the Lease.
    """
    deploy_plan = plan(client, request)
    if deploy_plan.state is None or not deploy_plan.needs_lease:
        return _apply(client, deploy_plan, applied)
    # As long as another run may take for all Nodes, one after the other.
    wait_timeout = request.options.node_timeout * max(1, len(deploy_plan.state.expected))
    with make_roll_lease(client, request.namespace, request.name, notify).hold(client, wait_timeout) as bound:
        # While Nodes restart, so may the API server.
        bound.retry_for = max(bound.retry_for, request.options.node_timeout)
        deploy_plan = plan(bound, request)
        deployment = _apply(bound, deploy_plan, applied)
        if not deploy_plan.rolls:
            return deployment
        after = next(change.after for change in deployment.outcome.changes if change.kind == "DaemonSet")
        roller = Roller(
            bound,
            lambda: _make_view(bound, request),
            request.plugin,
            deploy_plan.options,
            notify,
        )
        return replace(deployment, roll=roller.run(after))


def _apply(client: Client, deploy_plan: DeployPlan, applied: Callable[[Outcome], None]) -> Deployment:
    outcome = deploy_plan.outcome
    if outcome.changed:
        outcome = Applier(client).apply(deploy_plan.definitions)
    applied(outcome)
    state = deploy_plan.state
    return Deployment(
        outcome, None if state is None else RollResult(RollStep("finish", nodes=state.outdated_elsewhere), state)
    )


def _make_view(client: Client, request: DeployRequest) -> RolloutView:
    return RolloutView(client, RolloutTarget(request.driver, request.namespace, request.name), request.hosts)


def _is_rolled_out(live: Mapping[str, Any]) -> bool:
    """Whether every pod has the DaemonSet's template, as its controller counts them: updateDaemonSetStatus of pkg/controller/daemon."""
    status = live.get("status") or {}
    processed = status.get("observedGeneration") == live["metadata"].get("generation")
    return bool(processed and status.get("updatedNumberScheduled", 0) == status.get("desiredNumberScheduled"))


def _read_mode(item: Mapping[str, Any]) -> str:
    return str((item["metadata"].get("annotations") or {}).get(MODE, ""))
