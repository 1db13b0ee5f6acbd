# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs that are a list in a play, and text in a survey or on a command line. Pure."""

from __future__ import annotations

import re


def as_list(value: object, separator: str = ",") -> list[str]:
    """The entries of a list or of text, as text; none of nothing."""
    if isinstance(value, (list, tuple)):
        parts = [str(part) for part in value]
    else:
        text = "" if value is None else str(value).strip()
        written = len(text) > 1 and text[0] == "[" and text[-1] == "]"
        parts = re.split(f"[{re.escape(separator)}\n]", text[1:-1] if written else text)
        parts = [part.strip().strip("'\"") if written else part for part in parts]
    return [part.strip() for part in parts if part.strip()]
