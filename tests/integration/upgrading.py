# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Databases that write all the time, their observer during an upgrade, and a node's upgrade by its owner's own tasks.

python -m integration.upgrading <lab> <node> <kubelet>: the machine stops, and starts with another kubelet.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from integration import storage
from integration.kube import also_holds
from integration.playbooks import ROOT
from integration.storage import CLAIMS, NAMESPACE, VOLUMES, claim, run
from lab import state
from lab.cluster import access, in_tree, nodes, workload
from lab.handle import Lab, eventually

SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
JOURNALS = "/api/v1/namespaces/kubewin/configmaps"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"
PREFLIGHT = ROOT / "roles" / "csi_driver" / "files" / "kubewin-preflight-rbac.yaml"
ROLES = (
    "kubewin-csi-verify", "kubewin-csi-verify-pods", "kubewin-csi-verify-namespace", "kubewin-csi-data", "kubewin-csi-data-pods",
    "kubewin-csi-upgrade", "kubewin-csi-records", "kubewin-preflight",
)  # fmt: skip
TIMES = "times.txt"
# A program writes twice a second, and this machine has other things to do.
_GAP = timedelta(seconds=4)
# The file has whole seconds.
_BLUR = timedelta(seconds=2)


def kubelet(lab: Lab, node: str) -> str:
    found: str = lab.api.get(f"{nodes.NODES}/{node}")["status"]["nodeInfo"]["kubeletVersion"]
    return found


def upgrade(lab: Lab, node: str, version: str) -> None:
    """Its workloads have to be gone: nothing here asks them."""
    path = f"{nodes.NODES}/{node}"
    assert lab.api.get(path)["spec"].get("unschedulable"), f"{node} is changed though it is not cordoned"
    left = [
        pod for pod in on(lab, node) if any("persistentVolumeClaim" in one for one in pod["spec"].get("volumes") or [])
    ]
    assert not left, f"{node} is changed though pods with volumes are there"
    if kubelet(lab, node) == version:
        return
    nodes.reboot(lab.api, node)
    nodes.upgrade(lab.api, node, version)
    # As after any boot, what runs there is started anew.
    for pod in on(lab, node):
        lab.delete_pod(pod)
    eventually(lambda: all("deletionTimestamp" not in pod["metadata"] for pod in on(lab, node)), f"{node} is up again")


def on(lab: Lab, node: str) -> list[dict[str, Any]]:
    return lab.api.items(f"/api/v1/pods?fieldSelector=spec.nodeName={node}")


def database(name: str, hosts: Sequence[str]) -> dict[str, Any]:
    """One pod that writes the time into its volume again and again. hosts: where it may be, the dearest one first."""
    there = [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(hosts)}]
    first = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [hosts[0]]}]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": there}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": {"matchExpressions": first}}],
    }
    template = {
        "metadata": {"labels": {"app": name}, "annotations": {workload.WRITES: f"{storage.MOUNT}\\{TIMES}"}},
        "spec": {
            "os": {"name": "windows"},
            "nodeSelector": {"kubernetes.io/os": "windows"},
            "affinity": {"nodeAffinity": affinity},
            "tolerations": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "app",
                    "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
                    "volumeMounts": [{"name": "data", "mountPath": storage.MOUNT}],
                }
            ],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def databases(lab: Lab, wanted: Mapping[str, Sequence[str]], storage_class_name: str) -> None:
    """Each with a volume, and with a file that no longer changes. wanted: where each may be."""
    for name, hosts in wanted.items():
        claim(lab, name, storage_class_name)
        lab.api.post(SETS, database(name, hosts))
    for name in wanted:
        running(lab, name)
        assert run(lab, f"{name}-0", "cmd", "/c", f">C:\\data\\kept.txt echo {name} was here")[0] == 0


def running(lab: Lab, name: str) -> None:
    """Wait until a database works."""

    def running() -> bool:
        return any((pod.get("status") or {}).get("phase") == "Running" for pod in lab.pods(f"app={name}", NAMESPACE))

    try:
        eventually(running, f"{name} runs")
    except AssertionError as error:
        raise AssertionError(f"{error}: {storage.events(lab)[-20:]}") from error


@contextlib.contextmanager
def an_account(lab: Lab) -> Iterator[None]:
    """The lab's account holds what an upgrade needs."""
    for role in yaml.safe_load_all(PREFLIGHT.read_text(encoding="utf-8")):
        lab.api.ensure(f"{access.RBAC}/clusterroles", role)
    with contextlib.ExitStack() as stack:
        for name in ROLES:
            stack.enter_context(also_holds(lab, name))
        yield


def volumes(lab: Lab, names: Sequence[str]) -> dict[str, Any]:
    """All that makes a claim's volume that volume, by claim."""
    found = {}
    for name in names:
        asked = lab.api.get(f"{CLAIMS}/{name}")
        volume = lab.api.get(f"{VOLUMES}/{asked['spec']['volumeName']}")
        source = {key: volume["spec"][key] for key in ("csi", "vsphereVolume") if key in volume["spec"]}
        policy = volume["spec"]["persistentVolumeReclaimPolicy"]
        found[name] = (asked["metadata"]["uid"], volume["metadata"]["name"], volume["metadata"]["uid"], source, policy)
    return found


