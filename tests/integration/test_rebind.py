# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes become native CSI ones on the same disk, whatever happens meanwhile, and no byte of them is lost."""

from __future__ import annotations

import json
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.cluster import client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.rebind_records import CannotKeep
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import Wanted
from ansible_collections.kubewin.csi.plugins.module_utils.rebind import objects
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.needs import needs
from ansible_collections.kubewin.csi.plugins.module_utils.rebind.record import Variant
from integration.kube import applied, connect, install_csi_proxy, label
from integration.playbooks import ROOT, play
from integration.rebind import (
    CLAIMS,
    FILES,
    KINDS,
    NAMESPACE,
    VOLUMES,
    AtOnce,
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
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab, eventually, longer

NODES = ("win-1", "win-2")
ACCOUNT = "converter"
PLAYBOOK = "playbooks/rebind_volumes.yml"
# Stories at a time.
WIDTH = 4


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
    access.bind(lab.api, "kubewin-csi-rebind", ACCOUNT)
    access.bind(lab.api, "kubewin-csi-rebind-workloads", ACCOUNT, NAMESPACE)
    # Those that single stories keep their records in as well.
    for place in (access.NAMESPACE, "kubewin-records", "other", "copies"):
        access.bind(lab.api, "kubewin-csi-records", ACCOUNT, place)
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
    assert not [name for name in claim["metadata"].get("annotations", {}) if "rebind" in name]
    assert not [name for name in claim["metadata"]["finalizers"] if "rebind" in name]
    untouched(lab, story)


def uninterrupted(lab: Lab, folder: Path, story: Story) -> dict[str, Any]:
    """What the objects of a story like this are when nothing happened meanwhile."""
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    assert convert(conversion(lab, story, folder))["status"] == "converted"
    converted(lab, story, uid)
    volume = lab.api.get(f"{VOLUMES}/{story.volume}")
    assert volume["spec"]["csi"]["volumeHandle"] == in_tree.fcd(story.source()["vsphereVolume"]["volumePath"])
    found = shape(lab, story)
    remove(lab, story)
    return found


def killed_everywhere(lab: Lab, story: Story, folder: Path, half: int | None = None, **how: Any) -> int:
    """Convert with a death at every boundary of every request; answers with how many that were."""
    boundaries = Boundaries(folder, half)
    deaths = 0
    while (end := in_process(conversion(lab, story, folder, **how), boundaries.decide)).result is None:
        deaths += 1
        boundaries.note(end.died)
        untouched(lab, story)
    # The last death may come when everything was done; then there is a native volume, and nothing more to do.
    assert end.result["status"] in ("converted", "native"), end.result
    return deaths


def killed_at(lab: Lab, story: Story, folder: Path, step: str, **how: Any) -> None:
    """Convert until the record says that step, and die before the next request."""
    end = in_process(conversion(lab, story, folder, **how), lambda _number, _what, _when: step_of(folder) == step)
    assert end.result is None, end.result
    untouched(lab, story)


def step_of(folder: Path) -> str:
    """At which step the record in a folder stands; empty without one."""
    for path in folder.glob("kubewin-rebind-*.json"):
        return str(json.loads(path.read_text(encoding="utf-8"))["step"])
    return ""


def until_converted(lab: Lab, story: Story, folder: Path, **how: Any) -> dict[str, Any]:
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    result = convert(conversion(lab, story, folder, **how))
    assert result["status"] in ("converted", "native"), result
    converted(lab, story, uid)
    return result


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

    # Controllers come back to an API server that was away when their own patience is over, of up to a minute; and a pod whose
    # volume kube-controller-manager did not know yet when it saw the pod is looked at again after some minutes.
    patience = 600
    result = convert(conversion(lab, story, folder, step=patience), meet)
    for start in starts:
        start.join()
    assert result["status"] == "converted", (seed, events, result["msg"])
    assert met == events
    runs(lab, story, patience)
    untouched(lab, story)
    remove(lab, story, patience)
    print(f"{count} kills of the API server, seed {seed}, before requests {events}: 0 lost")


# Stories, told at the same time on one lab


def killed_at_every_request_of_every_other_step_it_goes_on(lab: Lab, folder: Path, half: int = 0) -> None:
    expected = uninterrupted(lab, folder / "expected", Story(f"calm-{half}"))
    story, records = Story(f"killed-{half}"), folder / "records"
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    deaths = killed_everywhere(lab, story, records, half)
    converted(lab, story, uid)
    assert shape(lab, story) == expected
    assert deaths > 80
    print(f"{deaths} kills at request boundaries, half {half + 1} of 2: 0 lost")
    remove(lab, story)


def killed_at_every_request_of_all_others_it_goes_on(lab: Lab, folder: Path) -> None:
    killed_at_every_request_of_every_other_step_it_goes_on(lab, folder, half=1)


def killed_at_random_instants_it_goes_on(lab: Lab, folder: Path) -> None:
    random_kills(lab, folder, seed=20261121, count=20)


def undone_the_volume_is_what_it_was(lab: Lab, folder: Path, step: str = "canary") -> None:
    story = Story(f"back-{step.replace('_', '-')}")
    plant(lab, story)
    before = shape(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    killed_at(lab, story, folder, step)
    result = convert(conversion(lab, story, folder, undo=True))
    assert result["status"] == "undone", result
    assert lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] == uid
    # The attacher's finalizer and the event of the last attachment come when they come.
    eventually(lambda: shape(lab, story) == before, "everything as it was")
    untouched(lab, story)
    remove(lab, story)


def by_playbook_two_workloads_at_once_and_nothing_more_afterwards(lab: Lab, folder: Path) -> None:
    stories = [Story("web", stateful=False), Story("queue", policy="Retain")]
    for story in stories:
        plant(lab, story)
    uids = [lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] for story in stories]
    given = {
        "kubewin_rebind_claims": ",".join(f"{NAMESPACE}/{story.claim}" for story in stories),
        "kubewin_kubeconfig": str(_kubeconfig(lab)),
        "kubewin_output_dir": os.path.relpath(folder, ROOT),
        "kubewin_rebind_final": True,
        "kubewin_rebind_tolerations": [{"operator": "Exists"}],
    }
    look = play(PLAYBOOK, "localhost,", "--check", variables=given)
    assert look.code == 0, look.screen
    assert look.changed == []
    assert "wait until the driver's syncer has taken the disk out of its register" in look.screen
    assert "know: it is Lost for some seconds" in look.screen
    assert list(folder.iterdir()) == []
    # For a while the policies stay as they are, and one is told what to do then; also beside a claim that fails.
    token = yaml.safe_load(_kubeconfig(lab).read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    with FaultProxy(lab.state, token) as proxy:
        proxy.add(Fault("error", status=400, verbs=("delete",), resources=("persistentvolumes",), name="pvc-queue"))
        through = {"kubewin_kubeconfig": proxy.kubeconfig, "kubewin_rebind_final": False}
        kept = play(PLAYBOOK, "localhost,", variables={**given, **through})
    assert kept.code != 0
    (stats,) = kept.results("Keep how each one stands for the job").values()
    standing = stats["ansible_stats"]["data"]["kubewin_rebind"]
    assert standing == {f"{NAMESPACE}/data-web-0": "resting", f"{NAMESPACE}/data-queue-0": "failed"}
    assert re.search(r"data-queue-0: failed, .* stands at step delete_volume", kept.screen)
    assert re.search(
        r"data-web-0: resting, .*run again with final .*, and the policy becomes Delete again", kept.screen
    )
    assert f"created PersistentVolume {stories[0].volume}, the native one" in kept.screen
    # By a job in another container: the records in the cluster are all that it has.
    kept_there = folder.parent / "another" / "kept"
    run = play(
        PLAYBOOK, "localhost,", variables={**given, "kubewin_output_dir": str(kept_there)}, apart=kept_there.parent
    )
    assert run.code == 0, run.screen
    for story, uid in zip(stories, uids, strict=True):
        converted(lab, story, uid)
        assert f"{NAMESPACE}/{story.claim}: converted (volume {story.volume}" in kept.screen + run.screen
    assert f"{NAMESPACE}/data-web-0: waiting until" in kept.screen
    again = play(PLAYBOOK, "localhost,", variables=given)
    assert again.code == 0, again.screen
    assert again.changed == []
    assert "already is a native volume of csi.vsphere.vmware.com" in again.screen
    for story in stories:
        remove(lab, story)


def by_playbook_nothing_that_was_not_named(lab: Lab, _folder: Path) -> None:
    run = play(PLAYBOOK, "localhost,", variables={"kubewin_kubeconfig": str(_kubeconfig(lab))})
    assert run.code != 0
    assert "nothing is converted that was not named" in run.screen


def re_claim_while_somebody_scales_the_set_up(lab: Lab, folder: Path) -> None:
    """The set makes the claim first, and gets the disk with it. It is named, not deleted, and the run goes on without it."""
    story = Story("anew")
    plant(lab, story)
    how: dict[str, Any] = {"variant": "re_claim"}
    claim, native = f"{CLAIMS}/{story.claim}", f"{VOLUMES}/{story.volume}-csi"
    before = lab.api.get(claim)["metadata"]["uid"]
    killed_at(lab, story, folder, "create_claim", **how)
    eventually(lambda: not lab.api.ok(claim), "the claim is gone")
    lab.api.patch(story.workload, {"spec": {"replicas": 1}})
    runs(lab, story)
    sets = lab.api.get(claim)
    assert sets["metadata"]["uid"] != before
    assert sets["spec"]["volumeName"] == f"{story.volume}-csi"
    result = refused(lab, story, folder, **how)
    assert result["reason"] == "claim_changed"
    assert f"and has the volume of this run, {story.volume}-csi" in result["msg"]
    assert f"and only then: kubectl -n {NAMESPACE} delete pvc {story.claim}" in result["msg"]
    lab.api.patch(story.workload, {"spec": {"replicas": 0}})
    lab.api.gone(claim)
    eventually(lambda: not lab.api.ok(claim), "the set's claim is gone")
    result = convert(conversion(lab, story, folder, **how))
    assert result["status"] == "converted", result
    made, volume = lab.api.get(claim), lab.api.get(native)
    assert made["metadata"]["uid"] not in (before, sets["metadata"]["uid"])
    assert made["metadata"]["labels"] == {"app": story.name}
    assert made["spec"]["volumeName"] == f"{story.volume}-csi"
    assert (volume["status"]["phase"], volume["spec"]["persistentVolumeReclaimPolicy"]) == ("Bound", "Delete")
    assert not lab.api.ok(f"{VOLUMES}/{story.volume}")
    runs(lab, story)
    untouched(lab, story)
    remove(lab, story)


def a_claim_that_was_deleted_and_bound_by_hand_is_gone_on_with(lab: Lab, folder: Path) -> None:
    """Once it has the lock that the message names; and what rests in another cluster, under the same name, stays as it is."""
    story = Story("by-hand")
    plant(lab, story)
    claim, volume = f"{CLAIMS}/{story.claim}", f"{VOLUMES}/{story.volume}"
    killed_at(lab, story, folder, "canary")
    (file,) = folder.iterdir()
    begun = json.loads(file.read_text(encoding="utf-8"))
    resting = json.dumps({**begun, "run": "staging", "cluster": "another", "step": "finish"})
    elsewhere = folder / "kubewin-rebind-staging.json"
    elsewhere.write_text(resting, encoding="utf-8")
    made = lab.api.get(claim)
    lab.api.gone(claim)
    eventually(lambda: lab.api.get(volume)["status"]["phase"] == "Released", "the claim is gone")
    result = refused(lab, story, folder)
    assert result["reason"] == "claim_gone"
    told = re.search(r"lock it: kubectl -n shop annotate --overwrite pvc \S+ kubewin.io/rebind=(\S+)\.", result["msg"])
    assert told, result["msg"]
    kept = {key: made["metadata"][key] for key in ("name", "labels")}
    lab.api.post(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": kept, "spec": made["spec"]})
    lab.api.patch(volume, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})
    eventually(lambda: lab.api.get(claim)["status"]["phase"] == "Bound", "it is bound by hand")
    assert refused(lab, story, folder)["reason"] == "claim_changed"
    lab.api.patch(claim, {"metadata": {"annotations": {"kubewin.io/rebind": told[1]}}})
    until_converted(lab, story, folder)
    assert elsewhere.read_text(encoding="utf-8") == resting
    remove(lab, story)


def re_claim_while_somebody_sets_the_policy_back(lab: Lab, folder: Path) -> None:
    """In the instant before each deletion is sent. In the order that suggests itself the disk would go with the claim."""
    story = Story("vandal")
    plant(lab, story)
    struck: list[str] = []

    def strike(_number: int, what: str, when: str) -> None:
        if what.startswith("DELETE") and "persistentvolume" in what and when == "before" and what not in struck:
            struck.append(what)
            for path in (f"{VOLUMES}/{story.volume}", f"{VOLUMES}/{story.volume}-csi"):
                if lab.api.ok(path):
                    lab.api.patch(path, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})

    result = convert(conversion(lab, story, folder, variant="re_claim"), strike)
    assert result["status"] == "converted", result
    assert [what.rpartition("/")[0].rpartition("/")[2] for what in struck] == [
        "persistentvolumes",
        "persistentvolumeclaims",
    ]
    runs(lab, story)
    untouched(lab, story)
    remove(lab, story)


