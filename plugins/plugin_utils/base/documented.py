# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options as a module documents them: each is declared once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .decode import load_yaml

ArgumentSpec = dict[str, dict[str, Any]]

_ONLY_FOR_PEOPLE = ("description", "suboptions", "version_added")


def read_argument_spec(documentation: str) -> ArgumentSpec:
    """The argument spec of a module's DOCUMENTATION, without its fragments."""
    return _build_spec(load_yaml(documentation)["options"])


def _build_spec(options: Mapping[str, Mapping[str, Any]]) -> ArgumentSpec:
    specs = {}
    for name, option in options.items():
        spec = {key: value for key, value in option.items() if key not in _ONLY_FOR_PEOPLE}
        specs[name] = spec | ({"options": _build_spec(option["suboptions"])} if "suboptions" in option else {})
    return specs
