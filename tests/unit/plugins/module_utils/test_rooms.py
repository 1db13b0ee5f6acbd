# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may import whom: code that decides does not reach for the cluster, and code that talks to it does not decide."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

MODULE_UTILS = Path(__file__).parents[4] / "plugins" / "module_utils"
PREFIX = "ansible_collections.kubewin.csi.plugins.module_utils."


def imported(room: str) -> set[str]:
    """What the files of a room import from module_utils, without the prefix."""
    return {
        node.module.removeprefix(PREFIX)
        for path in (MODULE_UTILS / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(PREFIX)
    }


@pytest.mark.parametrize(
    "room", ["catalog", "data", "deploy", "inventory", "proof", "readiness", "convert", "rollout", "upgrade"]
)
def test_rooms_that_decide_import_nothing_that_talks(room: str) -> None:
    assert not {name for name in imported(room) if name.split(".")[0] == "cluster"}


def test_the_room_that_talks_judges_nothing() -> None:
    assert "rollout.facts" in imported("cluster")
    assert not imported("cluster") & {"rollout.judge", "rollout.window", "rollout.explain", "rollout.verdict"}
