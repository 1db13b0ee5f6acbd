# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the HTML page looks, and what a browser may do for it.

This is text in Python and not a file beside it, so that the package is complete without data files.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

from .text_format import plain

# Every colour is one of these, each at least 4.5 to 1 against what it stands on; a test measures that in a browser.
STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f8; --card: #ffffff; --text: #17202a; --soft: #4f5b67; --line: #d5dbe1; --hover: #eef2f6; --focus: #1f5fbf;
  --no: #a4262c; --unknown: #6a4c9c; --watch: #855300; --yes: #1b6b3f; --note: #2b5c8a;
  --no-back: #fdecec; --unknown-back: #f3eefb; --watch-back: #fdf3e0; --yes-back: #e8f5ed; --note-back: #e8f1f9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161b; --card: #1a2027; --text: #e7ebef; --soft: #a9b5c1; --line: #323c47; --hover: #222a33; --focus: #8ab8f5;
    --no: #ff9a94; --unknown: #c9b1f2; --watch: #f0bd67; --yes: #79d3a0; --note: #93c3ec;
    --no-back: #3a1d1f; --unknown-back: #2b2339; --watch-back: #352914; --yes-back: #16301f; --note-back: #182b3b;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 1.5rem; }
h1, h2, h3, p, dl, ol, ul { margin: 0; }
h1 { font-size: 1.55rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; }
h3 { font-size: 1rem; }
a { color: var(--focus); }
.name { font-family: ui-monospace, "Cascadia Mono", Consolas, "DejaVu Sans Mono", monospace; font-size: .92em; overflow-wrap: anywhere; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .4rem .8rem; }
.what { color: var(--soft); letter-spacing: .02em; }
.facts { display: flex; flex-wrap: wrap; gap: .15rem 1.6rem; margin-top: .4rem; color: var(--soft); }
.facts div { display: flex; gap: .4rem; }
.facts dd { margin: 0; color: var(--text); }
section { margin-top: 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.25rem; }
section > h2 + * { margin-top: .6rem; }
.verdict { display: flex; gap: 1.1rem; align-items: center; border-width: 1px 1px 1px 10px; padding: 1.2rem 1.4rem; }
.verdict.ready { border-color: var(--yes); background: var(--yes-back); }
.verdict.blocked { border-color: var(--no); background: var(--no-back); }
.verdict.no_workloads { border-color: var(--note); background: var(--note-back); }
.verdict.unknown { border-color: var(--unknown); background: var(--unknown-back); border-left-style: double; }
.verdict h2 { font-size: 1.7rem; line-height: 1.2; margin: 0; }
.verdict p { margin: .2rem 0 0; font-size: 1.08rem; }
.verdict svg { flex: none; width: 3.4rem; height: 3.4rem; }
.ready svg, .mark.yes { color: var(--yes); }
.blocked svg, .mark.no { color: var(--no); }
.unknown svg, .mark.unknown { color: var(--unknown); }
.mark { font-weight: 600; white-space: nowrap; }
.mark::before { display: inline-block; width: 1.25em; }
.mark.yes::before { content: "\\2713"; } .mark.no::before { content: "\\2717"; }
.mark.unknown::before { content: "?"; }
.severity {
  display: inline-block; font-size: .82rem; font-weight: 600; line-height: 1.5; padding: 0 .55em; border: 1px solid;
  border-radius: 99px; white-space: nowrap;
}
.severity.blocker { color: var(--no); background: var(--no-back); border-width: 2px; }
.severity.warning { color: var(--watch); background: var(--watch-back); }
.severity.note { color: var(--note); background: var(--note-back); border-style: dashed; }
.severity.doubt { color: var(--unknown); background: var(--unknown-back); border-style: dotted; border-width: 2px; }
.steps { padding: 0; list-style: none; counter-reset: step; }
.steps > li { counter-increment: step; position: relative; overflow-wrap: anywhere; padding: .75rem 0 .75rem 2.6rem; border-top: 1px solid var(--line); }
.steps > li:first-child { border-top: 0; }
.steps > li::before {
  content: counter(step); position: absolute; left: 0; top: .8rem; width: 1.75rem; height: 1.75rem;
  line-height: 1.65rem; text-align: center; border: 1px solid var(--soft); border-radius: 50%; font-weight: 600;
}
.do { font-weight: 600; overflow-wrap: anywhere; }
.soft { color: var(--soft); overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td {
  text-align: left; vertical-align: top; padding: .45rem .8rem .45rem 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; min-width: 7rem;
}
thead th { border-top: 0; color: var(--soft); font-weight: 600; font-size: .88rem; white-space: nowrap; }
tbody th { font-weight: 500; min-width: 11rem; max-width: 22rem; }
td.because { min-width: 16rem; }
tbody tr:hover { background: var(--hover); }
details summary { cursor: pointer; color: var(--soft); font-size: .9rem; width: fit-content; }
details ul { padding-left: 1.1rem; color: var(--soft); font-size: .9rem; }
.finding { border-top: 1px solid var(--line); padding: 1rem 0; }
.finding:first-of-type { border-top: 0; padding-top: .2rem; }
.finding h3 { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
.finding > p { margin-top: .35rem; }
.finding .scroll { margin-top: .5rem; }
a[href^="#CSI-"] { white-space: nowrap; }
.empty { color: var(--soft); font-style: italic; }
footer { color: var(--soft); font-size: .9rem; padding-bottom: 3rem; margin-top: 1.5rem; }
/* On a phone a row is a block, and the columns after the reason have their name before them. */
@media (max-width: 40rem) {
  header, main, footer { padding: 0 .6rem; }
  header { padding-top: .6rem; }
  section { padding: .8rem; margin-top: .8rem; }
  .verdict { padding: .7rem; gap: .7rem; border-left-width: 6px; }
  .verdict h2 { font-size: 1.3rem; }
  .verdict svg { width: 2.2rem; height: 2.2rem; }
  .steps > li { padding-left: 2.2rem; }
  table, tbody, tr, td { display: block; }
  tbody th { display: block; max-width: none; }
  thead { display: none; }
  td { border-top: 0; padding: 0 0 .35rem; }
  td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
  td.because, .mark { min-width: 0; white-space: normal; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
"""

_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode("ascii")
# What the browser may do for a page: take our style, by its hash, and nothing else.
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'"


def head(title: str) -> str:
    """The beginning of a page that needs nothing else: no network, no other file. title: not yet escaped."""
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">',
            # Without one a browser asks for a file of its own.
            '<link rel="icon" href="data:,">',
            f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        )
    )


def text(value: object) -> str:
    """A value for a page's text or an attribute."""
    return escape(plain(value), quote=True)


def name(value: object) -> str:
    """A name that comes from a cluster or host."""
    return f'<span class="name">{text(value)}</span>'


def header(message: str, title: str, facts: Iterable[tuple[str, str]]) -> str:
    """What the page is about; facts without a value are left out."""
    shown = "".join(f"<div><dt>{text(key)}</dt><dd>{text(value)}</dd></div>" for key, value in facts if value)
    return f'<header>\n<p class="what">{message}</p>\n<h1>{text(title)}</h1>\n<dl class="facts">{shown}</dl>\n</header>'


def section(key: str, title: str, content: str, attributes: str = "") -> str:
    """A part of the page with its heading."""
    all_attributes = f'id="{key}" aria-labelledby="{key}-title"{attributes}'
    return f'<section {all_attributes}><h2 id="{key}-title">{title}</h2>{content}</section>'


def table(columns: Iterable[str], body: str, label: str) -> str:
    """A table of rows that are HTML already. label: the attribute that names it."""
    top = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="scroll" role="region" {label} tabindex="0"><table>'
        f"<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )
