# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stories of conversions while others work on the same claims, volumes and sets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from integration.convert import (
    CLAIMS,
    NAMESPACE,
    VOLUMES,
    Story,
    convert,
    plant,
    record_paths,
    record_texts,
    remove,
    runs,
    shape,
)
from integration.convert_parts import (
    PLAYBOOK,
    conversion,
    converted,
    killed_at,
    kubeconfig_of_account,
    native,
    refused,
    until_converted,
    untouched,
)
from integration.playbooks import play
from lab.cluster import in_tree
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab, eventually, longer


def by_playbook_two_workloads_and_nothing_more_afterwards(lab: Lab, folder: Path) -> None:
    stories = [Story("web", stateful=False), Story("queue", policy="Retain")]
    for story in stories:
        plant(lab, story)
    uids = [lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] for story in stories]
    given = {
        "kubewin_convert_claims": ",".join(f"{NAMESPACE}/{story.claim}" for story in stories),
        "kubewin_kubeconfig": str(kubeconfig_of_account(lab)),
        "kubewin_convert_final": True,
        "kubewin_pod_tolerations": [{"operator": "Exists"}],
    }
    simulated = play(PLAYBOOK, "localhost,", "--check", variables=given)
    assert simulated.code == 0, simulated.screen
    assert simulated.changed == [("Check every claim, then convert", "localhost")]
    assert "wait until the driver's syncer has deregistered the disk" in simulated.screen
    assert "it is Lost for some seconds" in simulated.screen
    assert [record_texts(lab, record_paths(lab, story)) for story in stories] == [[], []]
    # For now the policies stay as they are, and the summary has the next command; also beside a claim that fails.
    token = yaml.safe_load(kubeconfig_of_account(lab).read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    with FaultProxy(lab.state, token) as proxy:
        proxy.add(Fault("error", status=400, verbs=("delete",), resources=("persistentvolumes",), name="pvc-queue"))
        through = {"kubewin_kubeconfig": proxy.kubeconfig, "kubewin_convert_final": False}
        kept = play(PLAYBOOK, "localhost,", variables={**given, **through})
    assert kept.code != 0
    (stats,) = kept.results("Check every claim, then convert").values()
    standing = stats["ansible_stats"]["data"]["kubewin_convert"]
    assert standing == {f"{NAMESPACE}/data-web-0": "reversible", f"{NAMESPACE}/data-queue-0": "failed"}
    assert re.search(r"data-queue-0: failed, .* is at step delete_volume", kept.screen)
    assert re.search(
        r"data-web-0: reversible, .*run again with final .*, and the policy is restored to Delete", kept.screen
    )
    assert f"created PersistentVolume {stories[0].volume}, the native one" in kept.screen
    # By a job in another container: the records in the cluster are all that it has.
    run = play(PLAYBOOK, "localhost,", variables=given, apart=folder / "another")
    assert run.code == 0, run.screen
    for story, uid in zip(stories, uids, strict=True):
        converted(lab, story, uid)
        assert f"{NAMESPACE}/{story.claim}: converted (volume {story.volume}" in kept.screen + run.screen
    assert f"{NAMESPACE}/data-web-0: waiting until" in kept.screen
    again = play(PLAYBOOK, "localhost,", variables=given)
    assert again.code == 0, again.screen
    assert again.changed == []
    assert "is already a native volume of csi.vsphere.vmware.com" in again.screen
    for story in stories:
        remove(lab, story)


def by_playbook_nothing_that_was_not_named(lab: Lab, _folder: Path) -> None:
    run = play(PLAYBOOK, "localhost,", variables={"kubewin_kubeconfig": str(kubeconfig_of_account(lab))})
    assert run.code != 0
    assert "kubewin_convert_claims is not given, expected claims" in run.screen


def a_claim_that_was_deleted_and_bound_by_hand_is_gone_on_with(lab: Lab, _folder: Path) -> None:
    """Once it has the lock that the message names."""
    story = Story("by-hand")
    plant(lab, story)
    claim, volume = f"{CLAIMS}/{story.claim}", f"{VOLUMES}/{story.volume}"
    killed_at(lab, story, "canary")
    made = lab.api.get(claim)
    lab.api.gone(claim)
    eventually(lambda: lab.api.get(volume)["status"]["phase"] == "Released", "the claim is gone")
    result = refused(lab, story)
    assert result["reason"] == "claim_gone"
    reported = re.search(
        r"lock it: kubectl -n shop annotate --overwrite pvc \S+ kubewin.io/convert=(\S+)\.", result["msg"]
    )
    assert reported, result["msg"]
    kept = {key: made["metadata"][key] for key in ("name", "labels")}
    lab.api.post(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": kept, "spec": made["spec"]})
    lab.api.patch(volume, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})
    eventually(lambda: lab.api.get(claim)["status"]["phase"] == "Bound", "it is bound by hand")
    assert refused(lab, story)["reason"] == "claim_changed"
    lab.api.patch(claim, {"metadata": {"annotations": {"kubewin.io/convert": reported[1]}}})
    until_converted(lab, story)
    remove(lab, story)


def a_user_that_restores_the_policy_just_before_the_deletion_loses_nothing(lab: Lab, _folder: Path) -> None:
    story = Story("vandal")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    struck: list[str] = []

    def strike(_number: int, what: str, when: str) -> None:
        if what.startswith("DELETE") and "persistentvolumes" in what and when == "before" and not struck:
            struck.append(what)
            lab.api.patch(f"{VOLUMES}/{story.volume}", {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})

    result = convert(conversion(lab, story), strike)
    assert result["status"] == "converted", result
    assert len(struck) == 1
    converted(lab, story, uid)
    remove(lab, story)


def claims_of_one_workload_are_converted_one_after_the_other_also_after_a_death(lab: Lab, _folder: Path) -> None:
    """With 0 replicas for one claim's sake a workload is not what it is to be again: the other one waits, and all come back."""
    one, two = Story("two-one", stateful=False), Story("two-two")
    plant(lab, one, two)
    uids = {story: lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] for story in (one, two)}
    # The first, which has stopped it, starts it again just when that was observed.
    killed_at(lab, one, "baseline")
    rolled_back: list[str] = []

    def meet(_number: int, what: str, when: str) -> None:
        if "deployments" in what and when == "answered" and not rolled_back:
            rolled_back.append(convert(conversion(lab, one, roll_back=True))["status"])

    refused_for_the_first = partial(_waits_for_another, lab, two, one)
    refused_for_the_first(meet)
    assert rolled_back == ["rolled_back"]
    # It begins, and is killed, once the second one was observed and has not begun.
    begins = partial(killed_at, lab, one, "baseline")
    result = convert(conversion(lab, two), meanwhile=begins)
    assert (result["status"], result["reason"]) == ("failed", "refused"), result
    assert lab.api.get(one.workload)["spec"]["replicas"] == 0
    assert f"CSI-B22 Deployment {NAMESPACE}/two-one: run " in result["msg"]
    refused_for_the_first()
    assert record_texts(lab, record_paths(lab, two)) == []
    # The one that was begun comes first, however they are named.
    for status, final in (("reversible", False), ("converted", True)):
        result = convert(conversion(lab, two, others=(one,), final=final))
        assert [status] * 2 == [result["status"], *(other["status"] for other in result["others"])], result
        assert lab.api.get(one.workload)["spec"]["replicas"] == 1
    runs(lab, one)
    for story, uid in uids.items():
        native(lab, story, uid)
    for story in (one, two):
        remove(lab, story)


