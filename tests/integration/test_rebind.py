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
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import Wanted
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.record import Variant
from integration.kube import applied, connect, install_csi_proxy, label
from integration.playbooks import play
from integration.rebind import (
    CLAIMS,
    FILES,
    KINDS,
    NAMESPACE,
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
from lab.cluster import settings as lab_settings
from lab.cluster.api import ApiError, kubeconfig
from lab.handle import Lab, eventually

NODES = ("win-1", "win-2")
ACCOUNT = "converter"
PLAYBOOK = "playbooks/rebind_volumes.yml"


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


def killed_everywhere(lab: Lab, story: Story, folder: Path, **how: Any) -> int:
    """Convert with a death at every boundary of every request; answers with how many that were."""
    boundaries = Boundaries(folder)
    deaths = 0
    while (end := in_process(conversion(lab, story, folder, **how), boundaries.decide)).result is None:
        deaths += 1
        boundaries.note(end.died)
        untouched(lab, story)
    # The last death may come when everything was done; then there is a native volume, and nothing more to do.
    assert end.result["status"] in ("converted", "native"), end.result
    return deaths


def test_killed_at_every_request_it_goes_on(ready: Lab, tmp_path: Path) -> None:
    expected = uninterrupted(ready, tmp_path / "expected", Story("calm"))
    story, folder = Story("killed"), tmp_path / "records"
    plant(ready, story)
    uid = ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    deaths = killed_everywhere(ready, story, folder)
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
    starts: list[threading.Timer] = []

    def meet(number: int, _what: str, when: str) -> None:
        if when == "before" and len(met) < count and number == events[len(met)]:
            met.append(number)
            for earlier in starts:
                earlier.join()
            lab.call("stop", name="apiserver")
            starts.append(threading.Timer(0.5, lambda: lab.call("start", name="apiserver")))
            starts[-1].start()

    result = convert(conversion(lab, story, folder), meet)
    for start in starts:
        start.join()
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


@pytest.mark.parametrize(
    "step",
    [
        "release",
        "canary",
        "finish",
        *(pytest.param(step, marks=pytest.mark.torture) for step in ("quiesce", "delete_volume", "create_volume")),
    ],
)
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


def test_the_playbook_converts_two_workloads_at_once_and_does_nothing_more_afterwards(
    ready: Lab, tmp_path: Path
) -> None:
    stories = [Story("web", stateful=False), Story("queue", policy="Retain")]
    for story in stories:
        plant(ready, story)
    uids = [ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] for story in stories]
    given = {
        "kubewin_rebind_claims": ",".join(f"{NAMESPACE}/{story.claim}" for story in stories),
        "kubewin_kubeconfig": str(_kubeconfig(ready)),
        "kubewin_output_dir": str(tmp_path),
        "kubewin_rebind_retain_for": 0,
        "kubewin_rebind_tolerations": [{"operator": "Exists"}],
    }
    look = play(PLAYBOOK, "localhost,", "--check", variables=given)
    assert look.code == 0, look.screen
    assert look.changed == []
    assert "wait until the driver's syncer has taken the disk out of its register" in look.screen
    assert "know: it is Lost for some seconds" in look.screen
    assert list(tmp_path.iterdir()) == []
    run = play(PLAYBOOK, "localhost,", variables=given)
    assert run.code == 0, run.screen
    for story, uid in zip(stories, uids, strict=True):
        converted(ready, story, uid)
        assert f"{NAMESPACE}/{story.claim}: converted (volume {story.volume}" in run.screen
    assert f"{NAMESPACE}/data-web-0: waiting until" in run.screen
    again = play(PLAYBOOK, "localhost,", variables=given)
    assert again.code == 0, again.screen
    assert again.changed == []
    assert "already is a native volume of csi.vsphere.vmware.com" in again.screen
    for story in stories:
        remove(ready, story)


