# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page as text; what a browser makes of it is tried in tests/integration."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.plugins.plugin_utils.preflight.reports import finding, huge, node, report, troubled, volume, workload


class Elements(HTMLParser):
    """Every element with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def named(name: str) -> str:
    """A page on which a name is wherever names can be."""
    return render_html(
        report(
            cluster=name,
            findings=(finding(about=f"Node {name}", message=name, remedy=name, why=name, evidence=(name,), link=name),),
            nodes=(node(name, because=name, drivers=(name,)),),
            volumes=(volume(name, claim=f"{name}/x", nodes=(name,), because=name, evidence=(name,)),),
            workloads=(workload(f"Deployment {name}/x", because=name, runs_on_because=name, volumes=(name,)),),
            unread=({"resource": name, "why": name, "rule": name},),
        )
    )


def shape(page: str) -> list[tuple[str, list[str]]]:
    """The page without its text."""
    return [(tag, sorted(attributes)) for tag, attributes in Elements(page).found]


SHAPE = shape(named("x"))


@settings(deadline=None)
@given(st.text() | st.sampled_from(["</script>", "<!--", '"><img src=x onerror=x()>', "' onclick='x()", "]]>", "&lt;"]))
def test_no_name_adds_an_element_or_an_attribute(name: str) -> None:
    page = named(f"x{name}")
    assert shape(page) == SHAPE


def test_only_links_to_the_web_become_links() -> None:
    def targets(link: str) -> set[str | None]:
        page = render_html(report(findings=(finding(link=link),)))
        return {attributes.get("href") for tag, attributes in Elements(page).found if tag == "a"}

    assert "https://example.com/x" in targets("https://example.com/x")
    assert {target for target in targets("javascript:alert(1)") if target and not target.startswith("#")} == set()


def test_nothing_on_it_is_fetched_from_anywhere() -> None:
    page = render_html(troubled())
    fetched = [attributes for tag, attributes in Elements(page).found if {"src", "srcset", "data"} & set(attributes)]
    assert fetched == []
    assert re.findall(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon", page) == []


def test_the_same_report_makes_the_same_page() -> None:
    assert render_html(troubled()) == render_html(troubled())


def test_fifty_thousand_volumes_fit_into_a_mail() -> None:
    assert len(render_html(huge()).encode()) < 2_000_000
