# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a driver and renders its objects with the templates of the role csi_driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..catalog.base import Driver, ModeRule
from ..drivers import declared
from ..drivers.observe import read_snapshot
from ..drivers.plan import DriverPlan, plan_driver
from ..drivers.plan_inputs import TEMPLATE_OPTIONS, DriverRequest
from ..kube.client import Client

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


def plan_objects(client: Client, driver: Driver, request: DriverRequest) -> tuple[DriverPlan, str]:
    """Plan a driver and render its objects, empty text if they cannot be deployed. Raises ClusterError."""
    planned = plan_driver(driver, request, read_snapshot(client, driver, request))
    return planned, render(planned.rule, planned.settings) if planned.rule and planned.deployable else ""


def read_request(options: Mapping[str, Any]) -> DriverRequest:
    """The request. Empty text counts as not set, and so does a suboption without a value, which an argument spec sets to None."""
    taken = declared.list_module_options(declared.INFO)
    values = {name: options[name] for name in (*taken, "replace")}
    values |= {
        name: {key: value for key, value in (values[name] or {}).items() if value not in (None, "", [], {})}
        for name, (_role, option) in taken.items()
        if option.suboptions
    }
    names = {field.name for field in fields(DriverRequest)}
    named: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in names and value not in (None, "")
    }
    return DriverRequest(**named, options={name: value for name, value in values.items() if name in TEMPLATE_OPTIONS})


def describe_plan(plan: DriverPlan, *, verbose: bool) -> list[str]:
    """A driver's plan as text. verbose: all of it, otherwise a line for the driver and one for each warning."""
    if verbose:
        return [f"  {line}" for line in plan.summary()]
    count, mode = len(plan.nodes), plan.rule.mode if plan.rule else None
    headline = f"  {plan.driver.title} {plan.version}, mode {mode}, namespace {plan.namespace}, "
    headline += f"{count} Windows {'node' if count == 1 else 'nodes'}"
    warnings = (finding for finding in plan.findings if finding.severity == "warning")
    return [headline, *(f"  warning {finding.id} {finding.object}: {finding.message}" for finding in warnings)]
