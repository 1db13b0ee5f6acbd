# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs are lists in a play, and text in a survey or on a command line."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.filter.as_list import FilterModule

as_list = FilterModule().filters()["as_list"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["win-1", " win-2 ", ""], ["win-1", "win-2"]),
        (("win-1",), ["win-1"]),
        ("win-1, win-2,,", ["win-1", "win-2"]),
        ("win-1\nwin-2\n", ["win-1", "win-2"]),
        ("['win-1', \"win-2\"]", ["win-1", "win-2"]),
        ("[win-1]", ["win-1"]),
        ("", []),
        ("  ", []),
        ("[]", []),
        (None, []),
        ([], []),
        (5, ["5"]),
        ([1, "25%"], ["1", "25%"]),
        ("[ab]*.log,it's", ["[ab]*.log", "it's"]),
        ("[", ["["]),
    ],
)
def test_the_same_list_however_it_was_given(given: object, found: list[str]) -> None:
    assert as_list(given) == found


def test_another_separator_leaves_commas_alone() -> None:
    assert as_list("Sat,Sun 22:00-04:00; Mon 20:00-23:00", ";") == ["Sat,Sun 22:00-04:00", "Mon 20:00-23:00"]
