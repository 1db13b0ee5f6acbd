# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: volume_data
short_description: Save a baseline of the data of Windows workloads and compare with it
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Saves a baseline of what is on each claim's volume before a change, and compares with it afterwards. Reports each file that differs and what was not
    compared.
  - Stores baselines in ConfigMaps of O(record_namespace), so that a later run on another machine finds them. Anyone who can read ConfigMaps there can
    read the names of the files. With too many files, a baseline has digests of directories, and the report states that.
  - Lists a volume in use through the pod that uses it, with C(cmd) in that pod's own container. Only names, sizes and times are compared. Reads a
    volume that is not in use, because its workload was scaled to 0, through a helper pod with a read-only mount, which is deleted afterwards.
  - Never calls equal what was not read. Locked files, files that the pod's user may not read, files beyond the limit and directories that could
    not be listed are named as not compared.
  - Contents travel through the API server, limited in bytes, rate and time. A volume larger than O(limit) is read until the limit. Names, sizes
    and times of all its files are compared, and the contents of the files that were read.
  - Compares symbolic links and junctions by their target, and does not follow them. Ignores alternate data streams, attributes, access rights,
    C(System Volume Information) and C($RECYCLE.BIN).
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; it returns what it would read and how, and creates and writes nothing.
    support: full
  diff_mode:
    description: Will not return details about what has changed; baselines are data, not configuration.
    support: none
options:
  claims:
    description: Names of the PersistentVolumeClaims, as C(namespace/name). Each must be bound.
    type: list
    elements: str
    default: []
  name:
    description: Name of this set of baselines, such as the name of the upgrade.
    type: str
    default: default
  record_namespace:
    description: Existing namespace for the baselines.
    type: str
    default: kubewin
  keep_going:
    description:
      - Continue with the next claim if one cannot be read, and do not fail because data differ. RV(volumes), RV(report) and RV(lost)
        have the result of each claim.
    type: bool
    default: false
  forget:
    description: Only remove this set of baselines from the cluster; with O(claims), only those of these claims.
    type: bool
    default: false
  compare:
    description: Compare with the baselines instead of saving them. The task fails if something differs.
    type: bool
    default: false
  append_only:
    description:
      - Patterns of files that may grow, such as logs. Their former contents must still be at the beginning. New files that match are not
        difference. V(*) matches any text. A pattern with a slash matches the path from the volume's root, any other one the name. Case is
        ignored.
    type: list
    elements: str
    default: []
  limit:
    description: Maximum MiB through the API server for each claim.
    type: int
    default: 1024
  rate:
    description: Maximum MiB through the API server in one second.
    type: int
    default: 20
  timeout:
    description: Timeout in seconds for one claim. What was not read by then is named as not compared.
    type: int
    default: 900
  image:
    description:
      - Image of the helper pod. It needs C(cmd), C(ping) and C(tar), must fit the node's Windows build, and runs as C(ContainerAdministrator).
        Defaults to C(mcr.microsoft.com/windows/nanoserver) with the tag of the node's build.
    type: str
    default: ''
  tolerations:
    description: Additional tolerations of the helper pod. Taints that mark Windows nodes are always tolerated.
    type: list
    elements: dict
    default: []
  step_timeout:
    description: Timeout in seconds for the start and for the end of the helper pod.
    type: int
    default: 300
seealso:
  - module: kubewin.csi.verify
"""

EXAMPLES = r"""
- name: Save a baseline of two volumes
  kubewin.csi.volume_data:
    claims: [shop/data-orders-0, shop/data-orders-1]
    name: orders-2026

- name: Compare with the baseline; logs may have grown
  kubewin.csi.volume_data:
    claims: [shop/data-orders-0, shop/data-orders-1]
    name: orders-2026
    compare: true
    append_only: ['*.log', 'journal/*']
"""

RETURN = r"""
volumes:
  description: Result of each claim.
  returned: after the first claim was read
  type: list
  elements: dict
  contains:
    claim:
      description: The claim, as C(namespace/name).
      type: str
    why:
      description: With O(keep_going=true), why it was not read or not compared.
      type: str
    noted:
      description: V(true) if a baseline of the claim exists that was not compared.
      type: bool
    volume:
      description: Its PersistentVolume.
      type: str
    how:
      description: V(content) when its files were read, V(listing) when it was in use and only listed.
      type: str
    files:
      description: Number of files.
      type: int
    bytes:
      description: Size of all files in bytes.
      type: int
    read_files:
      description: Number of files that were read.
      type: int
    read_bytes:
      description: Bytes that were read.
      type: int
    verdict:
      description:
        - Result of a comparison. V(same) if everything was compared and is equal, V(incomplete) if nothing differs but not everything was
          compared, V(different).
      type: str
    differences:
      description:
        - The first 1000 differences, with C(path), C(detail) and C(what), which is V(missing), V(added), V(changed), V(written),
          V(shortened), V(rewritten), V(retargeted) or V(replaced).
      type: list
      elements: dict
    not_compared:
      description: The first 1000 paths that were not compared, with C(path) and C(why).
      type: list
      elements: dict
lost:
  description: Missing, truncated and replaced files, one line each. Files that were added, written to or grew are not included.
  returned: with O(compare=true)
  type: list
  elements: str
report:
  description: The result as text for display.
  returned: after the first claim was read
  type: str
plan:
  description: In check mode, the planned reads.
  returned: in check mode
  type: list
  elements: str
reason:
  description:
    - Stable key of the failure, one of V(data_differs), V(refused), V(baseline_unreadable), V(not_bound), V(in_use), V(not_comparable),
      V(no_node), V(helper_failed), V(left_behind), V(cut), V(interrupted) or a key of M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: data_differs
"""
