# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes become native CSI ones on the same disk, whatever happens meanwhile, and no byte of them is lost."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import Wanted
from integration.kube import applied, connect, install_csi_proxy, label
from integration.rebind import (
    CLAIMS,
    FILES,
    VOLUMES,
    Boundaries,
    Conversion,
    Story,
    convert,
    in_process,
    plant,
    prepare,
    random_instant,
    remove,
    runs,
    shape,
)  # fmt: skip
from lab import handle
from lab.cluster import access, in_tree
from lab.cluster.api import kubeconfig
from lab.handle import Lab, eventually

NODES = ("win-1", "win-2")
ACCOUNT = "converter"


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Two nodes with vSphere's plugin, and an account that holds kubewin-csi-rebind and nothing else."""
    lab = handle.start(f"rebind-{os.getpid()}", nodes=2)
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
        label(lab, host.node)
    deploy(lab, "vsphere")
    prepare(lab)
    account(lab)
    yield lab
    lab.stop()


def deploy(lab: Lab, *keys: str) -> None:
    admin = connect(lab.state.kubeconfigs["admin"])
    for key in keys:
        applied(admin, Wanted(create_cluster_objects=True), driver=DRIVERS[key])
        eventually(
            lambda key=key: all(lab.registered(node, DRIVERS[key].name) for node in NODES),  # type: ignore[misc]  # bound now
            f"{key} on every node",
        )


def account(lab: Lab) -> None:
    accounts = f"/api/v1/namespaces/{access.NAMESPACE}/serviceaccounts"
    lab.api.ensure(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}})
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubewin-csi-rebind"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": access.NAMESPACE}],
    }
    lab.api.ensure(f"{access.RBAC}/clusterrolebindings", body)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = lab.api.post(f"{accounts}/{ACCOUNT}/token", request)["status"]["token"]
    content = kubeconfig(lab.state.server, Path(lab.state.ca), ACCOUNT, {"token": token})
    _kubeconfig(lab).write_text(yaml.safe_dump(content), encoding="utf-8")


def _kubeconfig(lab: Lab) -> Path:
    return lab.state.paths.kubeconfigs / f"{ACCOUNT}.yaml"


def conversion(lab: Lab, story: Story, folder: Path, **how: Any) -> Conversion:
    return Conversion(story, folder, str(_kubeconfig(lab)), **how)


def untouched(lab: Lab, story: Story) -> None:
    """Every byte is where it was."""
    folder = story.disk(lab)
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES


def converted(lab: Lab, story: Story, uid: str) -> None:
    """Native, bound to the same claim, with its policy back, in use by its new handle."""
    claim, volume = lab.api.get(f"{CLAIMS}/{story.claim}"), lab.api.get(f"{VOLUMES}/{story.volume}")
    assert claim["metadata"]["uid"] == uid
    assert claim["status"]["phase"] == volume["status"]["phase"] == "Bound"
    assert volume["spec"]["csi"]["driver"] == DRIVERS[story.kind].name
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == story.policy
    assert not set(story.source()) & set(volume["spec"])
    assert not [name for name in claim["metadata"].get("annotations", {}) if "rebind" in name]
    assert not [name for name in claim["metadata"]["finalizers"] if "rebind" in name]
    runs(lab, story)
    untouched(lab, story)


def test_a_vsphere_volume_becomes_native_in_place(ready: Lab, tmp_path: Path) -> None:
    story = Story("db")
    plant(ready, story)
    uid = ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    result = convert(conversion(ready, story, tmp_path))
    assert result["status"] == "converted", result
    converted(ready, story, uid)
    volume = ready.api.get(f"{VOLUMES}/{story.volume}")
    assert volume["spec"]["csi"]["volumeHandle"] == in_tree.fcd(story.source()["vsphereVolume"]["volumePath"])
    remove(ready, story)


def uninterrupted(lab: Lab, folder: Path, story: Story) -> dict[str, Any]:
    """What the objects of a story like this are when nothing happened meanwhile."""
    plant(lab, story)
    assert convert(conversion(lab, story, folder))["status"] == "converted"
    found = shape(lab, story)
    remove(lab, story)
    return found


