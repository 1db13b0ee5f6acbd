# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drivers
short_description: "Internal: names of the CSI drivers that this collection knows"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - The names under which the playbooks and M(kubewin.csi.driver_info) know their drivers, in alphabetical order.
  - A driver C(name) is deployed by the role C(name_csi).
options:
  _terms:
    description: Nothing is looked up by name; leave this empty.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Which drivers are there?
  ansible.builtin.debug:
    msg: "{{ query('kubewin.csi.drivers') }}"
"""

RETURN = r"""
_raw:
  description: The names.
  type: list
  elements: str
  sample: [vsphere]
"""

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS


class LookupModule(LookupBase):
    """The registry's keys."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """Every name, sorted. AnsibleError when something is asked by name."""
        if terms or kwargs:
            raise AnsibleError(f"the lookup kubewin.csi.drivers takes no arguments, found {[*terms, *kwargs]}")
        return sorted(DRIVERS)
