# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: is a driver's node plugin registered and working on every node it should be on? Pure.

A CSINode object proves nothing, since kubelets make one at start, and neither does a Ready plugin pod: drivers open the
pipes of csi-proxy once, so a running pod stays Ready when csi-proxy dies, and only mounts fail. So registration, pod
and host are evaluated together, and what could not be read is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from ...base.grouped import group_values
from ...base.stored import serialize
from ...base.text import join_field_lines, join_lines
from ...kube.daemon_set import ObservedDaemonSet
from ...kube.labels import SERVING_LABEL
from ...kube.node import ObservedNode
from ...kube.pod import PodFacts
from .explain import explain_missing_pod, explain_pod, explain_registration
from .scheduling import explain_exclusion
from .snapshot import ObservedHost, RolloutPicture

Verdict = Literal["green", "unproven", "waiting", "red"]

# From best to worst; the gate is as good as its worst node. Red outranks waiting: it does not resolve by itself.
_ORDER: tuple[Verdict, ...] = ("green", "unproven", "waiting", "red")


@dataclass(frozen=True, slots=True)
class GateProblem:
    """Why a node is not green. verdict: what it makes of the node at best."""

    id: str
    verdict: Verdict
    message: str
    remedy: str

    def __post_init__(self) -> None:
        join_field_lines(self, "message", "remedy")

    @property
    def text(self) -> str:
        """Its message, with the id under which the page of findings explains it."""
        return f"{self.id} {self.message}"


