# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: convert_volumes
short_description: Convert in-tree volumes to native CSI volumes on the same disk, or roll back
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - CSI migration needs no conversion. Use this module if you need a native CSI volume, for example for snapshots. It replaces the
    objects that describe the disk and does not change the disk.
  - Keeps the claim with its StorageClass, and replaces its PersistentVolume, under the same name, by one with the CSI source.
  - Scales the workload to 0 meanwhile. Reads all data before the change and, through the new volume, after it. If the data differs,
    the workload is not started.
  - Writes a record to two stores before the first change and before each step. The next run continues from either copy, or rolls back
    with O(state=rolled_back).
  - Binds every update and deletion to the uid and resourceVersion that it read. Deletes only volumes with the policy C(Retain). If
    anything differs from what is expected, the run stops and the disk does not change.
  - Refuses a volume that does not meet a precondition; see the findings C(CSI-B01) and following.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; it reads everything, changes nothing and returns the steps. Fails where a conversion in progress would stop.
    support: full
  diff_mode:
    description: Will not return details about what has changed; see RV(results[].actions).
    support: none
options:
  claims:
    description: Claims to convert, one after the other, as V(namespace/name).
    type: list
    elements: str
    required: true
  state:
    description:
      - V(converted) converts, or continues a conversion.
      - V(rolled_back) rolls back. This is possible until O(final=true) made the conversion final.
    type: str
    choices: [converted, rolled_back]
    default: converted
  volume_handle:
    description: Handle of the new volume of a single claim, if the cluster does not show it (Google Cloud).
    type: str
    default: ''
  allow_managed:
    description:
      - Convert a claim, volume or workload that Argo CD, Flux, Helm or an operator keeps. Pause it first. If replicas or objects are
        changed back three times, the run stops.
    type: bool
    default: false
  record_namespace:
    description: Existing namespace for the records. It must not be the namespace of a claim. A copy of each record is in the namespace C(kubewin-records).
    type: str
    default: kubewin
  final:
    description:
      - Make the conversions final. Restores the policy and unlocks the claim. Final conversions cannot be rolled back.
      - Without it a converted volume keeps the policy V(Retain) and its claim the lock, so that O(state=rolled_back) works.
    type: bool
    default: false
  compare_limit:
    description:
      - Maximum MiB to read from a volume. Names, sizes and content of its files are compared before and after. A volume with more data
        is refused before anything is deleted.
      - V(0) compares nothing and only checks that the new volume attaches and mounts.
    type: int
    default: 1024
  image:
    description:
      - Image of the helper pod. It needs C(cmd), C(ping) and C(tar) and must fit the nodes' Windows build. Defaults to
        C(mcr.microsoft.com/windows/nanoserver) with the tag of the node's build.
    type: str
    default: ''
  tolerations:
    description: Additional tolerations of the helper pod. Taints that mark Windows nodes are always tolerated.
    type: list
    elements: dict
    default: []
  step_timeout:
    description: Timeout in seconds for one wait, such as detaching, and for reading the data.
    type: int
    default: 600
seealso:
  - name: Converting volumes
    description: Guide with the steps and their conditions.
    link: https://kubewin.github.io/csi/docsite/guide_convert_volumes.html
"""

EXAMPLES = r"""
- name: Print the steps
  kubewin.csi.convert_volumes:
    claims: [shop/data-db-0]
  check_mode: true

- name: Convert two volumes
  kubewin.csi.convert_volumes:
    claims: [shop/data-db-0, shop/uploads]

- name: Make the conversions final
  kubewin.csi.convert_volumes:
    claims: [shop/data-db-0, shop/uploads]
    final: true

- name: Roll back
  kubewin.csi.convert_volumes:
    claims: [shop/data-db-0]
    state: rolled_back
"""

RETURN = r"""
results:
  description: State of each claim.
  returned: always, after the claims were read
  type: list
  elements: dict
  contains:
    claim:
      description: The claim.
      type: str
      sample: shop/data-db-0
    status:
      description:
        - C(reversible) after a conversion that can be rolled back, C(converted) once it is final, C(rolled_back).
        - C(native) when it was a native volume before, C(nothing) when there is nothing to roll back.
        - C(refused), C(failed), C(not_run) when another one failed before, or C(to_do) in check mode.
      type: str
    run:
      description: Name of the run, which its record, lock and helper pod carry.
      type: str
    direction:
      description: C(forward) or C(rollback).
      type: str
    step:
      description: Current step of the conversion.
      type: str
    volume:
      description: The PersistentVolume that is to be there in the end.
      type: str
    handle:
      description: Its handle.
      type: str
    findings:
      description: Findings; those of the severity C(blocker) prevent the conversion.
      type: list
      elements: dict
    plan:
      description: Remaining steps when the conversion was read.
      type: list
      elements: dict
    actions:
      description: What this run changed.
      type: list
      elements: str
    msg:
      description: Why it stopped or was rolled back, or how to make it final.
      type: str
    reason:
      description: The same as a word that does not change.
      type: str
reason:
  description:
    - Stable key of the failure, one of V(refused), V(claim_gone), V(claim_changed), V(volume_gone), V(foreign_volume), V(same_handle),
      V(unknown_finalizer), V(claims_at_risk), V(not_quiet), V(data_differs), V(not_comparable), V(timeout), V(no_node), V(taken_over),
      V(record_unreadable), V(too_large), V(interrupted), V(exec_failed) or a key of M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: refused
"""
