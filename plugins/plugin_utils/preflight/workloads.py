# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether each workload with volumes starts again on Windows, and workloads that hide a problem. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from ..base.grouped import group_values
from ..kube import kinds
from .admission import Admission
from .controllers.attach_detach_controller import AttachDetachController
from .controllers.external_provisioner import ExternalProvisioner
from .controllers.persistent_volume_controller import PersistentVolumeController
from .findings import change_template, create_finding, report_unread_lists
from .index import Index, split_bits, unite
from .kubelet import KubeletImages, VolumeManager
from .roll import simulate_roll
from .scheduler.attach_capacity import AttachCapacity, StartingWorkload
from .scheduler.framework import Scheduler
from .usage import Usage, Workload
from .verdict import Answer, Cause, ReportFinding, Roll, WorkloadVerdict
from .walk.pods import list_pods_to_start
from .walk.steps import NodeToStatus, Places, PodToStart, Rule, StepAnswer
from .walk.walk import Rules, WorkloadWalk
from .windows_volumes import WindowsVolumes


@dataclass(frozen=True, slots=True)
class WorkloadsEvaluation:
    """What came out. stopping: the findings that keep a workload from being ready, of others and of their own. roll: of the nodes."""

    verdicts: tuple[WorkloadVerdict, ...]
    findings: tuple[ReportFinding, ...]
    stopping: frozenset[ReportFinding]
    roll: Roll | None


@dataclass(frozen=True, slots=True)
class _Decision:
    """Whether a workload starts again. of_pods: pods decide that, of which others may start. findings: of all its pods together."""

    answer: Answer
    because: str
    of_pods: bool = False
    findings: tuple[ReportFinding, ...] = ()


