#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_remove
short_description: Remove a CSI driver's Windows node plugin that nothing uses
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Deletes every object that this collection applied for a driver, and no other object. Finds them by their labels, also under other names and in
    other namespaces.
  - Refuses while a Windows node uses a volume of the driver, according to pods, attachments and kubelets.
  - Deletes each object by the uid that was read. The next run finishes an interrupted one.
  - Waits until the plugin's pods are deleted. Keeps claims, volumes, the driver's controller and the namespace.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.driver.named
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; the server checks each deletion without doing it.
    support: full
  diff_mode:
    description: Will not return details about what has changed; the objects are listed in the result.
    support: none
options:
  force_in_use:
    description:
      - Remove the plugin although Windows nodes use volumes. Pods with such volumes then cannot end, and their nodes cannot be drained,
        until a node plugin runs there again.
    type: bool
    default: false
  timeout:
    description: Timeout in seconds for the end of the plugin's pods.
    type: int
    default: 300
  progress_file:
    description: Internal. Progress messages are appended to this file.
    type: path
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.driver_apply
"""

EXAMPLES = r"""
- name: Remove the vSphere node plugin from the Windows nodes
  kubewin.csi.driver_remove:
    driver: vsphere
"""

RETURN = r"""
objects:
  description: Deleted objects, in check mode the planned ones.
  returned: success
  type: list
  elements: dict
  sample: [{kind: DaemonSet, namespace: vmware-system-csi, name: vsphere-csi-node-windows}]
in_use:
  description: Users of the driver's volumes on Windows nodes.
  returned: always, after the cluster was read
  type: list
  elements: dict
  sample: [{node: win-1, what: pod shop/db-0 (claim data-db-0)}]
namespaces:
  description: Namespaces of the objects. They are kept.
  returned: success
  type: list
  elements: str
  sample: [vmware-system-csi]
reason:
  description: Stable key of the failure, V(in_use), V(timeout) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: in_use
"""

import time

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.declared import DRIVER
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal import refusal
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import (
    applied_for,
    in_use,
    wait_until_gone,
)
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter

ARGUMENT_SPEC = {**DRIVER, **documented(DOCUMENTATION)}


def main() -> None:
    """Observe, refuse or delete, wait."""
    ansible = module(ARGUMENT_SPEC)
    deadline = time.monotonic() + ansible.params["timeout"]
    notify = reporter(ansible.params["progress_file"])
    with failing(ansible):
        driver = driver_named(ansible.params["driver"])
        client = connect(ansible)
        found = applied_for(client, driver)
        # A run that continues after the plugin was deleted does not check volumes again: it finishes the rest.
        plugin = [item for kind, item in found if kind == kinds.DAEMON_SET]
        used = in_use(client, driver) if plugin else ()
        signs = [{"node": use.node, "what": use.what} for use in used]
        if used and not ansible.params["force_in_use"]:
            ansible.fail_json(msg=refusal(driver, used), reason="in_use", in_use=signs)
        objects = []
        for kind, item in found:
            metadata = item["metadata"]
            namespace = metadata.get("namespace")
            client.delete(kind, metadata["name"], namespace, metadata["uid"], dry_run=ansible.check_mode)
            objects.append({"kind": kind.kind, "namespace": namespace, "name": metadata["name"]})
            if (
                kind == kinds.DAEMON_SET
                and not ansible.check_mode
                and not wait_until_gone(client, item, deadline, notify)
            ):
                ansible.fail_json(
                    msg=(
                        f"pods of DaemonSet {namespace}/{metadata['name']} still exist after "
                        f"{ansible.params['timeout']} s, and it is being deleted. Check these pods and their nodes, "
                        "then run again, with a higher timeout if they are only slow."
                    ),
                    reason="timeout",
                    in_use=signs,
                )
    ansible.exit_json(
        changed=bool(objects),
        objects=objects,
        in_use=signs,
        namespaces=sorted({item["namespace"] for item in objects if item["namespace"]}),
    )


if __name__ == "__main__":
    main()
