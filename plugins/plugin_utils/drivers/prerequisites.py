# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deployment needs of its cluster: namespace, objects of the controller, no other provider, nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base.findings import Finding, Severity, blocker, note, warning
from ..catalog.base import Driver, ModeRule
from ..catalog.versions import Version, parse, parse_image_tag
from ..kube.daemon_set import ObservedDaemonSet
from ..kube.labels import HANDOVER, MANAGED_BY, MANAGER, SERVING_LABEL, SERVING_VALUE, is_absent_or_ours
from . import ownership
from .plan_inputs import DriverController, DriverRequest, DriverSnapshot
from .release import match_image, read_containerd_release
from .uses import make_handover_command

# The parameter that names a file system, in lower case: Azure's own and the one of the provisioner.
FILE_SYSTEM = ("fstype", "csi.storage.k8s.io/fstype")

PSA_ENFORCE = "pod-security.kubernetes.io/enforce"
LABEL_SYNC = "security.openshift.io/scc.podSecurityLabelSync"


def check_namespace(snapshot: DriverSnapshot, namespace: str) -> Iterator[Finding]:
    """The namespace must let privileged pods in: every mode needs hostPath volumes or HostProcess."""
    namespace_object = snapshot.namespaces.get(namespace)
    if namespace_object is None:
        return
    subject = f"Namespace {namespace}"
    if (namespace_object.get("status") or {}).get("phase") == "Terminating":
        yield blocker(
            "CSI-D11", subject, "it is being deleted", "wait until it is deleted, or choose another namespace"
        )
    labels = namespace_object["metadata"].get("labels") or {}
    level = labels.get(PSA_ENFORCE)
    is_ours = labels.get(MANAGED_BY) == MANAGER
    command = f"kubectl label namespace {namespace} {PSA_ENFORCE}=privileged --overwrite"
    if level is not None and level != "privileged" and not is_ours:
        message = f"label {PSA_ENFORCE} is {level}, expected privileged: pods with host paths are refused"
        yield blocker("CSI-D10", subject, message, command)


def check_openshift(snapshot: DriverSnapshot, namespace: str, account: str) -> Iterator[Finding]:
    """What OpenShift requires beside the label: its SCC for the plugin's account, and a label that is not reset."""
    if ownership.detect_platform(snapshot) != "openshift":
        return
    command = f"oc adm policy add-scc-to-user privileged -z {account} -n {namespace}"
    subject = f"ServiceAccount {namespace}/{account}"
    if snapshot.privileged is False:
        message = "it lacks the required SCC privileged, so no plugin pod would be admitted"
        yield blocker("CSI-D12", subject, message, command)
    elif snapshot.privileged is None:
        message = "it needs the SCC privileged, and this account may not check whether it has it"
        yield warning("CSI-D12", subject, message, command)
    namespace_object = snapshot.namespaces.get(namespace)
    # OpenShift keeps the level in step everywhere but in its own namespaces; one of ours is applied with the label.
    if namespace_object is None or is_absent_or_ours(namespace_object) or namespace.startswith("openshift-"):
        return
    labels = namespace_object["metadata"].get("labels") or {}
    if labels.get(LABEL_SYNC) != "false":
        message = f"label {LABEL_SYNC} is {labels.get(LABEL_SYNC, 'not set')}, so OpenShift may reset {PSA_ENFORCE}"
        remedy = f"kubectl label namespace {namespace} {LABEL_SYNC}=false --overwrite"
        yield warning("CSI-D13", f"Namespace {namespace}", message, remedy)


def check_controller(
    driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot, controller: DriverController | None
) -> Iterator[Finding]:
    """The Linux controller belongs to the driver's own installation: it is read, never changed."""
    names = " or ".join(driver.controller.deployments)
    if controller is None:
        severity: Severity = "warning" if desired.create_cluster_objects else "blocker"
        message = f"found no Deployment {names}, and none with its image, in any namespace, so no volume is provisioned or attached"
        enable = ownership.build_enabling_command(driver, ownership.detect_platform(snapshot))
        remedy = enable or f"install the driver first: {driver.controller.pointer}"
        yield Finding("CSI-D30", severity, f"{driver.title} controller", message, remedy)
        return
    subject = f"Deployment {controller.namespace}/{controller.name}"
    if controller.available < 1:
        message = f"{controller.available} of {controller.desired} replicas are available"
        remedy = f"kubectl -n {controller.namespace} describe deployment {controller.name}"
        if controller.desired == 0:
            message = "it is scaled to 0 replicas"
            remedy = f"kubectl -n {controller.namespace} scale deployment {controller.name} --replicas=1"
        yield Finding("CSI-D31", "warning" if desired.create_cluster_objects else "blocker", subject, message, remedy)
    if parse_image_tag(controller.image) is None and not snapshot.openshift:
        message = f"its release cannot be read from image {controller.image}"
        yield warning("CSI-D32", subject, message, "compare it with the version below, or set version")