@dataclass(frozen=True, slots=True)
class NodeEvaluation:
    """One node's evaluation. pod: empty without one. notes: remarks that do not block."""

    node: str
    pod: str
    problems: tuple[GateProblem, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(join_lines(note) for note in self.notes))

    @property
    def verdict(self) -> Verdict:
        return max((problem.verdict for problem in self.problems), key=_ORDER.index, default="green")

    @property
    def fingerprint(self) -> str:
        """The identity of this evaluation: its verdict and its problems, without changing numbers."""
        return f"{self.verdict}:{','.join(sorted(problem.id for problem in self.problems))}:{self.pod}"

    def as_dict(self) -> dict[str, Any]:
        return {**serialize(self), "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The gate's evaluation: expected nodes, skipped nodes with the reason, and problems of the whole.

    daemon_set: None if it does not exist.
    """

    nodes: tuple[NodeEvaluation, ...]
    skipped_nodes: tuple[tuple[str, str], ...]
    problems: tuple[GateProblem, ...]
    daemon_set: ObservedDaemonSet | None = None

    @property
    def verdict(self) -> Verdict:
        """As bad as the worst node, or as the worst problem of the whole."""
        worst: list[Verdict] = [node.verdict for node in self.nodes] + [problem.verdict for problem in self.problems]
        return max(worst, key=_ORDER.index, default="green")

    @property
    def settled(self) -> bool:
        """Whether waiting longer would change nothing, or something is wrong that waiting does not resolve."""
        return self.verdict != "waiting"


# After that, what was read of a host does not count.
_FACTS_MAX_AGE = timedelta(hours=1)
_REPAIR = "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"


@dataclass(frozen=True, slots=True)
class GateRules:
    """What the user allows, and what is known from elsewhere.

    only: evaluate these nodes, report the others; empty evaluates all. allow_zero_nodes: nodes that the DaemonSet's
    selector and tolerations leave out, up to all of them, are reported only. stable_for: seconds that a pod must have been
    Ready when its registration is not known to be its own. proven: nodes on which a volume was just written and read back,
    which replaces reading the host. template: hash of the pod template that this run applied, empty if it applied none.
    """

    only: frozenset[str] = frozenset()
    allow_zero_nodes: bool = False
    stable_for: float = 10.0
    proven: frozenset[str] = frozenset()
    template: str = ""


def evaluate(picture: RolloutPicture, rules: GateRules) -> Evaluation:
    """Evaluate every expected node, and give the reason for every Windows node that is not expected."""
    daemon_set = picture.daemon_set
    if daemon_set is None:
        problem = GateProblem("CSI-G02", "red", "its DaemonSet does not exist", _REPAIR)
        return Evaluation(nodes=(), skipped_nodes=(), problems=(problem,))
    evaluated: list[NodeEvaluation] = []
    skipped_nodes: list[tuple[str, str]] = []
    node_names = {node.name for node in picture.nodes}
    pods_by_node = group_values((pod.node, pod) for pod in picture.pods)
    skipped_nodes += [(name, "the Node does not exist") for name in sorted(rules.only - node_names)]
    for node in sorted(picture.nodes, key=lambda candidate: candidate.name):
        away, pods = explain_exclusion(daemon_set, node), pods_by_node.get(node.name, ())
        chosen = not rules.only or node.name in rules.only
        if chosen and away is None:
            evaluated.append(_evaluate_node(daemon_set, picture, rules, node, pods))
        elif chosen and rules.only and not (rules.allow_zero_nodes and SERVING_LABEL not in str(away)):
            message = f"the DaemonSet places no pod here: {away}"
            evaluated.append(
                NodeEvaluation(
                    node.name,
                    "",
                    (GateProblem("CSI-G03", "red", message, _choose_remedy(daemon_set, node.name, away)),),
                )
            )
        elif away is not None:
            skipped_nodes.append((node.name, f"no plugin pod: {away}"))
        else:
            verdict = _evaluate_node(daemon_set, picture, rules, node, pods)
            skipped_nodes.append((node.name, f"not in this run; {_summarize(verdict)}"))
    problems = list(_check_daemon_set(daemon_set, rules, evaluated))
    return Evaluation(tuple(evaluated), tuple(skipped_nodes), tuple(problems), daemon_set)


def _choose_remedy(daemon_set: ObservedDaemonSet, node: str, away: str | None) -> str:
    """A Node gets the label when csi-proxy serves its pipes. Other labels, and taints, are compared with the DaemonSet."""
    if away is not None and SERVING_LABEL in away:
        return _REPAIR
    return f"kubectl describe node {node}; kubectl -n {daemon_set.namespace} get daemonset {daemon_set.name} -o yaml"


def _summarize(verdict: NodeEvaluation) -> str:
    return verdict.verdict if not verdict.problems else f"{verdict.verdict}: {verdict.problems[0].message}"


def _check_daemon_set(
    daemon_set: ObservedDaemonSet, rules: GateRules, evaluated: Sequence[NodeEvaluation]
) -> Iterator[GateProblem]:
    if rules.template and daemon_set.template != rules.template:
        images = ", ".join(image for _container, image in daemon_set.images)
        message = (
            f"DaemonSet {daemon_set.namespace}/{daemon_set.name} has pod template {daemon_set.template} ({images}), expected "
            f"{rules.template}, which this run applied: another run or user changed it meanwhile"
        )
        remedy = "compare the settings of both runs, then run enable_csi again with the right ones while no other run is active"
        yield GateProblem("CSI-G06", "red", message, remedy)
    if not evaluated and not rules.allow_zero_nodes:
        message = "there is no node to check: the DaemonSet matches no Windows node"
        yield GateProblem("CSI-G01", "red", message, "see the reasons per node")
    elif not daemon_set.processed:
        message = "the DaemonSet controller has not processed the newest DaemonSet yet"
        yield GateProblem("CSI-G04", "waiting", message, "check that kube-controller-manager runs")


def _evaluate_node(
    daemon_set: ObservedDaemonSet, picture: RolloutPicture, rules: GateRules, node: ObservedNode, pods: Sequence[PodFacts]
) -> NodeEvaluation:  # fmt: skip
    # While one is replaced there are two; the newer one is what the node will have.
    pod = next((candidate for candidate in pods if not candidate.deleting), pods[0] if pods else None)
    host = picture.hosts.get(node.name)
    problems: list[GateProblem] = []
    if not node.ready:
        because = f": {node.not_ready_because}" if node.not_ready_because else ""
        remedy = f"kubectl describe node {node.name}"
        problems.append(GateProblem("CSI-G05", "waiting", f"the Node is not Ready{because}", remedy))
    host_problems = list(_check_host(daemon_set.pipes, picture, rules, node, host)) if daemon_set.pipes else []
    if daemon_set.other_pipes:
        message = (
            f"pipe {', '.join(daemon_set.other_pipes)}, which is not of csi-proxy, was not read on host {node.name}"
        )
        host_problems.append(GateProblem("CSI-G40", "unproven", message, "verify a volume there"))
    proven = node.name in rules.proven and any(problem.verdict == "unproven" for problem in host_problems)
    # Facts of the host outrank an earlier proof; missing facts do not.
    problems += [problem for problem in host_problems if not (proven and problem.verdict == "unproven")]
    problems += _check_pod(daemon_set, picture, rules, node, pod, host)
    problems += _check_registration(picture, node, pod)
    problems += _check_other_providers(daemon_set, picture, node)
    notes = ["cordoned; the plugin runs, but workloads are not scheduled here"] if node.cordoned else []
    notes += ["not everything was read on the host; a volume was proven there"] if proven else []
    return NodeEvaluation(node=node.name, pod=pod.name if pod else "", problems=tuple(problems), notes=tuple(notes))


def _check_other_providers(
    daemon_set: ObservedDaemonSet, picture: RolloutPicture, node: ObservedNode
) -> Iterator[GateProblem]:
    for provider in picture.other_providers.get(node.name, ()):
        message = f"DaemonSet {provider} also provides {picture.driver} here; the two remove each other's registration"
        daemon_sets = sorted({provider, f"{daemon_set.namespace}/{daemon_set.name}"})
        yield GateProblem(
            "CSI-G30", "red", message, f"delete one of the two DaemonSets, {' or '.join(daemon_sets)}, at its source"
        )


def _check_host(
    mounted: Sequence[str], picture: RolloutPicture, rules: GateRules, node: ObservedNode, host: ObservedHost | None
) -> Iterator[GateProblem]:
    """What the host lacks of the pipes that the pods mount."""
    kind = "registered, unproven" if node.name in picture.registrations else "unproven"
    if host is None:
        message = f"{kind}: the host's csi-proxy and its pipes were not read"
        yield GateProblem("CSI-G40", "unproven", message, "add the host to the inventory, or verify a volume there")
        return
    if host.serving is None:
        message = f"{kind}: the host could not be read" + (f": {host.reason}" if host.reason else "")
        yield GateProblem("CSI-G40", "unproven", message, "read it with csi_proxy_info")
        return
    age = None if host.observed_at is None else picture.controller_now - host.observed_at
    if age is None or age > _FACTS_MAX_AGE:
        when = "at an unknown time" if age is None else f"{int(age.total_seconds())} s ago"
        message = f"{kind}: the host was read {when}, expected within {_FACTS_MAX_AGE.total_seconds():.0f} s"
        yield GateProblem("CSI-G41", "unproven", message, "read it again with csi_proxy_info")
    absent = [pipe for pipe in mounted if host.pipes is not None and pipe not in host.pipes]
    if absent:
        state = f" (service {host.state})" if host.state else ""
        message = f"host {node.name} does not serve pipe {', '.join(absent)}{state}"
        yield GateProblem("CSI-G42", "red", message + (f": {host.reason}" if host.reason else ""), _REPAIR)
    elif not host.serving:
        state = host.state or "not serving"
        message = f"csi-proxy on host {node.name} is {state}" + (f": {host.reason}" if host.reason else "")
        yield GateProblem("CSI-G43", "red", message, _REPAIR)


def _check_pod(
    daemon_set: ObservedDaemonSet, picture: RolloutPicture, rules: GateRules, node: ObservedNode, pod: PodFacts | None,
    host: ObservedHost | None,
) -> Iterator[GateProblem]:  # fmt: skip
    if pod is None:
        message, remedy = explain_missing_pod(daemon_set, picture)
        yield GateProblem("CSI-G10", "waiting", message, remedy)
        return
    if pod.deleting:
        yield GateProblem("CSI-G15", "waiting", f"pod {pod.name} is being deleted", "wait for its successor")
        return
    if not pod.ready:
        message, remedy = explain_pod(daemon_set, picture, pod)
        yield GateProblem("CSI-G11", "waiting", message, remedy)
        return
    if (
        host is not None
        and host.boot_time is not None
        and pod.started_at is not None
        and pod.started_at < host.boot_time
    ):
        message = f"pod {pod.name} has been Ready since before the node booted at {host.boot_time:%Y-%m-%d %H:%M:%SZ}"
        yield GateProblem("CSI-G12", "waiting", message, f"kubectl -n {daemon_set.namespace} delete pod {pod.name}")
        return
    if not daemon_set.is_current(pod):
        message = f"pod {pod.name} still runs an older template"
        remedy = f"if nothing replaces it: kubectl -n {daemon_set.namespace} delete pod {pod.name}"
        yield GateProblem("CSI-G14", "waiting", message, remedy)
        return
    if not _is_stable(picture, rules, node, pod):
        message = f"pod {pod.name} has been Ready without a restart for less than {rules.stable_for:.0f} s"
        yield GateProblem("CSI-G13", "waiting", message, "wait")


def _is_stable(picture: RolloutPicture, rules: GateRules, node: ObservedNode, pod: PodFacts) -> bool:
    """Whether a Ready pod counts as working.

    The plugin container has no readiness probe, so a pod that is about to crash is Ready for a moment, and the entry
    in the CSINode may be of a pod before it. An entry known to be written after this pod started is its own:
    registering took the driver's answer. Otherwise, and after a restart, the pod has to last.
    """
    restarted = pod.last_restart
    if restarted is not None and picture.now - restarted < timedelta(seconds=rules.stable_for):
        return False
    registration = picture.registrations.get(node.name)
    written = registration.written_at if registration is not None else None
    # The API has whole seconds.
    if written is not None and pod.started_at is not None and written >= pod.started_at - timedelta(seconds=1):
        return True
    return pod.ready_since is None or picture.now - pod.ready_since >= timedelta(seconds=rules.stable_for)


def _check_registration(picture: RolloutPicture, node: ObservedNode, pod: PodFacts | None) -> Iterator[GateProblem]:
    registration = picture.registrations.get(node.name)
    if registration is None:
        hint = explain_registration(picture, pod)
        message = f"{picture.driver} is not in the CSINode's spec.drivers" + (f": {hint}" if hint else "")
        remedy = f"kubectl get csinode {node.name} -o yaml"
        if pod is not None and pod.ready and picture.daemon_set is not None:
            registrar = next((container.name for container in pod.containers if "registrar" in container.name), "")
            remedy = f"kubectl -n {picture.daemon_set.namespace} logs {pod.name}" + (
                f" -c {registrar}" if registrar else " --all-containers"
            )
            if "PluginRegistered:true" in hint:
                # Its entry went with the CSINode, and the registrar does not register again.
                remedy = f"to register it again: kubectl -n {picture.daemon_set.namespace} delete pod {pod.name}"
        yield GateProblem("CSI-G20", "waiting", message, remedy)
        return
    remedy = "wait for the kubelet; if it does not change, restart the plugin pod"
    if pod is not None and picture.daemon_set is not None:
        remedy += f": kubectl -n {picture.daemon_set.namespace} delete pod {pod.name}"
    annotated = node.node_ids.get(picture.driver)
    if annotated != registration.node_id:
        problem = f"is {annotated}" if annotated else "does not name the driver"
        message = (
            f"the Node's annotation csi.volume.kubernetes.io/nodeid {problem}, its CSINode has {registration.node_id}"
        )
        yield GateProblem("CSI-G21", "waiting", message, remedy)
    missing = [key for key in registration.topology_keys if key not in node.labels]
    if missing:
        message = f"topology label {', '.join(missing)} is missing on the Node"
        yield GateProblem("CSI-G22", "waiting", message, remedy)
