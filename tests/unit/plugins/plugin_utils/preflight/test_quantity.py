# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Quantities as the API writes them."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import read_quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10Gi", 10 * 1024**3),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("1.5G", 1_500_000_000),
        ("500m", 1),
        (None, 0),
    ],
)
def test_a_quantity_is_a_whole_number_rounded_up(text: str | None, expected: int) -> None:
    assert read_quantity(text) == expected
