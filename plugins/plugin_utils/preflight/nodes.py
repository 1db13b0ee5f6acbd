# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the drivers that a node's volumes need work there? Pure.

The gate's rules evaluate registration, plugin pod and host; this module adds what only matters once volumes exist:
limits, attachments, what the kubelet left behind, and why a driver may not have come up. A CSINode that exists is no proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from ..catalog.base import Driver
from ..catalog.versions import Version, parse_image_tag
from ..drivers.ownership import build_enabling_command, detect_platform_of_nodes
from ..drivers.rollout import evaluate as gate
from ..drivers.rollout.evaluate import GateProblem
from ..drivers.rollout.snapshot import Registration, RolloutPicture
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.node import ObservedNode
from ..kube.pod import PodFacts
from .facts.workloads import ObservedPod, ObservedTemplate
from .findings import AFTER_REBOOT, DOUBTS, create_finding
from .index import BY_NAME, Index
from .render.text_format import format_number
from .verdict import SEVERITIES, Answer, NodeVerdict, ReportFinding, Severity

# A node that reboots restarts its plugin too, so only many restarts until lately are a sign.
_RESTARTS, _LATELY = 10, timedelta(days=1)

# The lists that show whether a driver works on a node.
_NEEDED = ("nodes", "csinodes", "daemonsets", "pods")


