# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes with workloads on them, conversions in processes of their own, and deaths of these at chosen requests."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import select
import signal
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.eligibility import ConversionRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.options import RunOptions
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.run import Conversions
from day import DAY
from integration.kube import connect
from lab import state
from lab.cluster import in_tree
from lab.cluster.api import Api, ApiError, Object
from lab.handle import PATIENCE, Lab, eventually

NAMESPACE = "shop"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASS = "thin"
RECORDS, COPIES = "kubewin", "kubewin-records"
KINDS = ("vsphere", "aws_ebs", "azure_disk", "azure_file", "gce_pd")
FILES = {"orders.db": b"\x00\x1a\xff" * 3000, "Gr\u00fc\u00dfe/\u65e5\u672c.txt": b"2026-11-21\r\n", "empty": b""}


@dataclass(frozen=True, slots=True)
class Story:
    """One workload with one in-tree volume."""

    name: str
    kind: str = "vsphere"
    policy: str = "Delete"
    stateful: bool = True

    @property
    def claim(self) -> str:
        return f"data-{self.name}-0"

    @property
    def volume(self) -> str:
        return f"pvc-{self.name}"

    @property
    def workload(self) -> str:
        return f"/apis/apps/v1/namespaces/{NAMESPACE}/{'statefulsets' if self.stateful else 'deployments'}/{self.name}"

    @property
    def handle(self) -> str:
        """What the user names, since the cluster does not show it."""
        return f"projects/lab/zones/zone-a/disks/{self.volume}" if self.kind == "gce_pd" else ""

    def source(self) -> Object:
        """The in-tree part of the volume's spec."""
        sources: dict[str, Object] = {
            "vsphere": {"vsphereVolume": {"volumePath": f"[datastore1] kubevols/{self.volume}.vmdk", "fsType": "ntfs"}},
            "aws_ebs": {"awsElasticBlockStore": {"volumeID": f"aws://zone-a/vol-{self._hex}", "fsType": "ntfs"}},
            "azure_disk": {
                "azureDisk": {
                    "diskName": self.volume,
                    "diskURI": f"/subscriptions/lab/resourceGroups/lab/providers/Microsoft.Compute/disks/{self.volume}",
                    "kind": "Managed",
                    "cachingMode": "ReadOnly",
                    "fsType": "ntfs",
                }
            },
            "azure_file": {
                "azureFile": {
                    "secretName": "azure-storage-account-lab-secret",
                    "secretNamespace": NAMESPACE,
                    "shareName": self.volume,
                }
            },
            "gce_pd": {"gcePersistentDisk": {"pdName": self.volume, "fsType": "ntfs"}},
        }
        return sources[self.kind]

    def disk(self, lab: Lab) -> Path:
        """The directory behind the volume, whichever object describes it."""
        return disk(
            lab, {"metadata": {"name": self.volume}, "spec": {"claimRef": {"namespace": NAMESPACE}, **self.source()}}
        )

    @property
    def _hex(self) -> str:
        return self.name.encode().hex()[:17]


def prepare(lab: Lab) -> None:
    """The namespace, the class, and nodes that are past the migration of every plugin."""
    lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS}}
    lab.api.ensure("/apis/storage.k8s.io/v1/storageclasses", {**body, "provisioner": "kubernetes.io/vsphere-volume"})
    eventually(lambda: lab.api.ok(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"), "its account")


def plant(lab: Lab, story: Story, *others: Story) -> None:
    """In-tree volumes with data, their claims, and the story's workload, which uses them all; returns when that runs."""
    for one in (story, *others):
        _plant_volume(lab, one)
    lab.api.post(story.workload.rpartition("/")[0], _workload(story, *others))
    runs(lab, story)
    held = "external-provisioner.volume.kubernetes.io/finalizer"
    for one in (story, *others):
        if one.policy == "Delete":
            eventually(partial(_has_finalizer, lab, f"{VOLUMES}/{one.volume}", held), "the finalizer")


def _has_finalizer(lab: Lab, path: str, name: str) -> bool:
    return name in lab.api.get(path)["metadata"]["finalizers"]


def _plant_volume(lab: Lab, story: Story) -> None:
    driver = DRIVERS[story.kind]
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": story.volume,
            "labels": {
                "app": story.name,
                **({"topology.kubernetes.io/zone": "zone-a"} if story.kind == "gce_pd" else {"tier": "data"}),
            },
            "annotations": {"pv.kubernetes.io/provisioned-by": driver.in_tree},
        },
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": story.policy,
            "storageClassName": CLASS,
            "claimRef": {"namespace": NAMESPACE, "name": story.claim},
            **story.source(),
        },
    }
    folder = story.disk(lab)
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    lab.api.post(VOLUMES, volume)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": story.claim, "labels": {"app": story.name}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "volumeName": story.volume,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    lab.api.post(CLAIMS, claim)


