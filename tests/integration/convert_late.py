# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stories of two runs on one claim: plans that another run made invalid, and requests that arrive after the next run has ended."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert import objects
from integration.convert import (
    CLAIMS,
    NAMESPACE,
    VOLUMES,
    Story,
    convert,
    in_process,
    plant,
    record_paths,
    record_texts,
    remove,
    runs,
    shape,
    step_of,
)
from integration.convert_parts import (
    PLAYBOOK,
    conversion,
    converted,
    kubeconfig_of_account,
    untouched,
)
from integration.late_writes import Choice, HoldingProxy, LateWrite, accepted, first, nth
from integration.playbooks import Run, family, finish, meanwhile, start
from lab.faultproxy import FaultProxy
from lab.handle import Lab, eventually

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases"
# What may be accepted late: a helper pod ends by itself, with a record the next run begins anew, and the second copy of a record that is
# done gets the text of the first.
_ACCEPTED = {("create", "pods"), ("create", "configmaps"), ("patch", "configmaps")}


@contextmanager
def proxied(lab: Lab) -> Iterator[FaultProxy]:
    """A proxy for the account of conversions."""
    with FaultProxy(lab.state, _token(lab)) as proxy:
        yield proxy


def _token(lab: Lab) -> str:
    return str(yaml.safe_load(kubeconfig_of_account(lab).read_text(encoding="utf-8"))["users"][0]["user"]["token"])


# Plans


def a_rollback_planned_before_the_conversion_became_final_finds_nothing_to_do(lab: Lab, folder: Path) -> None:
    story = Story("final-first")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    final, back = {"kubewin_convert_final": True}, {"kubewin_convert_roll_back": True}
    first, later = _side_by_side(lab, story, folder, final, back)
    assert first.code == 0, first.screen
    assert later.code == 0, later.screen
    assert later.changed == []
    assert f"a conversion of {NAMESPACE}/{story.claim} was made final at " in later.screen
    converted(lab, story, uid)
    assert convert(conversion(lab, story))["status"] == "native"
    remove(lab, story)


def a_final_run_planned_before_a_rollback_says_so_and_the_next_one_converts(lab: Lab, folder: Path) -> None:
    story = Story("back-first")
    plant(lab, story)
    before = shape(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    final, back = {"kubewin_convert_final": True}, {"kubewin_convert_roll_back": True}
    first, later = _side_by_side(lab, story, folder, back, final)
    assert first.code == 0, first.screen
    assert later.code != 0, later.screen
    assert "was changed by another run meanwhile: found a claim that is not converted, expected run " in later.screen
    eventually(lambda: shape(lab, story) == before, "everything as it was")
    assert convert(conversion(lab, story))["status"] == "converted"
    converted(lab, story, uid)
    remove(lab, story)


def a_final_run_killed_before_its_last_write_is_not_rolled_back(lab: Lab, _folder: Path) -> None:
    """Its claim is unlocked, and only the record does not say so yet: a rollback completes it, and says so."""
    story = Story("unlocked")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]

    paths = record_paths(lab, story)

    def unlocked(_number: int, what: str, when: str) -> bool:
        return when == "answered" and what.startswith("PATCH") and "claims" in what and step_of(lab, paths) == "unlock"

    assert in_process(conversion(lab, story), unlocked).result is None
    result = convert(conversion(lab, story, roll_back=True))
    assert result["status"] == "nothing", result
    assert re.search(r"was made final at \S+, so there is nothing to roll back", result["msg"])
    converted(lab, story, uid)
    assert convert(conversion(lab, story))["status"] == "native"
    remove(lab, story)


def _side_by_side(
    lab: Lab, story: Story, folder: Path, first: dict[str, Any], later: dict[str, Any]
) -> tuple[Run, Run]:
    """Two runs of the playbook on a conversion that can be rolled back; both have planned before the first one begins."""
    assert convert(conversion(lab, story, final=False))["status"] == "reversible"
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    name = objects.name_lease(NAMESPACE, story.claim)
    spec = {"holderIdentity": "elsewhere/1-1/1-1", "leaseDurationSeconds": 600, "renewTime": now}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    lab.api.post(_LEASES, lease)
    given = {
        "kubewin_convert_claims": f"{NAMESPACE}/{story.claim}",
        "kubewin_pod_tolerations": [{"operator": "Exists"}],
    }
    with proxied(lab) as one, proxied(lab) as two:
        processes = []
        for proxy, how in ((one, first), (two, later)):
            variables = {**given, **how, "kubewin_kubeconfig": proxy.kubeconfig}
            record = folder / f"{proxy.port}.jsonl"
            processes.append((start(PLAYBOOK, "localhost,", record=record, variables=variables), record))
        for proxy, (process, _record) in zip((one, two), processes, strict=True):
            meanwhile(process, partial(_waits, proxy), "it waits for the lease")
        (leader, its_record), (follower, record) = processes
        stopped = family(follower.pid)
        for number in stopped:
            os.kill(number, signal.SIGSTOP)
        lab.api.gone(f"{_LEASES}/{name}")
        ended = finish(leader, its_record)
        for number in stopped:
            os.kill(number, signal.SIGCONT)
        return ended, finish(follower, record)


