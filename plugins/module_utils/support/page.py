# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of an archive for support: what was gathered, what is missing, and the end of each file. Pure.

It opens offline, in the archive and without it: no script, no other file that it needs. Names and texts come from hosts and
a cluster and may hold anything, so they reach the page escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.page import head
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.words import number, plain
from ansible_collections.kubewin.csi.plugins.module_utils.support.parts import Missing, Part
from ansible_collections.kubewin.csi.plugins.module_utils.text import harmless

# Characters of a file's end on the page, and of all files together.
_SHOWN = 20_000
_TOGETHER = 4_000_000


def render_page(
    title: str,
    facts: Mapping[str, str],
    parts: Sequence[Part],
    missing: Sequence[Missing],
    hosts: Sequence[Mapping[str, Any]],
) -> str:
    """The page. facts: shown in the header. hosts: rows of the run, as summary.json has them."""
    body = [
        head(plain(f"Support data: {title}")),
        _header(title, facts),
        "<main>",
        _missing(missing),
        _hosts(hosts),
        _findings(hosts),
        _files(parts),
        "</main>",
        "<footer><p>Created by kubewin.csi, which changed nothing. Secrets are replaced; names are not.</p></footer>",
        "</body>\n</html>\n",
    ]
    return "\n".join(one for one in body if one)


def _text(value: object) -> str:
    return escape(plain(value), quote=True)


def _header(title: str, facts: Mapping[str, str]) -> str:
    shown = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items() if value
    )
    return f'<header>\n<p class="what">Data for support</p>\n<h1>{_text(title)}</h1>\n<dl class="facts">{shown}</dl>\n</header>'


def _section(key: str, title: str, content: str) -> str:
    return f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>{content}</section>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{one}</th>' for one in columns)
    body = "".join(
        f'<tr><th scope="row"><span class="name">{row[0]}</span></th>{"".join(f"<td>{one}</td>" for one in row[1:])}</tr>\n'
        for row in rows
    )
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _missing(missing: Sequence[Missing]) -> str:
    if not missing:
        return _section("missing", "What is missing", '<p class="empty">Nothing: everything was read.</p>')
    rows = [(_text(one.what), _text(one.why), f'<span class="name">{_text(one.rule)}</span>') for one in missing]
    return _section("missing", "What is missing", _table(("What", "Why", "Rule to add"), rows))


def _hosts(hosts: Sequence[Mapping[str, Any]]) -> str:
    if not hosts:
        return ""
    rows = [
        (
            _text(one["name"]),
            _text(one.get("node") or "-"),
            _text(one.get("csi_proxy") or one.get("problem") or "not read"),
        )
        for one in hosts
    ]
    return _section("hosts", "Windows hosts", _table(("Host", "Node", "csi-proxy"), rows))


def _findings(hosts: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (_text(host["name"]), f'<span class="severity {_text(one["severity"])}">{_text(one["severity"])}</span> {_text(one["id"])}',
         _text(one["message"]), _text(one["remedy"]))
        for host in hosts
        for one in host.get("findings") or ()
    ]  # fmt: skip
    return (
        _section("findings", "Findings on hosts", _table(("Host", "Finding", "What", "What to do"), rows))
        if rows
        else ""
    )


def _files(parts: Sequence[Part]) -> str:
    shown, room = [], _TOGETHER
    for part in parts:
        end = part.text[-min(_SHOWN, room) :] if room > 0 else ""
        room -= len(end)
        shown.append(_file(part, end))
    return _section("files", number(len(parts), "file"), "".join(shown))


def _file(part: Part, end: str) -> str:
    problem = f' <span class="severity warning">{_text(part.problem)}</span>' if part.problem else ""
    before = (
        f'<p class="soft">The last {len(end):,} characters; the archive has the whole file.</p>'
        if len(end) < len(part.text)
        else ""
    )
    return (
        f'<details class="file"><summary><a href="{escape(quote(part.path), quote=True)}"><span class="name">{_text(part.path)}</span></a> '
        f"{part.size:,} bytes{problem}</summary>{before}<pre>{escape(harmless(end))}</pre></details>\n"
    )
