# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: as_target
short_description: "Internal: read the target of an upgrade"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads C(kubewin_target) and C(kubewin_upgrade_target), which have one grammar.
  - A target is text such as C(openshift=4.14,wmco=9.0.0), or a dictionary. C(kubelet) is another name of C(kubernetes).
options:
  _input:
    description: Text, a dictionary, or nothing.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Both are {kubernetes 1.27}
  ansible.builtin.debug:
    msg: "{{ ['kubelet=1.27' | kubewin.csi.as_target, {'kubernetes': '1.27'} | kubewin.csi.as_target] }}"
"""

RETURN = r"""
_value:
  description: Releases by key. The keys are V(kubernetes), V(openshift), V(wmco), V(driver), V(driver_version) and V(mode).
  type: dict
"""

from collections.abc import Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.target import parse_target


def as_target(value: object) -> dict[str, str]:
    """A target by its keys, sorted. AnsibleFilterError names what is wrong with it."""
    try:
        return dict(sorted(parse_target(value).items()))
    except ValueError as error:
        raise AnsibleFilterError(f"the target cannot be read: {error}") from error


class FilterModule:
    """The filter of this file's name."""

    def filters(self) -> dict[str, Callable[..., dict[str, str]]]:
        """Names and functions."""
        return {"as_target": as_target}
