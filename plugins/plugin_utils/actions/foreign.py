# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that others wrote, as variables that Ansible never takes for templates.

Whoever may label or annotate a Node would otherwise run code on the controller. Text that could be no template anyway is
left as plain text: marked, it would show as {"__ansible_unsafe": "win-1"} in ansible-inventory and AWX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import ansible.template
from ansible.utils.unsafe_proxy import wrap_var

from ..base.text import mask_controls

# From ansible-core 2.19 on text is no template unless it is marked as one; before, it is one unless it is marked.
_as_template = getattr(ansible.template, "trust_as_template", None)

# No delimiter of Jinja, and no "#jinja2:" line that would define others.
_PLAIN = re.compile(r"[^{}#%\r\n]*")


def mark_foreign(value: Any) -> Any:
    """The value with all text in it marked as what it is, without control characters that act; mappings and lists are made anew."""
    if isinstance(value, Mapping):
        return {str(key): mark_foreign(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mark_foreign(item) for item in value]
    if not isinstance(value, str):
        return value
    value = mask_controls(value)
    plain = _PLAIN.fullmatch(value) is not None
    if _as_template is None:
        return value if plain else wrap_var(value)
    return _as_template(value) if plain else value
