# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every finding that can be printed is on the page of findings, and the page promises no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ID = re.compile(r"\bCSI-[A-Z]\d\d\b")


def test_the_page_of_findings_is_complete() -> None:
    printed = {
        found for path in (ROOT / "plugins").rglob("*.py") for found in ID.findall(path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "docsite" / "rst" / "findings.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^(CSI-[A-Z]\d\d) \(", page, re.MULTILINE)) == printed