def _waits_for_another(
    lab: Lab, story: Story, other: Story, meet: Callable[[int, str, str], None] | None = None
) -> None:
    """A story's conversion is refused, for the other's has stopped the workload."""
    result = convert(conversion(lab, story), meet)
    assert result["status"] == "refused", result
    (finding,) = [one for one in result["findings"] if one["severity"] == "blocker"]
    assert (finding["id"], finding["object"]) == ("CSI-B22", f"Deployment {NAMESPACE}/{other.name}")
    assert f"converts its PersistentVolumeClaim {NAMESPACE}/{other.claim} and is at step baseline" in finding["message"]


def a_set_that_deletes_its_claims_meanwhile_is_not_scaled_down(lab: Lab, _folder: Path) -> None:
    """It rests, or has only begun, when a user lets the set delete the claims of pods that are scaled down: all of them."""
    story = Story("reaper", policy="Retain")
    plant(lab, story)
    before = shape(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]

    def scaled_away(fate: str) -> None:
        lab.api.patch(story.workload, {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": fate}}})

    def refuses(**how: Any) -> None:
        result = refused(lab, story, **how)
        assert result["reason"] == "claims_at_risk", result
        assert "StatefulSet shop/reaper has persistentVolumeClaimRetentionPolicy whenScaled: Delete" in result["msg"]
        assert "kubectl -n shop patch statefulset reaper" in result["msg"]
        assert lab.api.get(story.workload)["spec"]["replicas"] == 1
        assert lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] == uid

    killed_at(lab, story, "quiesce")
    scaled_away("Delete")
    refuses()
    scaled_away("Retain")
    assert convert(conversion(lab, story, final=False))["status"] == "reversible"
    scaled_away("Delete")
    refuses(roll_back=True)
    scaled_away("Retain")
    assert convert(conversion(lab, story, roll_back=True))["status"] == "rolled_back"
    eventually(lambda: shape(lab, story) == before, "everything as it was")
    untouched(lab, story)
    remove(lab, story)


def a_new_volume_before_the_register_has_forgotten_the_old_one_is_lost_to_it(lab: Lab, _folder: Path) -> None:
    """Why the step `forget` waits. By hand and too early, the disk is out of the register while a claim is bound to it."""
    story, late = Story("early"), Story("forgotten")
    for one in (story, late):
        plant(lab, one)
    before = shape(lab, late)
    with lab.settings(syncer_stuck=True):
        killed_at(lab, late, "forget")
        # It rolls back by itself if nothing unregisters the disk.
        for seconds in longer(1.5):
            result = convert(conversion(lab, late, step=seconds))
            # Otherwise the rollback timed out as well, and the next run continues it.
            if result["status"] == "rolled_back":
                break
        assert result["status"] == "rolled_back", result
        assert "removes the CnsVSphereVolumeMigration of" in result["msg"]
        killed_at(lab, story, "forget")
        record = json.loads(record_texts(lab, record_paths(lab, story))[0])
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
