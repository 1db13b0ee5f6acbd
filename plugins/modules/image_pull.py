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
  progress_file:
    description: Internal. Progress messages are appended to this file; the module ends when the file is removed.
    type: path
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

from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers import declared
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pull import lacking
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pull_apply import Pulls
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.definitions import daemon_set, documents
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter, watch_over

ARGUMENT_SPEC = {**declared.spec(declared.PULL), **documented(DOCUMENTATION)}


def main() -> None:
    """Find out what each Node lacks, and pull it."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    result: dict[str, Any] = {"changed": False}
    watch_over(params["progress_file"], "Its pods were deleted; pulled images are kept")
    with failing(ansible, result):
        driver = driver_named(params["driver"]).name
        plugin = daemon_set(documents(params["definition"]))
        client = connect(ansible)
        metadata = plugin["metadata"]
        live = client.get(kinds.DAEMON_SET, metadata["name"], metadata["namespace"])
        missing = lacking(plugin, live, client.windows_nodes(), params["nodes"])
        images = list(dict.fromkeys(image for of_node in missing.values() for image in of_node))
        result.update(changed=bool(missing), images=images, pulled=list(missing) if ansible.check_mode else [])
        if not ansible.check_mode:
            pulls = Pulls(client, driver, plugin, reporter(params["progress_file"]))
            try:
                pulls.run(missing, float(params["timeout"]))
            finally:
                result["pulled"] = list(pulls.done)
    ansible.exit_json(**result)


if __name__ == "__main__":
    main()
