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
  - kubewin.csi.driver
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
options:
  driver:
    description:
      - The driver, such as V(vsphere) or V(azure_disk). Another name is refused with all that are known.
    type: str
    required: true
  csi_proxy_version:
    description: Release of csi-proxy that this collection installs, for notes on older ones.
    type: str
  replace:
    description:
      - The DaemonSet of somebody else that ours is to replace node by node, as namespace/name. It is then no blocker, unless
        its owner would bring it again; M(kubewin.csi.driver_handover) does it.
    type: str
    default: ''
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

from dataclasses import fields, replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.drivers import declared
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.model import UNREAD, Request
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.observe import snapshot
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.plan import plan
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import in_use
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, failing, module

ARGUMENT_SPEC: dict[str, Any] = {
    "driver": {"type": "str", "required": True},
    **declared.spec(declared.INFO),
    "csi_proxy_version": {"type": "str"},
    "replace": {"type": "str", "default": ""},
    "require": {"type": "bool", "default": False},
    "show": {"type": "bool", "default": False},
    "planned": {"type": "list", "elements": "dict", "default": []},
}


def wanted_of(params: dict[str, Any]) -> Request:
    """The request. Empty text counts as not given."""
    given = {name: params[name] for name in (*declared.of_module(declared.INFO), "csi_proxy_version", "replace")}
    given |= {
        name: {key: one for key, one in (given[name] or {}).items() if one}
        for name in ("images", "image_digests", "resources")
    }
    known = {one.name for one in fields(Request)}
    return Request(
        **{name: _frozen(value) for name, value in given.items() if name in known and value not in (None, "")},
        options={name: value for name, value in given.items() if name in UNREAD},
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def main() -> None:
    """Look, decide, report."""
    ansible = module(ARGUMENT_SPEC)
    with failing(ansible):
        driver = driver_named(ansible.params["driver"])
        wanted = wanted_of(ansible.params)
        client = connect(ansible)
        seen = snapshot(client, driver, wanted, check_access=ansible.params["check_access"])
        made = plan(driver, wanted, seen)
        if made.change is not None and made.change.drain:
            # Volumes are looked at only where they matter: that is every pod of the cluster.
            used = tuple((use.node, use.what) for use in in_use(client, driver))
            made = plan(driver, wanted, replace(seen, in_use=used))
    if ansible.params["require"] and not made.deployable:
        ansible.fail_json(msg=made.refusal, reason="refused")
    ansible.exit_json(changed=False, driver_plan=made.as_dict())


if __name__ == "__main__":
    main()
