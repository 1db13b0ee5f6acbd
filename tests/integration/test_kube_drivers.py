# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every driver in every mode on a real API server: accepted, stable once applied, found again and removed without a rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.observed_uses import list_applied_objects, read_uses
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from integration.kube import connect
from lab import handle
from lab.cluster.api import ApiError
from lab.handle import Lab, eventually
from unit.plugins.plugin_utils.drivers.test_options import TOLERATIONS
from unit.roles.manifests import Case, cases


@pytest.fixture(scope="module")
def manifests() -> Iterator[Lab]:
    """A lab of its own: namespaces that are made here would stay in a shared one."""
    made = handle.start(f"manifests-{os.getpid()}", nodes=1)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def client(manifests: Lab) -> Client:
    """An administrator's client."""
    return connect(manifests.state.kubeconfigs["admin"])


@pytest.mark.parametrize("case", list(cases(1)), ids=lambda case: f"{case.driver.key} {case.rule.mode}")
def test_it_is_accepted_stable_and_removed_whole(client: Client, case: Case) -> None:
    # What the driver's own installation brings is there already for vSphere, and is not ours to take.
    own = {"CSIDriver", "ConfigMap"} if case.driver.key == "vsphere" else set()
    wanted = [item for item in case.objects(client.read_version(), namespace=True) if item["kind"] not in own]
    applier = Applier(client)
    assert applier.apply(wanted).changed
    again = Applier(client).plan(wanted)
    assert [change.title for change in again.changes if change.action != "none"] == []
    assert again.warnings == ()

    assert read_uses(client, case.driver) == ()
    found = list_applied_objects(client, case.driver)
    assert len(found) == len([item for item in wanted if item["kind"] != "Namespace"])
    for kind, item in found:
        metadata = item["metadata"]
        client.delete(kind, metadata["name"], metadata.get("namespace"), metadata["uid"], dry_run=False)
    eventually(lambda: not list_applied_objects(client, case.driver), "nothing of the driver is left")


@pytest.mark.parametrize(("toleration", "accepted"), TOLERATIONS)
def test_a_toleration_is_accepted_as_its_check_says(manifests: Lab, toleration: dict[str, Any], accepted: bool) -> None:
    spec = {"tolerations": [toleration], "containers": [{"name": "main", "image": "main"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tolerant"}, "spec": spec}
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    if accepted:
        manifests.api.post(path, pod)
    else:
        with pytest.raises(ApiError, match=r"tolerations\[0\]"):
            manifests.api.post(path, pod)
