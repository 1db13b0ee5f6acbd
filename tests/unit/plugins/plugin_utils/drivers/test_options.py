# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An option that no cluster would take is refused by the plan, and not when half of everything is there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.options import check_options, is_toleration
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from unit.plugins.plugin_utils.drivers.worlds import snapshot

LONG = "a" * 254


@pytest.mark.parametrize(
    ("desired", "reported"),
    [
        *[(DriverRequest(namespace=name), f"namespace {name}") for name in ("Kube-System", "kube_system", "-a", "a-", "a/b", "a" * 64)],
        (DriverRequest(namespace="a\n"), "namespace 'a\\n'"),
        (DriverRequest(storage_class={"name": LONG}), f"storage_class.name {LONG}"),
        (DriverRequest(storage_class={"name": "Fast_Disks"}), "storage_class.name Fast_Disks"),
        (DriverRequest(priority_class="System"), "priority_class System"),
        (DriverRequest(image_pull_secrets=("good", "a..b")), "image_pull_secrets a..b"),
        (DriverRequest(images={"driver": "no such image"}), "images.driver no such image"),
        (DriverRequest(image_mirror="mirror example"), "image_mirror mirror example"),
        (DriverRequest(image_digests={"driver": "sha256:zz"}), "image_digests.driver sha256:zz"),
        (DriverRequest(max_unavailable="lots"), "max_unavailable lots"),
        (DriverRequest(max_unavailable="-1"), "max_unavailable -1"),
        (DriverRequest(kubelet_dir="/var/lib/kubelet"), "kubelet_dir /var/lib/kubelet"),
        (DriverRequest(node_selector={"bad key!": "x"}), "node_selector bad key!=x"),
        (DriverRequest(node_selector={"pool": True}), "node_selector pool=True"),  # type: ignore[dict-item] # as YAML gives it
        (DriverRequest(node_selector={"pool": "a b"}), "node_selector pool=a b"),
        (DriverRequest(resources={"driver": {"limits": {"memory": "much"}}}), "resources.driver.limits.memory much"),
        (DriverRequest(resources={"driver": {"limit": {"memory": "1Gi"}}}), "resources.driver limit"),
        (DriverRequest(resources={"driver": {"limits": "1Gi"}}), "resources.driver limits"),
        (DriverRequest(tolerations=({"foo": "bar"},)), "tolerations {'foo': 'bar'}"),
        (DriverRequest(tolerations=({"key": "a", "operator": "exists"},)), "tolerations {'key': 'a', 'operator': 'exists'}"),
    ],
)  # fmt: skip
def test_an_impossible_option_is_refused_with_its_value(desired: DriverRequest, reported: str) -> None:
    assert [one.object for one in check_options(desired)] == [reported]


TOLERATIONS: list[tuple[dict[str, Any], bool]] = [
    ({"key": "a"}, True),
    ({"key": "example.com/a", "operator": "Equal", "value": ""}, True),
    ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}, True),
    ({}, False),
    ({"value": "b"}, False),
    ({"key": "a", "operator": "Exists", "value": "b"}, False),
    ({"key": "a", "value": "b c"}, False),
    ({"key": "a b"}, False),
    ({"key": "a", "tolerationSeconds": 5}, False),
    ({"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}, False),
]


# test_kube_drivers.py asks the API server about each.
@pytest.mark.parametrize(("toleration", "accepted"), TOLERATIONS)
def test_a_toleration_that_the_api_server_refuses_is_refused(toleration: dict[str, Any], accepted: bool) -> None:
    assert is_toleration(toleration) is accepted


def test_possible_options_pass() -> None:
    desired = DriverRequest(
        namespace="a" * 63,
        storage_class={"name": "a" * 253},
        image_pull_secrets=("registry",),
        images={"driver": "registry.corp:5000/Path/driver:v3.4.0@sha256:" + "0" * 64},
        image_mirror="registry.corp:5000/mirror/",
        image_digests={"driver": "sha256:" + "0" * 64},
        max_unavailable="25%",
        kubelet_dir="D:\\var lib\\kubelet",
        node_selector={"example.com/pool": "Fast_1", "empty": ""},
        priority_class="storage-critical",
        resources={"driver": {"limits": {"memory": "1.5Gi", "cpu": 2}, "requests": {}}},
        tolerations=({"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5}),
    )
    assert list(check_options(desired)) == []
    assert list(check_options(DriverRequest())) == []


def test_it_is_then_the_whole_plan() -> None:
    made = plan_driver(
        DRIVERS["vsphere"], DriverRequest(namespace="Kube-System"), snapshot(controllers=(), csi_driver=None)
    )
    assert [(one.id, one.object) for one in made.findings] == [("CSI-D08", "namespace Kube-System")]
    assert not made.deployable
