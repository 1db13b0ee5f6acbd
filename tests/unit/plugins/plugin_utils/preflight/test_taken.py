# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a driver does not support on Windows is distinguished from its supported twin."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from situations.taken import PAIRS, Pair


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_it_is_not_ready(pair: Pair) -> None:
    report = evaluate(pair.world(wrong=True).snapshot())
    reported = "\n".join(f"{one.id} {one.object}: {one.message}" for one in report.findings)
    assert {one.id for one in report.findings} == pair.expected, reported
    assert {one.ok for one in report.volumes if one.volume == "pv-x" or one.claim == "shop/x"} == {pair.word}
    assert {one.starts_again for one in report.workloads if one.workload == "Deployment shop/x"} == {pair.starts_again}
    assert report.verdict != "ready"


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_its_twin_is_ready(pair: Pair) -> None:
    report = evaluate(pair.world(wrong=False).snapshot())
    assert not report.findings, "\n".join(f"{one.id} {one.object}: {one.message}" for one in report.findings)
    assert report.verdict == "ready"