def disk(lab: Lab, name: str) -> Path:
    """The directory behind a claim's volume."""
    bound = lab.api.get(f"{CLAIMS}/{name}")["spec"]["volumeName"]
    served = in_tree.served_by(lab.api.get(f"{VOLUMES}/{bound}"))
    assert served is not None
    wanted = (served[0], in_tree.disk(*served))
    (found,) = (one for one in storage.folders(lab) if (one.parent.name, urllib.parse.unquote(one.name)) == wanted)
    return found


def times(lab: Lab, name: str) -> list[str]:
    """What a database has written so far."""
    return (disk(lab, name) / TIMES).read_text(encoding="utf-8").splitlines()


class Witness:
    """Observes the databases' pods while a block runs, to distinguish gaps in their writes from restarts."""

    def __init__(self, lab: Lab, names: Sequence[str]) -> None:
        self._lab, self._end = lab, threading.Event()
        self._pods: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in names}
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Witness:
        self._before = {name: times(self._lab, name) for name in self._pods}
        self._read()
        self._thread.start()
        return self

    def __exit__(self, *_why: object) -> None:
        self._read()
        self._end.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._end.wait(0.2):
            self._read()

    def _read(self) -> None:
        for name, observed in self._pods.items():
            for pod in self._lab.api.items(f"{storage.PODS}?labelSelector=app={name}"):
                if pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") == "Running":
                    observed[pod["metadata"]["uid"]] = pod

    def places(self, name: str) -> list[str]:
        """The nodes on which a database ran, in turn."""
        return [pod["spec"]["nodeName"] for pod in self._pods[name].values()]

    def nothing_is_missing(self) -> None:
        """Every line of before is there, and where none was written for long, a pod had ended and another one was begun.

        Not where no database wrote: then the machine that all of them are on stood still.
        """
        lines = {name: times(self._lab, name) for name in self._pods}
        moments = {name: [_moment(line) for line in found] for name, found in lines.items()}
        for name, observed in self._pods.items():
            assert lines[name][: len(self._before[name])] == self._before[name], name
            written = moments[name]
            assert written == sorted(written), name
            others = [one for other, found in moments.items() if other != name for one in found]
            begins = [_moment(_begun(pod)) for pod in list(observed.values())[1:]]
            # What was written before the block began was others' to evaluate.
            for last, following in itertools.pairwise(written[len(self._before[name]) - 1 :]):
                begin, end = last + _BLUR, following - _BLUR
                if following - last > _GAP and (not others or any(begin <= one <= end for one in others)):
                    within = [begun for begun in begins if last <= begun <= following + timedelta(seconds=1)]
                    assert len(within) == 1, f"{name} wrote nothing from {last} to {following}; its pods began {begins}"


def _begun(pod: Mapping[str, Any]) -> str:
    (container,) = pod["status"]["containerStatuses"]
    return str(container["state"]["running"]["startedAt"])


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def journal(lab: Lab, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.api.get(f"{JOURNALS}/kubewin-upgrade-{name}")["data"]["journal.json"])
    return found


def reported(lab: Lab, name: str, words: str) -> bool:
    """Whether the journal's text has it."""
    path = f"{JOURNALS}/kubewin-upgrade-{name}"
    return lab.api.ok(path) and words in lab.api.get(path)["data"]["journal.txt"]


def step(lab: Lab, name: str, node: str) -> str:
    """Where a node stands in an upgrade, empty before there is one."""
    if not lab.api.ok(f"{JOURNALS}/kubewin-upgrade-{name}"):
        return ""
    return next(str(entry["step"]) for entry in journal(lab, name)["nodes"] if entry["node"] == node)


# Of a delegated task, whatever the inventory has for all hosts. With -u, as in AWX jobs, Ansible searches the home of the Windows user.
ON_CONTROLLER = {
    "ansible_connection": "local",
    "ansible_shell_type": "sh",
    "ansible_become": False,
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    "ansible_remote_tmp": "/tmp/.ansible",
}


def change_task(lab: Lab, version: str) -> dict[str, Any]:
    """A user's task that upgrades the node of its host. version: of the kubelet, or an expression."""
    words = [sys.executable, "-m", "integration.upgrading", lab.name, "{{ kubewin_upgrade_node }}", version]
    return {
        "name": "Change the machine",
        "ansible.builtin.command": {"argv": words, "chdir": str(ROOT / "tests")},
        "environment": {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / '.collections'}"},
        "delegate_to": "localhost",
        "changed_when": True,
        "vars": ON_CONTROLLER,
    }


def closed(lab: Lab) -> dict[str, list[str]]:
    """What keeps workloads off a node, by Node: a cordon with the mark of whom it is of, and our taint."""
    found: dict[str, list[str]] = {}
    for node in lab.api.items(f"{nodes.NODES}?labelSelector=kubernetes.io/os=windows"):
        spec, notes = node["spec"], node["metadata"].get("annotations") or {}
        why = [notes.get("kubewin.io/cordoned", "")] if spec.get("unschedulable") else []
        why += [one["key"] for one in spec.get("taints") or [] if one["key"] == "kubewin.io/upgrade"]
        if why:
            found[node["metadata"]["name"]] = why
    return found


if __name__ == "__main__":
    upgrade(Lab(state.load(sys.argv[1])), sys.argv[2], sys.argv[3])