def _workload(story: Story, *others: Story) -> Object:
    labels = {"app": story.name}
    pod: Object = {
        "os": {"name": "windows"},
        "nodeSelector": {"kubernetes.io/os": "windows"},
        # Of the taints of Windows nodes; one that tolerated a cordon too could come back to the node it was evicted from.
        "tolerations": [{"key": key, "operator": "Exists"} for key in ("os", "node.kubernetes.io/os")],
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "app",
                "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
                "volumeMounts": [{"name": "data", "mountPath": "C:\\data"}],
            }
        ],
    }
    spec: Object = {"replicas": 1, "selector": {"matchLabels": labels}}
    if story.stateful:
        template = {"accessModes": ["ReadWriteOnce"], "storageClassName": CLASS}
        size = {"resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {**template, **size}}]
    else:
        pod["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": story.claim}}]
    beside = [{"name": other.name, "persistentVolumeClaim": {"claimName": other.claim}} for other in others]
    pod["volumes"] = [*pod.get("volumes", []), *beside]
    spec["template"] = {"metadata": {"labels": labels}, "spec": pod}
    kind = "StatefulSet" if story.stateful else "Deployment"
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": story.name}, "spec": spec}


def runs(lab: Lab, story: Story, patience: float = PATIENCE) -> None:
    def ready() -> bool:
        return bool((lab.api.get(story.workload).get("status") or {}).get("readyReplicas"))

    eventually(ready, f"{story.name} runs", patience)


def disk(lab: Lab, volume: Object) -> Path:
    """The directory behind a volume."""
    found = in_tree.served_by(volume)
    assert found is not None
    return lab.state.paths.volumes / found[0] / in_tree.disk(*found).replace("/", "%2F").replace("#", "%23")


def remove(lab: Lab, story: Story, patience: float = PATIENCE) -> None:
    """Take everything of a story away, also half of it."""
    lab.api.gone(story.workload)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    eventually(lambda: not lab.api.items(f"{pods}?labelSelector=app={story.name}"), "its pods are gone", patience)
    for path in (f"{CLAIMS}/{story.claim}", f"{VOLUMES}/{story.volume}"):
        lab.api.gone(path)
        # Volumes that are kept, and what a stopped run has left on them, go like this.
        with contextlib.suppress(ApiError):
            lab.api.patch(path, {"metadata": {"finalizers": None}})
        eventually(partial(_absent, lab, path), f"{path} is gone", patience)


def _absent(lab: Lab, path: str) -> bool:
    return not lab.api.ok(path)


# Conversions


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a story's volume is converted. records, second: namespaces of its record. others: named after it."""

    story: Story
    kubeconfig: str
    records: str = RECORDS
    second: str = COPIES
    roll_back: bool = False
    # What is waited for comes; a story in which it does not asks for less.
    step: float = 300
    managed: bool = False
    final: bool = True
    others: tuple[Story, ...] = ()


