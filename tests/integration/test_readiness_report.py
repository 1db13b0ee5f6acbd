# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report's page in a real browser: what it shows, and what it never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from integration import report_pictures
from integration.browser import Page, browser
from unit.plugins.plugin_utils.preflight.reports import finding, huge, node, report, troubled, volume, workload

HOSTILE = "</script><script>window.owned=1</script><img src=https://evil.example/x onerror=window.owned=1>\"'&amp;"

Show = Callable[[Report], Page]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def show(tab: Page, tmp_path: Path) -> Show:
    """Opens a report; the page has asked for nothing but itself, and has complained of nothing, in whatever follows."""

    def opened(evaluated: Report) -> Page:
        file = tmp_path / "readiness.html"
        file.write_text(render_html(evaluated), encoding="utf-8")
        tab.requests.clear()
        tab.complaints.clear()
        tab.emulate()
        tab.open(file)
        return tab

    return opened


@pytest.fixture(autouse=True)
def quiet(tab: Page) -> Iterator[None]:
    yield
    tab.ask("1")  # Events before this answer have been delivered.
    assert [one for one in tab.requests if not one.startswith("file://")] == []
    assert tab.complaints == []


def test_the_verdict_comes_first_then_what_to_do(show: Show) -> None:
    page = show(troubled())
    headings = page.ask("Array.from(document.querySelectorAll('h1, h2')).map((one) => one.textContent)")
    assert headings[:3] == ["shop-east", "Not ready", "What to do first"]
    observed = page.ask("document.querySelector('.verdict').getBoundingClientRect().bottom")
    assert observed < 400
    steps = page.ask("Array.from(document.querySelectorAll('.steps .do')).map((one) => one.textContent)")
    assert steps == ["Run enable_csi for the host of win-2.", "Inspect it.", "Repair it."]


