# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Renders the role's templates as Ansible does, without a play."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.plan import Plan
from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parents[3] / "roles" / "csi_driver" / "templates"


@cache
def environment() -> Environment:
    """As Ansible's, once: compiling a template costs more than filling it in."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    made.filters["to_json"] = json.dumps
    return made


def text(template: str, settings: dict[str, Any]) -> str:
    """A template below the role's folder, filled in."""
    return environment().get_template(template).render(plan=settings)


def render(plan: Plan) -> list[dict[str, Any]]:
    """The objects of a plan, in the order they would be applied."""
    rendered = text(plan.as_dict()["template"], plan.settings)
    return [document for document in yaml.safe_load_all(rendered) if document]


def only(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The one object of a kind."""
    found = [item for item in objects if item["kind"] == kind]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}"
    return found[0]
