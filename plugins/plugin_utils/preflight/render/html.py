# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one HTML page that needs nothing else: no network, no other file. Pure.

Every name comes from a cluster and may hold anything, so it reaches the page through ``page.text`` alone, and the page's own
policy lets no script run.
"""

from __future__ import annotations

import re

from ..verdict import Report, ReportFinding
from . import page
from .text_format import format_number, sentence
from .view import MOST, NAMED, FindingGroup, ReportPart, ReportRow, View, create_view

# A line's evidence; more of it is in the JSON.
_EVIDENCE = 12

_ICONS = {
    "ready": '<circle cx="12" cy="12" r="10"/><path d="M7 12.5l3.5 3.5L17 8.5"/>',
    "blocked": '<path d="M8 2h8l6 6v8l-6 6H8l-6-6V8z"/><path d="M8.5 8.5l7 7m0-7l-7 7"/>',
    "no_workloads": '<circle cx="12" cy="12" r="10"/><path d="M7 12h10"/>',
    "unknown": '<path d="M12 1.5L22.5 12 12 22.5 1.5 12z"/><path d="M9.5 9.8a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.1.9-1.1 1.7m0 2.4v.1"/>',
}
_ID = re.compile(r"\bCSI-[A-Z]\d\d\b")
_NO_STEPS, _NO_FINDINGS = '<p class="empty">Nothing to do.</p>', '<p class="empty">None.</p>'


def render_html(report: Report) -> str:
    view = create_view(report)
    title = f"{view.headline}: {view.cluster}"
    parts = [
        page.head(title),
        '<a class="skip" href="#first">Skip to what to do first</a>',
        page.header(
            "Readiness of Windows volumes",
            view.cluster,
            [
                ("Cluster", view.versions),
                ("Target", view.target),
                ("Read at", view.taken_at),
                ("Created by", view.collection),
            ],
        ),
        "<main>",
        _render_verdict(view),
        _render_first(view),
        *map(_render_part, view.parts.values()),
        page.section("findings", "Findings", "".join(map(_render_group, view.groups)) or _NO_FINDINGS),
        "</main>",
        f"<footer><p>Created by {page.text(view.collection)}, which changed nothing.</p></footer>\n</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _render_verdict(view: View) -> str:
    stop = f'<p><a href="#roll">{page.text(view.stop)}</a></p>' if view.stop else ""
    return (
        f'<section class="verdict {view.verdict}" aria-labelledby="verdict">'
        '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" '
        f'aria-hidden="true">{_ICONS[view.verdict]}</svg>'
        f'<div><h2 id="verdict">{view.headline}</h2><p>{page.text(view.answer)}</p>{stop}</div></section>'
    )


def _render_first(view: View) -> str:
    steps = f'<ol class="steps">{"".join(map(_render_step, view.first))}</ol>' if view.first else _NO_STEPS
    assumptions = view.parts["assumptions"].lines
    if not view.first and view.stop:
        steps = '<p>See <a href="#roll">what stops the upgrade\'s drains</a>.</p>'
    elif not view.first and assumptions:
        steps = f'<p>Check <a href="#assumptions">{format_number(len(assumptions), "assumption")}</a>.</p>'
    return page.section("first", "What to do first", steps, ' tabindex="-1"')


def _render_step(group: FindingGroup) -> str:
    remedies = "".join(
        f'<p><span class="do">{page.text(remedy.remedy)}</span><br>{remedy.describe_objects(page.name, page.text)}</p>'
        for remedy in group.remedies[:NAMED]
    )
    hidden = len(group.remedies) - NAMED
    rest_text = f"<p>And {format_number(hidden, 'other remedy', 'other remedies')}.</p>" if hidden > 0 else ""
    concerns = f"Affects {group.concerns}. " if group.concerns else ""
    return f'<li>{remedies}{rest_text}<p class="soft">{_render_badges(group)} {_link_finding(group.id)} {concerns}{page.text(group.why)}</p></li>'


def _render_badges(group: FindingGroup) -> str:
    doubt = ' <span class="severity doubt">unknown</span>' if group.doubt else ""
    return f'<span class="severity {group.severity}">{group.severity}</span>{doubt}'


def _render_part(part: ReportPart) -> str:
    if not part.lines and not part.text:
        return ""
    rows = "".join(_render_line(line, part.columns) for line in part.lines)
    table = page.table(part.columns, rows, f'aria-labelledby="{part.key}-title"') if rows else ""
    text = f"<p>{page.text(part.text)}</p>" if part.text else ""
    hidden = f'<p class="soft">{part.hidden:,} more are in the JSON.</p>' if part.hidden else ""
    return page.section(part.key, part.title, text + table + hidden)


def _render_line(line: ReportRow, columns: tuple[str, ...]) -> str:
    head, *cells = map(page.text, line.cells)
    if line.mark:
        head = page.name(line.cells[0])
        cells[0] = f'<span class="mark {line.mark}">{cells[0]}</span>'
        ids = "".join(f" {id_}" for id_ in line.findings if id_ not in line.cells[2])
        reason = _ID.sub(lambda match: _link_finding(match[0]), cells[1] + ids)
        cells[1] = reason + _render_evidence(line.evidence)
    elif line.evidence:
        cells[-1] += _render_evidence(line.evidence, "All of them", MOST)
    data = "".join(f'<td data-label="{column}">{cell}</td>' for column, cell in zip(columns[1:], cells, strict=True))
    return f'<tr><th scope="row">{head}</th>{data}</tr>\n'


def _link_finding(name: str) -> str:
    return f'<a href="#{page.text(name)}">{page.text(name)}</a>'


def _render_evidence(evidence: tuple[str, ...], summary: str = "Evidence", most: int = _EVIDENCE) -> str:
    if not evidence:
        return ""
    items = "".join(f"<li>{page.text(item)}</li>" for item in evidence[:most])
    rest_item = f"<li>and {len(evidence) - most:,} more</li>" if len(evidence) > most else ""
    return f"<details><summary>{summary}</summary><ul>{items}{rest_item}</ul></details>"


def _render_group(group: FindingGroup) -> str:
    link = group.link if group.link.startswith("https://") else ""
    link_text = f' <a href="{page.text(link)}" rel="noreferrer">Read more</a>' if link else ""
    remedy = f"<p><b>What to do:</b> {page.text(group.remedy)}</p>" if group.remedy else ""
    note = (
        f'<p class="soft">{group.total - len(group.findings):,} more are in the JSON.</p>'
        if group.total > len(group.findings)
        else ""
    )
    columns = ("About", "What", *(() if group.remedy else ("What to do",)))
    rows = "".join(_render_object(finding, bool(group.remedy)) for finding in group.findings)
    rows_table = page.table(columns, rows, f'aria-label="Objects of {group.id}"')
    return (
        f'<article class="finding" id="{group.id}"><h3>{group.id} {_render_badges(group)} '
        f'<span class="soft">{format_number(group.total, "object")}</span></h3>'
        f"<p>{page.text(group.why)}{link_text}</p>{remedy}{rows_table}{note}</article>\n"
    )


def _render_object(finding: ReportFinding, shared: bool) -> str:
    remedy = "" if shared else f"<td>{page.text(sentence(finding.remedy))}</td>"
    return (
        f'<tr><th scope="row">{page.name(finding.object)}</th>'
        f'<td class="because">{page.text(finding.message)}{_render_evidence(finding.evidence)}</td>{remedy}</tr>\n'
    )
