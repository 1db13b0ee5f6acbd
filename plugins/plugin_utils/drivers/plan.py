# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of one driver's Windows node plugin: a pure function of request and snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..base.findings import Finding, blocker, note
from ..base.stored import serialize
from ..catalog.base import Driver, ModeRule
from ..catalog.versions import Version, parse
from ..kube.labels import MANAGER, is_absent_or_ours
from . import options, ownership, prerequisites
from .plan_inputs import DriverController, DriverRequest, DriverSnapshot
from .release import ReleaseChoice, choose_release
from .template_settings import make_settings
from .uses import explain_fixed_mode


def check_mode_change(
    driver: Driver, rule: ModeRule | None, snapshot: DriverSnapshot, namespace: str
) -> Iterator[Finding]:
    """What a change of the mode means for the DaemonSet of ours that runs."""
    if rule is None:
        return
    for observed in snapshot.daemon_sets:
        is_ours = observed.managed_by == MANAGER and (observed.namespace, observed.name) == (
            namespace,
            driver.daemonset,
        )
        if not is_ours or observed.mode in ("", rule.mode):
            continue
        if refusal := explain_fixed_mode(driver, observed.mode, rule.mode):
            remedy = (
                f"set {driver.key}_csi_mode to {observed.mode}; or wait as the guide of {driver.title} says until no host has mounts, and run again "
                f"after: ansible-playbook -i inventory.yml kubewin.csi.remove -e kubewin_drivers={driver.key}"
            )
            yield blocker("CSI-D70", f"DaemonSet {namespace}/{driver.daemonset}", refusal, remedy)
            return
        if observed.mode == "csi_proxy":
            message = f"changes from {observed.mode} to {rule.mode}, node by node; csi-proxy stays on the hosts"
            remedy = "once nothing mounts its pipes, remove it: remove.yml with kubewin_remove_csi_proxy=true"
        else:
            message = f"changes from {observed.mode} to {rule.mode}, node by node, and only where csi-proxy serves"
            remedy = "none; a node where csi-proxy does not serve blocks the change"
        yield note("CSI-D71", f"{driver.title} node plugin", message, remedy)


@dataclass(frozen=True, slots=True)
class DriverPlan:
    """What would be deployed, and what is in the way.

    settings: what the templates read, empty when refused. nodes: all Windows Nodes; unselected_nodes: those that the
    driver's selector leaves out.
    """

    driver: Driver
    namespace: str
    version: Version | None
    rule: ModeRule | None
    source: str
    findings: tuple[Finding, ...]
    settings: dict[str, Any]
    nodes: tuple[str, ...]
    unselected_nodes: tuple[str, ...] = ()
    platform: str = ""

    @property
    def deployable(self) -> bool:
        """Whether nothing is in the way."""
        return self.rule is not None and not any(finding.severity == "blocker" for finding in self.findings)

    @property
    def refusal(self) -> str:
        """All blockers in one text, empty when there is none."""
        blockers = [finding for finding in self.findings if finding.severity == "blocker"]
        return "\n".join(
            f"{finding.id} {finding.object}: {finding.message} -> {finding.remedy}" for finding in blockers
        )

    def summary(self) -> list[str]:
        """The plan as text, one line for each item."""
        lines = [f"{self.driver.title}: {self.driver.name}"]
        if self.rule is not None and self.version is not None:
            lines.append(f"release {self.version} ({self.source}), mode {self.rule.mode}")
        if self.settings:
            creation_note = " (will be created)" if self.settings["create_namespace"] else ""
            lines.append(
                f"namespace {self.namespace}{creation_note}, DaemonSet {self.settings['daemonset']}, ServiceAccount "
                f"{self.settings['service_account']}"
            )
            lines += [f"image {role}: {image}" for role, image in self.settings["images"].items()]
            if self.settings["pipes"]:
                lines.append("needs pipes: " + ", ".join(self.settings["pipes"]))
            lines.append(
                "goes to nodes with: "
                + ", ".join(f"{key}={value}" for key, value in self.settings["node_selector"].items())
            )
        lines.append("Windows nodes: " + (", ".join(self.nodes) or "none"))
        if self.platform:
            lines.append(f"platform: {self.platform}")
        if self.settings:
            lines += [f"required: {text}" for text in self.driver.prerequisites]
        lines += [finding.line() for finding in self.findings]
        lines.append("no blockers" if self.deployable else "not applied: see the blockers above")
        return lines

    def as_dict(self) -> dict[str, Any]:
        return {
            "driver": self.driver.key,
            "title": self.driver.title,
            "mode": self.rule.mode if self.rule else None,
            "version": str(self.version) if self.version else None,
            "namespace": self.namespace,
            "daemonset": self.driver.daemonset,
            "pipes": list(self.rule.all_pipes) if self.rule else [],
            "platform": self.platform,
            "deployable": self.deployable,
            "refusal": self.refusal,
            "summary": self.summary(),
            "findings": [serialize(finding) for finding in self.findings],
            "nodes": list(self.nodes),
            "unselected_nodes": list(self.unselected_nodes),
            "settings": self.settings,
        }


