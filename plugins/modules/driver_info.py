#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_info
short_description: Plan a CSI driver's Windows node plugin for a cluster
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Looks at a cluster and decides which release of a driver's Windows node plugin fits, in which mode and namespace,
    what has to exist first and what is in the way.
  - It changes nothing, and fails on what it finds only with O(require); RV(driver_plan.deployable) and RV(driver_plan.refusal)
    say it. What cannot work is refused together with the nearest combination that does.
  - The action renders the plan with the templates of the role C(csi_driver), as RV(definition).
  - Objects that belong to the driver's own installation (CSIDriver, feature-state map, Linux controller) are checked
    only.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
options:
  driver:
    description:
      - The driver, such as V(vsphere) or V(azure_disk). Another name is refused with all that are known.
    type: str
    required: true
  mode:
    description: How the node plugin reaches the host; V(auto) takes the mode that the release has.
    type: str
    default: auto
    choices: [auto, csi_proxy, host_process]
  version:
    description:
      - Release of the driver. Without it that of the Linux controller found in the cluster, else the catalog's default.
    type: str
  namespace:
    description: Namespace of the DaemonSet. Without it the one of the Linux controller, else upstream's.
    type: str
  controller_namespace:
    description: Where to look for the Linux controller first.
    type: str
  service_account:
    description: Name of our own ServiceAccount, and of the roles bound to it.
    type: str
  create_cluster_objects:
    description: Plan CSIDriver and feature-state map as well where they are absent.
    type: bool
    default: false
  allow_version_skew:
    description: Accept a node plugin of another minor release than the controller's.
    type: bool
    default: false
  csi_proxy_managed:
    description:
      - Whether this collection installs csi-proxy. The DaemonSet then goes only to Nodes with the label
        C(kubewin.io/csi-proxy=proven), which is set once the pipes were proven.
      - Switch it off where the platform brings csi-proxy.
    type: bool
    default: true
  csi_proxy_version:
    description: Release of csi-proxy that this collection installs, for notes on older ones.
    type: str
  images:
    description: Image references that replace the catalog's.
    type: dict
    default: {}
    suboptions:
      driver:
        description: The driver.
        type: str
      registrar:
        description: The node driver registrar.
        type: str
      liveness_probe:
        description: The liveness probe.
        type: str
  image_mirror:
    description: Registry, with a path if need be, that replaces the registry host of every image.
    type: str
  image_digests:
    description: Digests (C(sha256:...)) that pin the images.
    type: dict
    default: {}
    suboptions:
      driver:
        description: The driver.
        type: str
      registrar:
        description: The node driver registrar.
        type: str
      liveness_probe:
        description: The liveness probe.
        type: str
  image_pull_policy:
    description: Pull policy of all images instead of upstream's.
    type: str
    choices: [Always, IfNotPresent, Never]
  image_pull_secrets:
    description: Names of Secrets for the registry, in the same namespace.
    type: list
    elements: str
    default: []
  kubelet_dir:
    description: The kubelet's root directory on Windows.
    type: str
    default: C:\var\lib\kubelet
  tolerations:
    description: Tolerations instead of upstream's, which tolerate everything.
    type: list
    elements: dict
  node_selector:
    description: Labels that Nodes must have besides C(kubernetes.io/os=windows).
    type: dict
    default: {}
  resources:
    description: Requests and limits by container.
    type: dict
    default: {}
    suboptions:
      driver:
        description: The driver.
        type: dict
      registrar:
        description: The node driver registrar.
        type: dict
      liveness_probe:
        description: The liveness probe.
        type: dict
  max_unavailable:
    description: How many nodes a rolling update may take at once, a number or a percentage.
    type: str
  log_level:
    description: Log level of the driver, in its own words.
    type: str
  storage_class:
    description: The StorageClass for Windows claims.
    type: dict
    default: {}
    suboptions:
      create:
        description: Whether to apply one.
        type: bool
        default: true
      name:
        description: Its name.
        type: str
      parameters:
        description: Parameters besides the file system.
        type: dict
        default: {}
      reclaim_policy:
        description: What becomes of a volume whose claim is deleted.
        type: str
        choices: [Delete, Retain]
      binding_mode:
        description: When a volume is made.
        type: str
        choices: [WaitForFirstConsumer, Immediate]
      default:
        description: Whether claims without a class take this one.
        type: bool
        default: false
  replace:
    description:
      - The DaemonSet of somebody else that ours is to replace node by node, as namespace/name. It is then no blocker, unless
        its owner would bring it again; M(kubewin.csi.driver_handover) does it.
    type: str
    default: ''
  check_access:
    description:
      - Whether to ask the API server for everything that deploying and the gate will need, and report what is missing.
    type: bool
    default: true
  require:
    description: Fail with RV(driver_plan.refusal) as the message when something is in the way.
    type: bool
    default: false
  show:
    description: Print the plan, in check mode every line of it.
    type: bool
    default: false
  planned:
    description: RV(planned) of the plans of other drivers, to be returned with this one.
    type: list
    elements: dict
    default: []
