# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a template reads: catalog data and the request, merged. Pure; no decision is left to the template."""

from __future__ import annotations

from typing import Any

from ..catalog.base import Driver, ModeRule
from ..catalog.versions import Version, parse
from ..kube.labels import MANAGED_BY, MANAGER, SERVING_LABEL, SERVING_VALUE
from .plan_inputs import DriverRequest

# Upstream tolerates every taint that keeps pods away or throws them out, so that storage comes up wherever a node does.
_TOLERATE_EVERYTHING = ({"effect": "NoExecute", "operator": "Exists"}, {"effect": "NoSchedule", "operator": "Exists"})


def make_settings(
    driver: Driver, desired: DriverRequest, rule: ModeRule, version: Version, namespace: str, kubernetes: Version, *,
    create_namespace: bool, create_csi_driver: bool, create_feature_states: bool,
) -> dict[str, Any]:  # fmt: skip
    """The variables of templates/node.yaml.j2 and its children, JSON types only."""
    release = driver.find_release(version)
    selector = {"kubernetes.io/os": "windows", **desired.node_selector}
    if rule.mode == "csi_proxy" and desired.csi_proxy_managed:
        selector[SERVING_LABEL] = SERVING_VALUE
    return {
        "csi_driver": driver.name,
        "version": str(version),
        "mode": rule.mode,
        "namespace": namespace,
        "create_namespace": create_namespace,
        "create_csi_driver": create_csi_driver,
        "csi_driver_spec": dict(driver.find_csi_driver_spec(version)),
        "create_feature_states": create_feature_states and driver.feature_states is not None,
        "feature_states": driver.feature_states.name if driver.feature_states else None,
        "feature_states_data": dict(driver.feature_states.shipped) if driver.feature_states else {},
        "daemonset": driver.daemonset,
        "container": driver.container,
        "service_account": driver.service_account,
        "app_label": driver.app_label,
        "role_label": driver.role_label,
        "labels": {
            MANAGED_BY: MANAGER,
            "app.kubernetes.io/name": driver.daemonset,
            "app.kubernetes.io/part-of": driver.name,
        },
        "annotations": {"kubewin.io/mode": rule.mode, "kubewin.io/driver-version": str(version)},
        "images": choose_images(driver, desired, version, rule),
        "image_pull_secrets": list(desired.image_pull_secrets),
        "kubelet_dir": desired.kubelet_dir.rstrip("\\"),
        "pipes": list(rule.all_pipes),
        "ports": dict(rule.ports),
        "liveness": rule.liveness,
        "readiness": rule.readiness,
        "registrar_liveness": rule.registrar_liveness,
        "avoid_nodes": {label: list(values) for label, values in driver.avoid_nodes.items()},
        "max_volumes": release.max_volumes
        if release
        else max((catalog_release.max_volumes for catalog_release in driver.releases), default=0),
        "node_selector": selector,
        "tolerations": [
            dict(entry) for entry in (_TOLERATE_EVERYTHING if desired.tolerations is None else desired.tolerations)
        ],
        "priority_class": desired.priority_class or driver.priority_class,
        "resources": _choose_resources(rule, desired),
        # The field came with Kubernetes 1.24; older servers refuse a field they do not know.
        "os_name": kubernetes.release >= parse("1.24.0").release,
        "cluster_rules": list(driver.cluster_rules),
        "namespace_rules": list(driver.namespace_rules),
        "storage_class": _make_storage_class(driver, desired),
        "options": dict(desired.options),
    }


def choose_images(driver: Driver, desired: DriverRequest, version: Version, rule: ModeRule) -> dict[str, str]:
    """Image references by role.

    A release the catalog does not have takes the nearest known one's with its own driver tag.
    """
    release = driver.find_release(version) or driver.find_nearest(version, rule)
    if release is None:
        return {}
    result: dict[str, str] = {}
    for role, reference in release.map_images_of(rule.mode).items():
        if role == "liveness_probe" and rule.liveness is None:
            continue
        # What stands behind the release in the driver's tag, "-windows-hp", belongs to the mode.
        image = reference.replace(f":v{release.version}", f":v{version}") if role == "driver" else reference
        if desired.image_mirror:
            image = f"{desired.image_mirror.rstrip('/')}/{image.split('/', 1)[1]}"
        image = desired.images.get(role) or image
        digest = desired.image_digests.get(role)
        if digest:
            image = f"{image.split('@', 1)[0]}@{digest}"
        result[role] = image
    return result


def _choose_resources(rule: ModeRule, desired: DriverRequest) -> dict[str, Any]:
    overrides = {role: numbers for role, numbers in desired.resources.items() if numbers}
    return {role: dict(numbers) for role, numbers in {**rule.resources, **overrides}.items()}


def _make_storage_class(driver: Driver, desired: DriverRequest) -> dict[str, Any]:
    storage_class, upstream = desired.storage_class, driver.storage_class
    parameters = {**upstream.parameters, **(storage_class.get("parameters") or {})}
    # Without what only the user can know, a class would make no volume: it is left out, and a finding says so.
    complete = all(parameters.get(key) for key in upstream.required)
    return {
        "create": bool(storage_class.get("create", True)) and complete,
        "name": storage_class.get("name") or upstream.name,
        "parameters": parameters,
        "reclaim_policy": upstream.reclaim_policy,
        "binding_mode": upstream.binding_mode,
        "allow_expansion": upstream.allow_expansion,
    }
