#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_pull
short_description: Pull the images of a changed node plugin on Windows nodes before its pods are replaced
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Where a running DaemonSet would change to other images, makes a pod on each Node that has nothing to do but to have them, waits until
    they are there, and removes it. A Node is then without its plugin only as long as that takes to start.
  - The pods have names and labels of their own, mount nothing, and end by themselves. Those that a killed run left are found by their
    labels and removed by the next.
  - Nothing is done for a first installation, for images that the Node says it has, and where the images stay the same.
  - It needs the role C(kubewin-csi-prepull) in the driver's namespace.
extends_documentation_fragment:
  - kubewin.csi.cluster
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
  driver:
    description:
      - The driver, such as V(vsphere) or V(azure_disk). Another name is refused with all that are known.
    type: str
    required: true
  nodes:
    description: Pull only on these Nodes. Without it on every Windows Node that the DaemonSet goes to.
    type: list
    elements: str
    default: []
  at_once:
    description: On how many Nodes at a time.
    type: int
    default: 10
  timeout:
    description: Seconds for all of them.
    type: int
    default: 1800
  retry_for:
    description: Seconds for which a Node may fail to pull before that is believed; its kubelet tries again meanwhile.
    type: int
    default: 120
  window:
    description: Seconds of one look; the action sets it.
    type: int
    default: 30
  progress:
    description: What a look before found out; the action sets it.
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
  returned: always, once the cluster was looked at
  type: list
  elements: str
pulled:
  description: Nodes on which it was pulled; in check mode those where it would be.
  returned: always, once the cluster was looked at
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

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS, unknown
from ansible_collections.kubewin.csi.plugins.module_utils.cluster import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.definitions import documents
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.pulls import Pulls
from ansible_collections.kubewin.csi.plugins.module_utils.deploy import pull
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import absent_or_ours
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import DaemonSetFacts, NodeFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.scheduling import why_not

ARGUMENT_SPEC: dict[str, Any] = {
    "definition": {"type": "raw", "required": True},
    "driver": {"type": "str", "required": True},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "at_once": {"type": "int", "default": 10},
    "timeout": {"type": "int", "default": 1800},
    "retry_for": {"type": "int", "default": 120},
    "window": {"type": "int", "default": 30},
    "progress": {"type": "dict", "default": {}},
}


def wanted_on(client: Client, plugin: dict[str, Any], nodes: list[str]) -> dict[str, list[str]]:
    """The images to pull, by Node, in the order of the given nodes; empty where nothing changes."""
    metadata = plugin["metadata"]
    live = client.get(kinds.DAEMON_SET, metadata["name"], metadata["namespace"])
    if live is None or not absent_or_ours(live):
        return {}
    fresh = [image for image in pull.images(plugin) if image not in pull.images(live)]
    if not fresh and "kubewin.io/rolling" not in (live["metadata"].get("annotations") or {}):
        return {}
    after = DaemonSetFacts.from_object({**plugin, "status": {}})
    listed = client.list(kinds.NODE, label_selector="kubernetes.io/os=windows").items
    there = {
        node["metadata"]["name"]: node
        for node in listed
        if why_not(after, facts := NodeFacts.from_object(node)) is None and facts.ready
    }
    names = [name for name in nodes if name in there] if nodes else sorted(there)
    found = {name: list(pull.missing(there[name], pull.images(plugin))) for name in names}
    return {name: lacking for name, lacking in found.items() if lacking}


def begin(client: Client, driver: Driver, params: dict[str, Any], *, check: bool) -> dict[str, Any]:
    """Find out where what is to be pulled, and take away what another run left."""
    plugin = next((item for item in documents(params["definition"]) if item["kind"] == "DaemonSet"), None)
    wanted = {} if plugin is None else wanted_on(client, plugin, params["nodes"])
    images = list(dict.fromkeys(image for lacking in wanted.values() for image in lacking))
    result: dict[str, Any] = {"changed": bool(wanted), "images": images, "pulled": list(wanted) if check else []}
    if check or not wanted or plugin is None:
        return result
    Pulls(client, driver.name, plugin["metadata"]["namespace"]).remove()
    return {**result, "progress": {"wanted": wanted, "done": [], "trouble": {}, "left": float(params["timeout"])}}


def go_on(client: Client, driver: Driver, params: dict[str, Any]) -> dict[str, Any]:
    """One window: make pods, take away those that have done their work, and say how far the Nodes are."""
    plugin = next(item for item in documents(params["definition"]) if item["kind"] == "DaemonSet")
    pulls = Pulls(client, driver.name, plugin["metadata"]["namespace"])
    seen = params["progress"]
    wanted, done, trouble = seen["wanted"], list(seen["done"]), dict(seen["trouble"])
    started = time.monotonic()
    left = float(seen["left"])
    since = {node: started - float(spent) for node, spent in trouble.items()}
    why: dict[str, str] = {}
    failed: dict[str, str] = {}
    before = len(done)
    while True:
        now = time.monotonic()
        pods = pulls.pods()
        judged = {one.node: one for one in pull.judge(pods)}
        for node, one in judged.items():
            if one.state == "done" and node not in done:
                done.append(node)
                pulls.delete(node, pods)
        why = {node: one.why for node, one in judged.items() if one.state in ("troubled", "failed")}
        since = {node: since.get(node, now) for node in why}
        late = {node for node, then in since.items() if now - then >= params["retry_for"]}
        failed = {node: text for node, text in why.items() if judged[node].state == "failed" or node in late}
        coming = [node for node in wanted if node not in done and node not in judged]
        under_way = sum(one.state != "done" for one in judged.values())
        for node in coming[: max(0, params["at_once"] - under_way)]:
            pulls.create(pull.pod(plugin, driver.name, node, wanted[node], int(left) + 60))
        over = now - started
        if failed or len(done) == len(wanted) or over >= min(left, params["window"]) or len(done) > before:
            break
        pulls.wait(min(1.0, left))
    spent = time.monotonic() - started
    following = {
        "wanted": wanted,
        "done": done,
        "trouble": {node: time.monotonic() - then for node, then in since.items()},
        "left": left - spent,
    }
    waiting = [node for node in wanted if node not in done]
    return {"changed": True, "pulled": done, "waiting": waiting, "why": why, "failures": failed, "progress": following}


def main() -> None:
    """Begin, or go on for one window, or clear up."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    if params["driver"] not in DRIVERS:
        # Not by choices, which documentation would have to repeat for every new driver.
        ansible.fail_json(msg=unknown(params["driver"]), reason="configuration")
    driver = DRIVERS[params["driver"]]
    try:
        client = connect(ansible)
        if params["progress"].get("over"):
            plugin = next(item for item in documents(params["definition"]) if item["kind"] == "DaemonSet")
            Pulls(client, driver.name, plugin["metadata"]["namespace"]).remove()
            result: dict[str, Any] = {"changed": False}
        elif params["progress"]:
            result = go_on(client, driver, params)
        else:
            result = begin(client, driver, params, check=ansible.check_mode)
    except ClusterError as error:
        ansible.fail_json(msg=str(error), reason=error.reason)
    ansible.exit_json(**result)


if __name__ == "__main__":
    main()
