# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as they are given to modules, and differences as they are shown."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from ansible.module_utils.common.yaml import yaml_dump, yaml_load_all
from yaml import YAMLError

from . import kinds
from .apply import Outcome
from .errors import ClusterError

# What Ansible puts in the place of a secret (ansible.module_utils.common.parameters).
_HIDDEN = ("********", "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER")


def parse_definitions(source: Any) -> list[dict[str, Any]]:
    """The objects of the option; ClusterError names what is none, or what Ansible hid a part of."""
    text = source if isinstance(source, str) else json.dumps(source, default=str)
    if any(mark in text for mark in _HIDDEN):
        line = next((line.strip() for line in text.splitlines() if any(mark in line for mark in _HIDDEN)), "")
        raise ClusterError(
            f"the definition has {line[:200]!r}, where Ansible masked the value of a no_log option, expected the "
            "objects to apply. Use values that no such task returned.",
            "invalid",
        )
    try:
        # PyYAML's parser in C takes no subclass of str, which texts of other tasks' results are, but any stream.
        listed = list(yaml_load_all(StringIO(source))) if isinstance(source, str) else source
    except YAMLError as error:
        raise ClusterError(f"the definition is not YAML: {error}", "invalid") from error
    objects: list[dict[str, Any]] = []
    for item in [listed] if isinstance(listed, dict) else listed or []:
        if item is None:
            continue
        if not isinstance(item, dict) or not isinstance((item.get("metadata") or {}).get("name"), str):
            raise ClusterError(
                f"found {str(item)[:200]}, expected objects with kind, apiVersion and metadata.name", "invalid"
            )
        try:
            kinds.find_kind(item)
        except ValueError as error:
            raise ClusterError(str(error), "invalid") from error
        objects.append(item)
    if not objects:
        raise ClusterError("the definition has no object", "invalid")
    return objects


def find_daemon_set(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The node plugin among the objects; ClusterError when there is none."""
    for item in objects:
        if item["kind"] == "DaemonSet":
            return item
    raise ClusterError("the definition has no DaemonSet, expected the one of the node plugin", "invalid")


def build_result(outcome: Outcome) -> dict[str, Any]:
    """What a module returns of objects that were, or would be, applied."""
    return {
        "changed": outcome.changed,
        "objects": [change.as_dict() for change in outcome.changes],
        "diff": [_render_diff(change.diff()) for change in outcome.changes if change.action != "none"],
    }


def _render_diff(diff: dict[str, Any]) -> dict[str, Any]:
    """A diff of YAML texts, which are more readable than JSON."""
    sides = {side: yaml_dump(diff[side], sort_keys=True) if diff[side] else "" for side in ("before", "after")}
    return {**diff, **sides}
