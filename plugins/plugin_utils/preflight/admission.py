# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The creation of the next pod, as far as the API server's admission decides it. Pure.

Each check bears the name of the admission plugin (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/).
"""

from __future__ import annotations

from functools import partial

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.cluster import NODE_SELECTOR
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import Index
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.known import found
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.split import Split
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.walk.words import Answer, PodToStart

_ENFORCE = "pod-security.kubernetes.io/enforce"


class Admission:
    """The admission plugins for one snapshot."""

    def __init__(self, index: Index) -> None:
        self._index = index
        namespaces = index.snapshot.namespaces
        self._namespaces = {namespace.name: namespace for namespace in namespaces}
        self._violations = {template.key: template.violations for template in index.snapshot.templates}

    def __call__(self, pod: PodToStart, nodes: int) -> list[Answer]:
        """Whether the pod is created, wherever it goes."""
        split = Split("bind", nodes, partial(_make_finding, pod))
        self._check_namespace_lifecycle(pod, split)
        self._check_runtime_class(pod, split)
        self._check_pod_security(pod, split)
        self._check_node_selector(pod, split)
        return [answer for answer in split.answers("") if answer.word != "ok"]

    def _check_namespace_lifecycle(self, pod: PodToStart, split: Split) -> None:
        namespace = self._namespaces.get(pod.namespace)
        if namespace is not None and namespace.phase == "Terminating":
            what = f"namespace {pod.namespace} is being deleted and accepts no new pod"
            remedy = "wait for the deletion, then recreate the namespace and its workloads"
            split.blocked(split.nodes, "CSI-W20", what, remedy)

    def _check_runtime_class(self, pod: PodToStart, split: Split) -> None:
        name = pod.placement.runtime_class
        if not name or name in self._index.runtime_classes:
            return
        if "runtimeclasses" in self._index.unread:
            split.unread("CSI-W21", "runtimeclasses", "runtime classes could not be read")
            return
        what = f"RuntimeClass {name} does not exist, so its pods are rejected"
        split.blocked(split.nodes, "CSI-W20", what, "create the RuntimeClass, or correct the workload")

    def _check_pod_security(self, pod: PodToStart, split: Split) -> None:
        namespace = self._namespaces.get(pod.namespace)
        level = namespace.labels.get(_ENFORCE, "") if namespace is not None else ""
        baseline, restricted = self._violations.get(pod.workload, ("", ""))
        violation = {"baseline": baseline, "restricted": restricted}.get(level, "")
        if violation:
            what = f"namespace {pod.namespace} enforces Pod Security {level}, which forbids {violation}"
            remedy = f"change the pod template, or: kubectl label namespace {pod.namespace} {_ENFORCE}=privileged --overwrite"
            split.blocked(split.nodes, "CSI-W20", what, remedy)

    def _check_node_selector(self, pod: PodToStart, split: Split) -> None:
        """OpenShift adds the namespace's selector to each pod (scheduling.openshift.io/OriginPodNodeEnvironment)."""
        namespace = self._namespaces.get(pod.namespace)
        if namespace is None or not namespace.selector or not self._index.snapshot.cluster.openshift:
            return
        nodes = split.nodes
        for requirement in namespace.selector.split(","):
            key, _equals, value = requirement.partition("=")
            nodes &= self._index.with_label(key.strip(), value.strip())
        what = f"{NODE_SELECTOR} of namespace {pod.namespace} is {namespace.selector}, which the node does not match"
        remedy = f"kubectl annotate namespace {pod.namespace} {NODE_SELECTOR}= --overwrite"
        split.blocked(split.nodes & ~nodes, "CSI-W20", what, remedy)


def _make_finding(pod: PodToStart, id_: str, message: str, remedy: str) -> Finding:
    return found(id_, pod.workload, message, (f"{pod.workload}: pod template",), remedy)
