# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Healthy clusters whose node plugin is deployed by this collection's own templates, as the API server would show them."""

from __future__ import annotations

import copy

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import csi_proxy
from unit.roles.manifests import Case

from situations.cluster import (
    attach,
    controller,
    csi,
    disk_handle,
    host,
    namespace,
    node,
    owner_reference,
    pod_spec,
    register,
    smb,
    volume,
    windows_nodes,
    workload,
)
from situations.world import KUBERNETES, Object, World

NODES = (("linux-1", False, "a"), ("win-1", True, "a"), ("win-2", True, "b"))


def nodes(kubernetes: str = KUBERNETES) -> World:
    """Nodes alone."""
    world = World(kubernetes=kubernetes)
    namespace(world, "shop")
    for name, windows, zone in NODES:
        node(world, name, windows=windows, zone=zone, kubelet=kubernetes)
    return world


def deployed(case: Case) -> World:
    """A driver as enable_csi.yml leaves it, and a workload with a volume of it on each Windows node."""
    world = nodes()
    driver = case.driver
    if case.rule.mode == "csi_proxy":
        for one in windows_nodes(world):
            name = one["metadata"]["name"]
            one["metadata"]["labels"]["kubewin.io/csi-proxy"] = "serving"
            # csi-proxy serves the pipes of every version of its groups.
            world.hosts.append({**host(world, name), "pipes": list(csi_proxy.PIPES)})
    for item in case.objects(KUBERNETES.removeprefix("v"), namespace=True):
        apply(world, item)
    if driver.feature_states is not None:
        # The driver's own installation sets the switches that its release requires.
        states = world.get("ConfigMap", driver.feature_states.name, driver.namespace)
        states["data"] |= dict.fromkeys(driver.feature_states.required_before, "true")
    controller(world, driver, case.version)
    settings = driver.storage_class
    world.add(
        "StorageClass", settings.name, provisioner=driver.name,
        parameters={**settings.parameters, **dict.fromkeys(settings.required, "//server/share")},
        reclaimPolicy="Delete", volumeBindingMode=settings.binding_mode,
    )  # fmt: skip
    plugin = next(one for one in world.of("DaemonSet") if one["metadata"]["name"] == driver.daemonset)
    for one in windows_nodes(world):
        run(world, plugin, one["metadata"]["name"])
        register(world, driver, one["metadata"]["name"])
    for on in ("win-1", "win-2"):
        use(world, case, on)
    return world


def apply(world: World, item: Object) -> None:
    """An object as the API server keeps it."""
    metadata = dict(item["metadata"])
    name, space = metadata.pop("name"), metadata.pop("namespace", "")
    rest = {key: copy.deepcopy(value) for key, value in item.items() if key not in ("apiVersion", "kind", "metadata")}
    if item["kind"] == "DaemonSet":
        metadata["generation"] = 1
        count = len(windows_nodes(world))
        rest["status"] = {
            "desiredNumberScheduled": count, "currentNumberScheduled": count, "numberMisscheduled": 0,
            "numberReady": count, "observedGeneration": 1,
        }  # fmt: skip
    elif item["kind"] == "Namespace":
        rest["status"] = {"phase": "Active"}
    world.add(item["kind"], name, space, metadata=metadata, **rest)


def run(world: World, daemon_set: Object, on: str) -> None:
    """A Ready pod of a DaemonSet on a node."""
    metadata, template = daemon_set["metadata"], daemon_set["spec"]["template"]
    statuses = [
        {
            "name": one["name"], "image": one["image"], "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": world.ago(hours=5)}}, "lastState": {},
        }
        for one in template["spec"]["containers"]
    ]  # fmt: skip
    owner = owner_reference("DaemonSet", metadata["name"], metadata["namespace"])
    world.add(
        "Pod", f"{metadata['name']}-{on}", metadata["namespace"],
        metadata={"labels": dict(template["metadata"]["labels"]), "ownerReferences": [owner]},
        spec={**copy.deepcopy(template["spec"]), "nodeName": on},
        status={
            "phase": "Running", "containerStatuses": statuses,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": world.ago(hours=5)}],
        },
    )  # fmt: skip


def use(world: World, case: Case, on: str) -> None:
    """A workload with a volume of the driver on a node."""
    driver, name = case.driver, f"data-{on}"
    attached = bool(driver.csi_driver.get("attachRequired", True))
    handle = disk_handle(driver.name, f"disk-{on}")
    source = csi(driver.name, handle, "ntfs" if driver.fstypes else "")
    source = smb(f"disk-{on}") if driver.key == "smb" else source
    volume(world, f"pv-{on}", source, name, storage_class=driver.storage_class.name, provisioned_by=driver.name)
    if attached:
        attach(world, f"pv-{on}", on, driver.name, handle)
    workload(world, "Deployment", f"app-{on}", pod_spec(name), on=[on])