def test_the_playbook_converts_nothing_that_was_not_named(ready: Lab) -> None:
    run = play(PLAYBOOK, "localhost,", variables={"kubewin_kubeconfig": str(_kubeconfig(ready))})
    assert run.code != 0
    assert "nothing is converted that was not named" in run.screen


def test_re_claim_makes_the_claim_anew_for_another_volume(ready: Lab, tmp_path: Path) -> None:
    story = Story("anew")
    plant(ready, story)
    before = ready.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    result = convert(conversion(ready, story, tmp_path, variant="re_claim"))
    assert result["status"] == "converted", result
    claim = ready.api.get(f"{CLAIMS}/{story.claim}")
    assert claim["metadata"]["uid"] != before
    assert claim["spec"]["volumeName"] == f"{story.volume}-csi"
    volume = ready.api.get(f"{VOLUMES}/{story.volume}-csi")
    assert (volume["status"]["phase"], volume["spec"]["persistentVolumeReclaimPolicy"]) == ("Bound", "Delete")
    assert not ready.api.ok(f"{VOLUMES}/{story.volume}")
    runs(ready, story)
    untouched(ready, story)
    remove(ready, story)


def test_a_new_volume_before_the_register_has_forgotten_the_old_one_is_lost_to_it(ready: Lab, tmp_path: Path) -> None:
    """Why the step `forget` waits. By hand and too early, the disk is out of the register while a claim is bound to it."""
    story = Story("early")
    plant(ready, story)
    with ready.settings(syncer_down=True):
        end = in_process(
            conversion(ready, story, tmp_path), lambda _number, _what, _when: step_of(tmp_path) == "forget"
        )
        assert end.result is None
        record = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
        volume = record["objects"]["new"]
        volume["spec"]["claimRef"]["uid"] = record["claim_uid"]
        ready.api.post(VOLUMES, volume)
        eventually(lambda: ready.api.get(f"{CLAIMS}/{story.claim}")["status"]["phase"] == "Bound", "bound again")
    registered = ready.state.paths.volumes.with_name("cns") / in_tree.fcd(story.source()["vsphereVolume"]["volumePath"])
    eventually(lambda: not registered.exists(), "the disk of the volume that is in use is out of the register")
    untouched(ready, story)
    remove(ready, story)


def test_what_the_blog_does_destroys_the_disk(ready: Lab) -> None:
    """Delete the claim, then the pod, and "it will be provisioned again": this is why that is never done here."""
    story = Story("blog")
    plant(ready, story)
    assert (story.disk(ready) / "orders.db").exists()
    ready.api.delete(f"{CLAIMS}/{story.claim}")
    ready.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{story.name}-0")
    eventually(lambda: not story.disk(ready).exists(), "the disk is gone")
    remove(ready, story)


# Faults


def refused(lab: Lab, story: Story, folder: Path, **how: Any) -> dict[str, Any]:
    result = convert(conversion(lab, story, folder, **how))
    assert result["status"] in ("failed", "refused"), result
    untouched(lab, story)
    return result


def test_a_server_that_will_refuse_the_new_volume_is_found_before_anything_changes(ready: Lab, tmp_path: Path) -> None:
    story = Story("policy")
    plant(ready, story)
    uid = ready.api.get(f"{VOLUMES}/{story.volume}")["metadata"]["uid"]
    with denied(ready):
        result = refused(ready, story, tmp_path)
    assert result["reason"] == "admission_refused"
    assert "no native volumes here" in result["msg"]
    live = ready.api.get(f"{VOLUMES}/{story.volume}")
    assert (live["metadata"]["uid"], live["spec"]["persistentVolumeReclaimPolicy"]) == (uid, "Delete")
    assert ready.api.get(story.workload)["spec"]["replicas"] == 1
    until_converted(ready, story, tmp_path)
    remove(ready, story)


