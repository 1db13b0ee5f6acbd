# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Leftovers of an ended run are deleted, those of a live run are not: its lease decides, or its age before it has one."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.cleanup import describe_lease, find_earlier_runs
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import RunScope
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=timezone.utc)
MINE = RunScope("mine", "kubewin-verify-mine", owns_namespace=True)
# The first process of this boot is not this one's, and a process that is gone has another start.
ENDED = identify_process(os.getpid()) + "0"


def store_with(run: str, age: float, lease: dict[str, Any] | None = None) -> ObjectStore:
    store = ObjectStore()
    scope = RunScope(run, f"kubewin-verify-{run}", owns_namespace=True)
    store.now = NOW - timedelta(seconds=age)
    store.request("POST", "/api/v1/namespaces", scope.define_namespace())
    if lease is not None:
        subject = describe_lease(scope)
        body = {"metadata": {"name": subject.name, "namespace": subject.namespace, "labels": dict(subject.labels)}}
        spec = {"leaseDurationSeconds": 60, "renewTime": NOW.isoformat(), **lease}
        path = f"/apis/coordination.k8s.io/v1/namespaces/{scope.namespace}/leases"
        store.request("POST", path, {**body, "spec": spec})
    store.now = NOW
    return store


@pytest.mark.parametrize(
    ("age", "lease", "lives"),
    [
        (3600, {"holderIdentity": "there/7"}, "there/7 renewed its lease at 2026-11-21 08:00:00Z"),
        (3600, {"holderIdentity": ENDED}, ""),
        (3600, None, ""),
        (5, {"holderIdentity": ENDED}, ""),
        (5, None, "it began 5 s ago"),
    ],
)
def test_a_run_lives_while_it_renews_its_lease_or_only_just_began(
    age: float, lease: dict[str, Any] | None, lives: str
) -> None:
    (earlier,) = find_earlier_runs(client_of(store_with("a", age, lease)), MINE, print)
    assert earlier.scope == RunScope("a", "kubewin-verify-a", owns_namespace=True)
    assert lives in earlier.lives
    assert bool(earlier.lives) == bool(lives)


def test_own_objects_are_not_leftovers() -> None:
    assert find_earlier_runs(client_of(store_with("mine", 3600)), MINE, print) == ()
