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
  - Deletes every object that M(kubewin.csi.cluster_apply) applied for a driver, and nothing else. They are found by the
    labels that all of them carry, so renamed DaemonSets and other namespaces are found too.
  - Refuses while a Windows node uses a volume of the driver, as pods, attachments and the kubelets themselves tell.
  - Each object is deleted only if it is the one that was seen. A run that was cut off is finished by the next.
  - Waits until the plugin's pods are gone. Claims, volumes and the driver's controller are left alone, and so is the
    namespace, which may hold what others put there.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; the server checks each deletion without doing it.
    support: full
  diff_mode:
    description: Will not return details about what has changed; the objects are listed in the result.
    support: none
options:
  driver:
    description: The driver, such as V(vsphere) or V(azure_disk). Another name is refused with all that are known.
    type: str
    required: true
  force_in_use:
    description:
      - Remove the plugin although volumes are in use on Windows nodes. Pods with such volumes can then not end, and
        their nodes not be drained, until a node plugin is back.
    type: bool
    default: false
  timeout:
    description: Seconds to wait until the plugin's pods are gone.
    type: int
    default: 300
  progress_file:
    description: The action sets it. Lines for whoever waits are added to this file.
    type: path
seealso:
  - module: kubewin.csi.driver_info
  - module: kubewin.csi.cluster_apply
"""

EXAMPLES = r"""
- name: Remove the vSphere node plugin from the Windows nodes
  kubewin.csi.driver_remove:
    driver: vsphere
"""

RETURN = r"""
objects:
  description: What was, or in check mode would be, deleted.
  returned: success
  type: list
  elements: dict
  sample: [{kind: DaemonSet, namespace: vmware-system-csi, name: vsphere-csi-node-windows}]
in_use:
  description: What uses volumes of the driver on Windows nodes.
  returned: always, once the cluster was looked at
  type: list
  elements: dict
  sample: [{node: win-1, what: pod shop/db-0 (claim data-db-0)}]
namespaces:
  description: Namespaces that held the objects; they are kept.
  returned: success
  type: list
  elements: str
  sample: [vmware-system-csi]
reason:
  description: Why the task failed, V(in_use), V(timeout) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: in_use
"""

import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal import refusal
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import (
    applied_for,
    in_use,
    wait_until_gone,
)
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter

ARGUMENT_SPEC: dict[str, Any] = {
    "driver": {"type": "str", "required": True},
    "force_in_use": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 300},
    "progress_file": {"type": "path"},
}


def main() -> None:
    """Look, refuse or delete, wait."""
    ansible = module(ARGUMENT_SPEC)
    deadline = time.monotonic() + ansible.params["timeout"]
    say = reporter(ansible.params["progress_file"])
    with failing(ansible):
        driver = driver_named(ansible.params["driver"])
        client = connect(ansible)
        found = applied_for(client, driver)
        # A run that was cut off after the plugin went has no say over volumes any more: it finishes the rest.
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
            if kind == kinds.DAEMON_SET and not ansible.check_mode and not wait_until_gone(client, item, deadline, say):
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