seealso:
  - module: kubewin.csi.cluster_apply
  - module: kubewin.csi.driver_handover
  - module: kubewin.csi.node_rollout
"""

EXAMPLES = r"""
- name: What would be deployed here?
  kubewin.csi.driver_info:
    driver: vsphere
  register: seen

- name: Show it
  ansible.builtin.debug:
    msg: "{{ seen.driver_plan.summary }}"
"""

RETURN = r"""
driver_plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    driver:
      description: The driver's name in this collection.
      type: str
    title:
      description: The driver's name for people.
      type: str
    csi_driver:
      description: Its CSI name.
      type: str
    mode:
      description: V(csi_proxy) or V(host_process), null when refused for it.
      type: str
    version:
      description: The release.
      type: str
    template:
      description: Template of the role C(csi_driver) that renders it.
      type: str
    namespace:
      description: Where it goes.
      type: str
    daemonset:
      description: Name of its DaemonSet.
      type: str
    pipes:
      description: Pipes of csi-proxy that its pods mount, bare names.
      type: list
      elements: str
    platform:
      description: Who runs the cluster, V(openshift), V(aks), V(eks), V(gke) or V(rke2), empty where nothing shows it.
      type: str
    providers:
      description:
        - DaemonSets of others that provide the driver on Windows nodes, each with C(namespace), C(name), C(owner), C(mark)
          (what shows it), C(comes_back) and C(how) its owner is told to leave.
      type: list
      elements: dict
    topology_keys:
      description: Keys that a registered node has in its topology; one that ends in a slash is what they begin with.
      type: list
      elements: str
    mirrors:
      description: Other repositories that upstream publishes the driver's image to.
      type: list
      elements: str
    in_tree:
      description: The in-tree plugin that the driver replaces, null when there is none.
      type: str
    fstypes:
      description: File systems that a StorageClass may name for Windows, empty for a driver that mounts shares.
      type: list
      elements: str
    drain_to:
      description: Modes to which a node may be switched only without volumes of this driver on it.
      type: list
      elements: str
    switch:
      description: The change of mode that this means for the node plugin that runs, with C(from), C(to), C(drain) (whether only without
        volumes on a node) and C(counters) (directory on the hosts that tells of volumes in use); null when there is none.
      type: dict
    credentials:
      description: What somebody has to provide, each with C(needed_by), C(what) and C(required).
      type: list
      elements: dict
    prerequisites:
      description: What has to be there and cannot be seen from the cluster.
      type: list
      elements: str
    deployable:
      description: Whether nothing is in the way.
      type: bool
    refusal:
      description: All that is in the way, with what helps; empty when nothing is.
      type: str
    summary:
      description: The plan for people, a line an item.
      type: list
      elements: str
    findings:
      description: What was found, each with C(id), C(severity), C(object), C(message) and C(remedy).
      type: list
      elements: dict
    nodes:
      description: Names of the Windows Nodes.
      type: list
      elements: str
    settings:
      description: What the templates read.
      type: dict
