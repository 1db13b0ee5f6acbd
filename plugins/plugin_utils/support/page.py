# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of an archive for support: what was gathered, with links, and what is missing. Pure.

It opens offline, and has no script. Names and texts come from hosts and
a cluster and may hold anything, so they reach the page escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from ..preflight.render import page
from ..preflight.render.words import format_number
from .parts import Missing, Part


def render_page(
    title: str,
    facts: Mapping[str, str],
    parts: Sequence[Part],
    missing: Sequence[Missing],
    hosts: Sequence[Mapping[str, Any]],
) -> str:
    """The page. facts: shown in the header. hosts: rows of the run, as summary.json has them."""
    body = [
        page.head(f"Support data: {title}"),
        page.header("Data for support", title, facts.items()),
        "<main>",
        _render_missing(missing),
        _render_hosts(hosts),
        _render_findings(hosts),
        _render_files(parts),
        "</main>",
        "<footer><p>Created by kubewin.csi, which changed nothing. Secrets are replaced; names are not.</p></footer>",
        "</body>\n</html>\n",
    ]
    return "\n".join(section for section in body if section)


def _render_section(key: str, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return page.section(key, title, page.table(columns, page.rows(rows), f'aria-labelledby="{key}-title"'))


def _render_missing(missing: Sequence[Missing]) -> str:
    if not missing:
        return page.section("missing", "What is missing", '<p class="empty">Nothing: everything was read.</p>')
    rows = [(page.name(gap.what), page.text(gap.why), page.name(gap.rule)) for gap in missing]
    return _render_section("missing", "What is missing", ("What", "Why", "Rule to add"), rows)


def _render_hosts(hosts: Sequence[Mapping[str, Any]]) -> str:
    if not hosts:
        return ""
    rows = [
        (
            page.name(host["name"]),
            page.text(host.get("node") or "-"),
            page.text(host.get("csi_proxy") or host.get("problem") or "not read"),
        )
        for host in hosts
    ]
    return _render_section("hosts", "Windows hosts", ("Host", "Node", "csi-proxy"), rows)


def _render_findings(hosts: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for host in hosts:
        for finding in host.get("findings") or ():
            severity = page.text(finding["severity"])
            title = f'<span class="severity {severity}">{severity}</span> {page.text(finding["id"])}'
            rows.append((page.name(host["name"]), title, page.text(finding["message"]), page.text(finding["remedy"])))
    columns = ("Host", "Finding", "What", "What to do")
    return _render_section("findings", "Findings on hosts", columns, rows) if rows else ""


def _render_files(parts: Sequence[Part]) -> str:
    rows = [
        (
            f'<a href="{escape(quote(part.path), quote=True)}">{page.name(part.path)}</a>',
            f"{part.size:,}",
            page.text(part.problem),
        )
        for part in parts
    ]
    return _render_section("files", format_number(len(parts), "file"), ("File", "Bytes", "Problem"), rows)
