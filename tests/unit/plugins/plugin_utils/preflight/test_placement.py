# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node affinity in words."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.placement import Requirement, describe_terms


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (Requirement("zone", "In", ("a", "b")), "zone in (a, b)"),
        (Requirement("zone", "NotIn", ("a", "b", "c", "d", "e")), "zone notin (a, b, c and 2 more)"),
        (Requirement("disk", "Exists"), "disk"),
        (Requirement("disk", "DoesNotExist"), "!disk"),
        (Requirement("cores", "Gt", ("4",)), "cores Gt 4"),
    ],
)
def test_a_requirement_is_written_as_in_selectors(requirement: Requirement, expected: str) -> None:
    assert describe_terms(((requirement,),)) == expected


def test_terms_are_alternatives() -> None:
    terms = ((Requirement("zone", "In", ("a",)), Requirement("disk", "Exists")), (Requirement("zone", "In", ("b",)),))
    assert describe_terms(terms) == "zone in (a),disk or zone in (b)"