def claims_of_one_workload_are_converted_one_after_the_other_also_after_a_death(lab: Lab, folder: Path) -> None:
    """With 0 replicas for one claim's sake a workload is not what it is to be again: the other one waits, and all come back."""
    one, two = Story("two-one", stateful=False), Story("two-two")
    plant(lab, one, two)
    uids = {story: lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] for story in (one, two)}
    # The first, which has stopped it, starts it again just when that was seen.
    killed_at(lab, one, folder, "baseline")
    undone: list[str] = []

    def meet(_number: int, what: str, when: str) -> None:
        if "deployments" in what and when == "answered" and not undone:
            undone.append(convert(conversion(lab, one, folder, undo=True))["status"])

    refused_for_the_first = partial(_waits_for_another, lab, two, folder, one)
    refused_for_the_first(meet)
    assert undone == ["undone"]
    # It is begun, and dies, when the second has been looked at and has not begun.
    begins = partial(killed_at, lab, one, folder, "baseline")
    result = convert(conversion(lab, two, folder), meanwhile=begins)
    assert (result["status"], result["reason"]) == ("failed", "refused"), result
    assert lab.api.get(one.workload)["spec"]["replicas"] == 0
    assert f"CSI-B22 Deployment {NAMESPACE}/two-one: run " in result["msg"]
    refused_for_the_first()
    assert len(list(folder.glob("kubewin-rebind-*.json"))) == 1
    # The one that was begun comes first, however they are named.
    for status, final in (("resting", False), ("converted", True)):
        result = convert(conversion(lab, two, folder, others=(one,), final=final))
        assert [status] * 2 == [result["status"], *(other["status"] for other in result["others"])], result
        assert lab.api.get(one.workload)["spec"]["replicas"] == 1
    runs(lab, one)
    for story, uid in uids.items():
        native(lab, story, uid)
    for story in (one, two):
        remove(lab, story)


