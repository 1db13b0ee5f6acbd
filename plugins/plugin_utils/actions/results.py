# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of tasks. Pure: no I/O."""

from __future__ import annotations

from typing import Any


def failed(reason: str, message: str) -> dict[str, Any]:
    """A failure. reason: a stable word, which playbooks and rules may compare."""
    return {"failed": True, "reason": reason, "msg": message}