class AtOnce:
    """Stories that run at the same time on one lab, each in a process of its own; most of their time is waiting."""

    def __init__(
        self, names: Sequence[str], notify: Callable[[str], None], folder: Path, width: int, seconds: float = 1800
    ) -> None:
        self._left, self._notify, self._folder, self._width = list(names), notify, folder, width
        self._seconds = seconds
        self._running: dict[int, str] = {}
        self._codes: dict[str, int] = {}

    def result(self, name: str) -> None:
        """Wait until that one has ended, and print its output. AssertionError if it failed."""
        ends = time.monotonic() + self._seconds
        while name not in self._codes:
            assert time.monotonic() < ends, f"{name} did not end; now there are {sorted(self._running.values())}"
            while self._left and len(self._running) < self._width:
                self._start(self._left.pop(0))
            for pid in list(self._running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    self._codes[self._running.pop(pid)] = os.waitstatus_to_exitcode(status)
            # Between two checks of parallel processes; the deadline is asserted above.
            time.sleep(0.05)
        output = (self._folder / name).read_text(encoding="utf-8")
        print(output, end="")
        assert self._codes[name] == 0, output[-3000:]

    def end(self) -> None:
        """Nobody waits for the others any more."""
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _start(self, name: str) -> None:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            self._running[pid] = name
            return
        code = 1
        try:
            descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            # What captures the output of tests has put its own files there.
            sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115  # until the process ends
            sys.stderr = sys.stdout
            self._notify(name)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)


class Deadly:
    """A client's requests, each of which may be the last thing that this process does."""

    def __init__(self, inner: Any, meet: Callable[[int, str, str], None]) -> None:
        self._inner, self._meet = inner, meet
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        self._count += 1
        number, what = self._count, f"{method} {place(path)}"
        self._meet(number, what, "before")
        answer = self._inner.request(method, path, body=body, **params)
        self._meet(number, what, "answered")
        return answer


def place(path: str) -> str:
    """A request's path without names that differ from story to story."""
    return re.sub(r"(shop|kubewin|kube-system|vmware-system-csi)/([a-z]+)/[^/?]+", r"\1/\2/*", path)


