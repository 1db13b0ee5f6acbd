# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for a cluster as a whole: its versions, operators, drivers, namespaces and settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...drivers import plan_inputs
from ...drivers.installed import identify_controller
from ...kube.pod import list_images
from .placement import ANYWHERE, Placement
from .resources import Amounts, read_amounts

# An argument of https://github.com/kubernetes-csi/external-provisioner.
_FILE_SYSTEM = re.compile(r"--?default-fstype[= ](\S+)")
NODE_SELECTOR = "openshift.io/node-selector"
ENFORCED_LEVEL = "pod-security.kubernetes.io/enforce"
PROFILE = "security.openshift.io/csi-ephemeral-volume-profile"


@dataclass(frozen=True, slots=True)
class ObservedDriver:
    """A CSIDriver. spec: as in the API. profile: by OpenShift's label, which namespaces may use it in pods themselves."""

    name: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    profile: str = ""

    @classmethod
    def from_object(cls, driver: Mapping[str, Any]) -> ObservedDriver:
        """Read a storage.k8s.io/v1 CSIDriver: metadata (name, labels), spec (whole)."""
        metadata = driver["metadata"]
        profile = str((metadata.get("labels") or {}).get(PROFILE) or "")
        return cls(name=str(metadata["name"]), spec=dict(driver.get("spec") or {}), profile=profile)


@dataclass(frozen=True, slots=True)
class ObservedController:
    """A driver's Linux controller. driver: its key in the catalog. images: by container, sidecars included.

    file_system: what its provisioner gives volumes of a class that names none.
    """

    driver: str
    observed: plan_inputs.DriverController
    images: tuple[tuple[str, str], ...] = ()
    file_system: str = ""

    @property
    def title(self) -> str:
        """What findings call it."""
        return f"Deployment {self.observed.namespace}/{self.observed.name}"

    def find_image(self, part: str) -> str | None:
        """The image of a sidecar; distributions keep the word of part in its name."""
        return next((image for name, image in self.images if part in f"{name} {image}"), None)

    @classmethod
    def from_object(cls, deployment: Mapping[str, Any]) -> ObservedController | None:
        """Read an apps/v1 Deployment; None when neither its name nor its images are those of a driver's controller."""
        installed = identify_controller(deployment)
        if installed is None:
            return None
        driver, container = installed
        observed = plan_inputs.DriverController.from_object(deployment, container)
        spec = deployment["spec"]["template"]["spec"]
        arguments = " ".join(
            str(argument)
            for part in spec["containers"]
            for argument in part.get("args") or ()
            if "provisioner" in f"{part.get('name')} {part.get('image')}"
        )
        file_system = _FILE_SYSTEM.search(arguments)
        return cls(
            driver=driver.key,
            observed=observed,
            images=list_images(spec),
            file_system=file_system[1] if file_system is not None else "",
        )


@dataclass(frozen=True, slots=True)
class ObservedNamespace:
    """A Namespace. selector: OpenShift's of nodes, None for none."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    phase: str = "Active"
    selector: str | None = None

    @classmethod
    def from_object(cls, namespace: Mapping[str, Any]) -> ObservedNamespace:
        """Read a core/v1 Namespace: metadata (name, labels, OpenShift's annotation of nodes), status.phase."""
        annotations = namespace["metadata"].get("annotations") or {}
        return cls(
            name=str(namespace["metadata"]["name"]),
            labels=dict(namespace["metadata"].get("labels") or {}),
            phase=str((namespace.get("status") or {}).get("phase") or "Active"),
            selector=annotations.get(NODE_SELECTOR),
        )


@dataclass(frozen=True, slots=True)
class ObservedRuntimeClass:
    """A RuntimeClass: what it adds to the placement of its pods, and to their requests."""

    name: str
    placement: Placement = ANYWHERE
    overhead: Amounts = ()

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> ObservedRuntimeClass:
        """Read a node.k8s.io/v1 RuntimeClass: metadata.name, scheduling (nodeSelector, tolerations), overhead.podFixed."""
        return cls(
            str(item["metadata"]["name"]),
            Placement.from_spec(item.get("scheduling") or {}),
            read_amounts((item.get("overhead") or {}).get("podFixed")),
        )


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """What holds for the cluster as a whole.

    kubernetes: the API server's gitVersion. openshift: the last completed version, empty elsewhere. updating_to: the
    version that an update is bringing, empty when none runs. wmco: the
    operator's version where its ClusterServiceVersion was read, else empty; annotations of its nodes are with the nodes.
    """

    kubernetes: str
    openshift: str = ""
    updating_to: str = ""
    wmco: str = ""

    @staticmethod
    def read_openshift_versions(cluster_version: Mapping[str, Any]) -> tuple[str, str]:
        """(openshift, updating_to) of a config.openshift.io/v1 ClusterVersion: status.history (state, version), status.desired.version."""
        status = cluster_version.get("status") or {}
        history = status.get("history") or []
        done = next((str(entry.get("version", "")) for entry in history if entry.get("state") == "Completed"), "")
        desired = str((status.get("desired") or {}).get("version") or "")
        return done or desired, desired if done and desired != done else ""
