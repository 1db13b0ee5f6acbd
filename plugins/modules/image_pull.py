#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_pull
short_description: "Internal: pull the images of a changed node plugin on Windows nodes before its pods are replaced"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Before a running DaemonSet changes to other images, creates a pod with these images on each Node, waits until they are pulled, and
    deletes the pod. A Node is then without its plugin only while the new pod starts.
  - The pods have their own names and labels, mount nothing and end by themselves. The next run finds the pods of a killed run by their
    labels and deletes them.
  - Does nothing for a first installation, for images that the Node already reports, and if the images do not change.
  - Requires the role C(kubewin-csi-prepull) in the driver's namespace.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.driver.pull
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode and report the Nodes on which it would pull.
    support: full
  diff_mode:
    description: Will not return details about what has changed.
    support: none
options:
  definition:
    description: The objects that will be applied, one of them the DaemonSet, as YAML text or as a list of dictionaries.
    type: raw
    required: true
seealso:
  - module: kubewin.csi.driver_apply
"""

EXAMPLES = r"""
- name: Pull what the next release needs
  kubewin.csi.image_pull:
    driver: azure_disk
    definition: "{{ lookup('ansible.builtin.file', 'azure-disk.yaml') }}"
    timeout: 3600
"""

RETURN = r"""
images:
  description: What was, or in check mode would be, pulled.
  returned: after the cluster was read
  type: list
  elements: str
pulled:
  description: Nodes on which the images were pulled; in check mode, those on which they would be.
  returned: always, once the cluster was read
  type: list
  elements: str
reason:
  description: Why the task failed, V(pull_failed), V(timeout), V(interrupted) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: pull_failed
"""