class _NodeRule:
    """The kubelet of a node on which something is wrong that is about no single volume."""

    def __init__(self, index: Index, node_stops: Mapping[str, tuple[ReportFinding, ...]]) -> None:
        pairs = [(index.bit.get(name, 0), finding) for name, findings in node_stops.items() for finding in findings]
        self._by_id = group_values(((pair[1].severity != "blocker", pair[1].id), pair) for pair in pairs)

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Where it keeps a pod from starting; nothing about other nodes."""
        statuses = NodeToStatus("stage", nodes, pod.workload, "")
        for (is_doubt, _id), pairs in sorted(self._by_id.items()):
            findings = tuple(finding for bit, finding in pairs if bit & nodes)
            statuses.note("unknown" if is_doubt else "no", unite(bit for bit, _finding in pairs), findings)
        return statuses.list_stops()


def evaluate(
    index: Index,
    usage: Usage,
    volumes: WindowsVolumes,
    driver_findings: Mapping[str, tuple[ReportFinding, ...]],
    node_stops: Mapping[str, tuple[ReportFinding, ...]],
    target_stops: Sequence[ReportFinding],
) -> WorkloadsEvaluation:
    """A verdict for each workload that may run on Windows. driver_findings: by CSI name, findings about what a driver has in the
    cluster. node_stops: by node, and target_stops: those that keep any pod from starting.
    """
    claims = volumes.claims
    scheduler = Scheduler(index, claims)
    admission = Admission(index)
    images = KubeletImages(index)
    plugin_answers = _check_node_plugins(index, (admission, scheduler.filter_node_plugin, images))
    volume_manager = VolumeManager(volumes)
    rules: Rules = {
        "bind": (admission, PersistentVolumeController(index, claims)),
        "provision": (ExternalProvisioner(index, claims),),
        "schedule": (scheduler,),
        "attach": (AttachDetachController(index, usage, volumes, driver_findings, plugin_answers),),
        "stage": (volume_manager.stage, _NodeRule(index, node_stops), images),
        "publish": (volume_manager.publish,),
    }
    evaluator = _Evaluator(index, volumes, scheduler, target_stops)
    for workload in usage.workloads:
        # Without a Windows node only what asks for one is about Windows.
        if workload.on_windows if index.windows else workload.nowhere:
            pods = volumes.next_pods[workload.key]
            walks = WorkloadWalk(index, workload, pods, rules, scheduler.find_daemon_nodes, scheduler.filter_lasting)
            evaluator.evaluate_workload(workload, walks)
    evaluator.mark_crowded_workloads()
    verdicts, stopping = evaluator.verdicts, evaluator.stopping.union(target_stops if evaluator.verdicts else ())
    roll = simulate_roll(index, scheduler, usage.workloads, volumes.next_pods, verdicts, evaluator.replacements)
    return WorkloadsEvaluation(tuple(verdicts.values()), tuple(evaluator.findings), frozenset(stopping), roll)


def _check_node_plugins(index: Index, rules: Sequence[Rule]) -> Mapping[str, Sequence[StepAnswer]]:
    """By driver, where the next pod of its node plugin does not start, or may not."""
    answers: dict[str, list[StepAnswer]] = defaultdict(list)
    for name, templates in index.providers.items():
        for template in templates:
            workload = Workload(template.kind, template.namespace, template.name, template=template)
            nodes = index.windows & index.find_fitting(template.placement)
            for pod in list_pods_to_start(index, workload):
                # The pods that run now end before the next ones start.
                next_pod = replace(pod, additional=0)
                answers[name] += (answer for rule in rules for answer in rule(next_pod, nodes))
    return answers


class _Evaluator:
    """Collects the verdicts of workloads with their findings. stopping: those that keep a workload from being ready."""

    def __init__(
        self,
        index: Index,
        volumes: WindowsVolumes,
        scheduler: Scheduler,
        target_stops: Sequence[ReportFinding],
    ) -> None:
        self._index, self._volumes, self._scheduler = index, volumes, scheduler
        self._capacity = AttachCapacity(index, scheduler.volume_limits)
        lists = report_unread_lists(index.snapshot.unread)
        self._vetoes = (*lists, *target_stops)
        self._starting: list[StartingWorkload] = []
        self.verdicts: dict[str, WorkloadVerdict] = {}
        # Of workloads of which only some pods do not start, or not all of them together, the answers by pod.
        self.replacements: dict[str, Mapping[str, Answer]] = {}
        self.findings: list[ReportFinding] = []
        # With a list that was not read it is unknown which workloads there are.
        self.stopping: set[ReportFinding] = set(lists)

    def evaluate_workload(self, workload: Workload, walks: WorkloadWalk) -> None:
        volumes = self._volumes.by_workload.get(workload.key, ())
        of_volumes = [finding for volume in volumes for answer in volume.answers for finding in answer.findings]
        workload_findings = [*_check_workload(self._index, workload)]
        decision = self._decide(workload, walks, workload_findings, any(volume.answers for volume in volumes))
        workload_findings += decision.findings
        if decision.of_pods and not self._vetoes and not any(pod.waits for pod in workload.pods):
            self.replacements[workload.key] = walks.decide_replacements()
        answer, because = decision.answer, decision.because
        if workload.done:
            answer, because = "yes", "it is complete and creates no more pods"
        # Each of these makes the workload unknown or not ready, a note too.
        vetoes: tuple[ReportFinding, ...] = ()
        if answer != "yes":
            workload_findings += _explain(workload, walks, of_volumes, because)
        elif not workload.done:
            vetoes = (
                *self._vetoes,
                *_check_next_pods(self._index, workload, walks),
                *_check_live_state(self._index, workload),
            )
            workload_findings += vetoes[len(self._vetoes) :]
        if vetoes:
            veto = next((finding for finding in vetoes if finding.severity == "blocker"), vetoes[0])
            answer = "no" if veto.severity == "blocker" else "unknown"
            because = f"{veto.id}: {veto.message}"
        causes: list[ReportFinding] = []
        if answer != "yes":
            causes = _select_stopping((*workload_findings, *vetoes)) or _select_stopping(of_volumes)
            if not causes:
                remedy = "resolve what keeps the workload unknown, or suppress this finding"
                workload_findings.append(_make_unknown(workload, because, remedy))
                causes = _select_stopping(workload_findings)
            self.stopping.update(causes, _select_stopping((*of_volumes, *walks.stopping)))
        elif workload.kind != "DaemonSet" and workload.template is not None and workload.template.runs:
            self._starting.append((workload.key, walks.places, workload.pods))
        self.findings += workload_findings
        ids = [finding.id for finding in (*workload_findings, *causes)]
        self.verdicts[workload.key] = WorkloadVerdict(
            workload=workload.key,
            runs_on=workload.system,
            runs_on_because=workload.because,
            starts_again=answer,
            because=because,
            volumes=workload.volumes,
            findings=tuple(dict.fromkeys((*ids, *(finding.id for finding in of_volumes)))),
            causes=tuple(dict.fromkeys(Cause(finding.id, finding.object) for finding in causes)),
        )

    def _decide(
        self, workload: Workload, walks: WorkloadWalk, own_findings: Iterable[ReportFinding], has_volumes: bool
    ) -> _Decision:
        """Whether a workload starts again, by its pods one by one, by its own findings, and by all of its pods together."""
        if workload.nowhere:
            return _Decision("unknown", workload.nowhere)
        if walks.worst is not None and (walks.placed or not walks.linux or workload.system not in ("mixed", "unknown")):
            return _Decision(*walks.worst, of_pods=True)
        for finding in _select_stopping(own_findings):
            return _Decision("no" if finding.severity == "blocker" else "unknown", f"{finding.id}: {finding.message}")
        shortage = self._capacity.check_workload(workload, walks.places) or self._check_crowding(workload, walks.places)
        if shortage is not None:
            answer: Answer = "no" if shortage.severity == "blocker" else "unknown"
            return _Decision(answer, shortage.message, of_pods=True, findings=(shortage,))
        return _Decision("yes", walks.describe_places() if has_volumes else "it has no volume now")

    def _check_crowding(self, workload: Workload, places: Places) -> ReportFinding | None:
        """That nodes take each of a workload's pods, and not all of them together."""
        if workload.kind == "DaemonSet":
            # What the pods share is all that one node decides for the others.
            places = [(pod, bit) for pod, nodes in places if pod.shape.affinity for bit in split_bits(nodes)]
        count = sum(pod.count for pod, _nodes in places)
        if count < 2:
            return None
        minimum, maximum = self._scheduler.count_placed(places)
        if minimum == count:
            return None
        # Equal pods that only need room find it in any order.
        is_mixed = len(places) > 1 and workload.kind != "DaemonSet"
        is_open = maximum == count or is_mixed or self._scheduler.depends_on_other_pods(places[0][0].shape)
        message = f"a node takes each of its {count} pods, and all of them together found room for {minimum}"
        nodes = unite(nodes for _pod, nodes in places)
        evidence = tuple(f"Node {node.name}" for node in self._index.list_nodes(nodes))[:3]
        remedy = "add nodes, or let fewer pods run"
        return create_finding("CSI-W21" if is_open else "CSI-W20", workload.key, message, evidence, remedy)

    def mark_crowded_workloads(self) -> None:
        """Make those unknown that start each by itself and find no room together."""
        for keys, shortage in self._capacity.find_contended_workloads(self._starting):
            self.findings.append(shortage)
            self.stopping.add(shortage)
            for key in keys:
                ids = [*self.verdicts[key].findings, shortage.id]
                self.verdicts[key] = replace(
                    self.verdicts[key],
                    starts_again="unknown",
                    because=f"which of its pods finds room depends on the order in which they start: {shortage.message}",
                    findings=tuple(dict.fromkeys(ids)),
                    causes=(Cause(shortage.id, shortage.object),),
                )


