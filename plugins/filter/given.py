# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: given
short_description: "Internal: use a default where an input is blank"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - A survey answers a question that was left blank with empty text. This filter returns the default for it, and for null.
  - Keeps V(false) and V(0), which C(default(x, true)) replaces.
options:
  _input:
    description: The input.
    type: raw
    required: true
  default:
    description: What a blank input means.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Wait for five minutes unless something else was asked for, 0 included
  ansible.builtin.debug:
    msg: "{{ kubewin_quiesce_timeout | default('') | kubewin.csi.given(300) | int }}"
"""

RETURN = r"""
_value:
  description: The input, or the default.
  type: raw
"""

from collections.abc import Callable


def given(value: object, default: object) -> object:
    """The value unless it is blank."""
    return default if value is None or value == "" else value


class FilterModule:
    """The filter of this file's name."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Names and functions."""
        return {"given": given}
