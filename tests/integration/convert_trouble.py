# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stories of conversions that are refused, delayed or locked out, and that report why."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import transport
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import list_role_needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import load_roles
from integration.convert import (
    CLAIMS,
    NAMESPACE,
    VOLUMES,
    Conversion,
    Story,
    convert,
    plant,
    record_paths,
    record_texts,
    remove,
    shape,
)
from integration.convert_parts import (
    conversion,
    converted,
    kept,
    killed_at,
    kubeconfig_of_account,
    refused,
    until_converted,
    untouched,
)
from lab.cluster.api import ApiError
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab, eventually, longer


def a_server_that_refuses_the_new_volume(lab: Lab, _folder: Path) -> None:
    """Found before anything is changed; or once the old one is deleted, which is then created again."""
    early, late = Story("policy"), Story("late")
    for story in (early, late):
        plant(lab, story)
    before = shape(lab, late)
    uid = lab.api.get(f"{VOLUMES}/{early.volume}")["metadata"]["uid"]
    killed_at(lab, late, "create_volume")
    with denied(
        lab, "native volumes", "persistentvolumes", _labelled(early, late), "!has(object.spec.csi)", _native(early)
    ):
        result = refused(lab, early)
        assert result["reason"] == "admission_refused"
        assert "no native volumes here" in result["msg"]
        live = lab.api.get(f"{VOLUMES}/{early.volume}")
        assert (live["metadata"]["uid"], live["spec"]["persistentVolumeReclaimPolicy"]) == (uid, "Delete")
        assert lab.api.get(early.workload)["spec"]["replicas"] == 1
        result = convert(conversion(lab, late))
        assert result["status"] == "rolled_back", result
        assert "the API server refused the new volume" in result["msg"]
    eventually(lambda: shape(lab, late) == before, "everything as it was")
    untouched(lab, late)
    # The pod that reads the data is rehearsed as well, while the workload still works.
    name = objects.name_helper(objects.name_run(lab.api.get(f"{CLAIMS}/{early.claim}")["metadata"]["uid"]))
    probe = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }  # fmt: skip
    with denied(lab, "such pods", "pods", f"object.metadata.name == '{name}'", "false", probe):
        result = refused(lab, early)
        assert result["reason"] == "admission_refused"
        assert f"would refuse the helper pod, which reads the data of {NAMESPACE}/{early.claim}" in result["msg"]
        assert lab.api.get(early.workload)["spec"]["replicas"] == 1
    until_converted(lab, early)
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


def a_user_that_restores_objects_is_named(lab: Lab, _folder: Path) -> None:
    """GitOps or an operator, first with the policy, then with the replicas."""
    story = Story("gitops")
    plant(lab, story)
    volume = f"{VOLUMES}/{story.volume}"
    with kept(lab, volume, "persistentVolumeReclaimPolicy", "Delete"):
        result = refused(lab, story)
    assert result["reason"] == "not_retained"
    assert f"{story.volume} to Retain 3 times, but another client restores the other one" in result["msg"]
    with kept(lab, story.workload, "replicas", 1):
        result = refused(lab, story)
    assert result["reason"] == "not_quiet"
    assert "StatefulSet shop/gitops was scaled to 0 3 times, but another client restores its replicas" in result["msg"]
    until_converted(lab, story)
    remove(lab, story)


def what_never_lets_go_is_named_one_after_the_other(lab: Lab, _folder: Path) -> None:
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
            result = refused(lab, story, step=seconds)
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
    waits_for(f"pod shop/{story.name}-job (Succeeded) uses the claim")
    lab.api.gone(f"{pods}/{story.name}-job")
    waits_for(f"VolumeAttachment {attachment} attaches it to ")
    live = lab.api.get(f"{attachments}/{attachment}")["metadata"]["finalizers"]
    rest = [one for one in live if one != "example.com/never"]
    lab.api.patch(f"{attachments}/{attachment}", {"metadata": {"finalizers": rest or None}})
    present = lab.api.get(f"{VOLUMES}/{story.volume}")["metadata"]["finalizers"]
    lab.api.patch(f"{VOLUMES}/{story.volume}", {"metadata": {"finalizers": [*present, "backup.example.com/protect"]}})
    result = refused(lab, story)
    assert result["reason"] == "unknown_finalizer"
    assert "has finalizers backup.example.com/protect" in result["msg"]
    lab.api.patch(f"{VOLUMES}/{story.volume}", {"metadata": {"finalizers": ["kubernetes.io/pv-protection"]}})
    until_converted(lab, story)
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


