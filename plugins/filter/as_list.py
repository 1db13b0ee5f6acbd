# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: as_list
short_description: "Internal: read an input that is a list or text"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Surveys and C(-e name=value) give text where a play gives a list. This filter returns the same list for both.
  - Text is divided at the separator and at line breaks. Blanks around an entry, empty entries, and brackets and quotes of a list that
    was written as text are dropped.
options:
  _input:
    description: A list, text, or nothing.
    type: raw
    required: true
  separator:
    description: What divides text.
    type: str
    default: ','
"""

EXAMPLES = r"""
- name: Both are ["win-1", "win-2"]
  ansible.builtin.debug:
    msg: "{{ ['win-1,win-2' | kubewin.csi.as_list, ['win-1', 'win-2'] | kubewin.csi.as_list] }}"
"""

RETURN = r"""
_value:
  description: The entries, as text.
  type: list
  elements: str
"""

from collections.abc import Callable

from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.lists import as_list


class FilterModule:
    """The filter of this file's name."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Names and functions."""
        return {"as_list": as_list}
