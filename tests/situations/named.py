# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every situation that readiness must distinguish from a healthy cluster; situations/base.py defines a situation."""

from __future__ import annotations

from functools import cache

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report

from situations import (
    drivers,
    harmless,
    hidden,
    images,
    live,
    next_pods,
    semantics,
    targets,
    unstarted,
    volumes,
    walked,
    webhooks,
    whole,
)
from situations.base import SITUATIONS, Situation

__all__ = [
    "SITUATIONS",
    "Situation",
    "drivers",
    "harmless",
    "hidden",
    "images",
    "live",
    "next_pods",
    "report_of",
    "semantics",
    "snapshot_of",
    "targets",
    "unstarted",
    "volumes",
    "walked",
    "webhooks",
    "whole",
]


@cache
def snapshot_of(name: str) -> Snapshot:
    """The snapshot of a situation, made once for all tests that spoil nothing in its world."""
    return SITUATIONS[name].world().snapshot()


@cache
def report_of(name: str) -> Report:
    """The report of a situation, evaluated once for all tests that only read it."""
    return evaluate(snapshot_of(name), SITUATIONS[name].target)
