# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blank takes the default, and nothing else does."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.filter.given import FilterModule, given


def test_blank_takes_the_default() -> None:
    assert [given(value, 300) for value in ("", None)] == [300, 300]


def test_false_zero_and_an_empty_list_are_answers() -> None:
    answers: list[object] = [False, 0, [], "0", " "]
    assert [given(value, 300) for value in answers] == answers


def test_it_is_called_as_its_file() -> None:
    assert FilterModule().filters() == {"given": given}
