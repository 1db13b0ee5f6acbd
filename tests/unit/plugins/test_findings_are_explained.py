# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every finding that can be printed is on the page of findings, and the page promises no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.driver_options import map_variables
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

ROOT = Path(__file__).parents[3]
ID = re.compile(r"\bCSI-[A-Z]\d\d\b")


def test_the_page_of_findings_is_complete() -> None:
    printed = {
        found for path in (ROOT / "plugins").rglob("*.py") for found in ID.findall(path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "docsite" / "rst" / "findings.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^(CSI-[A-Z]\d\d) \(", page, re.MULTILINE)) == printed, (
        "describe in findings.rst each finding of plugins/, and no other"
    )


@pytest.mark.parametrize("name", ["findings", "platforms", "guide_handover"])
def test_a_remedy_names_variables_that_exist(name: str) -> None:
    page = (ROOT / "docs" / "docsite" / "rst" / f"{name}.rst").read_text(encoding="utf-8")
    listed = (ROOT / "docs" / "docsite" / "rst" / "variables.rst").read_text(encoding="utf-8")
    assert {one for one in re.findall(r"\bkubewin_\w+", page) if f"``{one}``" not in listed} == set()
    for driver in DRIVERS:
        named = set(re.findall(rf"\b{driver}_csi_\w+", page))
        assert named | {f"{driver}_csi_{one}" for one in re.findall(r"<role>_(\w+)", page)} <= set(
            map_variables(driver)
        )