def _waits_for_another(
    lab: Lab, story: Story, folder: Path, other: Story, meet: Callable[[int, str, str], None] | None = None
) -> None:
    """A story's conversion is refused, for the other's has stopped the workload."""
    result = convert(conversion(lab, story, folder), meet)
    assert result["status"] == "refused", result
    (finding,) = [one for one in result["findings"] if one["severity"] == "blocker"]
    assert (finding["id"], finding["object"]) == ("CSI-B22", f"Deployment {NAMESPACE}/{other.name}")
    assert (
        f"converts its PersistentVolumeClaim {NAMESPACE}/{other.claim}, and stands at step baseline"
        in finding["message"]
    )


def a_set_that_deletes_its_claims_meanwhile_is_not_scaled_down(lab: Lab, folder: Path) -> None:
    """It rests, or was only begun, when somebody has the set delete the claims of pods that are scaled away: all of them."""
    story = Story("reaper", policy="Retain")
    plant(lab, story)
    before = shape(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]

    def scaled_away(fate: str) -> None:
        lab.api.patch(story.workload, {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": fate}}})

    def refuses(**how: Any) -> None:
        result = refused(lab, story, folder, **how)
        assert result["reason"] == "claims_at_risk", result
        assert "StatefulSet shop/reaper has persistentVolumeClaimRetentionPolicy whenScaled: Delete" in result["msg"]
        assert "kubectl -n shop patch statefulset reaper" in result["msg"]
        assert lab.api.get(story.workload)["spec"]["replicas"] == 1
        assert lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] == uid

    killed_at(lab, story, folder, "quiesce")
    scaled_away("Delete")
    refuses()
    scaled_away("Retain")
    assert convert(conversion(lab, story, folder, final=False))["status"] == "resting"
    scaled_away("Delete")
    refuses(undo=True)
    scaled_away("Retain")
    assert convert(conversion(lab, story, folder, undo=True))["status"] == "undone"
    eventually(lambda: shape(lab, story) == before, "everything as it was")
    untouched(lab, story)
    remove(lab, story)


def a_new_volume_before_the_register_has_forgotten_the_old_one_is_lost_to_it(lab: Lab, folder: Path) -> None:
    """Why the step `forget` waits. By hand and too early, the disk is out of the register while a claim is bound to it."""
    story, late = Story("early"), Story("forgotten")
    for one in (story, late):
        plant(lab, one)
    before = shape(lab, late)
    with lab.settings(syncer_down=True):
        killed_at(lab, late, folder / "late", "forget")
        # It goes back by itself when nobody takes the disk out of the register.
        for seconds in longer(1.5):
            result = convert(conversion(lab, late, folder / "late", step=seconds))
            # Otherwise the way back took longer than that as well; it is gone on with.
            if result["status"] == "undone":
                break
        assert result["status"] == "undone", result
        assert "out of its register (CnsVSphereVolumeMigration), and it has not happened" in result["msg"]
        killed_at(lab, story, folder, "forget")
        record = json.loads(next(folder.glob("*.json")).read_text(encoding="utf-8"))
        volume = record["objects"]["new"]
        volume["spec"]["claimRef"]["uid"] = record["claim_uid"]
        lab.api.post(VOLUMES, volume)
        eventually(lambda: lab.api.get(f"{CLAIMS}/{story.claim}")["status"]["phase"] == "Bound", "bound again")
    registered = lab.state.paths.volumes.with_name("cns") / in_tree.fcd(story.source()["vsphereVolume"]["volumePath"])
    eventually(lambda: not registered.exists(), "the disk of the volume that is in use is out of the register")
    eventually(lambda: shape(lab, late) == before, "everything as it was")
    for one in (story, late):
        untouched(lab, one)
        remove(lab, one)


def what_the_blog_does_destroys_the_disk(lab: Lab, _folder: Path) -> None:
    """Delete the claim, then the pod, and "it will be provisioned again": this is why that is never done here."""
    story = Story("blog")
    plant(lab, story)
    assert (story.disk(lab) / "orders.db").exists()
    lab.api.delete(f"{CLAIMS}/{story.claim}")
    lab.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{story.name}-0")
    eventually(lambda: not story.disk(lab).exists(), "the disk is gone")
    remove(lab, story)


# Faults


def refused(lab: Lab, story: Story, folder: Path, **how: Any) -> dict[str, Any]:
    result = convert(conversion(lab, story, folder, **how))
    assert result["status"] in ("failed", "refused"), result
    untouched(lab, story)
    return result


def a_server_that_refuses_the_new_volume(lab: Lab, folder: Path) -> None:
    """Found before anything is changed; or when the old one is gone already, and then that comes back."""
    early, late = Story("policy"), Story("late")
    for story in (early, late):
        plant(lab, story)
    before = shape(lab, late)
    uid = lab.api.get(f"{VOLUMES}/{early.volume}")["metadata"]["uid"]
    killed_at(lab, late, folder / "late", "create_volume")
    with denied(
        lab, "native volumes", "persistentvolumes", _labelled(early, late), "!has(object.spec.csi)", _native(early)
    ):
        result = refused(lab, early, folder / "early")
        assert result["reason"] == "admission_refused"
        assert "no native volumes here" in result["msg"]
        live = lab.api.get(f"{VOLUMES}/{early.volume}")
        assert (live["metadata"]["uid"], live["spec"]["persistentVolumeReclaimPolicy"]) == (uid, "Delete")
        assert lab.api.get(early.workload)["spec"]["replicas"] == 1
        result = convert(conversion(lab, late, folder / "late"))
        assert result["status"] == "undone", result
        assert "the new volume was refused" in result["msg"]
    eventually(lambda: shape(lab, late) == before, "everything as it was")
    untouched(lab, late)
    # The pod that reads the data is rehearsed as well, while the workload still works.
    name = objects.helper_name(objects.run_name(lab.api.get(f"{CLAIMS}/{early.claim}")["metadata"]["uid"]))
    probe = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }  # fmt: skip
    with denied(lab, "such pods", "pods", f"object.metadata.name == '{name}'", "false", probe):
        result = refused(lab, early, folder / "early")
        assert result["reason"] == "admission_refused"
        assert f"would refuse the helper pod, which reads the data of {NAMESPACE}/{early.claim}" in result["msg"]
        assert lab.api.get(early.workload)["spec"]["replicas"] == 1
    # And what was begun in place is not gone on with as something else.
    with pytest.raises(ClusterError, match="begun with variant in_place, and re_claim is asked for now"):
        convert(conversion(lab, early, folder / "early", variant="re_claim"))
    until_converted(lab, early, folder / "early")
    for story in (early, late):
        remove(lab, story)