def test_a_server_that_refuses_the_new_volume_after_the_old_one_is_gone_gets_the_old_one_back(
    ready: Lab, tmp_path: Path
) -> None:
    story = Story("late")
    plant(ready, story)
    before = shape(ready, story)
    end = in_process(
        conversion(ready, story, tmp_path), lambda _number, _what, _when: step_of(tmp_path) == "create_volume"
    )
    assert end.result is None
    with denied(ready):
        result = convert(conversion(ready, story, tmp_path))
    assert result["status"] == "undone", result
    assert "the new volume was refused" in result["msg"]
    eventually(lambda: shape(ready, story) == before, "everything as it was")
    untouched(ready, story)
    until_converted(ready, story, tmp_path)
    remove(ready, story)


@contextmanager
def denied(lab: Lab) -> Iterator[None]:
    """A policy of the cluster against native volumes, for the length of a block."""
    base = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["persistentvolumes"]}
    validation = {"expression": "!has(object.spec.csi)", "message": "no native volumes here"}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-csi"},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [validation]},
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-csi"},
        "spec": {"policyName": "no-csi", "validationActions": ["Deny"]},
    }
    lab.api.ensure(f"{base}/validatingadmissionpolicies", policy)
    lab.api.ensure(f"{base}/validatingadmissionpolicybindings", binding)
    probe = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "probe"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "x", "volumeHandle": "x"}},
    }  # fmt: skip

    def in_force() -> bool:
        try:
            lab.api.post(f"{VOLUMES}?dryRun=All", probe)
        except ApiError as error:
            return "no native volumes here" in str(error)
        return False

    eventually(in_force, "the policy is in force")
    try:
        yield
    finally:
        lab.api.gone(f"{base}/validatingadmissionpolicybindings/no-csi")
        lab.api.gone(f"{base}/validatingadmissionpolicies/no-csi")
        eventually(lambda: not in_force(), "the policy is gone")


def test_somebody_who_puts_replicas_back_is_named(ready: Lab, tmp_path: Path) -> None:
    story = Story("gitops")
    plant(ready, story)
    ends = threading.Event()

    def put_back() -> None:
        while not ends.wait(0.05):
            if ready.api.get(story.workload)["spec"]["replicas"] == 0:
                ready.api.patch(story.workload, {"spec": {"replicas": 1}})

    keeper = threading.Thread(target=put_back)
    keeper.start()
    try:
        result = refused(ready, story, tmp_path)
    finally:
        ends.set()
        keeper.join()
    assert result["reason"] == "not_quiet"
    assert "StatefulSet shop/gitops was scaled to 0 3 times, and somebody puts its replicas back" in result["msg"]
    until_converted(ready, story, tmp_path)
    remove(ready, story)


def test_a_finalizer_that_nobody_knows_stops_it_until_it_is_gone(ready: Lab, tmp_path: Path) -> None:
    story = Story("finalizer")
    plant(ready, story)
    path = f"{VOLUMES}/{story.volume}"
    present = ready.api.get(path)["metadata"]["finalizers"]
    ready.api.patch(path, {"metadata": {"finalizers": [*present, "backup.example.com/protect"]}})
    result = refused(ready, story, tmp_path)
    assert result["reason"] == "unknown_finalizer"
    assert "is kept by backup.example.com/protect" in result["msg"]
    ready.api.patch(path, {"metadata": {"finalizers": ["kubernetes.io/pv-protection"]}})
    until_converted(ready, story, tmp_path)
    remove(ready, story)


