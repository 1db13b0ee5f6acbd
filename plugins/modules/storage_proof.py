#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_proof
short_description: Write a volume on every Windows node and read it back
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - For each driver and node, creates a claim and a Windows pod, writes a file with a time and a random word, and deletes the pod. New
    pods read the file back on the same node and on another node that the volume can reach.
  - Registration and a Ready plugin pod prove nothing, because every mount fails after csi-proxy dies.
  - The pods need only C(cmd) and C(ping), so the smallest Windows image suffices. No other data is read or written.
  - All created objects carry the labels C(app.kubernetes.io/managed-by=kubewin.csi) and C(kubewin.io/proof-run), and are deleted when
    the run ends. The next run deletes what a killed run left, after the lease of that run has expired.
  - Volumes of a StorageClass with the policy C(Retain) are reported and never deleted.
extends_documentation_fragment:
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
  size:
    description: Size of each claim.
    type: str
    default: 10Gi
  move:
    description: Whether to read the file also on another node, if there is one.
    type: bool
    default: true
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
  parallel:
    description: Maximum number of Nodes in parallel. Each has one volume and one pod at a time.
    type: int
    default: 4
  step_timeout:
    description: Timeout in seconds for one step, such as attaching and mounting a volume.
    type: int
    default: 300
  timeout:
    description: Timeout in seconds for all nodes together. Nodes that were not reached are reported.
    type: int
    default: 3600
  progress_file:
    description: Internal. Progress messages are appended to this file; the module ends when the file is removed.
    type: path
seealso:
  - module: kubewin.csi.node_rollout
"""

EXAMPLES = r"""
- name: Verify vSphere volumes on every Windows node
  kubewin.csi.storage_proof:
    drivers: [vsphere]

- name: Verify two drivers on two nodes, with your own StorageClass
  kubewin.csi.storage_proof:
    drivers: [azure_disk, smb]
    nodes: [win-1, win-2]
    storage_classes:
      smb: team-share
    image: registry.example.com/windows/nanoserver:ltsc2022
