# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every situation that readiness must distinguish from a healthy cluster; situations/base.py defines a situation."""

from __future__ import annotations

from situations import drivers, harmless, hidden, live, next_pods, semantics, targets, unstarted, volumes, walked, whole
from situations.base import SITUATIONS, Situation

__all__ = [
    "SITUATIONS",
    "Situation",
    "drivers",
    "harmless",
    "hidden",
    "live",
    "next_pods",
    "semantics",
    "targets",
    "unstarted",
    "volumes",
    "walked",
    "whole",
]