# What decides whether a volume is mounted on Windows. The rest differs between releases and distributions and decides nothing
# there: fsGroupPolicy and SELinux are of Linux, tokens and republishing are renewals.
_DECIDING = ("attachRequired", "podInfoOnMount", "volumeLifecycleModes")


def check_objects(
    driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot, version: Version, namespace: str
) -> Iterator[Finding]:
    """CSIDriver and feature-state map: only checked, unless their creation was requested."""
    create = "or set create_cluster_objects (kubewin_create_cluster_objects) to create it"
    if snapshot.csi_driver is None:
        if not desired.create_cluster_objects:
            enable = ownership.build_enabling_command(driver, ownership.detect_platform(snapshot))
            remedy = enable or f"install the driver first: {driver.controller.pointer}, {create}"
            yield blocker("CSI-D20", f"CSIDriver {driver.name}", "it does not exist", remedy)
    else:
        spec = snapshot.csi_driver.get("spec") or {}
        of_release = driver.find_csi_driver_spec(version)
        for key in _DECIDING:
            expected = of_release.get(key)
            # Absent means the API's default, which the server always fills in; only a different value is a finding.
            if expected is None or key not in spec or spec[key] == expected:
                continue
            if isinstance(expected, list) and set(expected) <= set(spec[key] or ()):
                continue
            message = f"spec.{key} is {_show_value(spec[key])}, expected {_show_value(expected)}"
            # A driver that needs no attachment works with one as well, where its controller has the sidecar for it.
            severity: Severity = "blocker" if key == "attachRequired" and expected else "note"
            remedy = "recreate it by the driver's own manifest, because most of its fields cannot be changed"
            yield Finding("CSI-D21", severity, f"CSIDriver {driver.name}", message, remedy)
    for advisory in driver.advisories:
        if advisory.matches(version):
            message = f"release {version} {advisory.effect} ({advisory.name}, {advisory.source})"
            remedy = f"upgrade controller and node plugin to {' or '.join(advisory.fixed)}, or later"
            yield warning("CSI-D24", f"{driver.title} {version}", message, remedy)
    states = driver.feature_states
    if states is None:
        return
    if namespace not in snapshot.feature_states:
        # It was not read, so it gets no finding; the report lists what could not be read.
        return
    data = snapshot.feature_states[namespace]
    subject = f"ConfigMap {namespace}/{states.name}"
    required = {key: first for key, first in states.required_before.items() if version.release < parse(first).release}
    if data is None:
        # With switches that a release requires, only its own installation knows the whole map.
        if required or not desired.create_cluster_objects:
            remedy = f"it belongs to the driver's installation ({driver.controller.pointer}); deploy into its namespace"
            remedy += "" if required else f", {create}"
            yield blocker("CSI-D22", subject, "it does not exist, and the node plugin reads it when it starts", remedy)
        return
    for key, fixed_in in required.items():
        if data.get(key) != "true":
            message = (
                f"{key} is {data.get(key, 'not set')}, expected true: releases before {fixed_in} do not start on "
                "Windows without it"
            )
            yield blocker("CSI-D23", subject, message, f'set {key} to "true" there, or deploy {fixed_in} or later')


def check_issues(driver: Driver, rule: ModeRule, version: Version) -> Iterator[Finding]:
    """Errors of the driver on Windows without a released fix."""
    for issue in driver.known_issues:
        if issue.matches(version, rule.mode):
            message = (
                f"release {version} in mode {rule.mode} {issue.effect} (fixed by {issue.source}, not released yet)"
            )
            remedy = f"wait for the first release after {issue.latest}; until then {issue.workaround}"
            yield note("CSI-D25", f"{driver.title} {version}", message, remedy)


def note_missing_priority(driver: Driver, namespace: str) -> Finding:
    """GKE admits system priorities outside kube-system only where a ResourceQuota says so."""
    message = f"its pods have no priority class: outside kube-system, GKE admits {driver.priority_class} only with a ResourceQuota"
    remedy = "set namespace to kube-system, or priority_class, or accept that other pods may preempt the plugin"
    return note("CSI-D35", f"DaemonSet {namespace}/{driver.daemonset}", message, remedy)