"""

RETURN = r"""
run:
  description: Name of this run, which its objects carried as the label C(kubewin.io/proof-run).
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
  description: Nodes on which each driver was proven, for O(kubewin.csi.node_rollout#module:proven).
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
    - Stable key of the failure, one of V(proof_failed), V(refused), V(left_behind),
      V(interrupted), V(configuration), V(forbidden), V(unreachable), V(unauthorized), V(too_many_requests),
      V(admission_refused), V(api_error).
  returned: failure
  type: str
  sample: proof_failed
"""

import os
import secrets
import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS, unknown
from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.options import TOLERATION, tolerates
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import holder_of
from ansible_collections.kubewin.csi.plugins.module_utils.kube.permissions import require
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import ignore_signals, reporter, watch_over
from ansible_collections.kubewin.csi.plugins.module_utils.stored import plain
from ansible_collections.kubewin.csi.plugins.module_utils.verify.apply import Limits, Prover
from ansible_collections.kubewin.csi.plugins.module_utils.verify.cleanup import PATIENCE, earlier, take_away
from ansible_collections.kubewin.csi.plugins.module_utils.verify.needs import needs
from ansible_collections.kubewin.csi.plugins.module_utils.verify.nodes import ProofNode
from ansible_collections.kubewin.csi.plugins.module_utils.verify.objects import PREFIX, Room
from ansible_collections.kubewin.csi.plugins.module_utils.verify.plan import Plan, Request, plan
from ansible_collections.kubewin.csi.plugins.module_utils.verify.verdict import failed, proven_nodes

ARGUMENT_SPEC = documented(DOCUMENTATION)


def desired(params: dict[str, Any]) -> Request:
    """The options, checked as far as they can be without a cluster."""
    if not params["drivers"]:
        raise ClusterError(f"drivers is empty; name one or more of {', '.join(sorted(DRIVERS))}.", "refused")
    for name in (*params["drivers"], *params["storage_classes"]):
        if name not in DRIVERS:
            # Not by choices, which documentation would have to repeat for every new driver.
            raise ClusterError(unknown(name), "refused")
    for name in ("parallel", "step_timeout", "timeout"):
        if params[name] < 1:
            raise ClusterError(f"{name} is {params[name]}, expected at least 1.", "refused")
    for toleration in params["tolerations"]:
        if not tolerates(toleration):
            raise ClusterError(f"tolerations has {toleration}, {TOLERATION}.", "refused")
    if params["timeout"] < params["step_timeout"]:
        raise ClusterError(
            f"timeout is {params['timeout']}, expected at least step_timeout, {params['step_timeout']}.", "refused"
        )
    return Request(
        drivers=tuple(DRIVERS[name] for name in dict.fromkeys(params["drivers"])),
        nodes=tuple(dict.fromkeys(params["nodes"])),
        storage_classes={str(key): str(value) for key, value in params["storage_classes"].items()},
        image=params["image"],
        size=params["size"],
        tolerations=tuple(params["tolerations"]),
        move=params["move"],
    )


def plan_for(client: Client, request: Request) -> Plan:
    """Read nodes and classes, and plan."""
    csi_nodes = {item["metadata"]["name"]: item for item in client.list(kinds.CSI_NODE).items}
    nodes = [ProofNode.from_objects(item, csi_nodes.get(item["metadata"]["name"])) for item in client.windows_nodes()]
    attach = {}
    for driver in request.drivers:
        found = client.get(kinds.CSI_DRIVER, driver.name)
        attach[driver.name] = bool(((found or {}).get("spec") or {}).get("attachRequired", True))
    return plan(request, nodes, client.list(kinds.STORAGE_CLASS).items, attach)


def refuse(client: Client, decided: Plan, room: Room) -> None:
    """Everything that would go wrong later, before the first object is made."""
    refusals = list(decided.refusals)
    if not room.own:
        live = client.get(kinds.NAMESPACE, room.namespace)
        if live is None:
            refusals.append(
                f"Namespace {room.namespace} does not exist: kubectl create namespace {room.namespace}, or leave it "
                "unset to have the run create its own."
            )
        elif "deletionTimestamp" in live["metadata"]:
            refusals.append(f"Namespace {room.namespace} is being deleted. Wait for that, or set another one.")

    attaches = any(target.attaches for target in decided.targets)
    wants = needs(room.namespace, own=room.own, attaches=attaches)
    names = ", kubewin-csi-proof-pods and kubewin-csi-proof-namespace" if room.own else " and kubewin-csi-proof-pods"
    require(client, wants, "a verification", f"kubewin-csi-proof{names}")
    if refusals:
        raise ClusterError("\n".join(refusals), "refused")


def main() -> None:
    """Plan, refuse, delete leftovers of ended runs, prove, clean up."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    run = secrets.token_hex(4)
    room = Room(run, params["namespace"] or f"{PREFIX}-{run}", not params["namespace"])
    notify = reporter(params["progress_file"])
    watch_over(params["progress_file"], "Its objects were deleted, except those reported as left")
    returned: dict[str, Any] = {}
    with failing(ansible, returned):
        request = desired(params)
        client = connect(ansible.params)
        decided = plan_for(client, request)
        returned["plan"] = decided.steps()
        returned["left_out"] = [{"driver": key, "node": node, "why": why} for key, node, why in decided.left_out]
        refuse(client, decided, room)
        found = earlier(client, room, notify)
        returned["earlier"] = [
            {"run": one.room.run, "namespace": one.room.namespace, "lives": one.lives} for one in found
        ]
        dead = [one for one in found if not one.lives]
        if ansible.check_mode:
            returned["plan"] += [f"delete leftovers of run {one.room.run} in {one.room.namespace}" for one in dead]
            ansible.exit_json(changed=bool(dead), **returned)
        others = take_away(client, found, notify)
        limits = Limits(step=params["step_timeout"], whole=params["timeout"], parallel=params["parallel"])
        holder = holder_of(os.getpid())
        prover = Prover(client, room, request, limits, lambda: secrets.token_hex(8), notify, holder)
        try:
            proofs = prover.run(decided.targets)
        finally:
            ignore_signals()
            prover.cleaner.all()
            returned["left"] = [plain(one) for one in prover.cleaner.left]
        ends = time.monotonic() + PATIENCE
        for other in others:
            other.rest(ends)
        left = [one for cleaner in (*others, prover.cleaner) for one in cleaner.left]
    returned.update(
        run=run,
        proofs=[proof.as_dict() for proof in proofs],
        proven=proven_nodes(proofs),
        left=[plain(one) for one in left],
        changed=bool(dead or left),
    )
    for one in left:
        ansible.warn(f"{one.kind} {one.name}: {one.why}")
    stuck = [one for one in left if not one.kept]
    if headline := failed(proofs):
        ansible.fail_json(msg=headline, reason="proof_failed", **returned)
    if stuck:
        names = "; ".join(f"{one.kind} {one.name} ({one.why})" for one in stuck)
        ansible.fail_json(
            msg=f"proven, but these objects could not be deleted: {names}", reason="left_behind", **returned
        )
    ansible.exit_json(**returned)


if __name__ == "__main__":
    main()
