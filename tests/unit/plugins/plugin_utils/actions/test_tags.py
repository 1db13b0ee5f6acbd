# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tag that a playbook does not have would run nothing, or skip nothing, with success: it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.tags import SPECIAL, TAGS, collect_tags, wrong_tags

PLAYBOOKS = Path(__file__).parents[5] / "playbooks"
EXPECTED = "expected check, proxy, driver, gate or summary."


@pytest.mark.parametrize(
    ("playbook", "run", "skip", "expected"),
    [
        ("enable_csi", ["gates"], [], [f"--tags is gates, {EXPECTED} Did you mean gate?"]),
        ("enable_csi", ["check", "csi"], [], [f"--tags is csi, {EXPECTED}"]),
        ("enable_csi", ["all"], ["drivers"], [f"--skip-tags is drivers, {EXPECTED} Did you mean driver?"]),
        ("enable_csi", ["gate", "summary"], ["check"], []),
        ("enable_csi", sorted(SPECIAL), [], []),
        ("verify", ["gate"], [], ["--tags is gate, but verify has no tags and would do nothing. Run without --tags."]),
        ("verify", ["all"], ["gate"], []),
    ],
)
def test_an_unknown_tag_is_refused(playbook: str, run: list[str], skip: list[str], expected: list[str]) -> None:
    assert list(wrong_tags(playbook, run, skip)) == expected


def test_a_playbook_that_imports_ours_has_tags_of_its_own() -> None:
    text = (
        "[{import_playbook: kubewin.csi.enable_csi, tags: storage}, {hosts: all, tasks: [{ping: {}, tags: [gates]}]}]"
    )
    others = collect_tags(yaml.safe_load(text))
    assert others == {"storage", "gates"}
    assert list(wrong_tags("enable_csi", ["storage", "gates", "nightly"], [], others)) == []
    # Of a role or a file that it includes: only what is nearly one of ours is a mistake.
    assert list(wrong_tags("enable_csi", ["nightly"], [], ())) == []
    assert list(wrong_tags("enable_csi", ["chek"], [], ())) == [f"--tags is chek, {EXPECTED} Did you mean check?"]
    # Another playbook of the same run has it.
    assert list(wrong_tags("verify", ["gate"], [], ())) == []


def test_the_tags_are_those_of_the_playbooks() -> None:
    found = {tag for path in PLAYBOOKS.rglob("*.yml") for tag in collect_tags(yaml.safe_load(path.read_text("utf-8")))}
    assert found - SPECIAL == {tag for tags in TAGS.values() for tag in tags}
