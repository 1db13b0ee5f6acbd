#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: diagnosis
short_description: "Internal: list what keeps volumes on Windows from working, in the order to fix it"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Compares the controller, the account's rules, the connections, csi-proxy on each host, and the readiness report with what is expected.
  - Asks the cluster for the account's rules and for events of failed mounts. It changes nothing.
  - Internal to the playbook C(diagnose).
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
attributes:
  check_mode:
    support: full
options:
  drivers:
    description: Drivers whose roles the account's rules are compared with.
    type: list
    elements: str
    default: []
  hosts:
    description: The hosts of the run, each with C(name), C(node), C(reason), C(problem), C(unmatched) and C(state).
    type: list
    elements: dict
    default: []
  readiness:
    description: What M(kubewin.csi.readiness_info) returned.
    type: dict
    default: {}
  fail_on:
    description: Fail on a blocker, also on a warning, or never. V(unknown) is V(blocked), because here an unreadable object is a blocker.
    type: str
    choices: [never, blocked, unknown, warning]
    default: blocked
  needs:
    description: "Internal: permissions that the action needs, each as a rule of a role."
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Name what to fix first
  kubewin.csi.diagnosis:
    hosts: "{{ host_results }}"
"""

RETURN = r"""
diagnosis:
  description:
    - What to fix, in order, each with C(layer), C(id), C(severity), C(object), C(found), C(expected) and C(remedy).
  returned: always
  type: list
  elements: dict
lines:
  description: The same as text.
  returned: always
  type: list
  elements: str
controller:
  description: Releases of the controller's packages, and missing packages.
  returned: always
  type: dict
"""


from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.text import line

ARGUMENT_SPEC = documented(DOCUMENTATION)


def main() -> None:
    """Ask the cluster; the action compares."""
    ansible = module(ARGUMENT_SPEC)
    asked: dict[Need, bool] = {}
    lacking: dict[str, list[str]] = {}
    events: list[list[str]] = []
    try:
        client = connect(ansible.params, retry_for=min(20.0, float(ansible.params["api_timeout"])))
        client.version()
        for one in ansible.params["needs"]:
            need = Need(one["verb"], one["group"], one["resource"], one["namespace"], one["name"])
            if need not in asked:
                asked[need] = client.allowed(need)
            if not asked[need]:
                lacking.setdefault(one["role"], []).append(need.rule())
        try:
            found = client.list(kinds.EVENT, field_selector="reason=FailedMount").items
        except ClusterError as error:
            if error.status != 403:
                raise
            found = ()
        for event in found:
            about = event.get("involvedObject") or {}
            namespace = f"{about['namespace']}/" if about.get("namespace") else ""
            events.append(
                [f"{about.get('kind')} {namespace}{about.get('name')}", line(str(event.get("message") or ""))]
            )
    except ClusterError as error:
        ansible.exit_json(changed=False, reason=error.reason, problem=str(error), lacking={}, events=[])
    ansible.exit_json(changed=False, reason="", problem="", lacking=lacking, events=events)


if __name__ == "__main__":
    main()
