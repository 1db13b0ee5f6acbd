# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendering a driver's plan with the templates of the role csi_driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..catalog.base import ModeRule

TEMPLATES = Path(__file__).resolve().parents[3] / "roles" / "csi_driver" / "templates"


@cache
def _environment() -> Environment:
    """Not Ansible's: a template extends another one, and Ansible finds that only from a task of the role that holds both."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["to_json"] = json.dumps
    return environment


def render(rule: ModeRule, settings: Mapping[str, Any]) -> str:
    """The objects of a plan as YAML. settings: what the template reads as plan."""
    return _environment().get_template(f"drivers/{rule.template}").render(plan=settings)
