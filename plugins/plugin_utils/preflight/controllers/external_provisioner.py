# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second step: is a volume made for each claim that has none, for a pod on which nodes. Pure.

Source: https://github.com/kubernetes/kubernetes, pkg/scheduler/framework/plugins/volumebinding/binder.go,
checkVolumeProvisions; what makes volumes is the driver's controller with its external-provisioner.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...base.cached import cached_method
from ...catalog import in_tree
from ...catalog.translation import FS_TYPE, ZONES
from ..cluster_checks import check_controller, find_lacking_sidecars
from ..facts.storage import ObservedClass
from ..findings import create_finding
from ..index import BY_NAME, Index, unite
from ..verdict import ReportFinding
from ..walk.claims import Claims, Request
from ..walk.steps import NodeToStatus, PodToStart, StepAnswer, answer_without_claims

_RESERVED = "csi.storage.k8s.io/"


def find_parameter_error(parameters: Mapping[str, str]) -> str:
    """Why the external-provisioner refuses the parameters of a class, empty for nothing."""
    file_systems = [key for key in parameters if key == FS_TYPE or key.lower() == "fstype"]
    if len(file_systems) > 1:
        return f"has both parameters {' and '.join(sorted(file_systems))}, expected one of them"
    for key in parameters:
        if key.startswith(_RESERVED) and key.endswith(("-secret-name", "-secret-namespace")):
            other = key.removesuffix("space") if key.endswith("space") else f"{key}space"
            if not parameters[key] or not parameters.get(other):
                return f"has parameter {key}, expected {other} too"
        elif key.startswith(_RESERVED) and key != FS_TYPE:
            return f"has the unknown parameter {key}"
    return ""


class ExternalProvisioner:
    def __init__(self, index: Index, claims: Claims) -> None:
        self._index, self._claims = index, claims

    def __call__(self, pod: PodToStart, nodes: int) -> list[StepAnswer]:
        """Where a volume would be made for each claim, on nodes."""
        answers: list[StepAnswer] = []
        for request in self._claims.list_requests(pod):
            statuses = NodeToStatus("provision", nodes, request.title, f"used by {pod.workload}", request.volume_key)
            storage_class = self._claims.find_class(request)
            # A claim that could take a free volume is unknown already.
            is_made = request.open and not self._claims.find_candidates(request)
            if is_made and storage_class is not None and storage_class.driver:
                self._check_provisioning(request, storage_class, statuses)
            answers += statuses.list_answers()
        return answers + answer_without_claims("provision", pod, nodes)

    def _check_provisioning(self, request: Request, storage_class: ObservedClass, statuses: NodeToStatus) -> None:
        nodes = statuses.nodes
        self._check_parameters(storage_class, statuses, nodes)
        if self._claims.is_bound_late(request):
            self._check_topologies(storage_class, statuses, nodes)
            self._check_room(request, storage_class, statuses, nodes)
        for finding in self._find_controller_faults(storage_class.name):
            statuses.note("unknown" if finding.doubt else "no", nodes, (finding,))

    def _check_parameters(self, storage_class: ObservedClass, statuses: NodeToStatus, nodes: int) -> None:
        """What the external-provisioner itself reads of them (pkg/controller/controller.go, prepareProvision)."""
        remedy = "recreate the StorageClass with other parameters"
        if error := find_parameter_error(storage_class.parameters):
            statuses.block(nodes, "CSI-V26", f"StorageClass {storage_class.name} {error}", remedy)
        if zones := storage_class.zones:
            # The scheduler does not know of them.
            inside = unite(self._index.find_labelled(key, zone) for key in ZONES for zone in zones)
            message = (
                f"StorageClass {storage_class.name} provisions in zones {', '.join(zones)}, wherever its pod is placed"
            )
            statuses.block(0 if nodes & inside else nodes, "CSI-V26", message, remedy)
            statuses.doubt(nodes if nodes & ~inside else 0, "CSI-V41", message, remedy)

    def _check_topologies(self, storage_class: ObservedClass, statuses: NodeToStatus, nodes: int) -> None:
        if storage_class.allowed is None:
            return
        terms = tuple(term for term in storage_class.allowed if term)
        outside = nodes & ~self._index.find_matching(terms)
        if outside:
            keys = ", ".join(sorted({part.key for term in terms for part in term}))
            message = f"allowedTopologies of StorageClass {storage_class.name} exclude the node ({keys})"
            remedy = (
                "recreate the claim with a StorageClass that allows the nodes' zone, or add nodes in an allowed zone"
            )
            statuses.block(outside, "CSI-V26", message, remedy)

    def _check_room(self, request: Request, storage_class: ObservedClass, statuses: NodeToStatus, nodes: int) -> None:
        """A driver whose free capacity the scheduler asks for before it lets a volume be made (binder.go, hasEnoughCapacity)."""
        name = storage_class.provisioner
        driver = self._index.csi_drivers.get(name)
        if request.claim.size and driver is not None and driver.spec.get("storageCapacity"):
            message = (
                f"{name} reports its free capacity (CSIDriver spec.storageCapacity), which this report does not read"
            )
            remedy = "check that there is room: kubectl get csistoragecapacities -A"
            statuses.doubt(nodes, "CSI-V41", message, remedy)

    @cached_method
    def _find_controller_faults(self, class_name: str) -> tuple[ReportFinding, ...]:
        """Findings that keep a driver from provisioning volumes of a class, and those that leave it unknown."""
        index, class_title, storage_class = self._index, f"StorageClass {class_name}", self._index.classes[class_name]
        name, plugin = storage_class.driver, storage_class.provisioner
        driver = BY_NAME.get(name)
        if driver is None:
            if name in index.provisioners:
                return ()
            message = f"driver {name} is unknown to this collection, and no bound volume shows that it provisions"
            remedy = "check that the driver's controller runs"
            return (create_finding("CSI-V41", class_title, message, (f"provisioner: {plugin}",), remedy),)
        if "deployments" in index.unread:
            return ()
        controller = index.find_controller(driver)
        noted = [finding for finding in check_controller(index, driver) if finding.severity == "blocker"]
        if controller is not None:
            moved = frozenset((plugin,)) if in_tree.find_by_name(plugin) is not None else frozenset()
            noted += find_lacking_sidecars("provisioner", driver, controller, moved)
        return tuple(noted)
