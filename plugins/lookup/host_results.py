# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: host_results
short_description: "Internal: return the results of a play's Windows hosts for its cluster-wide tasks"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads the results of M(kubewin.csi.csi_proxy) and M(kubewin.csi.csi_proxy_info) that the hosts of the play registered, and returns
    one row for each host.
  - Internal to the playbooks of this collection. It contacts no host and no cluster.
options:
  _terms:
    description:
      - The form of the rows.
      - V(reported) is for O(kubewin.csi.node_info#module:hosts), V(proofs) for O(kubewin.csi.node_rollout#module:hosts), V(read) for
        O(kubewin.csi.readiness_info#module:hosts) and V(rows) for O(kubewin.csi.summary#module:hosts). V(gathered) is for
        O(kubewin.csi.support_archive#module:hosts), V(diagnosed) for O(kubewin.csi.diagnosis#module:hosts).
      - V(unmarked) is for the label of Nodes that had another one when they were read.
      - V(verified) is for the playbook C(verify).
      - V(unsettled) names the hosts on which csi-proxy, the label of the Node or its cordon may have to be changed.
      - V(changed) names the hosts on which this run changed csi-proxy.
      - V(returned) is the latest result of each host.
    type: list
    elements: str
    required: true
    choices: [reported, proofs, read, rows, gathered, diagnosed, verified, unmarked, unsettled, changed, returned]
  hosts:
    description: Names of the hosts. Defaults to the hosts of the current batch.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Match hosts to Nodes
  kubewin.csi.node_info:
    hosts: "{{ query('kubewin.csi.host_results', 'reported') }}"
"""

RETURN = r"""
_raw:
  description: One row for each host that the form has a row for.
  type: list
  elements: dict
  sample: [{name: win-1, names: [WIN-1], addresses: [10.0.0.11], node_name: "", problem: ""}]
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.host_results import FORMS, formed


class LookupModule(LookupBase):
    """The registered results, by host."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[dict[str, Any]]:
        """Rows of one form. AnsibleError for another form."""
        if set(kwargs) - {"hosts"}:
            raise AnsibleError(f"kubewin.csi.host_results: found the options {sorted(kwargs)}, expected hosts alone.")
        if len(terms) != 1 or terms[0] not in FORMS:
            raise AnsibleError(f"kubewin.csi.host_results: found {terms}, expected one of {', '.join(FORMS)}.")
        given = variables or {}
        hosts = kwargs.get("hosts")
        # While a playbook is only read there are no host variables.
        return formed(terms[0], given["ansible_play_batch"] if hosts is None else hosts, given.get("hostvars") or {})
