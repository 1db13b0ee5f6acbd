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
  window:
    description: "Internal: seconds of one call."
    type: int
    default: 30
  progress:
    description: "Internal: result of the previous call."
    type: dict
    default: {}
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
  description: Why the task failed, V(pull_failed), V(timeout) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: pull_failed
"""

import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers import declared, pull
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pull_apply import Pulls
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, driver_named, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.definitions import daemon_set, documents

ARGUMENT_SPEC = {**declared.spec(declared.PULL), **documented(DOCUMENTATION)}


def begin(
    client: Client, pulls: Pulls, plugin: dict[str, Any], params: dict[str, Any], *, check: bool
) -> dict[str, Any]:
    """Find out where what is to be pulled, and take away what another run left."""
    metadata = plugin["metadata"]
    live = client.get(kinds.DAEMON_SET, metadata["name"], metadata["namespace"])
    nodes = client.windows_nodes()
    wanted = pull.lacking(plugin, live, nodes, params["nodes"])
    images = list(dict.fromkeys(image for lacking in wanted.values() for image in lacking))
    result: dict[str, Any] = {"changed": bool(wanted), "images": images, "pulled": list(wanted) if check else []}
    if check:
        return result
    pulls.remove()
    if not wanted:
        return result
    return {**result, "progress": {"wanted": wanted, "done": [], "trouble": {}, "left": float(params["timeout"])}}


def go_on(pulls: Pulls, plugin: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """One window: create pods, delete completed ones, and report the progress of the Nodes."""
    before, wanted = params["progress"], params["progress"]["wanted"]
    started = time.monotonic()
    since = {node: started - float(spent) for node, spent in before["trouble"].items()}
    ends = started + min(float(before["left"]), params["window"])
    done = tuple(before["done"])
    while True:
        now = time.monotonic()
        pods = pulls.pods()
        observed = pull.progress(pods, wanted, done, {node: now - then for node, then in since.items()})
        news, done = set(observed.done) - set(done), observed.done
        since = {node: since.get(node, now) for node in observed.why}
        left = float(before["left"]) - (now - started)
        for node in news:
            pulls.delete(node, pods)
        for node in observed.start:
            pulls.create(pull.pod(plugin, params["driver"], node, wanted[node], int(left) + 60))
        if observed.failures or not observed.waiting or news or now >= ends:
            break
        pulls.wait(min(1.0, ends - now))
    return {
        "changed": True,
        "pulled": list(observed.done),
        "waiting": list(observed.waiting),
        "why": dict(observed.why),
        "failures": dict(observed.failures),
        "progress": {
            "wanted": wanted,
            "done": list(observed.done),
            "trouble": {node: time.monotonic() - then for node, then in since.items()},
            "left": float(before["left"]) - (time.monotonic() - started),
        },
    }


def main() -> None:
    """Begin, continue for one window, or clean up."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    with failing(ansible):
        driver = driver_named(params["driver"]).name
        plugin = daemon_set(documents(params["definition"]))
        client = connect(ansible)
        pulls = Pulls(client, driver, plugin["metadata"]["namespace"])
        if params["progress"].get("over"):
            pulls.remove()
            result: dict[str, Any] = {"changed": False}
        elif params["progress"]:
            result = go_on(pulls, plugin, {**params, "driver": driver})
        else:
            result = begin(client, pulls, plugin, params, check=ansible.check_mode)
    ansible.exit_json(**result)


if __name__ == "__main__":
    main()
