# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as Markdown: it has what the others have, and names stay names."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.markdown import render_markdown
from unit.plugins.plugin_utils.preflight.reports import finding, huge, node, report, troubled


def test_it_has_the_verdict_what_to_do_and_every_table() -> None:
    text = render_markdown(troubled())
    assert text.startswith("# Not ready: shop-east\n\n**With Kubernetes 1.30, 1 of 3 workloads will not start again")
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == [
        "# Not ready: shop-east",
        "## What to do first",
        "## Workloads",
        "## Windows nodes",
        "## Volumes",
        "## Findings",
        "## What could not be read",
        "## Accepted findings",
    ]
    assert (
        "1. blocker CSI-N44: It matters. Affects 1 node.\n   - **Run enable\\_csi for the host of win-2.** Node win-2"
        in text
    )
    assert (
        "| Deployment shop/web | ✗ will not start again | claim shop/pv-2-claim: no driver on win-2 CSI-V20 | Windows | shop/pv-2-claim |"
        in text
    )


def test_every_row_has_as_many_cells_as_its_header_whatever_names_hold() -> None:
    name = "a|b`c`<b>[x](y)\n# *d*_\\"
    text = render_markdown(report(nodes=(node(name, because=name),), findings=(finding(about=name, message=name),)))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\\\", "").replace("\\|", "").count("|") for line in rows} == {5}
    assert "a\\|b\\`c\\`\\<b\\>\\[x\\](y) # \\*d\\*\\_\\\\" in text


def test_it_fits_into_a_ticket() -> None:
    assert len(render_markdown(huge())) < 65_000