def convert(
    conversion: Conversion,
    meet: Callable[[int, str, str], None] | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Run one in this process; answers with its result, and those of the others.

    meanwhile: called once everything was observed, before the first change.
    """
    client = connect(conversion.kubeconfig, retry_for=60)
    if meet is not None:
        client._dynamic = Deadly(client._dynamic, meet)
    desired = tuple(
        ConversionRequest(
            namespace=NAMESPACE, claim=story.claim, handle=story.handle, managed=conversion.managed,
        )
        for story in (conversion.story, *conversion.others)
    )  # fmt: skip
    tolerations = ({"operator": "Exists"},)
    namespaces = (conversion.records, conversion.second)
    order = RunOptions(
        desired, conversion.roll_back, conversion.final, namespaces,
        step=conversion.step, compare=1 << 30, tolerations=tolerations,
    )  # fmt: skip
    made = Conversions(client, order, lambda text: print(f"    {text}", flush=True))
    results = made.prepare()
    if meanwhile is not None:
        meanwhile()
    if results[0].status != "refused":
        made.run(results)
    first, *others = [result.as_dict() for result in results]
    return {**first, "others": others, "warnings": made.warnings}


@dataclass(slots=True)
class End:
    """How a process ended: its result, or None when it was killed; where it stood then."""

    result: dict[str, Any] | None
    died: str = ""


def in_process(
    conversion: Conversion,
    decide: Callable[[int, str, str], bool] | None = None,
    until: Callable[[], bool] | None = None,
) -> End:
    """Run one in a process of its own, which kills itself at the first request for which `decide` is true.

    until: kills it as soon as this is true.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 1
        try:

            def meet(number: int, what: str, when: str) -> None:
                if decide is not None and decide(number, what, when):
                    os.write(writing, f"died {number} {when} {what}\n".encode())
                    os.kill(os.getpid(), signal.SIGKILL)

            result = convert(conversion, meet)
            os.write(writing, b"result " + json.dumps(result).encode() + b"\n")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    if until is not None:
        eventually(
            lambda: until() or bool(select.select([reading], [], [], 0)[0]), "the run ends, or is to be killed", 600
        )
        if until():
            os.kill(pid, signal.SIGKILL)
    with open(reading, encoding="utf-8") as reported:
        text = reported.read()
    dummy, status = os.waitpid(pid, 0)
    if text.startswith("result "):
        return End(json.loads(text.removeprefix("result ")))
    if not os.WIFSIGNALED(status):
        raise AssertionError(f"the conversion ended with {status} without a word: {text}")
    return End(None, text.strip().removeprefix("died "))


def random_instant(dice: random.Random) -> tuple[str, Callable[[int, str, str], bool]]:
    """An event number and an offset in ms, as text to be printed, and a decision to die then."""
    event, offset = dice.randint(1, 70), dice.randint(0, 30)

    def decide(number: int, _what: str, when: str) -> bool:
        if number == event and when == "before":
            threading.Timer(offset / 1000, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return False

    return f"{event}+{offset}ms", decide


class Boundaries:
    """Every boundary of every request, each met once: by step, request, and before or after the server has done it.

    A request that only reads is met before it alone: after it nothing is different. reads: False to meet only those that write, each
    state that they leave once: the cluster and the record are before a write as they were after the one before. share: a share of them,
    another one each day.
    """

    def __init__(self, lab: Lab, story: Story, *, reads: bool = True, share: int = 1) -> None:
        self._lab, self._reads, self._share = lab, reads, share
        self._paths = record_paths(lab, story)
        self.met: set[str] = set()
        # The copies of the record at the last death, until the next run has written to the cluster.
        self._left: list[str] | None = None
        # The copies and their step, as this run has left them: each request asks, and no other run changes them meanwhile.
        self._now: tuple[list[str], str] | None = None

    def decide(self, _number: int, what: str, when: str) -> bool:
        read = what.startswith("GET")
        if read and (when == "answered" or not self._reads):
            return False
        if self._now is None or (when == "answered" and "/configmaps" in what):
            self._now = record_texts(self._lab, self._paths), step_of(self._lab, self._paths)
        texts, step = self._now
        if not read and when == "answered" and "/leases/" not in what:
            self._left = None
        if not self._reads and self._left is not None and self._left == texts:
            return False
        boundary = f"{step} {when} {what}"
        return boundary not in self.met and (zlib.crc32(boundary.encode()) + DAY) % self._share == 0

    def note(self, died: str) -> None:
        dummy, when, what = died.split(" ", 2)
        self.met.add(f"{step_of(self._lab, self._paths)} {when} {what}")
        self._left = record_texts(self._lab, self._paths)


def record_paths(lab: Lab, story: Story, namespaces: Iterable[str] = (RECORDS, COPIES)) -> list[str]:
    """Where the copies of a story's record are, or will be; its claim must be there."""
    name = objects.name_record(objects.name_run(lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]))
    return [f"/api/v1/namespaces/{namespace}/configmaps/{name}" for namespace in namespaces]


def record_texts(lab: Lab, paths: Iterable[str]) -> list[str]:
    """The copies that there are."""
    api = _connect(os.getpid(), lab.name)
    return [str(found["data"]["record.json"]) for path in paths if (found := api.find(path)) is not None]


def step_of(lab: Lab, paths: Sequence[str]) -> str:
    """At which step the copy that is written last stands; empty without one."""
    texts = record_texts(lab, paths[-1:])
    return str(json.loads(texts[0])["step"]) if texts else ""


@cache
def _connect(_process: int, name: str) -> Api:
    """A connection of this process; that of its parent cannot be shared."""
    return Lab(state.load(name)).api


def shape(lab: Lab, story: Story) -> dict[str, Any]:
    """A story's objects without what differs from one time to the next."""
    found: dict[str, Any] = {}
    for name, path in (("claim", f"{CLAIMS}/{story.claim}"), ("volume", f"{VOLUMES}/{story.volume}")):
        live = lab.api.get(path)
        metadata, spec = live["metadata"], live["spec"]
        spec.get("claimRef", {}).pop("resourceVersion", None)
        annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if "convert" not in key}
        text = json.dumps(
            {
                "labels": metadata.get("labels"),
                "annotations": annotations,
                "finalizers": sorted(metadata.get("finalizers") or []),
                "spec": spec,
                "phase": live["status"]["phase"],
            },
            sort_keys=True,
        )
        uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
        vmdk = f"[datastore1] kubevols/{story.volume}.vmdk"
        text = text.replace(uid, "UID").replace(in_tree.fcd(vmdk), "DISK").replace(story.name, "STORY")
        found[name] = json.loads(text)
    live = lab.api.get(story.workload)
    found["replicas"] = live["spec"]["replicas"]
    return found
