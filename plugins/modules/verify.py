# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verify
short_description: Write a volume on every Windows node and read it back
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - For each driver and node, creates a claim and a Windows pod, writes a file with a time and a random word, and deletes the pod. New
    pods read the file back on the same node and on another node that the volume can reach.
  - Registration and a Ready plugin pod prove nothing, because every mount fails after csi-proxy dies.
  - The pods need only C(cmd) and C(ping), so the smallest Windows image suffices. No other data is read or written.
  - All created objects carry the labels C(app.kubernetes.io/managed-by=kubewin.csi) and C(kubewin.io/verify-run), and are deleted when
    the run ends. The next run deletes what a killed run left, after the lease of that run has expired.
  - Volumes of a StorageClass with the policy C(Retain) are reported and never deleted.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; it reads everything, creates nothing and returns the plan.
    support: full
  diff_mode:
    description: Will not return details about what has changed; nothing remains.
    support: none
options:
  drivers:
    description:
      - Keys of the drivers, such as V(vsphere) or V(azure_disk).
    type: list
    elements: str
    required: true
  nodes:
    description:
      - Verify only these Nodes. Each must be Ready, have the driver and not be cordoned. Defaults to every such Windows Node; the
        others are reported with the reason.
    type: list
    elements: str
    default: []
  storage_classes:
    description:
      - StorageClass by driver. Defaults to this collection's class, the cluster's default class or another class of the driver, the
        first that fits Windows.
    type: dict
    default: {}
  image:
    description:
      - Image of the pods. It needs C(cmd) and C(ping) and must fit the nodes' Windows build. Defaults to
        C(mcr.microsoft.com/windows/nanoserver) with the tag of each node's build.
    type: str
    default: ''
  namespace:
    description:
      - Existing namespace for the pods. Its pod security must allow V(baseline). Without it, each run creates and deletes a namespace.
    type: str
    default: ''
  tolerations:
    description:
      - Additional tolerations of the pods. Taints that mark Windows nodes are always tolerated. With a toleration for
        C(node.kubernetes.io/unschedulable), cordoned nodes are verified too.
    type: list
    elements: dict
    default: []
  timeout:
    description:
      - Timeout in seconds for one step, such as attaching and mounting a volume. All nodes together have twelve times as long; nodes
        that were not reached are reported.
    type: int
    default: 300
seealso:
  - module: kubewin.csi.gate
"""

EXAMPLES = r"""
- name: Verify vSphere volumes on every Windows node
  kubewin.csi.verify:
    drivers: [vsphere]

- name: Verify two drivers on two nodes, with your own StorageClass
  kubewin.csi.verify:
    drivers: [azure_disk, smb]
    nodes: [win-1, win-2]
    storage_classes:
      smb: team-share
    image: registry.example.com/windows/nanoserver:ltsc2022
"""

RETURN = r"""
run:
  description: Name of this run, which its objects carried as the label C(kubewin.io/verify-run).
  returned: always, after the run began
  type: str
  sample: 5f0c1b9e
proofs:
  description: Result of each driver on each node.
  returned: always, after the run began
  type: list
  elements: dict
  contains:
    driver:
      description: The driver.
      type: str
    node:
      description: The Node it was proven on.
      type: str
    storage_class:
      description: The StorageClass of the claim.
      type: str
    verdict:
      description: V(proven), V(failed), or V(not_run) when the time was over before.
      type: str
    volume:
      description: The created PersistentVolume.
      type: str
    read_on:
      description: Nodes on which the file was read back, the first by another pod on the same node.
      type: list
      elements: str
    seconds:
      description: Duration of all steps.
      type: float
    steps:
      description: Each step with C(step), C(node), C(seconds), C(ok) and C(detail), which is the data that was read, or the error.
      type: list
      elements: dict
    note:
      description: What was not verified, and why.
      type: str
    error:
      description: Message of the cluster about the failure.
      type: str
    remedy:
      description: Remedy.
      type: str
    events:
      description: Warnings about the pod and its claim.
      type: list
      elements: str
proven:
  description: Nodes on which each driver was proven, for O(kubewin.csi.gate#module:proven).
  returned: always, after the run began
  type: dict
  sample: {vsphere: [win-1, win-2]}
left_out:
  description: Nodes on which a driver was not verified, with C(driver), C(node) and C(why).
  returned: always, after the cluster was read
  type: list
  elements: dict
left:
  description:
    - What is still there, with C(kind), C(namespace), C(name), C(why) and C(kept), which is true when a StorageClass keeps
      its volumes.
  returned: always, after the run began
  type: list
  elements: dict
earlier:
  description: Earlier runs that left objects, with C(run), C(namespace) and C(lives), the reason to keep them if that run is still active.
  returned: always, after the cluster was read
  type: list
  elements: dict
plan:
  description: The plan as lines for display.
  returned: always, after the cluster was read
  type: list
  elements: str
report:
  description: The result as text for display.
  returned: always, after the run began
  type: str
reason:
  description:
    - Stable key of the failure, one of V(verify_failed), V(refused), V(left_behind), V(interrupted) or a key of
      M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: verify_failed
"""
