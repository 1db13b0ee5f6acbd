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

try:
    from ansible.template import trust_as_template
except ImportError:
    # Before ansible-core 2.19: there text is a template unless it is marked.
    from ansible.utils.unsafe_proxy import wrap_var

    HARMFUL_UNLESS_MARKED = True
else:
    HARMFUL_UNLESS_MARKED = False

# No delimiter of Jinja, and no "#jinja2:" line that would define others.
_PLAIN = re.compile(r"[^{}#%\r\n]*")


def foreign(value: Any) -> Any:
    """The value with all text in it marked as what it is; mappings and lists are made anew."""
    if isinstance(value, Mapping):
        return {str(key): foreign(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [foreign(one) for one in value]
    if not isinstance(value, str):
        return value
    plain = _PLAIN.fullmatch(value) is not None
    if HARMFUL_UNLESS_MARKED:
        return value if plain else wrap_var(value)
    # Not marked is not trusted there.
    return trust_as_template(value) if plain else value