def _check_next_pods(index: Index, workload: Workload, walks: WorkloadWalk) -> Iterator[ReportFinding]:
    """That the scheduler may put its next pod on Linux, where no pod of Windows starts; its pods of today show nothing of that."""
    if walks.linux:
        first = index.list_names(walks.linux)[0]
        message = f"nothing keeps its next pod from a Linux node, such as {first}"
        remedy = change_template(workload.key, "nodeSelector kubernetes.io/os")
        yield create_finding(
            "CSI-W01", workload.key, message, (f"runs on {workload.system}: {workload.because}",), remedy
        )
    template = workload.template
    if template is not None and template.held_back:
        is_job = workload.kind in ("Job", "CronJob")
        remedy = "let the Job end before the upgrade" if is_job else "finish its rollout, then create the report again"
        message = f"its next pods may not be made from its template: {template.held_back}"
        yield create_finding("CSI-W08", workload.key, message, (template.held_back,), remedy)


# A pod that waits for longer does not start by itself.
_STARTS_WITHIN = timedelta(minutes=5)


def _check_live_state(index: Index, workload: Workload) -> Iterator[ReportFinding]:
    """What the cluster already shows, whatever the rules say: a pod that does not start, or that is not created."""
    template = workload.template
    waits = [(f"pod {pod.key}", pod.waits, pod.waits_since) for pod in workload.pods if pod.waits]
    if template is not None and template.lacks:
        waits.append((workload.key, template.lacks, template.lacks_since))
    findings: list[ReportFinding] = []
    for name, why, text in waits:
        long = index.count_minutes(text, _STARTS_WITHIN) is not None
        message = f"{name} does not start now{f', since {text}' if text else ''}: {why}"
        remedy = f"kubectl -n {workload.namespace} describe {name.replace(f'{workload.namespace}/', '')}"
        findings.append(
            create_finding("CSI-W22" if long else "CSI-W23", workload.key, message, (f"{name}: {why}",), remedy.lower())
        )
    yield from sorted(findings, key=lambda finding: finding.id)[:1]


