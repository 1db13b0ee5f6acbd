# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods on their way to running: each situation stops one step, and its ready twin differs from it in one field."""

from __future__ import annotations

from situations.base import VSPHERE, ZONE, situation
from situations.cluster import csi, pod_spec, volume, workload
from situations.world import World


def _in_zones(world: World, *zones: str) -> None:
    """A Deployment with a volume in each of these zones."""
    names = [f"zoned-{number}" for number in range(len(zones))]
    for name, zone in zip(names, zones, strict=True):
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        affinity = {"required": {"nodeSelectorTerms": [term]}}
        volume(world, f"pv-{name}", csi(VSPHERE.name, f"fcd-{name}"), name, nodeAffinity=affinity)
    workload(world, "Deployment", "zoned", pod_spec(*names), replicas=1)


@situation("walk together", "CSI-W10", comes_back={"Deployment shop/zoned": "no"})
def two_volumes_in_two_zones(world: World) -> None:
    _in_zones(world, "a", "b")


@situation("walk together", comes_back={"Deployment shop/zoned": "yes"})
def two_volumes_in_one_zone(world: World) -> None:
    _in_zones(world, "a", "a")