def test_killed_at_every_request_it_goes_on(ready: Lab, tmp_path: Path) -> None:
    expected = uninterrupted(ready, tmp_path / "expected", Story("calm"))
    story, folder = Story("killed"), tmp_path / "records"
    plant(ready, story)
    uid = ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    boundaries = Boundaries(folder)
    deaths = 0
    while (end := in_process(conversion(ready, story, folder), boundaries.decide)).result is None:
        deaths += 1
        boundaries.note(end.died)
        untouched(ready, story)
    # The last death may come when everything was done; then there is a native volume, and nothing more to do.
    assert end.result["status"] in ("converted", "native"), end.result
    converted(ready, story, uid)
    assert shape(ready, story) == expected
    assert deaths > 80
    print(f"{deaths} kills at request boundaries: 0 lost")
    remove(ready, story)


def step_of(folder: Path) -> str:
    """At which step the record in a folder stands; empty without one."""
    for path in folder.glob("kubewin-rebind-*.json"):
        return str(json.loads(path.read_text(encoding="utf-8"))["step"])
    return ""


def until_converted(lab: Lab, story: Story, folder: Path, **how: Any) -> None:
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    result = convert(conversion(lab, story, folder, **how))
    assert result["status"] in ("converted", "native"), result
    converted(lab, story, uid)


def kill_at_random(lab: Lab, story: Story, folder: Path, seed: int, count: int) -> int:
    """Kill runs of one conversion after another at random instants until so many were killed, or one was not."""
    dice = random.Random(seed)
    for killed in range(count):
        told, decide = random_instant(dice)
        end = in_process(conversion(lab, story, folder), decide)
        untouched(lab, story)
        if end.result is not None:
            assert end.result["status"] in ("converted", "native"), (seed, told, end.result)
            return killed
    return count


def random_kills(lab: Lab, folder: Path, seed: int, count: int) -> None:
    killed = 0
    while killed < count:
        number = seed + killed
        story = Story(f"random-{number}")
        plant(lab, story)
        killed += kill_at_random(lab, story, folder / story.name, number, count - killed)
        until_converted(lab, story, folder / story.name)
        remove(lab, story)
    print(f"{killed} kills at random instants, seed {seed}: 0 lost")


def api_kills(lab: Lab, folder: Path, seed: int, count: int) -> None:
    """Kill the API server just before a request of a conversion, again and again; it is back half a second later."""
    dice = random.Random(seed)
    story = Story("no-api")
    plant(lab, story)
    events = sorted(dice.sample(range(20, 250), count))
    met: list[int] = []

    def meet(number: int, _what: str, when: str) -> None:
        if when == "before" and number == events[min(len(met), count - 1)] and len(met) < count:
            met.append(number)
            lab.call("stop", name="apiserver")
            threading.Timer(0.5, lambda: lab.call("start", name="apiserver")).start()

    result = convert(conversion(lab, story, folder), meet)
    assert result["status"] == "converted", (seed, events, result)
    assert met == events
    runs(lab, story)
    untouched(lab, story)
    remove(lab, story)
    print(f"{count} kills of the API server, seed {seed}, before requests {events}: 0 lost")


def test_killed_at_random_instants_it_goes_on(ready: Lab, tmp_path: Path) -> None:
    random_kills(ready, tmp_path, seed=20261121, count=20)


def test_it_outlives_the_api_server(ready: Lab, tmp_path: Path) -> None:
    api_kills(ready, tmp_path, seed=20261121, count=3)


@pytest.mark.parametrize("step", ["quiesce", "delete_volume", "release", "create_volume", "canary", "finish"])
def test_undone_the_volume_is_what_it_was(ready: Lab, tmp_path: Path, step: str) -> None:
    story = Story(f"back-{step.replace('_', '-')}")
    plant(ready, story)
    before = shape(ready, story)
    uid = ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    end = in_process(conversion(ready, story, tmp_path), lambda _number, _what, _when: step_of(tmp_path) == step)
    assert end.result is None
    result = convert(conversion(ready, story, tmp_path, undo=True))
    assert result["status"] == "undone", result
    assert ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] == uid
    # The attacher's finalizer and the event of the last attachment come when they come.
    eventually(lambda: shape(ready, story) == before, "everything as it was")
    untouched(ready, story)
    remove(ready, story)
