# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stories of conversions share: the account, the drivers, and what a volume is before and afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from integration.convert import (
    CLAIMS,
    COPIES,
    FILES,
    NAMESPACE,
    VOLUMES,
    Boundaries,
    Conversion,
    Story,
    convert,
    in_process,
    plant,
    record_paths,
    remove,
    runs,
    shape,
    step_of,
)  # fmt: skip
from integration.kube import applied, connect
from lab.cluster import access, in_tree
from lab.cluster.api import kubeconfig
from lab.handle import Lab, eventually

NODES = ("win-1", "win-2")
ACCOUNT = "converter"
PLAYBOOK = "playbooks/convert_volumes.yml"


def deploy(lab: Lab, *keys: str) -> None:
    admin = connect(lab.state.kubeconfigs["admin"])
    for key in keys:
        applied(admin, DriverRequest(create_cluster_objects=True), driver=DRIVERS[key])
        eventually(partial(_on_every_node, lab, DRIVERS[key].name), f"{key} on every node")


def _on_every_node(lab: Lab, driver: str) -> bool:
    return all(lab.registered(node, driver) for node in NODES)


def controller(lab: Lab, driver: Driver) -> None:
    """A Deployment by the name of a driver's controller; its work is the lab's own."""
    name, namespace = driver.controller.deployments[0], driver.controller.namespaces[0]
    lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    labels = {"app": name}
    pod = {"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [{"name": "c", "image": "controller:v1"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    lab.api.ensure(path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    eventually(partial(_has_pods, lab, f"{path}/{name}"), f"{name} runs")


def _has_pods(lab: Lab, path: str) -> bool:
    return bool((lab.api.get(path).get("status") or {}).get("readyReplicas"))


def account(lab: Lab) -> None:
    accounts = f"/api/v1/namespaces/{access.NAMESPACE}/serviceaccounts"
    lab.api.ensure(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
    access.bind(lab.api, "kubewin-csi-convert", ACCOUNT)
    access.bind(lab.api, "kubewin-csi-convert-workloads", ACCOUNT, NAMESPACE)
    # Those that single stories keep their records in as well.
    for place in (access.NAMESPACE, COPIES, "other", "elsewhere", "copies", "more-copies"):
        lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
        access.bind(lab.api, "kubewin-csi-records", ACCOUNT, place)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = lab.api.post(f"{accounts}/{ACCOUNT}/token", request)["status"]["token"]
    content = kubeconfig(lab.state.server, Path(lab.state.ca), ACCOUNT, {"token": token})
    kubeconfig_of_account(lab).write_text(yaml.safe_dump(content), encoding="utf-8")


def kubeconfig_of_account(lab: Lab) -> Path:
    return lab.state.paths.kubeconfigs / f"{ACCOUNT}.yaml"


def conversion(lab: Lab, story: Story, **how: Any) -> Conversion:
    return Conversion(story, str(kubeconfig_of_account(lab)), **how)


def untouched(lab: Lab, story: Story) -> None:
    """Every byte is where it was."""
    folder = story.disk(lab)
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES


def converted(lab: Lab, story: Story, uid: str) -> None:
    """Native, with its workload at work."""
    native(lab, story, uid)
    runs(lab, story)


def native(lab: Lab, story: Story, uid: str) -> None:
    """Native, bound to the same claim, with its policy back and every byte."""
    claim, volume = lab.api.get(f"{CLAIMS}/{story.claim}"), lab.api.get(f"{VOLUMES}/{story.volume}")
    assert claim["metadata"]["uid"] == uid
    assert claim["status"]["phase"] == volume["status"]["phase"] == "Bound"
    assert volume["spec"]["csi"]["driver"] == DRIVERS[story.kind].name
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == story.policy
    assert not set(story.source()) & set(volume["spec"])
    assert not [name for name in claim["metadata"].get("annotations", {}) if "convert" in name]
    assert not [name for name in claim["metadata"]["finalizers"] if "convert" in name]
    untouched(lab, story)


def uninterrupted(lab: Lab, story: Story) -> dict[str, Any]:
    """What the objects of a story like this are when nothing happened meanwhile."""
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    assert convert(conversion(lab, story))["status"] == "converted"
    converted(lab, story, uid)
    volume = lab.api.get(f"{VOLUMES}/{story.volume}")
    assert volume["spec"]["csi"]["volumeHandle"] == in_tree.fcd(story.source()["vsphereVolume"]["volumePath"])
    found = shape(lab, story)
    remove(lab, story)
    return found


def killed_everywhere(lab: Lab, story: Story, *, reads: bool = True, share: int = 1, **how: Any) -> int:
    """Convert with a death at every boundary of every request, of every write, or of a share; answers with how many that were."""
    boundaries = Boundaries(lab, story, reads=reads, share=share)
    deaths = 0
    while (end := in_process(conversion(lab, story, **how), boundaries.decide)).result is None:
        deaths += 1
        boundaries.note(end.died)
        untouched(lab, story)
    # The last death may come when everything was done; then there is a native volume, and nothing more to do.
    assert end.result["status"] in ("converted", "native"), end.result
    return deaths


def killed_at(lab: Lab, story: Story, step: str, **how: Any) -> None:
    """Convert until the record has that step, and end before the next request."""
    stored = conversion(lab, story, **how)
    paths = record_paths(lab, story, (stored.records, stored.second))
    end = in_process(stored, lambda _number, _what, _when: step_of(lab, paths) == step)
    assert end.result is None, end.result
    untouched(lab, story)


def until_converted(lab: Lab, story: Story, **how: Any) -> dict[str, Any]:
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    result = convert(conversion(lab, story, **how))
    assert result["status"] in ("converted", "native"), result
    converted(lab, story, uid)
    return result


def refused(lab: Lab, story: Story, **how: Any) -> dict[str, Any]:
    result = convert(conversion(lab, story, **how))
    assert result["status"] in ("failed", "refused"), result
    untouched(lab, story)
    return result


@contextmanager
def kept(lab: Lab, path: str, field: str, value: Any) -> Iterator[None]:
    """Another client sets a field back whenever it differs."""
    ends = threading.Event()

    def keep() -> None:
        while not ends.wait(0.05):
            if lab.api.get(path)["spec"][field] != value:
                lab.api.patch(path, {"spec": {field: value}})

    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        yield
    finally:
        ends.set()
        keeper.join()
