# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Renders the role's templates as Ansible does, without a play."""

from __future__ import annotations

from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import manifests
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import DriverPlan


def render(plan: DriverPlan) -> list[dict[str, Any]]:
    """The objects of a plan, in the order they would be applied."""
    assert plan.rule is not None
    rendered = manifests.render(plan.rule, plan.settings)
    return [document for document in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if document]


def only(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The one object of a kind."""
    found = [item for item in objects if item["kind"] == kind]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}"
    return found[0]
