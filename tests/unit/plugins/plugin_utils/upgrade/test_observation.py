# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods leave a node, and what is reported of those that do not; read from Pods as the API has them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.drain import plan_drain
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import UpgradeWorkload
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.observation import UpgradeNode, read_pod

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=timezone.utc)


def pod(name: str, owner: str = "ReplicaSet", phase: str = "Running", **metadata: Any) -> PodFacts:
    owners = [{"kind": owner, "name": "of-it", "controller": True}] if owner else []
    return PodFacts.from_object(
        {
            "metadata": {"namespace": "shop", "name": name, "uid": f"u-{name}", "ownerReferences": owners, **metadata},
            "status": {"phase": phase},
        }
    )


def test_pods_of_daemonsets_static_pods_and_finished_ones_stay() -> None:
    pods = [
        pod("agent", "DaemonSet"),
        pod("static", "Node", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("job", "Job", phase="Succeeded"),
        pod("web"),
    ]
    found = plan_drain(pods, {}, NOW)
    assert [one.name for one in found.evict] == ["web"]
    assert [one.name for one in found.remaining] == ["web"]
    assert found.blocked == found.never == ()


def test_an_evicted_pod_that_ended_is_waited_for_until_its_volumes_are_unmounted() -> None:
    ended = pod("web", phase="Succeeded", deletionTimestamp="2026-11-21T20:00:20Z")
    found = plan_drain([ended], {}, NOW)
    assert (found.remaining, found.evict) == ((ended,), ())


def test_a_pod_without_a_controller_keeps_everything() -> None:
    pods = [pod("alone", ""), pod("web")]
    found = plan_drain(pods, {}, NOW)
    assert found.evict == ()
    (why,) = found.never
    assert why.startswith("pod shop/alone has no controller that would recreate it")


def test_a_helper_pod_of_another_run_is_waited_for_and_carries_no_volume_of_a_workload() -> None:
    labels = {"app.kubernetes.io/managed-by": "kubewin.csi", "app.kubernetes.io/part-of": "kubewin-verify"}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "proof"}}]
    metadata = {"namespace": "proof", "name": "helper", "uid": "u-helper", "labels": labels}
    helper = read_pod({"metadata": metadata, "spec": {"volumes": volumes}, "status": {"phase": "Running"}})
    found = plan_drain([helper, pod("web")], {}, NOW)
    assert [evicted.name for evicted in found.evict] == ["web"]
    assert helper in found.remaining
    assert found.blocked == (
        "pod proof/helper works for kubewin-verify, which deletes it; if that run was killed, delete the pod",
    )
    assert not helper.volumes


def test_a_refused_eviction_is_named_in_the_servers_words_and_tried_again() -> None:
    found = plan_drain([pod("web")], {"u-web": "disruption budget shop/web needs 1"}, NOW)
    assert found.blocked == ("pod shop/web may not be evicted: disruption budget shop/web needs 1",)
    assert [one.name for one in found.evict] == ["web"]


def test_a_pod_that_does_not_end_is_named_once_its_time_is_over() -> None:
    going, stuck = (
        pod("going", deletionTimestamp="2026-11-21T20:00:20Z"),
        pod("stuck", deletionTimestamp="2026-11-21T19:58:00Z"),
    )
    found = plan_drain([going, stuck], {}, NOW)
    assert found.evict == ()
    assert [one.name for one in found.remaining] == ["going", "stuck"]
    (why,) = found.blocked
    assert why.startswith("pod shop/stuck should have ended at 19:58:00Z")


def test_a_pod_names_its_workload() -> None:
    of_set = PodFacts.from_object({"metadata": {"namespace": "a", "name": "db-0", "uid": "1", "ownerReferences": [
        {"kind": "StatefulSet", "name": "db", "controller": True}]}})  # fmt: skip
    assert of_set.find_workload({}) == ("StatefulSet", "db")
    of_deployment = PodFacts.from_object({"metadata": {"namespace": "a", "name": "web-5d-x", "uid": "1", "ownerReferences": [
        {"kind": "ReplicaSet", "name": "web-5d", "controller": True}]}})  # fmt: skip
    assert of_deployment.find_workload({"pod-template-hash": "5d"}) == ("Deployment", "web")
    assert of_deployment.find_workload({}) is None
    assert UpgradeWorkload("Deployment", "a", "web", 2).title == "Deployment a/web"


def test_a_node_is_read_with_what_wmco_wrote_and_what_is_ours() -> None:
    body = {
        "metadata": {
            "name": "win-1",
            "annotations": {
                "windowsmachineconfig.openshift.io/version": "8.1.2",
                "windowsmachineconfig.openshift.io/desired-version": "9.0.0",
                "kubewin.io/cordoned": "upgrade x",
            },
            "labels": {
                "windowsmachineconfig.openshift.io/allow-upgrade": "true",
                "windowsmachineconfig.openshift.io/upgrading": "true",
                "windowsmachineconfig.openshift.io/upgrade-blocked": "false",
            },
        },
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "kubewin.io/upgrade", "value": "x", "effect": "NoSchedule"}],
        },
        "status": {
            "nodeInfo": {"kubeletVersion": "v1.26.1"},
            "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletDown"}],
            "volumesAttached": [
                {"name": "kubernetes.io/csi/csi.vsphere.vmware.com^1"},
                {"name": "kubernetes.io/vsphere-volume/[ds] a.vmdk"},
            ],
        },
    }
    node = UpgradeNode.from_object(body)
    assert (node.version, node.desired, node.cordoned_for, node.tainted_for) == ("8.1.2", "9.0.0", "upgrade x", "x")
    assert (node.allowed, node.upgrading, node.blocked, node.tainted, node.cordoned, node.ready) == (
        True,
        True,
        False,
        True,
        True,
        False,
    )
    assert node.in_tree == ("kubernetes.io/vsphere-volume/[ds] a.vmdk",)
    assert node.carries_volumes
