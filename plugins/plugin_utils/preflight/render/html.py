# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as one HTML page that needs nothing else: no network, no other file. Pure.

Every name comes from a cluster and may hold anything, so it reaches the page through ``page.text`` alone, and the page's own
policy lets no script run but ours, by its hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render import page
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import (
    CLASSES,
    MARKS,
    NAMED,
    PAGE,
    FindingGroup,
    Limits,
    Line,
    Table,
    View,
    create_view,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.words import listed, number, sentence
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import SEVERITIES, Finding, Report

# A line's evidence; more of it is in the JSON.
_EVIDENCE = 12

_ICONS = {
    "ready": '<circle cx="12" cy="12" r="10"/><path d="M7 12.5l3.5 3.5L17 8.5"/>',
    "blocked": '<path d="M8 2h8l6 6v8l-6 6H8l-6-6V8z"/><path d="M8.5 8.5l7 7m0-7l-7 7"/>',
    "no_workloads": '<circle cx="12" cy="12" r="10"/><path d="M7 12h10"/>',
    "unknown": '<path d="M12 1.5L22.5 12 12 22.5 1.5 12z"/><path d="M9.5 9.8a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.1.9-1.1 1.7m0 2.4v.1"/>',
}
_ID = re.compile(r"\bCSI-[A-Z]\d\d\b")
_NOTHING, _NONE = '<p class="empty">Nothing to do.</p>', '<p class="empty">None.</p>'
_SHAPES = """<svg class="shapes" aria-hidden="true"><defs>
<pattern id="no" width="6" height="6" patternUnits="userSpaceOnUse"><path class="stripe" d="M0 6L6 0"/></pattern>
<pattern id="unknown" width="5" height="5" patternUnits="userSpaceOnUse"><path class="stripe" d="M2.5 0V5"/></pattern>
<pattern id="watch" width="7" height="5" patternUnits="userSpaceOnUse"><path class="stripe" d="M0 2.5H7"/></pattern>
</defs></svg>"""


def render_html(report: Report, limits: Limits = PAGE) -> str:
    """The page."""
    view = create_view(report, limits)
    title = f"{view.headline}: {view.cluster}"
    parts = [
        page.head(title, page.SCRIPT),
        f'<a class="skip" href="#first">Skip to what to do first</a>\n{_SHAPES}',
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
        _render_comparison(view),
        _render_tiles(view),
        _render_search(),
        _render_table("workloads", view.workloads),
        _render_stops(view),
        _render_assumptions(view),
        _render_roll(view),
        _render_table("nodes", view.nodes),
        _render_table("volumes", view.volumes),
        _render_findings(view),
        _render_unread(view),
        _render_suppressed(view),
        _render_legend(view),
        "</main>",
        _render_footer(view),
        f"<script>{page.SCRIPT}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _render_verdict(view: View) -> str:
    return (
        f'<section class="verdict {view.verdict}" aria-labelledby="verdict">'
        '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" '
        f'aria-hidden="true">{_ICONS[view.verdict]}</svg>'
        f'<div><h2 id="verdict">{view.headline}</h2><p>{page.text(view.answer)}</p></div></section>'
    )


def _render_tiles(view: View) -> str:
    words = {
        "workloads": ("will not start", "unknown", "", "will start"),
        "nodes": ("not working", "unknown", "", "working"),
        "volumes": ("not ready", "unknown", "to watch", "ready"),
    }
    tiles = []
    for key, table in (("workloads", view.workloads), ("nodes", view.nodes), ("volumes", view.volumes)):
        counted = [(mark, table.counts[mark], word) for mark, word in zip(MARKS, words[key], strict=True)]
        title = number(table.total, "Windows node" if key == "nodes" else key[:-1])
        tiles.append(_render_tile(key, title, counted))
    severities = [
        (severity, view.severities[severity], severity if view.severities[severity] == 1 else f"{severity}s")
        for severity in SEVERITIES
    ]
    tiles.append(_render_tile("findings", number(sum(view.severities.values()), "finding"), severities))
    return f'<ul class="tiles">\n{"".join(tiles)}</ul>'


def _render_tile(key: str, title: str, counted: Iterable[tuple[str, int, str]]) -> str:
    shares = [(kind, count, word) for kind, count, word in counted if count]
    total = sum(count for _kind, count, _word in shares)
    bars, offset = "", 0.0
    for kind, count, _word in shares:
        share = 100 * count / total
        box = f'x="{offset:.2f}%" width="{share:.2f}%" height="12"'
        bars += f'<rect class="{kind}" {box}/>'
        pattern = {"blocker": "no", "warning": "watch"}.get(kind, kind)
        if pattern in ("no", "unknown", "watch"):
            bars += f'<rect {box} fill="url(#{pattern})"/>'
        offset += share
    items = "".join(f"<li><b>{count:,}</b> {word}</li>" for _kind, count, word in shares)
    return f'<li><a href="#{key}">{title}</a><svg aria-hidden="true">{bars}</svg><ul>{items}</ul></li>\n'


def _render_assumptions(view: View) -> str:
    items = "".join(
        f'<li>{page.text(assumption.message)} <span class="soft">{assumption.dependents}</span>'
        f"{f'<br><code>{page.text(assumption.check)}</code>' if assumption.check else ''}</li>"
        for assumption in view.assumptions
    )
    return page.section("assumptions", "Assumptions", f'<ol class="steps">{items}</ol>') if items else ""


def _render_roll(view: View) -> str:
    if view.roll is None:
        return ""
    rows = [(page.name(node), page.text(drain), page.text(then)) for node, drain, then in view.roll.rows]
    table = (
        page.table(("Node", "Its drain", "And then"), page.rows(rows), 'aria-labelledby="roll-title"') if rows else ""
    )
    return page.section("roll", "The upgrade's drains", f"<p>{page.text(view.roll.headline)}</p>{table}")


def _render_first(view: View) -> str:
    steps = f'<ol class="steps">{"".join(map(_render_step, view.first))}</ol>' if view.first else _NOTHING
    if not view.first and view.assumptions:
        steps = f'<p>Check <a href="#assumptions">{number(len(view.assumptions), "assumption")}</a>.</p>'
    return page.section("first", "What to do first", steps, ' tabindex="-1"')


def _render_comparison(view: View) -> str:
    if not view.comparison:
        return ""
    rows = [(page.name(cause.object), change, page.text(cause.id)) for change, cause in view.changes]
    table = (
        page.table(("About", "Change", "Finding"), page.rows(rows), 'aria-labelledby="comparison-title"')
        if rows
        else ""
    )
    return page.section("comparison", "Since the earlier report", f"<p>{page.text(view.comparison)}</p>{table}")


def _render_step(group: FindingGroup) -> str:
    remedies = "".join(
        f'<p><span class="do">{page.text(remedy.remedy)}</span><br>{remedy.describe_objects(page.name, page.text)}</p>'
        for remedy in group.remedies[:NAMED]
    )
    hidden = len(group.remedies) - NAMED
    rest_text = f"<p>And {number(hidden, 'other remedy', 'other remedies')}.</p>" if hidden > 0 else ""
    concerns = f"Affects {group.concerns}. " if group.concerns else ""
    return f'<li>{remedies}{rest_text}<p class="soft">{_render_badges(group)} {_link_finding(group.id)} {concerns}{page.text(group.why)}</p></li>'


def _render_badges(group: FindingGroup) -> str:
    doubt = ' <span class="severity doubt">unknown</span>' if group.doubt else ""
    return f'<span class="severity {group.severity}">{group.severity}</span>{doubt}'


def _render_search() -> str:
    return (
        '<form id="filters" class="filters" aria-label="Filter" hidden>'
        '<label>Show lines with<input name="text" type="search" autocomplete="off"></label>'
        '<output id="shown" aria-live="polite"></output></form>'
    )


def _render_table(key: str, table: Table) -> str:
    if not table.lines:
        return page.section(key, table.title, _NONE)
    rows = "".join(_render_row(line, table.columns[3:]) for line in table.lines)
    shown = page.table(table.columns, rows, f'aria-labelledby="{key}-title"')
    return page.section(key, table.title, f'{shown}<p class="empty" data-for="{key}" hidden>No line has this text.</p>')


def _render_stops(view: View) -> str:
    """One row for each reason by which pods stop on their way to running."""
    if not view.stops:
        return ""
    rows = [
        (
            page.name(listed(stop.pods, NAMED)),
            f"{stop.at} on {page.text(stop.where)}",
            page.text(stop.because),
            f'<span class="do">{page.text(sentence(stop.first))}</span>',
        )
        for stop in view.stops
    ]
    columns = ("Pods", "Step", "Because", "What to do")
    return page.section(
        "stops", "Where pods stop", page.table(columns, page.rows(rows), 'aria-labelledby="stops-title"')
    )


def _render_row(line: Line, columns: Iterable[str]) -> str:
    """columns: those after the reason."""
    cells = "".join(
        f'<td data-label="{column}">{page.text(cell)}</td>' for column, cell in zip(columns, line.cells, strict=True)
    )
    mentioned = set(_ID.findall(line.because))
    ids = "".join(f" {_link_finding(id_)}" for id_ in line.findings if id_ not in mentioned)
    attributes = ' class="many"' if line.count > 1 else ""
    return (
        f'<tr{attributes} data-row><th scope="row">{page.name(line.name)}</th>'
        f'<td><span class="mark {line.mark}">{page.text(line.state)}</span></td>'
        f'<td class="because">{_ID.sub(lambda id_: _link_finding(id_[0]), page.text(line.because))}{ids}{_render_evidence(line.evidence)}</td>{cells}</tr>\n'
    )


def _link_finding(name: str) -> str:
    return f'<a href="#{page.text(name)}">{page.text(name)}</a>'


def _render_evidence(evidence: tuple[str, ...]) -> str:
    if not evidence:
        return ""
    items = "".join(f"<li>{page.text(item)}</li>" for item in evidence[:_EVIDENCE])
    rest_item = f"<li>and {len(evidence) - _EVIDENCE:,} more</li>" if len(evidence) > _EVIDENCE else ""
    return f"<details><summary>Evidence</summary><ul>{items}{rest_item}</ul></details>"


def _render_findings(view: View) -> str:
    groups = "".join(map(_render_group, view.groups))
    groups += '<p class="empty" data-for="findings" hidden>No line has this text.</p>'
    return page.section("findings", "Findings", groups if view.groups else _NONE)


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
        f'<article class="finding" data-group id="{group.id}"><h3>{group.id} {_render_badges(group)} '
        f'<span class="soft">{number(group.total, "object")}</span></h3>'
        f"<p>{page.text(group.why)}{link_text}</p>{remedy}{rows_table}{note}</article>\n"
    )


def _render_object(finding: Finding, shared: bool) -> str:
    remedy = "" if shared else f"<td>{page.text(sentence(finding.remedy))}</td>"
    return (
        f'<tr data-row><th scope="row">{page.name(finding.object)}</th>'
        f'<td class="because">{page.text(finding.message)}{_render_evidence(finding.evidence)}</td>{remedy}</tr>\n'
    )


def _render_unread(view: View) -> str:
    if not view.unread:
        return ""
    rows = [
        (
            page.name(resource.get("resource", "")),
            page.text(resource.get("why", "")),
            page.name(resource["rule"]) if resource.get("rule") else "",
        )
        for resource in view.unread
    ]
    table = page.table(("Resource", "Why", "Rule to add"), page.rows(rows), 'aria-labelledby="unread-title"')
    return page.section("unread", "What could not be read", table)


def _render_suppressed(view: View) -> str:
    if not view.suppressed:
        return ""
    rows = [
        (
            page.name(acceptance.finding.object),
            f"{acceptance.finding.id}: {page.text(acceptance.finding.message)}",
            page.text(acceptance.reason),
            page.text(acceptance.expires),
        )
        for acceptance in view.suppressed
    ]
    columns = ("About", "Finding", "Reason", "Until")
    table = page.table(columns, page.rows(rows), 'aria-labelledby="suppressed-title"')
    return page.section("suppressed", "Accepted findings", table)


def _render_legend(view: View) -> str:
    states = {line.state for line in view.volumes.lines}
    entries = "".join(
        f"<dt><code>{name}</code></dt><dd>{meaning}</dd>" for name, meaning in CLASSES.items() if name in states
    )
    if not entries:
        return ""
    return page.section("classes", "What the classes of volumes mean", f'<dl class="legend">{entries}</dl>')


def _render_footer(view: View) -> str:
    items = "".join(f"<li>{page.text(note_text)}</li>" for note_text in view.aggregated)
    note = f"<p>Grouped on this page; the JSON lists each:</p><ul>{items}</ul>" if items else ""
    return f"<footer>{note}<p>Created by {page.text(view.collection)}, which changed nothing.</p></footer>"
