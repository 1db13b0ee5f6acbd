# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any


def parse_time(text: Any) -> datetime | None:
    """An RFC 3339 time of the API, None when absent or not one, or so far away that it cannot be counted with."""
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)) if 1970 <= moment.year < 9999 else None


def read_event_time(event: Mapping[str, Any]) -> float:
    """When an event happened last, in seconds since 1970; 0 without a time."""
    seen = event.get("lastTimestamp") or (event.get("series") or {}).get("lastObservedTime") or event.get("eventTime")
    moment = parse_time(seen or (event.get("metadata") or {}).get("creationTimestamp"))
    return moment.timestamp() if moment else 0.0
