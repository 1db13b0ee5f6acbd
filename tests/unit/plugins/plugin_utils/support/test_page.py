# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of an archive opens without a network, shows what is missing, and lets nothing in it act."""

from __future__ import annotations

import re

from ansible_collections.kubewin.csi.plugins.plugin_utils.support.page import render_page
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.parts import Missing, Part

EVIL = "<script>alert(1)</script><img src=//evil.example.com/x>\x1b[2J\u202e"
HOST = {
    "name": f"win-1{EVIL}",
    "node": "win-1",
    "csi_proxy": "csi-proxy 1.3.0 running, serving",
    "findings": [{"severity": "warning", "id": "CSI-N03", "message": EVIL, "remedy": "sc.exe delete x"}],
}


def page() -> str:
    parts = [Part(f"hosts/win-1/log {EVIL}.log", f"first\n{EVIL}\nlast"), Part("logs/big.log", "x" * 50_000, "cut")]
    return render_page(f"prod {EVIL}", {"Gathered at": EVIL}, parts, [Missing("host win-2", EVIL, "{rule}")], [HOST])


def test_nothing_on_the_page_is_loaded_or_acts() -> None:
    text = page()
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    targets = re.findall(r'(?:href|src)="([^"]*)"', text)
    assert targets
    assert not [one for one in targets if one.startswith("/") or (":" in one and not one.startswith("data:,"))]


def test_the_page_lists_what_is_missing_and_links_each_file() -> None:
    text = page()
    assert "host win-2" in text
    assert "{rule}" in text
    assert "CSI-N03" in text
    assert "csi-proxy 1.3.0 running, serving" in text
    assert '<a href="logs/big.log">' in text
    assert "50,000" in text
    assert "Nothing: everything was read." in render_page("a", {}, [], [], [])
