# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request that is forbidden names verb, resource and the rule to add, and leaves everything as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from integration.kube import applied, connect, gate, label, remove_driver, writes
from lab.faultproxy import Fault, FaultProxy
from lab.handle import Lab

# What planning, applying and the gate send, as RBAC names it. The test below fails when this is not all of it.
SENT = [
    ("list", "nodes", ""), ("list", "daemonsets", "apps"), ("get", "namespaces", ""), ("list", "deployments", "apps"),
    ("get", "csidrivers", "storage.k8s.io"), ("get", "storageclasses", "storage.k8s.io"), ("get", "configmaps", ""),
    ("get", "serviceaccounts", ""), ("get", "clusterroles", "rbac.authorization.k8s.io"),
    ("get", "clusterrolebindings", "rbac.authorization.k8s.io"), ("get", "roles", "rbac.authorization.k8s.io"),
    ("get", "rolebindings", "rbac.authorization.k8s.io"), ("get", "daemonsets", "apps"),
    ("patch", "serviceaccounts", ""), ("patch", "clusterroles", "rbac.authorization.k8s.io"),
    ("patch", "clusterrolebindings", "rbac.authorization.k8s.io"), ("patch", "roles", "rbac.authorization.k8s.io"),
    ("patch", "rolebindings", "rbac.authorization.k8s.io"), ("patch", "storageclasses", "storage.k8s.io"),
    ("patch", "daemonsets", "apps"), ("list", "csinodes", "storage.k8s.io"), ("list", "pods", ""),
    ("watch", "nodes", ""), ("watch", "daemonsets", "apps"), ("watch", "csinodes", "storage.k8s.io"),
    ("watch", "pods", ""), ("list", "events", ""), ("list", "controllerrevisions", "apps"),
    ("watch", "controllerrevisions", "apps"),
]  # fmt: skip


def everything(kubeconfig: str, seconds: float = 3) -> None:
    client = connect(kubeconfig, retry_for=5)
    applied(client)
    gate(client, seconds=seconds)


@pytest.fixture(scope="module")
def standing(lab: Lab) -> Iterator[Lab]:
    """The driver is applied and one node waits for it: nothing serves its pipes."""
    remove_driver(lab)
    label(lab, "win-1")
    applied(connect(lab.state.kubeconfigs["kubewin"]))
    yield lab
    remove_driver(lab)


@pytest.fixture
def proxy(lab: Lab) -> Iterator[FaultProxy]:
    with FaultProxy(lab.state) as made:
        yield made


def refused(proxy: FaultProxy, verb: str, resource: str, group: str) -> None:
    """Forbid one request, do everything, and read the error."""
    proxy.add(Fault("forbidden", verbs=(verb,), resources=(resource,)))
    with pytest.raises(ClusterError) as raised:
        # As long as it takes until that request is made.
        everything(proxy.kubeconfig, seconds=60)
    assert raised.value.reason == "forbidden"
    assert f"cannot {verb} {resource}" in str(raised.value)
    assert f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}' in str(raised.value)


@pytest.mark.usefixtures("standing")
def test_every_request_is_known_and_allowed(proxy: FaultProxy) -> None:
    everything(proxy.kubeconfig)
    sent = {
        (call.verb, call.resource, call.group)
        for call in proxy.calls
        if not call.resource.startswith("/") and not call.resource.endswith("reviews") and call.resource != "pods/log"
    }
    assert sent == set(SENT)


READS = [one for one in SENT if one[0] != "patch"]
WRITES = [one for one in SENT if one[0] == "patch"]
# The first read of each verb in the core group and in a named one: what the error says depends on nothing else.
DAILY = {(verb, bool(group)): (verb, resource, group) for verb, resource, group in reversed(READS)}.values()


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        pytest.param(*read, id=f"{read[0]} {read[1]}", marks=() if read in DAILY else pytest.mark.torture)
        for read in READS
    ],
)
def test_a_forbidden_read_names_the_rule_to_add(proxy: FaultProxy, verb: str, resource: str, group: str) -> None:
    refused(proxy, verb, resource, group)


@pytest.mark.parametrize(("verb", "resource", "group"), WRITES, ids=[f"{one[0]} {one[1]}" for one in WRITES])
def test_a_forbidden_write_names_the_rule_and_nothing_was_written(
    lab: Lab, proxy: FaultProxy, verb: str, resource: str, group: str
) -> None:
    # Nothing of ours is there, so that everything would be written. Reads come first in this file.
    remove_driver(lab)
    size = lab.audit_size()
    refused(proxy, verb, resource, group)
    assert writes(lab, size) == []
