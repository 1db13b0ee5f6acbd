# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a situation is, and what several of them do to a cluster: what is planted, and exactly which findings it makes.

A situation is a function that spoils a healthy cluster in one place. An empty set of findings is the point of many: what
only looks wrong must not be reported. `SITUATIONS` is for any test that needs them, on paper or on a real API server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import NO_TARGET, Target

from situations.cluster import (
    healthy,
    in_zones,
    owner_reference,
    pod_spec,
    volume,
    windows_nodes,
    workload,
)
from situations.world import Object, World

VSPHERE, AZURE_DISK, AZURE_FILE = DRIVERS["vsphere"], DRIVERS["azure_disk"], DRIVERS["azure_file"]
EBS, GCE, SMB = DRIVERS["aws_ebs"], DRIVERS["gce_pd"], DRIVERS["smb"]
WMCO = "windowsmachineconfig.openshift.io/"
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class Situation:
    """One of them.

    expected: ids of the findings, all of them. classes: verdicts of volumes that must come out, by volume or claim.
    starts_again: yes, no or unknown, by workload. target: what is asked besides. only_here: why a real API server of today
    cannot show it, empty when it can.
    """

    name: str
    expected: frozenset[str]
    plant: Callable[[World], None]
    classes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    starts_again: Mapping[str, str] = field(default_factory=dict)
    target: Target = NO_TARGET
    only_here: str = ""

    def world(self, base: World | None = None) -> World:
        """A healthy cluster with this planted."""
        made = healthy() if base is None else base.copy()
        self.plant(made)
        return made


SITUATIONS: dict[str, Situation] = {}


def situation(
    *expected: str,
    classes: Mapping[str, str] | None = None,
    starts_again: Mapping[str, str] | None = None,
    target: Target = NO_TARGET,
    only_here: str = "",
) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Name a situation after its function. classes: by volume, the words that must come out, with a blank between."""

    def note(plant: Callable[[World], None]) -> Callable[[World], None]:
        name = plant.__name__
        by_volume = {key: frozenset(words.split()) for key, words in (classes or {}).items()}
        SITUATIONS[name] = Situation(name, frozenset(expected), plant, by_volume, starts_again or {}, target, only_here)
        return plant

    return note


def kubelets(world: World, version: str, *, migrated: tuple[str, ...] | None = None, only: str = "") -> None:
    """Windows kubelets of another release, and what they report of CSI migration."""
    for one in windows_nodes(world):
        name = one["metadata"]["name"]
        if only in ("", name):
            one["status"]["nodeInfo"]["kubeletVersion"] = version
            if migrated is not None:
                annotations = world.get("CSINode", name)["metadata"]["annotations"]
                annotations["storage.alpha.kubernetes.io/migrated-plugins"] = ",".join(migrated)


def crash(world: World, driver: str, on: str, message: str = "pipe not found") -> None:
    """The plugin's pod on a node crash-loops."""
    known = DRIVERS[driver]
    status = world.get("Pod", f"{known.daemonset}-{on}", known.namespace)["status"]
    status["conditions"][-1]["status"] = "False"
    main = next(one for one in status["containerStatuses"] if one["name"] == known.container)
    main.update(
        ready=False,
        restartCount=7,
        state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
        lastState={
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "message": message,
                "startedAt": world.ago(minutes=3),
                "finishedAt": world.ago(minutes=2),
            }
        },
    )


def on_windows(world: World, name: str, source: Object, **more: Any) -> None:
    """A volume of both zones with a claim of the same name and a Deployment of it on win-1, attached nowhere."""
    volume(world, f"pv-{name}", source, name, **{"nodeAffinity": in_zones("a", "b"), **more})
    workload(world, "Deployment", name, pod_spec(name), on=["win-1"])


def openshift(world: World, version: str = "4.23.1") -> None:
    """The same cluster as an OpenShift one whose Windows nodes the operator made."""
    history = [
        {
            "state": "Completed",
            "version": version,
            "startedTime": world.ago(days=9),
            "completionTime": world.ago(days=9),
            "image": "",
            "verified": True,
        }
    ]
    world.add(
        "ClusterVersion",
        "version",
        spec={"clusterID": "c"},
        status={"history": history, "desired": {"version": version}, "conditions": []},
    )


def operator(world: World, version: str) -> None:
    """Windows nodes that the operator made."""
    for one in windows_nodes(world):
        one["metadata"]["annotations"].update({f"{WMCO}desired-version": version, f"{WMCO}version": version})


def templates_of_vsphere(world: World, *, generation: int, revisions: Mapping[str, int], pods: tuple[str, str]) -> None:
    """The DaemonSet after changes. revisions: number by hash. pods: the generation and the hash that they carry."""
    plugin = world.get("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)
    plugin["metadata"].update(
        generation=generation, annotations={"deprecated.daemonset.template.generation": str(generation)}
    )
    plugin["status"]["observedGeneration"] = generation
    for word, number in revisions.items():
        world.add(
            "ControllerRevision", f"{VSPHERE.daemonset}-{word}", VSPHERE.namespace,
            metadata={
                "labels": {"app": VSPHERE.app_label, "controller-revision-hash": word},
                "ownerReferences": [owner_reference("DaemonSet", VSPHERE.daemonset, VSPHERE.namespace)],
            },
            data={"spec": {"template": plugin["spec"]["template"]}}, revision=number,
        )  # fmt: skip
    for on in ("win-1", "win-2"):
        labels = world.get("Pod", f"{VSPHERE.daemonset}-{on}", VSPHERE.namespace)["metadata"]["labels"]
        labels.update({"pod-template-generation": pods[0], "controller-revision-hash": pods[1]})


NO_OPENSHIFT = "the kinds of OpenShift are not served there"
NO_OLD_SERVER = "the API server reports its own version"
IN_TREE_VSPHERE = "kubernetes.io/vsphere-volume"