def plan_driver(driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot) -> DriverPlan:
    """Decide release, mode and namespace, find blockers, and collect what the templates need."""
    controller = snapshot.controllers[0] if snapshot.controllers else None
    namespace = choose_namespace(driver, desired, snapshot.controllers)
    kubernetes = parse(snapshot.kubernetes)
    nodes = tuple(node.name for node in snapshot.nodes)
    snapshot = _select_nodes(driver, desired, snapshot)
    if impossible := tuple(options.check_options(desired)):
        return DriverPlan(
            driver, namespace, None, None, "", impossible, {}, nodes, platform=ownership.detect_platform(snapshot)
        )
    choice = choose_release(driver, desired, controller, snapshot)
    findings = [
        *_check_access(driver, desired, snapshot, namespace),
        *choice.findings,
        *_check_prerequisites(driver, desired, snapshot, controller, choice, namespace),
    ]
    rendered: dict[str, Any] = {}
    if choice.rule is not None and choice.version is not None:
        rendered = make_settings(
            driver, desired, choice.rule, choice.version, namespace, kubernetes,
            create_namespace=is_absent_or_ours(snapshot.namespaces.get(namespace)),
            create_csi_driver=desired.create_cluster_objects and is_absent_or_ours(snapshot.csi_driver),
            create_feature_states=desired.create_cluster_objects and snapshot.feature_states.get(namespace, {}) is None,
        )  # fmt: skip
        is_on_gke = ownership.detect_platform(snapshot) == "gke"
        if is_on_gke and namespace != "kube-system" and not desired.priority_class:
            rendered["priority_class"] = ""
            findings.append(prerequisites.note_missing_priority(driver, namespace))
        findings += prerequisites.check_storage_class(rendered["storage_class"], snapshot.storage_class, driver)
        findings += prerequisites.check_parameters(desired, rendered["storage_class"], driver)
    findings += check_mode_change(driver, choice.rule, snapshot, namespace)
    selected = {node.name for node in snapshot.nodes}
    return DriverPlan(
        driver=driver,
        namespace=namespace,
        version=choice.version,
        rule=choice.rule,
        source=choice.source,
        findings=tuple(findings),
        settings=rendered,
        nodes=nodes,
        unselected_nodes=tuple(name for name in nodes if name not in selected),
        platform=ownership.detect_platform(snapshot),
    )


def choose_namespace(driver: Driver, desired: DriverRequest, controllers: Sequence[DriverController]) -> str:
    """The namespace: the one asked for, else where the controller is, else upstream's."""
    if desired.namespace:
        return desired.namespace
    return controllers[0].namespace if controllers else driver.namespace


def _select_nodes(driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot) -> DriverSnapshot:
    """Without the nodes that the DaemonSet does not match, whose limits are irrelevant."""
    nodes = tuple(
        node
        for node in snapshot.nodes
        if desired.node_selector.items() <= node.labels.items()
        and not any(node.labels.get(label) in values for label, values in driver.avoid_nodes.items())
    )
    return replace(snapshot, nodes=nodes)


def _check_access(driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot, namespace: str) -> list[Finding]:
    if not snapshot.missing_access:
        return []
    if desired.namespace and snapshot.namespaces.get(namespace) is None:
        expected = choose_namespace(driver, replace(desired, namespace=None), snapshot.controllers)
        remedy = (
            f"if the name is mistyped, correct it (the driver's namespace is {expected}); otherwise: kubectl create "
            f"{'; '.join([f'namespace {namespace}', *snapshot.access_commands])}"
        )
        message = "it does not exist, and this account may not deploy the driver there"
        return [blocker("CSI-D60", f"Namespace {namespace}", message, remedy)]
    remedy = (
        "bind the ClusterRoles of roles/csi_driver/files/kubewin-rbac.yaml to it: "
        f"{'; '.join(snapshot.access_commands)}. Missing rules: {'; '.join(snapshot.missing_access)}"
    )
    return [blocker("CSI-D60", "this account", "it lacks required permissions", remedy)]


def _check_prerequisites(
    driver: Driver,
    desired: DriverRequest,
    snapshot: DriverSnapshot,
    controller: DriverController | None,
    choice: ReleaseChoice,
    namespace: str,
) -> list[Finding]:
    findings = [*prerequisites.check_namespace(snapshot, namespace)]
    findings += prerequisites.check_controller(driver, desired, snapshot, controller)
    if choice.version is not None:
        findings += prerequisites.check_objects(driver, desired, snapshot, choice.version, namespace)
    findings += prerequisites.check_openshift(snapshot, namespace, driver.service_account)
    findings += prerequisites.check_providers(driver, desired, snapshot, namespace)
    if choice.rule is not None and choice.version is not None:
        findings += prerequisites.check_nodes(driver, desired, choice.rule, choice.version, snapshot)
        findings += prerequisites.check_issues(driver, choice.rule, choice.version)
        findings += ownership.check_ownership(desired, choice.rule, snapshot)
    return findings