definition:
  description: The objects of the plan as YAML, for O(kubewin.csi.driver_apply#module:definition). Empty when it cannot be deployed.
  returned: success
  type: str
planned:
  description:
    - O(planned) and this driver, each with C(driver), C(definition), and C(counter) where a change of mode is safe only without volumes
      that a directory on the hosts counts, with C(driver), C(path), C(from) and C(to); and C(warnings), the findings that warn.
  returned: success
  type: list
  elements: dict
reason:
  description: Why the task failed, as a word that does not change; see M(kubewin.csi.cluster_apply). V(refused) with O(require).
  returned: failure
  type: str
  sample: unreachable
"""

from dataclasses import replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import IMAGE_ROLES
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS, unknown
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.observe import snapshot
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.plan import plan
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import in_use
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.request import Wanted
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError

BY_ROLE: dict[str, Any] = {role: {"type": "str"} for role in IMAGE_ROLES}

ARGUMENT_SPEC: dict[str, Any] = {
    "driver": {"type": "str", "required": True},
    "mode": {"type": "str", "default": "auto", "choices": ["auto", "csi_proxy", "host_process"]},
    "version": {"type": "str"},
    "namespace": {"type": "str"},
    "controller_namespace": {"type": "str"},
    "service_account": {"type": "str"},
    "create_cluster_objects": {"type": "bool", "default": False},
    "allow_version_skew": {"type": "bool", "default": False},
    "csi_proxy_managed": {"type": "bool", "default": True},
    "csi_proxy_version": {"type": "str"},
    "images": {"type": "dict", "default": {}, "options": BY_ROLE},
    "image_mirror": {"type": "str"},
    "image_digests": {"type": "dict", "default": {}, "options": BY_ROLE},
    "image_pull_policy": {"type": "str", "choices": ["Always", "IfNotPresent", "Never"]},
    "image_pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "kubelet_dir": {"type": "str", "default": "C:\\var\\lib\\kubelet"},
    "tolerations": {"type": "list", "elements": "dict"},
    "node_selector": {"type": "dict", "default": {}},
    "resources": {"type": "dict", "default": {}, "options": {role: {"type": "dict"} for role in IMAGE_ROLES}},
    "max_unavailable": {"type": "str"},
    "log_level": {"type": "str"},
    "storage_class": {
        "type": "dict",
        "default": {},
        "options": {
            "create": {"type": "bool", "default": True},
            "name": {"type": "str"},
            "parameters": {"type": "dict", "default": {}},
            "reclaim_policy": {"type": "str", "choices": ["Delete", "Retain"]},
            "binding_mode": {"type": "str", "choices": ["WaitForFirstConsumer", "Immediate"]},
            "default": {"type": "bool", "default": False},
        },
    },
    "replace": {"type": "str", "default": ""},
    "check_access": {"type": "bool", "default": True},
    "require": {"type": "bool", "default": False},
    "show": {"type": "bool", "default": False},
    "planned": {"type": "list", "elements": "dict", "default": []},
}


def wanted_of(params: dict[str, Any]) -> Wanted:
    """The options; an empty text counts as not given, since surveys and defaults produce it."""
    tolerations = params["tolerations"]
    return Wanted(
        mode=params["mode"],
        version=params["version"] or None,
        namespace=params["namespace"] or None,
        controller_namespace=params["controller_namespace"] or None,
        service_account=params["service_account"] or None,
        create_cluster_objects=params["create_cluster_objects"],
        allow_version_skew=params["allow_version_skew"],
        csi_proxy_managed=params["csi_proxy_managed"],
        csi_proxy_version=params["csi_proxy_version"] or None,
        images={role: image for role, image in (params["images"] or {}).items() if image},
        image_mirror=params["image_mirror"] or None,
        image_digests={role: digest for role, digest in (params["image_digests"] or {}).items() if digest},
        image_pull_policy=params["image_pull_policy"] or None,
        image_pull_secrets=tuple(params["image_pull_secrets"] or ()),
        kubelet_dir=params["kubelet_dir"],
        tolerations=None if tolerations is None else tuple(tolerations),
        node_selector=params["node_selector"] or {},
        resources={role: numbers for role, numbers in (params["resources"] or {}).items() if numbers},
        max_unavailable=params["max_unavailable"] or None,
        log_level=params["log_level"] or None,
        storage_class=params["storage_class"] or {},
        replace=params["replace"],
    )


def main() -> None:
    """Look, decide, report."""
    ansible = module(ARGUMENT_SPEC)
    if ansible.params["driver"] not in DRIVERS:
        # Not by choices, which documentation would have to repeat for every new driver.
        ansible.fail_json(msg=unknown(ansible.params["driver"]), reason="configuration")
    driver = DRIVERS[ansible.params["driver"]]
    wanted = wanted_of(ansible.params)
    try:
        client = connect(ansible)
        seen = snapshot(client, driver, wanted, check_access=ansible.params["check_access"])
        made = plan(driver, wanted, seen)
        if made.change is not None and made.change.drain:
            # Volumes are looked at only where they matter: that is every pod of the cluster.
            used = tuple((use.node, use.what) for use in in_use(client, driver))
            made = plan(driver, wanted, replace(seen, in_use=used))
    except ClusterError as error:
        ansible.fail_json(msg=str(error), reason=error.reason)
    if ansible.params["require"] and not made.deployable:
        ansible.fail_json(msg=made.refusal, reason="refused")
    ansible.exit_json(changed=False, driver_plan=made.as_dict())


if __name__ == "__main__":
    main()