def _select_stopping(findings: Iterable[ReportFinding]) -> list[ReportFinding]:
    return [finding for finding in findings if finding.doubt or finding.severity == "blocker"]


def _explain(
    workload: Workload, walks: WorkloadWalk, of_volumes: list[ReportFinding], because: str
) -> Iterator[ReportFinding]:
    """What explains a workload that does not start again."""
    if workload.nowhere:
        yield _make_unknown(workload, because, "add a Windows node that accepts its pods")
        return
    # Where its pods may run on Linux, or its volumes reach no Windows node, that is what to say.
    undecided = workload.system in ("mixed", "unknown") or any(finding.id == "CSI-V17" for finding in of_volumes)
    yield from (finding for finding in walks.findings if finding.id != "CSI-W20" or not undecided)


def _make_unknown(workload: Workload, because: str, remedy: str) -> ReportFinding:
    """Stands for a workload of which it is not known whether it starts again."""
    evidence = (f"runs on {workload.system}: {workload.because}",)
    return create_finding("CSI-W09", workload.key, because, evidence, remedy)


def _check_workload(index: Index, workload: Workload) -> Iterator[ReportFinding]:
    """Findings about this workload itself, such as a static pod."""
    object_name, template = workload.key, workload.template
    because = (f"runs on {workload.system}: {workload.because}",)
    volumes = ", ".join(workload.volumes) or "volumes created with its pods"
    if workload.system in ("mixed", "unknown"):
        remedy = change_template(object_name, "spec.os.name and nodeSelector kubernetes.io/os")
        yield create_finding("CSI-W01", object_name, f"it has {volumes}, and {workload.because}", because, remedy)
    if template is not None:
        return
    if workload.kind == "Pod":
        static = any(pod.mirror for pod in workload.pods)
        if static:
            evidence = ("annotation kubernetes.io/config.mirror",)
            yield create_finding(
                "CSI-W06", object_name, f"it is a static pod with {volumes}", evidence, "change its file on the node"
            )
        else:
            evidence = ("metadata.ownerReferences: none",)
            message = f"it uses {volumes} and has no controller that would create it again"
            remedy = "create it by a Deployment or StatefulSet"
            yield create_finding("CSI-W07", object_name, message, evidence, remedy)
    else:
        resource = next((kind.plural for kind in kinds.TEMPLATES if kind.kind == workload.kind), None)
        rule = next((unread_list.rule for unread_list in index.snapshot.unread if unread_list.resource == resource), "")
        reason = (
            f"{resource} could not be read"
            if resource in index.unread
            else f"{workload.kind} is a kind that is not read, or does not exist"
        )
        evidence = (f"Pod {workload.pods[0].key} is controlled by {workload.kind}/{workload.name}",)
        remedy = f"add to a role of this account: {rule}" if rule else "check the pods of its next rollout"
        yield create_finding("CSI-W08", object_name, f"its template is unknown: {reason}", evidence, remedy)
