# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading errors of the client and its transport without importing either.

Both may be absent where this is only checked.
"""

from __future__ import annotations

from ..base.decode import read_number
from ..base.text import join_lines


def read_status_code(error: BaseException) -> int | None:
    """HTTP status of an API error, None for anything else (the client's error classes must not be imported here)."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) and status > 0 else None


def read_body(error: BaseException) -> str:
    body = getattr(error, "body", "") or ""
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)


def is_connection(error: BaseException) -> bool:
    """A network problem: of the operating system, any of urllib3's, or of TLS, which the client raises as an API error with status 0."""
    is_of_urllib3 = any(cls.__module__.startswith("urllib3.") for cls in type(error).__mro__)
    return isinstance(error, OSError) or is_of_urllib3 or getattr(error, "status", None) == 0


def find_cause(error: BaseException) -> str:
    """The innermost cause in one line; urllib3 wraps it several times."""
    inner: BaseException = error
    while isinstance(getattr(inner, "reason", None), BaseException):
        inner = inner.reason  # type: ignore[attr-defined]  # checked in the line above
    if getattr(inner, "status", None) == 0:
        return join_lines(str(getattr(inner, "reason", ""))[:300])
    return join_lines(str(inner).splitlines()[0][:300]) if str(inner) else type(inner).__name__


def read_retry_after(error: BaseException) -> float | None:
    """Seconds of the Retry-After header, None without one or when it is a date."""
    headers = getattr(error, "headers", None) or {}
    value = headers.get("Retry-After") if hasattr(headers, "get") else None
    seconds = read_number(value)
    return max(0.0, float(seconds)) if seconds is not None else None