def _labelled(*stories: Story) -> str:
    """Whether an object is of one of these."""
    names = [story.name for story in stories]
    return f"has(object.metadata.labels) && 'app' in object.metadata.labels && object.metadata.labels['app'] in {names}"


def _native(story: Story) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "probe", "labels": {"app": story.name}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "x", "volumeHandle": "x"}},
    }  # fmt: skip


@contextmanager
def denied(lab: Lab, what: str, resource: str, condition: str, allowed: str, probe: dict[str, Any]) -> Iterator[None]:
    """A policy of the cluster against what meets the condition, for the length of a block. probe: an object that it refuses."""
    base = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    validation = {"expression": allowed, "message": f"no {what} here"}
    path = VOLUMES if resource == "persistentvolumes" else f"/api/v1/namespaces/{NAMESPACE}/{resource}"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-csi"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "of-these", "expression": condition}],
            "validations": [validation],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-csi"},
        "spec": {"policyName": "no-csi", "validationActions": ["Deny"]},
    }
    lab.api.ensure(f"{base}/validatingadmissionpolicies", policy)
    lab.api.ensure(f"{base}/validatingadmissionpolicybindings", binding)

    def in_force() -> bool:
        try:
            lab.api.post(f"{path}?dryRun=All", probe)
        except ApiError as error:
            return f"no {what} here" in str(error)
        return False

    eventually(in_force, "the policy is in force")
    try:
        yield
    finally:
        lab.api.gone(f"{base}/validatingadmissionpolicybindings/no-csi")
        lab.api.gone(f"{base}/validatingadmissionpolicies/no-csi")
        eventually(lambda: not in_force(), "the policy is gone")


