# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What evaluating costs grows with what is on Windows, in a straight line; counted in calls, since clocks differ."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from situations.cluster import attach, csi, healthy, node, owner_reference, pod, pod_spec, volume, workload
from situations.cluster import plugin_pod as plugin_pod_on
from situations.cluster import register as register_on
from situations.world import World

VSPHERE = DRIVERS["vsphere"]


def work(snapshot: Snapshot) -> int:
    """How many functions evaluating calls and lines evaluating runs; each turn of a loop in one line counts."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "c_call"

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    evaluate(snapshot)
    former = sys.gettrace()
    sys.setprofile(note)
    sys.settrace(trace)
    try:
        evaluate(snapshot)
    finally:
        sys.settrace(former)
        sys.setprofile(None)
    return count


def workloads(world: World, number: int, *, windows: bool = True) -> None:
    on = "win-1" if windows else "linux-1"
    for one in range(number):
        volume(world, f"pv-n{one}", csi(VSPHERE.name, f"fcd-n{one}", "ntfs" if windows else "xfs"), f"n{one}")
        workload(world, "Deployment", f"n{one}", pod_spec(f"n{one}", windows=windows), on=[on])


def windows_nodes(world: World, number: int) -> None:
    rule = VSPHERE.rule("csi_proxy")
    assert rule is not None
    for one in range(number):
        node(world, f"more-{one}", zone="a")
        register_on(world, VSPHERE, f"more-{one}")
        plugin_pod_on(world, VSPHERE, rule, "3.4.0", f"more-{one}")


def broken_windows_nodes(world: World, number: int) -> None:
    windows_nodes(world, number)
    world.hosts = []


def pods_of_one_claim(world: World, number: int) -> None:
    for one in range(number):
        workload(world, "Deployment", f"s{one}", pod_spec("share"), on=["win-1"])


def workloads_of_one_disk(world: World, number: int) -> None:
    volume(world, "pv-disk", csi(VSPHERE.name, "fcd-disk"), "disk")
    for one in range(number):
        workload(world, "Deployment", f"d{one}", pod_spec("disk"), on=["win-1"])


def pods_of_one_disk(world: World, number: int) -> None:
    volume(world, "pv-disk", csi(VSPHERE.name, "fcd-disk"), "disk")
    for one in range(number):
        pod(world, f"bare-{one}", pod_spec("disk"), on="win-1" if one % 2 else "win-2")


def idle_workloads_of_one_disk(world: World, number: int, mode: str = "ReadWriteOnce") -> None:
    volume(world, "pv-disk", csi(VSPHERE.name, "fcd-disk"), "disk", accessModes=[mode])
    for one in range(number):
        workload(world, "Deployment", f"i{one}", pod_spec("disk"), replicas=1)


def idle_workloads_of_one_pod(world: World, number: int) -> None:
    idle_workloads_of_one_disk(world, number, "ReadWriteOncePod")


def claims_of_one_set(world: World, number: int) -> None:
    for one in range(2, number):
        volume(world, f"pv-db-{one}", csi(VSPHERE.name, f"fcd-{one}", "ext4"), f"data-db-{one}")
        pod(
            world,
            f"db-{one}",
            pod_spec(f"data-db-{one}"),
            on="win-1",
            owner=owner_reference("StatefulSet", "db", "shop"),
        )
    world.get("StatefulSet", "db", "shop")["spec"]["replicas"] = number


def attachments(world: World, number: int) -> None:
    workloads(world, number)
    for one in range(number):
        attach(world, f"pv-n{one}", "win-1", VSPHERE.name, f"fcd-n{one}")


@pytest.mark.parametrize(
    "grow",
    [
        workloads,
        windows_nodes,
        broken_windows_nodes,
        pods_of_one_claim,
        workloads_of_one_disk,
        pods_of_one_disk,
        idle_workloads_of_one_disk,
        idle_workloads_of_one_pod,
        claims_of_one_set,
        attachments,
    ],
)
def test_four_times_as_much_costs_four_times_as_much(grow: Callable[[World, int], None]) -> None:
    def cost(number: int) -> int:
        world = healthy()
        grow(world, number)
        return work(world.snapshot())

    base, some, many = cost(2), cost(50), cost(200)
    assert (many - base) < 4.6 * (some - base)


def test_linux_costs_next_to_nothing() -> None:
    def cost(number: int, *, windows: bool) -> int:
        world = healthy()
        workloads(world, number, windows=windows)
        return work(world.snapshot())

    base = cost(2, windows=False)
    assert cost(200, windows=False) - base < (cost(200, windows=True) - base) / 3