@dataclass(slots=True)
class DriverState:
    """A driver on the Windows nodes that need it: sets of nodes, and why by node.

    piped: it talks to csi-proxy there. forms: by release and mode that its plugin has there; None, empty where not known.
    """

    good: int = 0
    bad: int = 0
    piped: int = 0
    reasons: dict[str, tuple[ReportFinding, ...]] = field(default_factory=dict)
    forms: dict[tuple[Version | None, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class NodesEvaluation:
    """What came out: verdicts, findings (those of a whole driver for each node), and the drivers' states by CSI name.

    stops: by node, what keeps pods from starting there, whatever driver their volumes have.
    """

    verdicts: tuple[NodeVerdict, ...]
    findings: tuple[ReportFinding, ...]
    drivers: Mapping[str, DriverState]
    stops: Mapping[str, tuple[ReportFinding, ...]]


def evaluate(index: Index, demand: Mapping[str, int], migrated: Mapping[str, int]) -> NodesEvaluation:
    """Evaluate every Windows node. demand: by CSI name, the nodes whose volumes need it.

    migrated: by in-tree plugin, the Windows nodes whose kubelet uses CSI for it.
    """
    states: dict[str, DriverState] = {}
    findings: list[ReportFinding] = []
    for driver, nodes in sorted(demand.items()):
        state = states[driver] = DriverState()
        for node in index.list_nodes(nodes):
            evaluated = (
                *_DriverOnNode(index, driver, node).find_faults(),
                *_find_left_attachments(index, driver, node, migrated),
            )
            state.reasons[node.name] = evaluated
            bit, answer = index.bit[node.name], _decide_answer(evaluated, index)
            providers = index.find_providers(driver, node)
            if any(_find_pipes(driver, provider) for provider in providers):
                state.piped |= bit
            form = _read_form(driver, providers)
            state.forms[form] = state.forms.get(form, 0) | bit
            if answer == "yes":
                state.good |= bit
            elif answer == "no":
                state.bad |= bit
            findings += evaluated
    verdicts, stops = [], {}
    for node in index.list_nodes(index.windows):
        needed = {driver: state.reasons[node.name] for driver, state in states.items() if node.name in state.reasons}
        piped = any(state.piped & index.bit[node.name] for state in states.values())
        node_findings = (
            *_check_system(node),
            *_pass_host_findings(index, node, bool(needed), piped),
        )
        findings += node_findings
        if node_stops := tuple(finding for finding in node_findings if finding.doubt or finding.severity == "blocker"):
            stops[node.name] = node_stops
        verdicts.append(_create_verdict(index, node, needed, node_findings))
    # A node of Linux that claims to be one of Windows draws pods that cannot run there.
    for node in index.list_nodes(index.linux & index.find_labelled("kubernetes.io/os", "windows")):
        findings += _check_system(node)
    return NodesEvaluation(tuple(verdicts), tuple(findings), states, stops)


def _decide_answer(findings: tuple[ReportFinding, ...], index: Index) -> Answer:
    if any(not finding.doubt for finding in findings):
        return "no"
    return "unknown" if any(finding.doubt for finding in findings) or not index.unread.isdisjoint(_NEEDED) else "yes"


def _create_verdict(
    index: Index,
    node: ObservedNode,
    needed: Mapping[str, tuple[ReportFinding, ...]],
    node_findings: tuple[ReportFinding, ...],
) -> NodeVerdict:
    findings = (*node_findings, *(finding for evaluated in needed.values() for finding in evaluated))
    unread = [resource for resource in _NEEDED if resource in index.unread] if needed else []
    # Of each driver the first, so that the failure of a driver does not hide behind that of another one.
    of_parts = [
        [finding for finding in part if finding.severity == "blocker"] for part in (node_findings, *needed.values())
    ]
    wrong = list(dict.fromkeys(f"{part[0].id}: {part[0].message}" for part in of_parts if part))
    doubts = [finding for finding in findings if finding.doubt]
    ok: Answer = "yes"
    because = f"{', '.join(needed)} registered and working" if needed else "no volume needs a driver here"
    if wrong:
        ok, because = "no", "; ".join(wrong)
    elif doubts:
        ok, because = "unknown", f"{doubts[0].id}: {doubts[0].message}"
    elif unread:
        ok, because = "unknown", f"CSI-C01: {', '.join(unread)} could not be read"
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    evidence = (
        *(f"{finding.id}: {finding.message}" for finding in findings),
        *_list_registrations(index, node, needed),
    )
    return NodeVerdict(node.name, tuple(needed), ok, because, evidence, ids)


def _list_registrations(index: Index, node: ObservedNode, drivers: Iterable[str]) -> Iterator[str]:
    for driver in drivers:
        entry = index.find_entry(driver, node)
        registered = "not registered" if entry is None else f"registered with node id {entry.node_id}"
        yield f"CSINode {node.name}: {driver} {registered}"


# One driver on one node


class _DriverOnNode:
    def __init__(self, index: Index, driver: str, node: ObservedNode) -> None:
        self._index, self._driver, self._node = index, driver, node
        self._catalog_driver = BY_NAME.get(driver)
        self._entry = index.find_entry(driver, node)
        self._host = index.hosts.get(node.name)
        self._object_name = f"Node {node.name}, driver {driver}"

    def find_faults(self) -> Iterator[ReportFinding]:
        """What is wrong with it there."""
        index = self._index
        providers = index.providers.get(self._driver, ())
        if not providers:
            yield from self._report_undeployed()
            return
        # The one that has its pod there is what the node has; the others are too many.
        providers_here = tuple(
            sorted(index.find_providers(self._driver, self._node), key=lambda provider: not self._list_pods(provider))
        )
        main = providers_here[0] if providers_here else providers[0]
        yield from self._check_gate(main, providers_here[1:])

    def _list_pods(self, provider: ObservedTemplate) -> list[ObservedPod]:
        return self._index.plugin_pods.get((provider.namespace, provider.name, self._node.name), [])

    def _report_undeployed(self) -> Iterator[ReportFinding]:
        """That no DaemonSet deploys it, or that none can be known to."""
        driver, name = self._driver, self._node.name
        if not self._index.unread.isdisjoint(("daemonsets", "pods")):
            return
        registration = f"CSINode {name} {'names' if self._entry is not None else 'does not name'} it"
        evidence = (f"DaemonSets that serve {driver} on Windows: none", registration)
        if self._catalog_driver is not None:
            message = f"no DaemonSet deploys {driver} on Windows nodes"
            message += ", so its entries are stale" if self._entry else ""
            snapshot = self._index.snapshot
            enable = build_enabling_command(
                self._catalog_driver, detect_platform_of_nodes(snapshot.cluster.kubernetes, snapshot.nodes)
            )
            remedy = enable or f"run enable_csi with driver {self._catalog_driver.key}"
            yield create_finding("CSI-G02", f"Driver {driver}", message, evidence, remedy, "blocker")
        elif self._entry is not None:
            message = f"CSINode {name} lists the driver, and no DaemonSet on Windows nodes names it"
            remedy = "find what runs the driver on the node; if nothing does, restart the kubelet to drop the stale registration"
            yield create_finding("CSI-N46", self._object_name, message, evidence, remedy)
        else:
            message = f"nothing deploys {driver} on Windows nodes"
            remedy = "install its Windows node plugin, or keep its workloads on Linux; the driver is unknown to this collection"
            yield create_finding("CSI-N44", f"Driver {driver}", message, evidence, remedy)

    def _check_gate(
        self, main: ObservedTemplate, other_templates: tuple[ObservedTemplate, ...]
    ) -> Iterator[ReportFinding]:
        """What the gate says of its plugin there, and of the mode that the plugin has."""
        if main.plugin is None:
            return
        yield from self._check_registrar(main, main.plugin)
        node, entry, host, unread = self._node, self._entry, self._host, self._index.unread
        snapshot, pods = self._index.snapshot, self._list_pods(main)
        plugins = [pod.plugin for pod in pods if pod.plugin is not None]
        picture = RolloutPicture(
            now=snapshot.taken_at,
            controller_now=snapshot.hosts_at or snapshot.taken_at,
            driver=self._driver,
            daemon_set=replace(main.plugin, pipes=_find_pipes(self._driver, main)),
            nodes=(node,),
            registrations={} if entry is None else {node.name: Registration(entry.node_id, entry.topology_keys, None)},
            pods=plugins,
            hosts={} if host is None else {node.name: host},
            other_providers={node.name: [f"{template.namespace}/{template.name}" for template in other_templates]},
        )
        evaluated = gate.evaluate(picture, gate.GateRules(only=frozenset({node.name})))
        needs = {"CSI-G10": "pods", "CSI-G20": "csinodes"}
        problems = [problem for verdict in evaluated.nodes for problem in verdict.problems]
        problems += [problem for problem in evaluated.problems if problem.id == "CSI-G04"]
        problems = [problem for problem in problems if needs.get(problem.id) not in unread]
        evidence = tuple(self._list_evidence(main, plugins))
        for problem in problems:
            finding = self._convert_problem(problem, evidence)
            if problem.id == "CSI-G14" and "controllerrevisions" in unread:
                # Its generation is another one, as after a restored template.
                message = f"{problem.message}, or its template was restored: controllerrevisions could not be read"
                finding = replace(finding, message=message, doubt=True)
            yield finding
        yield from self._check_restarts(main, plugins, evidence)
        host_process = main.plugin.host_process or any(pod.host_process for pod in pods)
        yield from self._check_mode(main, host_process, evidence)

    def _check_registrar(self, main: ObservedTemplate, plugin: ObservedDaemonSet) -> Iterator[ReportFinding]:
        """A plugin that does not register the driver with the next kubelet, though its entry is there."""
        if self._catalog_driver is not None and not plugin.registered_folders:
            title = f"DaemonSet {main.namespace}/{main.name}"
            message = f"no container of {title} registers the driver, so its entry may be a former one"
            evidence = f"{title}: no argument --kubelet-registration-path"
            remedy = "add the node-driver-registrar as in the driver's own manifest for its release"
            yield create_finding("CSI-N46", self._object_name, message, (evidence,), remedy)

    def _check_restarts(
        self, main: ObservedTemplate, plugins: list[PodFacts], evidence: tuple[str, ...]
    ) -> Iterator[ReportFinding]:
        """A plugin pod that has restarted too often, though it is Ready. The gate reports CSI-G13 for another reason."""
        for pod in plugins:
            restarts, last = max((container.restarts for container in pod.containers), default=0), pod.last_restart
            if pod.ready and restarts >= _RESTARTS and (last is None or self._index.snapshot.taken_at - last < _LATELY):
                message = f"pod {pod.name} has restarted {restarts} times" + (
                    f", last at {last:%Y-%m-%d %H:%M:%SZ}" if last else ""
                )
                remedy = f"kubectl -n {main.namespace} logs {pod.name} --all-containers --previous"
                yield create_finding("CSI-G13", self._object_name, message, evidence, remedy, "warning")

    def _convert_problem(self, problem: GateProblem, evidence: tuple[str, ...]) -> ReportFinding:
        object_name = {"CSI-G04": f"Driver {self._driver}", "CSI-G05": f"Node {self._node.name}"}.get(
            problem.id, self._object_name
        )
        severity: Severity = "warning" if problem.id in DOUBTS else "blocker"
        return create_finding(problem.id, object_name, problem.message, evidence, problem.remedy, severity)

    def _list_evidence(self, main: ObservedTemplate, pods: list[PodFacts]) -> Iterator[str]:
        name, host = self._node.name, self._host
        if self._entry is None:
            yield f"CSINode {name} spec.drivers: {self._driver} missing"
        else:
            yield f"CSINode {name} spec.drivers: {self._driver}, nodeID {self._entry.node_id}"
        yield f"DaemonSet {main.namespace}/{main.name}: " + (
            ", ".join(f"pod {pod.name} {'Ready' if pod.ready else 'not Ready'}" for pod in pods) or "no pod on the node"
        )
        if host is not None:
            state = "serving" if host.serving else host.state or "not serving"
            yield f"host {name}: csi-proxy {host.release or 'of unknown release'} {state}"

    def _check_mode(
        self, main: ObservedTemplate, host_process: bool, evidence: tuple[str, ...]
    ) -> Iterator[ReportFinding]:
        """A plugin whose release works in the other mode alone."""
        catalog_driver, object_name = self._catalog_driver, self._object_name
        version = None if catalog_driver is None else read_running_release(catalog_driver, main)
        rule = None if catalog_driver is None else catalog_driver.rule("host_process" if host_process else "csi_proxy")
        if catalog_driver is None or version is None or rule is None:
            return
        # The other way round is no obstacle: a HostProcess container reaches the host's pipes too.
        if not host_process and not rule.supports(version):
            nearest_release = catalog_driver.find_nearest(version, rule)
            remedy = "deploy it as a HostProcess container" + (
                f", or release {nearest_release.version} in this mode" if nearest_release else ""
            )
            message = f"its plugin runs release {version} as a container that is isolated from the host: {rule.why}"
            yield create_finding("CSI-N45", object_name, message, evidence, remedy)


def _find_left_attachments(
    index: Index, driver: str, node: ObservedNode, migrated: Mapping[str, int]
) -> Iterator[ReportFinding]:
    """A finding if the kubelet attached volumes of a driver's in-tree plugin before it used CSI for that plugin."""
    entry = BY_NAME.get(driver)
    plugin = (entry.in_tree if entry is not None else None) or ""
    attached = [name for name in node.attached if plugin and name.startswith(f"{plugin}/")]
    if attached and migrated.get(plugin, 0) & index.bit[node.name]:
        count = format_number(len(attached), "volume is", "volumes are")
        message = f"{count} attached in-tree, and the kubelet uses CSI for {plugin}"
        remedy = "move their pods away, detach them at the platform, then use them again"
        evidence = tuple(f"status.volumesAttached: {name}" for name in attached[:3])
        yield create_finding("CSI-N36", f"Node {node.name}", message, evidence, remedy)


def _find_pipes(driver: str, provider: ObservedTemplate) -> tuple[str, ...]:
    """The pipes of csi-proxy that a node plugin uses.

    The plugin of OpenShift's storage operator is a HostProcess container that uses them and mounts none
    (enhancements/windows-containers/windows-CSI-driver-support.md of https://github.com/openshift/enhancements, pull request 2072).
    """
    plugin, entry = provider.plugin, BY_NAME.get(driver)
    if plugin is None or plugin.pipes or not (plugin.host_process and plugin.of_openshift):
        return () if plugin is None else plugin.pipes
    rule = None if entry is None else entry.rule("csi_proxy")
    return () if rule is None else rule.pipes


def _read_form(driver: str, providers: tuple[ObservedTemplate, ...]) -> tuple[Version | None, str]:
    """Release and mode of the one plugin that a driver has on a node."""
    entry = BY_NAME.get(driver)
    if entry is None or len(providers) != 1 or providers[0].plugin is None:
        return None, ""
    return read_running_release(entry, providers[0]), "host_process" if providers[
        0
    ].plugin.host_process else "csi_proxy"


def read_running_release(driver: Driver, template: ObservedTemplate) -> Version | None:
    """The release that a DaemonSet runs, by its image."""
    images = dict(template.plugin.images) if template.plugin is not None else {}
    return parse_image_tag(images.get(driver.container, ""))


# The node itself


def _pass_host_findings(index: Index, node: ObservedNode, needed: bool, piped: bool) -> Iterator[ReportFinding]:
    """What was found on the node's host.

    What its next reboot will break is reported even without volumes, and blocks if a driver uses csi-proxy
    (``piped``).
    """
    host = index.hosts.get(node.name)
    for finding in host.findings if host is not None else ():
        lasting = finding["id"] in AFTER_REBOOT
        if not needed and not lasting:
            continue
        severity: Severity = next((level for level in SEVERITIES if level == finding["severity"]), "note")
        if lasting and not piped and severity == "blocker":
            severity = "warning"
        evidence = (f"csi_proxy_info on host {node.name}: {finding['object']}",)
        object_name = f"Node {node.name}, {finding['object']}"
        yield create_finding(finding["id"], object_name, finding["message"], evidence, finding["remedy"], severity)


def _check_system(node: ObservedNode) -> Iterator[ReportFinding]:
    label = node.labels.get("kubernetes.io/os", "")
    if node.os and label and node.os != label:
        evidence = (f"nodeInfo.operatingSystem: {node.os}", f"label kubernetes.io/os: {label}")
        remedy = f"kubectl label node {node.name} kubernetes.io/os={node.os} --overwrite"
        message = f"its label is {label}, expected {node.os} as its kubelet reports"
        yield create_finding("CSI-N30", f"Node {node.name}", message, evidence, remedy)