def a_second_run_is_kept_away(lab: Lab, _folder: Path) -> None:
    """By the first one's lease; and one that keeps its records elsewhere, and observed before the first began, by the lock."""
    story = Story("second")
    plant(lab, story)
    how: dict[str, Any] = {"records": "other", "second": "elsewhere"}
    begins, paths = partial(killed_at, lab, story, "quiesce"), record_paths(lab, story)

    def meet(_number: int, what: str, when: str) -> None:
        """When the record of the second one is written, after its last check for blockers."""
        if what.startswith("POST") and "configmaps" in what and when == "before" and not record_texts(lab, paths):
            begins()

    result = convert(conversion(lab, story, **how), meet)
    assert (result["status"], result["reason"]) == ("failed", "locked"), result
    assert "which has changed nothing" in result["msg"]
    assert convert(conversion(lab, story, roll_back=True, **how))["status"] == "rolled_back"
    # Again there is nothing of its own to roll back, and something of another run.
    with pytest.raises(ClusterError, match=r"is locked by run .* and its record is in neither record namespace"):
        convert(conversion(lab, story, roll_back=True, **how))
    result = refused(lab, story, **how)
    assert [finding["id"] for finding in result["findings"] if finding["severity"] == "blocker"] == ["CSI-B13"]
    name = objects.name_lease(NAMESPACE, story.claim)
    path = f"/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/{name}"
    # As if its holder were on another machine, where its process cannot be checked.
    with renewed(lab, path, "elsewhere/1-1/1-1"):
        result = refused(lab, story)
    assert result["reason"] == "locked"
    assert (
        f"another run works on the conversion of {NAMESPACE}/{story.claim}: elsewhere/1-1/1-1 renewed its lease"
        in result["msg"]
    )
    # Its clock does not matter: it was not renewed for as long as it lasts.
    lab.api.patch(path, {"spec": {"renewTime": "2126-01-01T00:00:00.000000Z", "leaseDurationSeconds": 2}})
    until_converted(lab, story)
    remove(lab, story)


def either_copy_of_the_record_is_enough_and_none_is_too_little(lab: Lab, _folder: Path) -> None:
    """In a namespace of its own, for an unreadable record stops every other claim that has none there."""
    story = Story("copies")
    how: dict[str, Any] = {"records": "copies", "second": "more-copies"}
    plant(lab, story)
    first, second = record_paths(lab, story, how.values())
    killed_at(lab, story, "delete_volume", **how)
    lab.api.gone(second)
    killed_at(lab, story, "forget", **how)
    lab.api.gone(first)
    killed_at(lab, story, "create_volume", **how)
    for copy in (first, second):
        lab.api.patch(copy, {"data": {"record.json": "["}})
    for _copy in range(2):
        with pytest.raises(ClusterError, match="may have an unreadable record"):
            convert(conversion(lab, story, **how))
        untouched(lab, story)
        lab.api.gone(first)
    remove(lab, story)


def a_clock_that_jumps_changes_nothing(lab: Lab, _folder: Path) -> None:
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
        patch.setattr(transport, "datetime", Jumping)
        result = convert(conversion(lab, story), jump)
    assert ahead != [timedelta()]
    assert result["status"] == "converted", result
    converted(lab, story, uid)
    remove(lab, story)


def a_server_in_trouble_is_no_refusal_and_nothing_is_asked_for_that_was_not_looked_up_before(
    lab: Lab, _folder: Path
) -> None:
    """Connections to pods that always break, and an overloaded server: each ends the run, which reports its step."""
    story = Story("trouble")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    token = yaml.safe_load(kubeconfig_of_account(lab).read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    stands = "Run [0-9a-f]{16} is at step %s \\(forward\\)"
    with FaultProxy(lab.state, token) as proxy:
        proxy.add(Fault("drop", resources=("pods/exec",)))
        # Another client is faster each time, and its writes are never reverted.
        proxy.add(Fault("conflict", verbs=("patch",), resources=("statefulsets",), times=5))
        for seconds in longer(3):
            through = Conversion(story, proxy.kubeconfig, step=seconds)
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
        with pytest.raises(ClusterError, match="rejects these credentials"):
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
    looked_up = {
        (need.verb, need.group, need.resource)
        for name in ("convert", "convert-workloads", "records")
        for need in list_role_needs(load_roles()[f"kubewin-csi-{name}"])
    }
    # Permissions of the first observation, before any change, need no separate check.
    looked_up |= set(asked[:first])
    assert set(asked[first:]) <= looked_up
    remove(lab, story)
