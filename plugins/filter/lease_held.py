# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: lease_held
short_description: "Internal: check the lease of an upgrade before a task"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Returns true if the run renewed its lease recently, so that no other run can have taken it over. Fails otherwise.
  - The playbook C(upgrade) checks this before each task of your task file.
options:
  _input:
    description: The file that records the renewals, as P(kubewin.csi.node_upgrade#module) returns it.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Run the tasks of one node
  ansible.builtin.include_tasks:
    file: upgrade-one-node.yml
    apply:
      when: node_upgrade_held.lease | kubewin.csi.lease_held
"""

RETURN = r"""
_value:
  description: Always true.
  type: bool
"""

from collections.abc import Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.lease_keeper import LeaseNotHeldError, check_renewal


def lease_held(path: str) -> bool:
    """True, or AnsibleFilterError if another run may have taken over the lease."""
    try:
        check_renewal(path)
    except LeaseNotHeldError as error:
        raise AnsibleFilterError(str(error)) from None
    return True


class FilterModule:
    """The filter of this file's name."""

    def filters(self) -> dict[str, Callable[..., bool]]:
        """Names and functions."""
        return {"lease_held": lease_held}
