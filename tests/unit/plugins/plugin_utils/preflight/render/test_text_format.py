# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names may hold anything, and what is shown of them never steers the place where it is shown."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.text_format import (
    format_list,
    format_number,
    plain,
    sentence,
)
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("win-1", "win-1"),
        ("Zürich, 東京", "Zürich, 東京"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("invoice\u202efdp.exe", "invoice\\u202efdp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("half \ud800", "half \\ud800"),
        ("a" * 700, "a" * 599 + "…"),
    ],
)
def test_control_characters_of_a_name_are_shown_as_codes(name: str, shown: str) -> None:
    assert plain(name) == shown


@settings(deadline=None)
@given(st.text())
def test_nothing_that_is_shown_steers_anything_and_all_of_it_can_be_written(name: str) -> None:
    shown = plain(name)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    shown.encode("utf-8")


def test_counts_and_lists_read_as_english() -> None:
    assert [format_number(0, "node"), format_number(1, "node"), format_number(12000, "node")] == [
        "0 nodes",
        "1 node",
        "12,000 nodes",
    ]
    assert format_number(2, "blocker is", "blockers are") == "2 blockers are"
    assert format_list(["a", "b"], 3) == "a, b"
    assert format_list(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert [sentence("run it"), sentence("Run it.")] == ["Run it.", "Run it."]
    assert sentence("none; check its volumes as if it ran") == "None; check its volumes as if it ran."


def test_a_command_is_not_made_a_sentence() -> None:
    for command in ("kubectl drain win-1", "oc adm drain win-1", "enable_csi.yml with win-1", "sc.exe start csi-proxy"):
        assert sentence(command) == command
    assert sentence("drain it: kubectl drain win-1 --force") == "Drain it: kubectl drain win-1 --force"
    assert sentence("install it: https://example.com/guide/") == "Install it: https://example.com/guide/"
    assert sentence("install it: https://example.com/guide.md") == "Install it: https://example.com/guide.md"
