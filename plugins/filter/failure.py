# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: failure
short_description: "Internal: return why a task failed"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Returns the messages of the result of a failed task, as C(ansible_failed_result) holds it in a rescue. Of a loop those of the items
    that failed.
options:
  _input:
    description: The result.
    type: dict
    required: true
  task:
    description: Name of the task, for a result that has no message, or one that C(no_log) hides.
    type: str
    default: the task
"""

EXAMPLES = r"""
- name: Keep why it failed
  ansible.builtin.set_fact:
    why: "{{ ansible_failed_result | kubewin.csi.failure(ansible_failed_task.name) }}"
"""

RETURN = r"""
_value:
  description: The messages, one a line.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any


def failure(result: Mapping[str, Any], task: str = "the task") -> str:
    """Each message once. result: of one task, or of a loop with its results."""
    if result.get("_ansible_no_log") or result.get("censored"):
        return f"{task} failed; no_log hides why"
    # A module may return results of its own, which are no items of a loop.
    items = [one for one in result.get("results") or [] if isinstance(one, Mapping) and one.get("failed")] or [result]
    messages = [str(one["msg"]) for one in items if one.get("msg")]
    return "\n".join(dict.fromkeys(messages)) or f"{task} failed without a message"


class FilterModule:
    """The filter of this file's name."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Names and functions."""
        return {"failure": failure}