def somebody_who_puts_things_back_is_named(lab: Lab, folder: Path) -> None:
    """GitOps or an operator, first with the policy, then with the replicas."""
    story = Story("gitops")
    plant(lab, story)
    volume = f"{VOLUMES}/{story.volume}"
    with kept(lab, volume, "persistentVolumeReclaimPolicy", "Delete"):
        result = refused(lab, story, folder)
    assert result["reason"] == "not_retained"
    assert f"{story.volume} was set to Retain 3 times, and somebody puts the other one back" in result["msg"]
    with kept(lab, story.workload, "replicas", 1):
        result = refused(lab, story, folder)
    assert result["reason"] == "not_quiet"
    assert "StatefulSet shop/gitops was scaled to 0 3 times, and somebody puts its replicas back" in result["msg"]
    until_converted(lab, story, folder)
    remove(lab, story)


@contextmanager
def kept(lab: Lab, path: str, field: str, value: Any) -> Iterator[None]:
    """Somebody sets a field back whenever it differs."""
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


def what_never_lets_go_is_named_one_after_the_other(lab: Lab, folder: Path) -> None:
    """A budget that allows no disruption (scaling is none), a pod that does not end, one that finished, an attachment, a volume."""
    story = Story("stuck")
    plant(lab, story)
    kept = {"metadata": {"finalizers": ["example.com/never"]}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": story.name}}
    spec = {"minAvailable": "100%", "selector": {"matchLabels": {"app": story.name}}}
    lab.api.post(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", {**budget, "spec": spec})
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    lab.api.patch(f"{pods}/{story.name}-0", kept)
    volume = lab.api.get(f"{VOLUMES}/{story.volume}")
    attachments = "/apis/storage.k8s.io/v1/volumeattachments"
    (attachment,) = [
        one["metadata"]["name"]
        for one in lab.api.items(attachments)
        if one["spec"]["source"].get("persistentVolumeName") == story.volume
    ]
    own = lab.api.get(f"{attachments}/{attachment}")["metadata"].get("finalizers") or []
    lab.api.patch(f"{attachments}/{attachment}", {"metadata": {"finalizers": [*own, "example.com/never"]}})

    def waits_for(text: str) -> None:
        for seconds in longer(1.5):
            result = refused(lab, story, folder, step=seconds)
            assert result["reason"] == "timeout"
            # Otherwise what comes before it had not come yet.
            if text in result["msg"]:
                break
        assert text in result["msg"]
        live = lab.api.get(f"{VOLUMES}/{story.volume}")
        assert live["metadata"]["uid"] == volume["metadata"]["uid"]
        assert "deletionTimestamp" not in live["metadata"]

    waits_for(f"pod shop/{story.name}-0 (Terminating on ")
    lab.api.post(pods, _finished(story))
    lab.api.patch(f"{pods}/{story.name}-job/status", {"status": {"phase": "Succeeded"}})
    lab.api.patch(f"{pods}/{story.name}-0", {"metadata": {"finalizers": None}})
    eventually(lambda: not lab.api.ok(f"{pods}/{story.name}-0"), "the pod is gone")
    waits_for(f"pod shop/{story.name}-job (Succeeded) holds the claim")
    lab.api.gone(f"{pods}/{story.name}-job")
    waits_for(f"VolumeAttachment {attachment} attaches it to ")
    live = lab.api.get(f"{attachments}/{attachment}")["metadata"]["finalizers"]
    rest = [one for one in live if one != "example.com/never"]
    lab.api.patch(f"{attachments}/{attachment}", {"metadata": {"finalizers": rest or None}})
    present = lab.api.get(f"{VOLUMES}/{story.volume}")["metadata"]["finalizers"]
    lab.api.patch(f"{VOLUMES}/{story.volume}", {"metadata": {"finalizers": [*present, "backup.example.com/protect"]}})
    result = refused(lab, story, folder)
    assert result["reason"] == "unknown_finalizer"
    assert "is kept by backup.example.com/protect" in result["msg"]
    lab.api.patch(f"{VOLUMES}/{story.volume}", {"metadata": {"finalizers": ["kubernetes.io/pv-protection"]}})
    until_converted(lab, story, folder)
    lab.api.gone(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/{story.name}")
    remove(lab, story)


def _finished(story: Story) -> dict[str, Any]:
    """A pod that no node has, as one whose node is gone."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": story.claim}}
    spec = {
        "schedulerName": "nobody",
        "containers": [{"name": "app", "image": "mcr.microsoft.com/windows/nanoserver:ltsc2022"}],
        "volumes": [volume],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{story.name}-job"}, "spec": spec}


@contextmanager
def renewed(lab: Lab, path: str, holder: str) -> Iterator[None]:
    """A lease that its holder renews, as long as a block lasts."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(0.5):
            fresh = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            lab.api.patch(path, {"spec": {"holderIdentity": holder, "renewTime": fresh}})

    renewer = threading.Thread(target=renew, daemon=True)
    renewer.start()
    eventually(lambda: lab.api.get(path)["spec"]["holderIdentity"] == holder, "it is renewed")
    try:
        yield
    finally:
        over.set()
        renewer.join()


def a_second_run_is_kept_away(lab: Lab, folder: Path) -> None:
    """By the first's sign of life; and one that keeps its records elsewhere, and looked before the first began, by the lock."""
    story, elsewhere = Story("second"), folder / "elsewhere"
    lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    plant(lab, story)
    how: dict[str, Any] = {"records": "other"}
    begins = partial(killed_at, lab, story, folder / "here", "quiesce")

    def meet(_number: int, what: str, when: str) -> None:
        """When the record of the second one is written, after its last look at what is in the way."""
        if what.startswith("POST") and "configmaps" in what and when == "before" and not (folder / "here").exists():
            begins()

    result = convert(conversion(lab, story, elsewhere, **how), meet)
    assert (result["status"], result["reason"]) == ("failed", "locked"), result
    assert "which has begun nothing" in result["msg"]
    assert convert(conversion(lab, story, elsewhere, undo=True, **how))["status"] == "undone"
    # Once more there is nothing of its own to undo, and something of somebody else.
    with pytest.raises(
        ClusterError, match=r"is locked by run .* and its record is in none of the places that were given"
    ):
        convert(conversion(lab, story, elsewhere, undo=True, **how))
    result = refused(lab, story, elsewhere, **how)
    assert [finding["id"] for finding in result["findings"] if finding["severity"] == "blocker"] == ["CSI-B13"]
    name = next((folder / "here").iterdir()).stem
    path = f"/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/{name}"
    # As if the one who holds it were on another machine, where nobody can look whether it lives.
    with renewed(lab, path, "elsewhere/1-1/1-1"):
        result = refused(lab, story, folder / "here")
    assert result["reason"] == "locked"
    assert f"at the conversion of {NAMESPACE}/{story.claim}: elsewhere/1-1/1-1 renewed its lease" in result["msg"]
    lab.api.patch(path, {"spec": {"renewTime": "2126-01-01T00:00:00.000000Z"}})
    result = refused(lab, story, folder / "here")
    assert (
        f"which is in the future; its clock, or the API server's, jumped. When you know that this run is dead: kubectl -n kubewin delete lease {name}"
        in result["msg"]
    )
    lab.api.patch(path, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    until_converted(lab, story, folder / "here")
    remove(lab, story)


def either_copy_of_the_record_is_enough_and_none_is_too_little(lab: Lab, folder: Path) -> None:
    """In a namespace of its own, for a record that nobody can read stops every other claim that has none there."""
    story = Story("copies")
    how: dict[str, Any] = {"records": "copies"}
    lab.api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "copies"}})
    plant(lab, story)
    (folder / "file").write_text("", encoding="utf-8")
    result = refused(lab, story, folder / "file" / "below", **how)
    assert result["reason"] == "record_unwritable"
    claim = lab.api.get(f"{CLAIMS}/{story.claim}")
    assert "kubewin.io/rebind" not in claim["metadata"]["annotations"]
    here = folder / "here"
    killed_at(lab, story, here, "delete_volume", **how)
    (file,) = here.iterdir()
    cluster = f"/api/v1/namespaces/copies/configmaps/{file.stem}"
    file.unlink()
    killed_at(lab, story, here, "release", **how)
    lab.api.gone(cluster)
    killed_at(lab, story, here, "create_volume", **how)
    file.write_text("{", encoding="utf-8")
    lab.api.patch(cluster, {"data": {"record.json": "["}})
    with pytest.raises(CannotKeep, match="a record cannot be read"):
        convert(conversion(lab, story, here, **how))
    untouched(lab, story)
    lab.api.gone(cluster)
    with pytest.raises(CannotKeep, match="a record cannot be read"):
        convert(conversion(lab, story, here, **how))
    remove(lab, story)


def a_clock_that_jumps_changes_nothing(lab: Lab, folder: Path) -> None:
    """By days, during every tenth request: time is taken from the server's answers, and waits from a clock that only runs."""
    story = Story("clock")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    dice, ahead = random.Random(1), [timedelta()]

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + ahead[0]

    def jump(number: int, _what: str, when: str) -> None:
        if when == "before" and number % 10 == 0:
            ahead[0] = timedelta(hours=dice.randint(-100, 100))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "datetime", Jumping)
        result = convert(conversion(lab, story, folder), jump)
    assert ahead != [timedelta()]
    assert result["status"] == "converted", result
    converted(lab, story, uid)
    remove(lab, story)


