# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error with which a task fails."""

from __future__ import annotations

from typing import Any


class TaskError(Exception):
    """A task that fails. reason: stable key for playbooks. returned: what the task returns besides."""

    def __init__(self, message: str, reason: str = "", **returned: Any) -> None:
        super().__init__(message)
        self.reason, self.returned = reason, returned
