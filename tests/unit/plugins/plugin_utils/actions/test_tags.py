# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tag that a playbook does not have would run nothing, or skip nothing, with success: it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.selection import TAGS, explain_wrong_tags

PLAYBOOKS = Path(__file__).parents[5] / "playbooks"
EXPECTED = "expected check, proxy, driver, gate or summary."
NOTHING = "{option} is {tag}, but verify has no tags. Run without {option}."


@pytest.mark.parametrize(
    ("playbook", "run", "skip", "expected"),
    [
        ("enable_csi", ["gates"], [], [f"--tags is gates, {EXPECTED}"]),
        ("enable_csi", ["check", "csi"], [], [f"--tags is csi, {EXPECTED}"]),
        ("enable_csi", ["all"], ["drivers"], [f"--skip-tags is drivers, {EXPECTED}"]),
        ("enable_csi", ["gate", "summary"], ["check"], []),
        *(("enable_csi", [tag], [], [f"--tags is {tag}, {EXPECTED}"]) for tag in ("always", "never", "untagged")),
        ("enable_csi", ["all"], ["all"], [f"--skip-tags is all, {EXPECTED}"]),
        ("verify", ["all"], [], []),
        *(("verify", [tag], [], [NOTHING.format(option="--tags", tag=tag)]) for tag in ("gate", "always", "tagged")),
        *(("verify", ["all"], [tag], [NOTHING.format(option="--skip-tags", tag=tag)]) for tag in ("all", "gate")),
    ],
)
def test_an_unknown_tag_is_refused(playbook: str, run: list[str], skip: list[str], expected: list[str]) -> None:
    assert list(explain_wrong_tags(playbook, run, skip)) == expected


def test_the_tags_are_those_of_the_playbooks() -> None:
    texts = [path.read_text("utf-8") for path in PLAYBOOKS.rglob("*.yml")]
    found = {
        tag.strip()
        for text in texts
        for tags in re.findall(r"^ *tags: \[(.*)\]$", text, re.MULTILINE)
        for tag in tags.split(",")
    }
    assert found - {"always", "never"} == {tag for tags in TAGS.values() for tag in tags}