class TestReaders:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_all_text_has_enough_contrast(self, show: Show, scheme: str) -> None:
        page = show(troubled())
        page.emulate(scheme=scheme)
        found: list[dict[str, Any]] = page.ask(_CONTRAST)
        assert len(found) > 100
        # https://www.w3.org/TR/WCAG22/#contrast-minimum
        assert [one for one in found if one["ratio"] < 4.5] == []

    def test_light_and_dark_are_two_pages_to_the_eye(self, show: Show) -> None:
        page = show(troubled())
        background = "getComputedStyle(document.body).backgroundColor"
        light = page.ask(background)
        page.emulate(scheme="dark")
        assert page.ask(background) != light

    def test_everything_that_color_shows_is_also_text(self, show: Show) -> None:
        page = show(troubled())
        signs = page.ask(
            "Array.from(document.querySelectorAll('.mark')).map((one) => getComputedStyle(one, '::before').content + one.textContent)"
        )
        assert {'"✗"will not start again', '"?"unknown', '"✓"will start again'} <= set(signs)
        badges = page.ask("Array.from(document.querySelectorAll('.severity')).map((one) => one.textContent)")
        assert {"blocker", "warning", "note", "unknown"} == set(badges)

    def test_the_keyboard_reaches_what_to_do_first_and_shows_where_it_is(self, show: Show) -> None:
        page = show(troubled())
        page.press("Tab")
        assert page.ask("document.activeElement.className") == "skip"
        assert page.ask("document.activeElement.getBoundingClientRect().left") >= 0
        for _step in range(8):
            page.press("Tab")
            assert page.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"

    def test_a_screen_reader_gets_a_name_for_everything(self, show: Show) -> None:
        page = show(troubled())
        assert page.ask("document.documentElement.lang") == "en"
        assert page.ask("document.querySelectorAll('h1').length") == 1
        assert page.ask("Array.from(document.querySelectorAll('th')).every((one) => one.scope)")
        assert page.ask("Array.from(document.querySelectorAll('svg')).every((one) => one.ariaHidden === 'true')")
        ids = page.ask("Array.from(document.querySelectorAll('[id]')).map((one) => one.id)")
        assert len(ids) == len(set(ids))
        targets = page.ask("Array.from(document.querySelectorAll('a[href^=\"#\"]')).map((one) => one.hash.slice(1))")
        assert set(targets) <= set(ids)

    def test_on_a_phone_what_to_do_first_is_on_the_first_screen_and_rows_are_blocks(self, show: Show) -> None:
        page = show(report_pictures.shown())
        page.emulate(width=390, height=844)
        step = "document.querySelector('#first .do').getBoundingClientRect().bottom"
        assert page.ask(step) < 844
        assert page.ask("document.documentElement.scrollWidth") == 390
        scrolled = (
            "Array.from(document.querySelectorAll('.scroll')).filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        assert page.ask(scrolled) == 0
        labels = "Array.from(document.querySelectorAll('#volumes td[data-label]')).slice(0, 3).map((one) => one.dataset.label)"
        assert page.ask(labels) == ["On its nodes", "Because", "Claim"]

    @pytest.mark.parametrize("width", [360, 800])
    def test_a_narrow_window_never_scrolls_sideways(self, show: Show, width: int) -> None:
        page = show(troubled())
        page.emulate(width=width)
        assert page.ask("document.documentElement.scrollWidth") == width


def test_names_that_are_code_are_shown_and_never_run(show: Show) -> None:
    page = show(
        report(
            cluster=HOSTILE,
            findings=(
                finding(
                    about=f"Node {HOSTILE}",
                    message=HOSTILE,
                    remedy=HOSTILE,
                    why=HOSTILE,
                    evidence=(HOSTILE,),
                    link="javascript:alert(1)",
                ),
            ),
            nodes=(node(HOSTILE, because=HOSTILE, drivers=(HOSTILE,)),),
            volumes=(volume(HOSTILE, claim=f"{HOSTILE}/x", nodes=(HOSTILE,), evidence=(HOSTILE,)),),
            workloads=(workload(f"Deployment {HOSTILE}/x", runs_on_because=HOSTILE, volumes=(HOSTILE,)),),
            unread=({"resource": HOSTILE, "why": HOSTILE, "rule": HOSTILE},),
        )
    )
    assert page.ask("[window.owned, document.scripts.length, document.images.length]") == [None, 0, 0]
    assert page.ask("Array.from(document.links).every((one) => one.hash)")
    assert page.ask("document.querySelector('h1').textContent") == HOSTILE
    assert page.ask("document.querySelector('#nodes tbody th').textContent") == HOSTILE


def test_were_a_script_to_get_in_the_browser_would_not_run_it(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    harm = "<script>window.owned = 1</script><img src='https://evil.example/x'></main>"
    file.write_text(render_html(troubled()).replace("</main>", harm), encoding="utf-8")
    tab.open(file)
    assert tab.ask("window.owned") is None
    assert len(tab.complaints) == 2
    assert all("Content Security Policy" in one for one in tab.complaints)
    assert tab.refused == [one for one in tab.requests if not one.startswith("file://")] == ["https://evil.example/x"]
    tab.complaints.clear()
    tab.requests.clear()


def test_a_thousand_nodes_and_fifty_thousand_volumes_stay_a_page(show: Show) -> None:
    page = show(huge())
    assert page.ask("document.documentElement.outerHTML.length") < 4_000_000
    volumes = page.ask("document.querySelector('#volumes').textContent")
    assert "2,500 cannot be mounted, 47,500 can be mounted" in volumes
    assert "49,000 more are in the JSON." in volumes


def test_the_pictures_in_the_documentation_can_be_taken_anew_and_are_small(tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "readiness.html"
    file.write_text(render_html(report_pictures.shown()), encoding="utf-8")
    taken = dict(report_pictures.pictures(tab, file))
    root = Path(__file__).parents[2]
    for name, picture in taken.items():
        committed = (root / "docs" / "images" / name).read_bytes()
        for one in (picture, committed):
            assert one.startswith(b"\x89PNG")
            assert len(one) < 150_000
    pages = [root / "README.md", root / "docs" / "docsite" / "rst" / "readiness_report.rst"]
    texts = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert all(f"docs/images/{name}" in texts for name in taken)


# Every element with text of its own: how its colour and that of what is behind it differ, as WCAG reckons.
_CONTRAST = """
(() => {
  const channel = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  return Array.from(document.querySelectorAll("body *"))
    .filter((one) => one.checkVisibility() && Array.from(one.childNodes).some((child) => child.nodeType === 3 && child.data.trim()))
    .map((one) => {
      const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
      return {what: one.tagName + " " + one.className + " " + one.textContent.slice(0, 30), ratio: (a + 0.05) / (b + 0.05)};
    });
})()
"""