def a_server_in_trouble_is_no_refusal_and_nothing_is_asked_for_that_was_not_looked_up_before(
    lab: Lab, folder: Path
) -> None:
    """Connections to pods that are always cut, and a server that has no time: each ends the run, which says where it stands."""
    story = Story("trouble")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    token = yaml.safe_load(_kubeconfig(lab).read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    stands = "Run [0-9a-f]{16} stands at step %s \\(forward\\)"
    with FaultProxy(lab.state, token) as proxy:
        proxy.add(Fault("drop", resources=("pods/exec",)))
        # Somebody is quicker each time, and nobody puts anything back.
        proxy.add(Fault("conflict", verbs=("patch",), resources=("statefulsets",), times=5))
        for seconds in longer(3):
            through = Conversion(story, folder, proxy.kubeconfig, step=seconds)
            result = convert(through)
            assert (result["status"], result["reason"]) == ("failed", "timeout"), result
            # Otherwise what comes before any command had not come yet.
            if "for a command" in result["msg"]:
                break
        assert "could not be reached for a command" in result["msg"]
        assert re.search(stands % "baseline", result["msg"])
        proxy.clear()
        through = replace(through, step=300)
        proxy.add(
            Fault("throttled", verbs=("create",), resources=("persistentvolumes",), retry_after=3600, dry_run=False)
        )
        result = convert(through)
        assert (result["status"], result["reason"]) == ("failed", "too_many_requests"), result
        assert re.search(stands % "create_volume", result["msg"])
        proxy.add(Fault("error", status=401))
        with pytest.raises(ClusterError, match="does not accept these credentials"):
            convert(through)
        proxy.clear()
        gone = f'namespaces "{NAMESPACE}" not found'
        proxy.add(Fault("error", status=404, verbs=("create",), resources=("pods",), dry_run=False, message=gone))
        result = convert(through)
        assert re.search(f"{gone}.*{stands % 'canary'}", result["msg"]), result
        proxy.clear()
        proxy.add(Fault("expired", verbs=("list",), resources=("pods",), times=3))
        result = convert(through)
        assert re.search(f"list pods in {NAMESPACE}: .* too old.*{stands % 'canary'}", result["msg"]), result
        assert convert(through)["status"] == "converted"
        asked = [(call.verb, call.group, call.resource) for call in proxy.calls if not call.resource.startswith("/")]
    converted(lab, story, uid)
    first = next(place for place, call in enumerate(asked) if call[0] == "patch")
    looked_up = {(need.verb, need.group, need.resource) for need in needs([NAMESPACE], ["kubewin"], "in_place")}
    # What the first looks ask for, before anything is changed, need not be looked up besides.
    looked_up |= set(asked[:first])
    assert set(asked[first:]) <= looked_up
    remove(lab, story)


# The longest first.
TOLD = (
    killed_at_every_request_of_every_other_step_it_goes_on,
    killed_at_every_request_of_all_others_it_goes_on,
    by_playbook_two_workloads_at_once_and_nothing_more_afterwards,
    killed_at_random_instants_it_goes_on,
    claims_of_one_workload_are_converted_one_after_the_other_also_after_a_death,
    a_set_that_deletes_its_claims_meanwhile_is_not_scaled_down,
    what_never_lets_go_is_named_one_after_the_other,
    a_server_in_trouble_is_no_refusal_and_nothing_is_asked_for_that_was_not_looked_up_before,
    a_server_that_refuses_the_new_volume,
    re_claim_while_somebody_scales_the_set_up,
    re_claim_while_somebody_sets_the_policy_back,
    a_claim_that_was_deleted_and_bound_by_hand_is_gone_on_with,
    a_second_run_is_kept_away,
    somebody_who_puts_things_back_is_named,
    either_copy_of_the_record_is_enough_and_none_is_too_little,
    a_clock_that_jumps_changes_nothing,
    undone_the_volume_is_what_it_was,
    a_new_volume_before_the_register_has_forgotten_the_old_one_is_lost_to_it,
    by_playbook_nothing_that_was_not_named,
    what_the_blog_does_destroys_the_disk,
)
STORY = {story.__name__: story for story in TOLD}


@pytest.fixture(scope="module")
def at_once(ready: Lab, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtOnce]:
    """Those stories that were asked for."""
    folder = tmp_path_factory.mktemp("stories")
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "name" in item.callspec.params
    ]

    def tell(name: str) -> None:
        own = folder / f"{name}.d"
        own.mkdir()
        # Connections cannot be shared by processes.
        STORY[name](Lab(ready.state), own)

    made = AtOnce([name for name in STORY if name in asked], tell, folder, WIDTH)
    yield made
    made.end()