def check_providers(
    driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot, namespace: str
) -> Iterator[Finding]:
    """Two node plugins of one driver on a node take each other's registration away."""
    # Our label is a text that anyone may write: elsewhere it counts on what has a Ready pod.
    own_plugins = [
        daemon_set
        for daemon_set in snapshot.daemon_sets
        if daemon_set.managed_by == MANAGER
        and daemon_set.is_node_plugin_of(driver.name)
        and (daemon_set.namespace == namespace or daemon_set.ready)
    ]
    theirs = ownership.find_providers(driver, snapshot, namespace)
    for provider in theirs:
        owner = provider.owner
        manager = ownership.describe_owner(owner)
        if f"{provider.namespace}/{provider.name}" == desired.replace and not owner.recreates:
            message = f"it provides {driver.name} on Windows nodes, is {manager}, and will be replaced node by node"
            yield warning("CSI-D49", provider.title, message, f"{owner.how}; keep a copy")
            continue
        same_name = (provider.namespace, provider.name) == (namespace, driver.daemonset)
        if not provider.serving and not same_name:
            yield _warn_about_claim(driver, provider)
            continue
        keep = "keep it and omit this driver"
        if owner.recreates:
            # Its owner would recreate it.
            keep += f"; to hand over, first disable it at its source: {owner.how}"
        else:
            path = f"{provider.namespace}/{provider.name}"
            keep += f", or replace it node by node: {make_handover_command(driver, 'to_kubewin', path)}"
        if own_plugins:
            names = ", ".join(f"{daemon_set.namespace}/{daemon_set.name}" for daemon_set in own_plugins)
            message = (
                f"it provides {driver.name} on Windows nodes beside {names} of this collection, and is {manager}; the "
                "two remove each other's registration"
            )
            command = make_handover_command(driver, "to_platform")
            remedy = f"hand over to it node by node: {command}; or remove it at its source: {owner.how}"
            yield blocker("CSI-D43", provider.title, message, remedy)
        elif same_name:
            yield blocker(
                "CSI-D41", provider.title, f"it has the name of this collection's DaemonSet and is {manager}", keep
            )
        else:
            message = f"it already provides {driver.name} on Windows nodes and is {manager}"
            yield blocker("CSI-D40", provider.title, message, keep)
    for daemon_set in own_plugins:
        if daemon_set.deleting:
            # An interrupted removal: it would delete what is applied now.
            message = "it is being deleted, so changes to it would be lost"
            remedy = (
                "wait until it is deleted, or finish its removal: ansible-playbook -i inventory.yml kubewin.csi.remove -e "
                f"kubewin_drivers={driver.key}; check its finalizers"
            )
            yield blocker("CSI-D14", f"DaemonSet {daemon_set.namespace}/{daemon_set.name}", message, remedy)
    yield from _check_unfinished_handover(driver, desired, snapshot, own_plugins)


def _warn_about_claim(driver: Driver, provider: ownership.Provider) -> Finding:
    """A DaemonSet that only names a driver's folder does not block the deployment of the driver."""
    message = (
        f"it is to provide {driver.name} on Windows nodes, but none of its pods is Ready and no node has registered "
        f"the driver through it; it is {ownership.describe_owner(provider.owner)}"
    )
    remedy = (
        "if it should provide the driver, repair it first, because two node plugins remove each other's "
        f"registration; if not: kubectl -n {provider.namespace} delete daemonset {provider.name}. The API server's audit "
        "log names the account that created it"
    )
    return warning("CSI-D39", provider.title, message, remedy)


def _check_unfinished_handover(
    driver: Driver, desired: DriverRequest, snapshot: DriverSnapshot, own_plugins: Sequence[ObservedDaemonSet]
) -> Iterator[Finding]:
    """An interrupted hand-over: deploying now would restart plugins on nodes that it has not reached."""
    if snapshot.replacing and snapshot.replacing != desired.replace:
        message = f"a hand-over from {snapshot.replacing} to this collection's node plugin is not finished"
        remedy = f"run it again: {make_handover_command(driver, 'to_kubewin', snapshot.replacing)}"
        yield blocker("CSI-D47", f"DaemonSet {snapshot.replacing}", message, remedy)
    for daemon_set in own_plugins:
        if daemon_set.marks.annotations.get(HANDOVER) == "to_platform":
            message = "a hand-over from this collection's node plugin to the platform's is not finished"
            remedy = f"run it again: {make_handover_command(driver, 'to_platform')}"
            yield blocker("CSI-D47", f"DaemonSet {daemon_set.namespace}/{daemon_set.name}", message, remedy)