def _waits(proxy: FaultProxy) -> bool:
    return any(call.resource == "leases" for call in proxy.calls)


# Requests


@dataclass(frozen=True, slots=True)
class Sweep:
    """How the run goes whose request is late, and the one that takes over. backward: whether it is a rollback."""

    name: str
    backward: bool
    next_backward: bool


SWEEPS = (
    Sweep("on", backward=False, next_backward=False),
    Sweep("on-back", backward=False, next_backward=True),
    Sweep("back", backward=True, next_backward=True),
)


def held_until_the_next_run_has_ended(lab: Lab, sweep: Sweep, name: str, choice: Choice) -> LateWrite | None:
    """Hold one write of a run in a proxy, kill the run, let another one end, and let the write through.

    None when the run ends without such a write. What is created all the same is gone after one more run.
    """
    story = Story(f"{sweep.name}-{name}")
    plant(lab, story)
    if sweep.backward:
        assert convert(conversion(lab, story, final=False))["status"] == "reversible"
    with HoldingProxy(lab.state, choice, token=_token(lab)) as proxy:
        first = conversion(lab, story, roll_back=sweep.backward, final=not sweep.backward)
        end = in_process(replace(first, kubeconfig=proxy.kubeconfig), until=proxy.held.is_set)
        if end.result is not None:
            assert end.result["status"] == ("rolled_back" if sweep.backward else "converted"), end.result
            remove(lab, story)
            return None
        following = conversion(lab, story, roll_back=sweep.next_backward, final=not sweep.next_backward)
        result = _ended(convert(following), sweep)
        (late,) = proxy.release()
    print(f"{story.name}: {late}", flush=True)
    if accepted([late]):
        assert (late.call.verb, late.call.resource) in _ACCEPTED, late
        if late.call.verb == "patch":
            assert len(set(record_texts(lab, record_paths(lab, story)))) == 1, late
    _ended(convert(following), sweep)
    _clean(lab, story, sweep, final="was made final" in result["msg"])
    remove(lab, story)
    return late


def _ended(result: dict[str, Any], sweep: Sweep) -> dict[str, Any]:
    allowed = ("rolled_back", "nothing") if sweep.next_backward else ("converted", "native")
    assert result["status"] in allowed, result
    return result


def _clean(lab: Lab, story: Story, sweep: Sweep, *, final: bool) -> None:
    """One volume, the data and the workload as they should be, and nothing of a run beside them."""
    claim = lab.api.get(f"{CLAIMS}/{story.claim}")
    # A rollback of what was final completes it.
    native = not sweep.next_backward or final
    volumes = [one for one in lab.api.items(VOLUMES) if one["spec"]["claimRef"]["name"] == story.claim]
    assert [one["metadata"]["name"] for one in volumes] == [story.volume] == [claim["spec"]["volumeName"]]
    assert ("csi" in volumes[0]["spec"]) is native
    assert volumes[0]["spec"]["persistentVolumeReclaimPolicy"] == story.policy
    assert not [key for key in claim["metadata"].get("annotations", {}) if "convert" in key]
    pods = lab.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app.kubernetes.io/part-of=convert")
    for pod in (pod for pod in pods if story.claim in str(pod["spec"].get("volumes"))):
        assert pod["spec"]["activeDeadlineSeconds"] == 660
        lab.api.gone(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    assert lab.api.get(story.workload)["spec"]["replicas"] == 1
    runs(lab, story)
    untouched(lab, story)


def writes_that_arrive_late_change_nothing(lab: Lab, _folder: Path) -> None:
    """The replicas of a workload that the next run left alone, the volume of a claim that was rolled back, and a helper pod."""
    for name, choice in (("scale", first("patch", "statefulsets")), ("volume", first("create", "persistentvolumes"))):
        late = held_until_the_next_run_has_ended(lab, SWEEPS[1], name, choice)
        assert late is not None
        assert late.status == 409
    late = held_until_the_next_run_has_ended(lab, SWEEPS[1], "helper", first("create", "pods"))
    assert late is not None
    # Nothing has its name any more: it is created, and ends at its deadline.
    assert late.status == 201


def every_write_late(lab: Lab, sweep: Sweep) -> None:
    held: list[LateWrite] = []
    while late := held_until_the_next_run_has_ended(lab, sweep, str(len(held) + 1), nth(len(held) + 1)):
        held.append(late)
    created = "; ".join(accepted(held))
    print(f"{sweep.name}: {len(held)} writes late, accepted: {created or 'none'}")
