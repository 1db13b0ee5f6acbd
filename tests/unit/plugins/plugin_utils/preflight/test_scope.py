# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is left out for running on Linux makes no difference to any report, and it is most of a large cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.scope import limit_scope
from situations.cluster import SHOP, attach, csi, healthy, pod, pod_spec, undecided, volume, workload
from situations.named import SITUATIONS, Situation
from situations.world import World

DRIVER = DRIVERS["vsphere"].name


def cut(snapshot: Snapshot) -> Snapshot:
    """A snapshot as a reader keeps it."""
    kept = limit_scope(snapshot.nodes, snapshot.templates, snapshot.pods)
    claims = tuple(claim for claim in snapshot.claims if claim.key not in kept.elsewhere)
    gone = {claim.volume for claim in snapshot.claims} - {claim.volume for claim in claims}
    windows = {node.name for node in snapshot.nodes if node.windows}
    return replace(
        snapshot,
        templates=kept.templates,
        pods=kept.pods,
        claims=claims,
        attachments=tuple(one for one in snapshot.attachments if one.node in windows or one.volume not in gone),
    )


def disk(world: World, claim: str, namespace: str = "elsewhere", handle: str = "") -> None:
    """A bound volume that is attached on Linux."""
    volume(world, f"pv-{claim}", csi(DRIVER, handle or f"fcd-{claim}", "ext4"), claim, namespace=namespace)
    attach(world, f"pv-{claim}", "linux-1", DRIVER, handle or f"fcd-{claim}")


def linux(world: World) -> None:
    """Workloads of all sorts on a Linux node; most do not state that they belong on Linux."""
    for number in range(3):
        disk(world, f"data-set-{number}")
    made = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "thin"}}]
    workload(
        world, "StatefulSet", "set", undecided("data-set-0"), on=["linux-1"], namespace="elsewhere",
        volumeClaimTemplates=made,
    )  # fmt: skip
    disk(world, "web")
    workload(world, "Deployment", "web", undecided("web"), on=["linux-1"], namespace="elsewhere")
    disk(world, "bare")
    pod(world, "bare", undecided("bare"), on="linux-1", namespace="elsewhere")
    disk(world, "idle")
    workload(world, "Deployment", "idle", undecided("idle"), namespace="elsewhere")


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_the_report_is_the_same_without_what_is_left_out(planted: Situation) -> None:
    world = planted.world()
    linux(world)
    target = planted.target
    whole = world.snapshot()
    small = cut(whole)
    assert evaluate(small, target).as_dict() == evaluate(whole, target).as_dict()
    assert not {"elsewhere/data-set-0", "elsewhere/web", "elsewhere/bare"} & {claim.key for claim in small.claims}
    assert "elsewhere/idle" in {claim.key for claim in small.claims}


def shared(world: World) -> None:
    """A Linux pod with the claim of a Windows workload, beside one of its own."""
    named = next(claim["metadata"]["name"] for claim in world.of("PersistentVolumeClaim"))
    disk(world, "own", SHOP)
    workload(world, "Deployment", "shares", undecided(named, "own"), on=["linux-1"], namespace=SHOP)


def twin(world: World) -> None:
    """A Linux volume with the handle of a Windows one."""
    handle = next(one["spec"]["csi"]["volumeHandle"] for one in world.of("PersistentVolume") if "csi" in one["spec"])
    disk(world, "twin", handle=handle)
    workload(world, "Deployment", "twin", undecided("twin"), on=["linux-1"], namespace="elsewhere")


def named_by_an_idle_one(world: World) -> None:
    """A claim that a Linux pod uses, and a workload for Windows that has no pods names, too."""
    disk(world, "both")
    workload(world, "Deployment", "now", undecided("both"), on=["linux-1"], namespace="elsewhere")
    workload(world, "Deployment", "later", pod_spec("both"), namespace="elsewhere")


@pytest.mark.parametrize("plant", [shared, twin, named_by_an_idle_one], ids=lambda plant: plant.__name__)
def test_objects_that_windows_uses_are_not_left_out(plant: object) -> None:
    world = healthy()
    assert callable(plant)
    plant(world)
    whole = world.snapshot()
    report = evaluate(cut(whole))
    assert report.as_dict() == evaluate(whole).as_dict()
    assert report.findings