def check_nodes(
    driver: Driver, desired: DriverRequest, rule: ModeRule, version: Version, snapshot: DriverSnapshot
) -> Iterator[Finding]:
    """Windows nodes: whether there are any, whether images exist for them, what trips this driver there."""
    if not snapshot.nodes:
        labels = {"kubernetes.io/os": "windows", **desired.node_selector}
        message = f"no Node has the label {' and '.join(f'{key}={value}' for key, value in labels.items())}"
        yield warning("CSI-D50", "Nodes", message, "label a Node; without one the gate fails")
        return
    yield from _check_builds(driver, version, rule, snapshot)
    yield from _check_runtimes(driver, version, rule, snapshot)
    if rule.mode == "csi_proxy" and desired.csi_proxy_managed:
        without = [node.name for node in snapshot.nodes if node.labels.get(SERVING_LABEL) != SERVING_VALUE]
        if without:
            message = f"{', '.join(without)} get no plugin pod until csi-proxy serves there"
            remedy = f"run enable_csi with their hosts in the inventory; it sets {SERVING_LABEL}={SERVING_VALUE}"
            yield note("CSI-D53", "Nodes", message, remedy)


def _check_builds(driver: Driver, version: Version, rule: ModeRule, snapshot: DriverSnapshot) -> Iterator[Finding]:
    images = driver.list_builds(version, rule)
    if images is None:
        return
    unknown = [node for node in snapshot.nodes if node.build and node.build not in images]
    for build in dict.fromkeys(node.build for node in unknown):
        names = ", ".join(node.name for node in unknown if node.build == build)
        message = (
            f"Windows build {build} has no image of {driver.title} {version}; images exist for {', '.join(images)}"
        )
        remedy = "exclude those nodes, or choose a release that has one"
        if match_image(build, images) == "maybe":
            remedy = (
                "containerd with containerd/platforms 0.2.1 or later may run an older build's image; otherwise "
                "exclude those nodes"
            )
        yield warning("CSI-D51", f"Nodes {names}", message, remedy)


def _check_runtimes(driver: Driver, version: Version, rule: ModeRule, snapshot: DriverSnapshot) -> Iterator[Finding]:
    if rule.wmic_before is not None and version.release < parse(rule.wmic_before).release:
        message = (
            f"{driver.title} before {rule.wmic_before} reads the node's serial number with wmic.exe, which newer "
            "Windows no longer includes"
        )
        remedy = f"check for wmic.exe on the nodes, or choose {rule.wmic_before} or later"
        yield warning("CSI-D57", f"{driver.title} {version}", message, remedy)
    for text in rule.notes:
        yield note("CSI-D58", f"{driver.title} {version}", f"mode {rule.mode}: {text}", "none, if that is acceptable")
    if rule.min_containerd is None:
        return
    early = [
        node.name
        for node in snapshot.nodes
        if (containerd := read_containerd_release(node)) is not None and containerd.minor < (1, 7)
    ]
    if early and rule.mounts_directories:
        message = (
            "containerd 1.6 places the mounts of a HostProcess container below CONTAINER_SANDBOX_MOUNT_POINT only, "
            "and this driver mounts directories"
        )
        yield warning("CSI-D55", f"Nodes {', '.join(early)}", message, "upgrade containerd to 1.7 or later")


def check_parameters(desired: DriverRequest, rendered: Mapping[str, Any], driver: Driver) -> Iterator[Finding]:
    """A StorageClass that could make no volume for Windows."""
    if not desired.storage_class.get("create", True):
        return
    subject = f"StorageClass {rendered['name']}"
    parameters = rendered["parameters"]
    missing = [key for key in driver.storage_class.required if not parameters.get(key)]
    if missing:
        message = f"not created: its {', '.join(missing)} must be set"
        remedy = "set storage_class.parameters, or use volumes with their own"
        yield note("CSI-D46", subject, message, remedy)
    for key, value in parameters.items():
        if key.lower() in FILE_SYSTEM and driver.fstypes and value not in driver.fstypes:
            usable = " or ".join(fstype or "empty" for fstype in driver.fstypes)
            message = f"its {key} is {value}, with which {driver.title} mounts nothing on Windows, expected {usable}"
            yield blocker("CSI-D45", subject, message, f"set storage_class.parameters.{key} to {driver.fstypes[0]}")


def check_storage_class(
    rendered: Mapping[str, Any], live: Mapping[str, Any] | None, driver: Driver
) -> Iterator[Finding]:
    """Report, with the remedy, a StorageClass whose immutable fields differ, before the server refuses it."""
    if live is None or not rendered["create"]:
        return
    expected = {
        "provisioner": driver.name,
        "parameters": rendered["parameters"],
        "reclaimPolicy": rendered["reclaim_policy"],
        "volumeBindingMode": rendered["binding_mode"],
    }
    for key, value in expected.items():
        # The server leaves out an empty mapping.
        if (live.get(key) or None) != (value or None):
            subject = f"StorageClass {rendered['name']}"
            message = f"its {key} is {live.get(key)}, expected {value}, and Kubernetes does not allow changing it"
            remedy = "set another storage_class.name, or delete it first; its volumes are kept"
            yield blocker("CSI-D42", subject, message, remedy)


def _show_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
