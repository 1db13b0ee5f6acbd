# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every finding of readiness has an entry on the page it links to, with the same severity, and a situation that makes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.findings import (
    ANCHOR,
    PAGE,
    REASONS,
    create_finding,
)
from situations.foreign import CASES as FOREIGN
from situations.named import SITUATIONS, report_of
from situations.placing import CASES
from situations.taken import PAIRS

ROOT = Path(__file__).parents[5]
PAGE_HERE = ROOT / "docs" / "docsite" / "rst" / "findings.rst"


@pytest.mark.parametrize("id_", REASONS)
def test_it_is_explained(id_: str) -> None:
    page = PAGE_HERE.read_text(encoding="utf-8")
    entry = re.search(rf"^\.\. _\S+\.{id_.lower()}:\n\n{id_} \((\w+)\)\n((?:  .*\n|\n)+)", page, re.MULTILINE)
    assert entry is not None, f"describe {id_} in docs/docsite/rst/findings.rst, with its label, as the entries there"
    assert entry[1] == REASONS[id_].severity
    text = " ".join(entry[2].split())
    assert f"Why it matters: {REASONS[id_].why}" in text
    assert ("never ready" in text) == REASONS[id_].doubt


@pytest.mark.parametrize("id_", REASONS)
def test_a_situation_makes_it(id_: str) -> None:
    made = [*(one.expected for one in SITUATIONS.values()), *(one.expected for one in PAIRS.values())]
    made += [one.expected for one in FOREIGN]
    assert any(id_ in expected for expected in made) or id_ in {one.finding for one in CASES.values()}, (
        f"add a situation that expects {id_} to tests/situations"
    )


def test_its_link_leads_to_the_page() -> None:
    link = create_finding("CSI-V10", "PersistentVolume a", "b", ("c",), "d").link
    assert link == f"{PAGE}#{ANCHOR}csi-v10"
    label = ANCHOR.replace("ansible-collections", "ansible_collections").replace("-", ".")
    assert f".. _{label}csi-v10:\n" in PAGE_HERE.read_text(encoding="utf-8")


def test_no_finding_is_found_twice() -> None:
    for name in SITUATIONS:
        report = report_of(name)
        reported = [(finding.id, finding.object, finding.message) for finding in report.findings]
        assert len(reported) == len(set(reported)), name
