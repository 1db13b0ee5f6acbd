# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The users' table of recommended storage matches the catalog."""

from __future__ import annotations

from unit.plugins.storage_table import PAGE, drawn, rows


def test_the_table_is_that_of_the_catalog() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert drawn(page) == page, "write it anew: python -m unit.plugins.storage_table"


def test_vsphere_stays_in_tree_on_windows_until_4_14() -> None:
    by_line = {row[0]: row[2] for row in rows()}
    assert [by_line[line] for line in ("4.10", "4.11", "4.12", "4.13")] == ["in-tree"] * 4
    assert by_line["4.14"].startswith("3.1.2, csi-proxy")
    assert by_line["4.20"] == "3.5.0, HostProcess"
