# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Workloads and claims that no node shows."""

from __future__ import annotations

from situations.base import (
    SMB,
    VSPHERE,
    situation,
)
from situations.cluster import (
    SHOP,
    claim_of,
    csi,
    install,
    owner_reference,
    pod,
    pod_spec,
    undecided,
    unregister,
    volume,
    windows_nodes,
    workload,
)
from situations.world import World


@situation()
def an_unused_claim(world: World) -> None:
    volume(world, "pv-idle", csi(VSPHERE.name, "fcd-idle"), "idle")


@situation("CSI-G10", "CSI-G20")
def a_stateful_set_of_zero_replicas(world: World) -> None:
    world.get("StatefulSet", "db", SHOP)["spec"]["replicas"] = 0
    for number in (0, 1):
        world.remove("Pod", f"db-{number}", SHOP)
    for node in windows_nodes(world):
        node["status"]["volumesInUse"] = []
    unregister(world, VSPHERE, "win-2")
    world.remove("Pod", f"{VSPHERE.daemonset}-win-2", VSPHERE.namespace)


@situation()
def a_finished_job_that_holds_its_claim(world: World) -> None:
    volume(world, "pv-import", csi(VSPHERE.name, "fcd-import"), "import")
    done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    workload(world, "Job", "import", pod_spec("import"), status=done)
    owner = owner_reference("Job", "import", SHOP)
    pod(world, "import-x", pod_spec("import", restartPolicy="Never"), on="win-1", owner=owner, phase="Succeeded")


@situation(starts_again={"CronJob shop/nightly": "yes"})
def a_cron_job_between_its_runs(world: World) -> None:
    volume(world, "pv-nightly", csi(VSPHERE.name, "fcd-nightly"), "nightly")
    workload(world, "CronJob", "nightly", pod_spec("nightly"))


@situation()
def claims_above_the_replicas_of_a_stateful_set(world: World) -> None:
    volume(world, "pv-db-2", csi(VSPHERE.name, "fcd-2"), "data-db-2", storage_class="vsphere-csi-windows")


@situation("CSI-W06")
def a_static_pod_with_a_volume(world: World) -> None:
    volume(world, "pv-mirror", csi(VSPHERE.name, "fcd-mirror"), "mirror")
    owner = {**owner_reference("Node", "win-1"), "apiVersion": "v1"}
    annotations = {"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.source": "file"}
    pod(world, "mirror-win-1", pod_spec("mirror"), on="win-1", owner=owner, annotations=annotations)


@situation("CSI-W07", starts_again={"Pod shop/alone": "no"})
def a_pod_that_nothing_makes_again(world: World) -> None:
    volume(world, "pv-alone", csi(VSPHERE.name, "fcd-alone"), "alone")
    pod(world, "alone", pod_spec("alone"), on="win-1")


@situation("CSI-W08")
def pods_of_a_kind_that_is_not_read(world: World) -> None:
    volume(world, "pv-game", csi(VSPHERE.name, "fcd-game"), "game")
    owner = {**owner_reference("GameServer", "arena", SHOP), "apiVersion": "agones.dev/v1"}
    pod(world, "arena-0", pod_spec("game"), on="win-1", owner=owner)


@situation("CSI-W01", starts_again={"Deployment shop/either": "unknown"})
def a_workload_that_may_run_on_either_system(world: World) -> None:
    volume(world, "pv-either", csi(VSPHERE.name, "fcd-either"), "either")
    workload(world, "Deployment", "either", undecided("either"), replicas=1)


@situation("CSI-W01")
def a_selector_that_fits_no_node(world: World) -> None:
    volume(world, "pv-typo", csi(VSPHERE.name, "fcd-typo"), "typo")
    workload(world, "Deployment", "typo", undecided("typo", nodeSelector={"kubernetes.io/oss": "windows"}), replicas=1)


@situation("CSI-W20", starts_again={"Deployment shop/kept-off": "no"}, classes={"shop/kept-off": "unknown"})
def pods_that_tolerate_no_taint_of_the_windows_nodes(world: World) -> None:
    claim_of(world, "kept-off", storage_class="vsphere-csi-windows")
    workload(world, "Deployment", "kept-off", pod_spec("kept-off", tolerations=[]), replicas=1)


@situation("CSI-W20", starts_again={"Deployment shop/picky": "no"})
def a_selector_that_fits_no_windows_node(world: World) -> None:
    volume(world, "pv-picky", csi(VSPHERE.name, "fcd-picky"), "picky")
    selector = {"kubernetes.io/os": "windows", "pool": "gpu"}
    workload(world, "Deployment", "picky", pod_spec("picky", nodeSelector=selector), replicas=1)


@situation("CSI-G10", "CSI-G20", starts_again={"Deployment shop/scratch": "unknown"})
def a_volume_that_is_made_with_each_pod(world: World) -> None:
    made = {
        "name": "tmp",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "smb-csi-windows",
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            }
        },
    }
    install(world, "smb", "host_process")
    unregister(world, SMB, "win-2")
    world.remove("Pod", f"{SMB.daemonset}-win-2", SMB.namespace)
    workload(world, "Deployment", "scratch", pod_spec(extra_volumes=[made]), replicas=1)