@pytest.mark.parametrize("name", STORY)
def test_a_conversion(at_once: AtOnce, name: str) -> None:
    at_once.result(name)


def test_it_outlives_the_api_server(ready: Lab, tmp_path: Path) -> None:
    api_kills(ready, tmp_path, seed=20261121, count=3)


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
    def tell(seed: str) -> None:
        random_kills(Lab(ready.state), tmp_path / f"{seed}.d", int(seed), 1000 // WIDTH)

    seeds = [str(number * 10_000) for number in range(1, WIDTH + 1)]
    lanes = AtOnce(seeds, tell, tmp_path, WIDTH, seconds=3600)
    for seed in seeds:
        lanes.result(seed)
    print(f"1000 kills at random instants, seeds {', '.join(seeds)}: 0 lost")


@pytest.mark.torture
def test_fifty_kills_of_the_api_server(ready: Lab, tmp_path: Path) -> None:
    for seed in range(10):
        api_kills(ready, tmp_path / str(seed), seed, count=5)


@pytest.mark.torture
@pytest.mark.parametrize("step", ["quiesce", "delete_volume", "release", "create_volume", "finish"])
def test_undone_from_every_step(ready: Lab, tmp_path: Path, step: str) -> None:
    undone_the_volume_is_what_it_was(ready, tmp_path, step)
