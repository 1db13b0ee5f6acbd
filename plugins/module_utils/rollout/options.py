# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that modules share, as an argument spec. Documented in the fragment hosts."""

from __future__ import annotations

from typing import Any

HOSTS: dict[str, Any] = {
    "type": "list",
    "elements": "dict",
    "default": [],
    "options": {
        "node": {"type": "str", "required": True},
        "observed_at": {"type": "str"},
        "serving": {"type": "bool"},
        "release": {"type": "str"},
        "state": {"type": "str"},
        "reason": {"type": "str"},
        "missing_pipes": {"type": "list", "elements": "str"},
        "pipes": {"type": "list", "elements": "str"},
        "boot_time": {"type": "str"},
    },
}
