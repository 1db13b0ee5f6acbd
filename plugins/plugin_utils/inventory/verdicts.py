# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a saved readiness report says of hosts, and how old that is. Pure.

For choosing hosts and for messages. Decisions about changes read the cluster itself, never this report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.times import parse_time
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import REPORT_VERSION

_WORDS = {"yes": "ready", "no": "blocked"}


def read_verdicts(report: Any, nodes: Collection[str], now: datetime) -> dict[str, dict[str, Any]]:
    """Host variables by Node. ValueError: this is no report, or one of another cluster."""
    version = report.get("report_version") if isinstance(report, Mapping) else None
    if version != REPORT_VERSION:
        raise ValueError(f"found report_version {version!r}, expected {REPORT_VERSION}")
    taken_at = parse_time(report.get("taken_at"))
    if taken_at is None:
        raise ValueError(f"found taken_at {report.get('taken_at')!r}, expected the time of the report")
    evaluated = {str(entry["node"]): entry for entry in report.get("nodes") or []}
    if evaluated and nodes and not evaluated.keys() & set(nodes):
        raise ValueError(
            f"it has {', '.join(sorted(evaluated)[:3])} and none of this cluster's Windows Nodes "
            f"({', '.join(sorted(nodes)[:3])}): it is of another cluster"
        )
    shared = {
        "kubewin_verdict_taken_at": taken_at.isoformat(),
        "kubewin_verdict_age": int((now - taken_at).total_seconds()),
        "kubewin_verdict_target": dict(report.get("target") or {}),
    }
    absent = {"ok": "unknown", "because": "the report does not include this Node"}
    return {
        node: {
            "kubewin_verdict": _WORDS.get(str(evaluated.get(node, absent)["ok"]), "unknown"),
            "kubewin_verdict_because": str(evaluated.get(node, absent)["because"]),
            **shared,
        }
        for node in nodes
    }
