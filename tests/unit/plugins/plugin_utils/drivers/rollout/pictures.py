# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A rollout in which everything is green, to be spoilt by tests in one place each."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import (
    ObservedHost,
    Registration,
    RolloutPicture,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode, Taint
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import ContainerFacts, PodFacts

NOW = datetime(2026, 11, 20, 23, 0, tzinfo=timezone.utc)
DRIVER = "csi.vsphere.vmware.com"
PIPES = ("csi-proxy-disk-v1", "csi-proxy-volume-v1")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def node(name: str, **changes: Any) -> ObservedNode:
    labels = {"kubernetes.io/os": "windows", "kubewin.io/csi-proxy": "serving"}
    facts = ObservedNode(
        name=name,
        labels=labels,
        taints=(Taint("os", "Windows", "NoSchedule"),),
        node_ids={DRIVER: f"vm-{name}"},
    )
    return replace(facts, **changes)


def container(name: str = "vsphere-csi-node", **changes: Any) -> ContainerFacts:
    facts = ContainerFacts(
        name=name,
        ready=True,
        restarts=0,
        started_at=ago(300),
        waiting="",
        waiting_message="",
        exit_code=None,
        ended_at=None,
        ended_because="",
    )
    return replace(facts, **changes)


def pod(node_name: str, **changes: Any) -> PodFacts:
    facts = PodFacts(
        name=f"plugin-{node_name}",
        node=node_name,
        ready=True,
        ready_since=ago(300),
        template_generation="1",
        revision="1",
        containers=(container(),),
    )
    return replace(facts, **changes)


def host(node_name: str, **changes: Any) -> ObservedHost:
    facts = ObservedHost(
        node=node_name,
        observed_at=ago(60),
        serving=True,
        release="1.3.0",
        state="RUNNING",
        reason="",
        pipes=PIPES,
        boot_time=ago(86400),
    )
    return replace(facts, **changes)


def daemon_set(**changes: Any) -> ObservedDaemonSet:
    facts = ObservedDaemonSet(
        namespace="vmware-system-csi",
        name="vsphere-csi-node-windows",
        desired=2,
        current=2,
        ready=2,
        processed=True,
        template_generation="1",
        revision="1",
        pipes=PIPES,
        pod_spec={
            "nodeSelector": {"kubernetes.io/os": "windows", "kubewin.io/csi-proxy": "serving"},
            "tolerations": [
                {"effect": "NoExecute", "operator": "Exists"},
                {"effect": "NoSchedule", "operator": "Exists"},
            ],
        },
    )
    return replace(facts, **changes)


def registration(node_name: str, **changes: Any) -> Registration:
    return replace(Registration(node_id=f"vm-{node_name}", topology_keys=(), written_at=ago(290)), **changes)


def picture(**changes: Any) -> RolloutPicture:
    names = ("win-1", "win-2")
    facts = RolloutPicture(
        now=NOW,
        controller_now=NOW,
        driver=DRIVER,
        daemon_set=daemon_set(),
        nodes=tuple(node(name) for name in names),
        registrations={name: registration(name) for name in names},
        pods=tuple(pod(name) for name in names),
        hosts={name: host(name) for name in names},
    )
    return replace(facts, **changes)


def win2(**changes: Any) -> RolloutPicture:
    """The green picture with win-2's part of these fields replaced."""
    green = picture()
    result: dict[str, Any] = {}
    for field, value in changes.items():
        current = getattr(green, field)
        if isinstance(current, dict):
            result[field] = {"win-1": current["win-1"], **({} if value is None else {"win-2": value})}
        else:
            result[field] = (current[0], *(() if value is None else (value,)))
    return replace(green, **result)
