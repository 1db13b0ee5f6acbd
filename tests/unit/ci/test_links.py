# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links that lead nowhere are found; `make check` looks for them in every file of the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from ci.links import GITHUB, PAGES, SITE, find_broken_links


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        (f"{SITE}", False),
        (f"{SITE}docsite/findings.html#csi-d01", False),
        (f"{SITE}docsite/findings.html#csi-d99", True),
        (f"{SITE}docsite/finding.html", True),
        (f"{GITHUB[0]}page.md", False),
        (f"{GITHUB[1]}docs/images/picture.png", True),
        ("https://example.com/anything", False),
        ("page.md", False),
        ("pages.md", True),
        (f"{PAGES}/lab.rst", True),
        (f"{GITHUB[0]}{PAGES}/lab.rst", True),
    ],
)
def test_a_link_without_its_page_anchor_or_file_is_found(tmp_path: Path, link: str, broken: bool) -> None:
    (tmp_path / "page.md").write_text(f"Read [the page]({link}).\n", encoding="utf-8")
    (tmp_path / PAGES).mkdir(parents=True)
    (tmp_path / PAGES / "lab.rst").touch()
    pages = tmp_path / "site" / "docsite"
    pages.mkdir(parents=True)
    (pages.parent / "index.html").touch()
    (pages / "findings.html").write_text('<span id="csi-d01"></span>', encoding="utf-8")
    assert find_broken_links(tmp_path, ["page.md"], pages.parent) == ([f"page.md: {link}"] if broken else [])
