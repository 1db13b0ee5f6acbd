#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_apply
short_description: "Internal: apply Kubernetes objects that differ"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Applies objects server-side with the field manager C(kubewin.csi).
  - Reads and dry-runs every object first. Fails before the first change if the server would refuse an object, and writes only
    objects that the dry run would change. A second run sends no write.
  - In check mode, objects in a namespace that the same task creates are planned from their definition and marked as not
    validated.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode and report what would change, after the server's own dry run.
    support: full
  diff_mode:
    description: Returns what changed, or in check mode would change, without the server's bookkeeping.
    support: full
options:
  definition:
    description: The objects, as YAML text with any number of documents, or as a list of dictionaries.
    type: raw
    required: true
  only_existing:
    description:
      - Change objects that exist and never create one, for labels on Nodes.
      - An object that was deleted meanwhile is not created again.
    type: bool
    default: false
  force_conflicts:
    description: Take over fields that another manager owns. Without it such a conflict names that manager and fails.
    type: bool
    default: false
seealso:
  - module: kubernetes.core.k8s
    description: Applies anything, and sends its write every time.
"""

EXAMPLES = r"""
- name: Mark a Node whose pipes were proven
  kubewin.csi.cluster_apply:
    definition:
      - apiVersion: v1
        kind: Node
        metadata:
          name: win-1
          labels:
            kubewin.io/csi-proxy: serving
    only_existing: true
"""

RETURN = r"""
objects:
  description: Every object and what was, or in check mode would be, done with it.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Its kind.
      type: str
    namespace:
      description: Its namespace, null for cluster-wide kinds.
      type: str
    name:
      description: Its name.
      type: str
    action:
      description: One of V(none), V(create), V(update).
      type: str
    validated:
      description: Whether the server validated it. False only in check mode, in a namespace still to be created.
      type: bool
  sample: [{kind: Node, namespace: null, name: win-1, action: update, validated: true}]
reason:
  description:
    - Stable key of the failure, one of V(forbidden), V(conflict), V(invalid), V(not_found),
      V(admission_refused), V(unauthorized), V(unreachable), V(too_many_requests), V(configuration), V(api_error).
  returned: failure
  type: str
  sample: forbidden
"""