def test_a_second_run_is_kept_away_while_the_first_lives(ready: Lab, tmp_path: Path) -> None:
    story = Story("second")
    plant(ready, story)
    end = in_process(conversion(ready, story, tmp_path), lambda _number, _what, _when: step_of(tmp_path) == "canary")
    assert end.result is None
    (lease,) = [
        one
        for one in ready.api.items("/apis/coordination.k8s.io/v1/namespaces/kubewin/leases")
        if one["metadata"]["name"] in [path.stem for path in tmp_path.iterdir()]
    ]
    path = f"/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/{lease['metadata']['name']}"
    # As if the one who holds it were on another machine, where nobody can look whether it lives.
    ready.api.patch(path, {"spec": {"holderIdentity": "elsewhere/1-1/1-1"}})
    result = refused(ready, story, tmp_path)
    assert result["reason"] == "locked"
    assert "is at work: elsewhere/1-1/1-1 gave a sign of life" in result["msg"]
    ready.api.patch(path, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    until_converted(ready, story, tmp_path)
    remove(ready, story)


@pytest.mark.parametrize("lost", ["file", "cluster"])
def test_either_copy_of_the_record_is_enough(ready: Lab, tmp_path: Path, lost: str) -> None:
    story = Story(f"one-{lost}")
    plant(ready, story)
    end = in_process(
        conversion(ready, story, tmp_path), lambda _number, _what, _when: step_of(tmp_path) == "create_volume"
    )
    assert end.result is None
    (file,) = tmp_path.iterdir()
    if lost == "file":
        file.unlink()
    else:
        ready.api.gone(f"/api/v1/namespaces/kubewin/configmaps/{file.stem}")
    until_converted(ready, story, tmp_path)
    remove(ready, story)


# All of it, longer


@pytest.fixture(scope="module")
def every_driver(ready: Lab) -> Lab:
    """The same lab with the other drivers, and something that looks like their controllers."""
    google = DRIVERS["gce_pd"]
    # Its volumes are bound to a zone, so its nodes have to have one.
    with ready.settings(drivers={google.name: lab_settings.Driver(topology={"topology.gke.io/zone": "zone-a"})}):
        for key in KINDS[1:]:
            deploy(ready, key)
            controller(ready, DRIVERS[key])
    body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "native"}}
    ready.api.ensure("/apis/storage.k8s.io/v1/storageclasses", {**body, "provisioner": "csi.example.com"})
    return ready


STORIES = [
    Story(f"{kind}-{policy}-{'set' if stateful else 'web'}".lower().replace("_", "-"), kind, policy, stateful)
    for kind in KINDS
    for policy in ("Delete", "Retain")
    for stateful in (True, False)
]


@pytest.mark.torture
@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
@pytest.mark.parametrize("variant", ["in_place", "re_claim"])
def test_every_kind_of_volume(every_driver: Lab, tmp_path: Path, story: Story, variant: Variant) -> None:
    lab = every_driver
    plant(lab, story)
    how = {"storage_class": "native"} if variant == "re_claim" else {}
    result = convert(conversion(lab, story, tmp_path, variant=variant, **how))
    assert result["status"] == "converted", result
    volume = lab.api.get(f"{VOLUMES}/{result['volume']}")
    claim = lab.api.get(f"{CLAIMS}/{story.claim}")
    assert volume["spec"]["csi"]["driver"] == DRIVERS[story.kind].name
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == story.policy
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == how.get("storage_class", "thin")
    assert claim["status"]["phase"] == volume["status"]["phase"] == "Bound"
    runs(lab, story)
    untouched(lab, story)
    remove(lab, story)


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["in_place", "re_claim"])
def test_every_kind_killed_at_every_request(every_driver: Lab, tmp_path: Path, kind: str, variant: Variant) -> None:
    story = Story(f"killed-{kind}-{variant}".replace("_", "-"), kind)
    plant(every_driver, story)
    deaths = killed_everywhere(every_driver, story, tmp_path, variant=variant)
    print(f"{kind} {variant}: {deaths} kills at request boundaries: 0 lost")
    remove(every_driver, story)


@pytest.mark.torture
def test_a_thousand_random_kills(ready: Lab, tmp_path: Path) -> None:
    random_kills(ready, tmp_path, seed=1, count=1000)


@pytest.mark.torture
def test_fifty_kills_of_the_api_server(ready: Lab, tmp_path: Path) -> None:
    for seed in range(10):
        api_kills(ready, tmp_path / str(seed), seed, count=5)
