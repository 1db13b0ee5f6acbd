# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The override of the operator's condition: ours is set, renewed and removed, and another user's never touched."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.operator_hold import REASON, plan

OURS = {"type": "Upgradeable", "status": "False", "reason": REASON, "message": "one blocker"}
DATED = {**OURS, "lastTransitionTime": "2026-11-20T00:00:00Z"}
THEIRS = {"type": "Upgradeable", "status": "True", "reason": "upgradeIsSafe", "message": "by hand"}
OTHER = {"type": "Other", "status": "True", "reason": "x", "message": ""}


@pytest.mark.parametrize(
    ("overrides", "message", "action", "after"),
    [
        pytest.param([], "one blocker", "set", [OURS], id="set"),
        pytest.param([OTHER], "one blocker", "set", [OTHER, OURS], id="set beside another type"),
        pytest.param([OURS], "one blocker", "none", None, id="there already"),
        pytest.param([DATED], "one blocker", "none", None, id="there already, with a date"),
        pytest.param([OURS, OTHER], "two", "set", [OTHER, {**OURS, "message": "two"}], id="another message"),
        pytest.param([{**OURS, "status": "True"}], "one blocker", "set", [OURS], id="ours differs"),
        pytest.param([THEIRS], "one blocker", "keep", None, id="another user's stays"),
        pytest.param([], None, "none", None, id="nothing to remove"),
        pytest.param([THEIRS, OTHER], None, "none", None, id="another user's is not removed"),
        pytest.param([OTHER, DATED], None, "remove", [OTHER], id="ours is removed"),
    ],
)
def test_only_our_override_changes(
    overrides: list[dict[str, str]], message: str | None, action: str, after: list[dict[str, str]] | None
) -> None:
    condition: dict[str, Any] = {"metadata": {"name": "wmco"}, "spec": {"overrides": overrides}}
    planned = plan(condition, message)
    assert planned.action == action
    if after is not None:
        assert planned.patch() == {"spec": {"overrides": after}}
        # A second run finds nothing to do.
        again = plan({"metadata": {"name": "wmco"}, "spec": {"overrides": after}}, message)
        assert again.action == "none"


def test_a_condition_without_spec_is_planned() -> None:
    assert plan({"metadata": {"name": "wmco"}}, "one blocker").overrides == (OURS,)
