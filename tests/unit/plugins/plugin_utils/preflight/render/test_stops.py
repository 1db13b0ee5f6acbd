# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where pods stop: one line for each reason."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_terminal
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.view import create_view
from situations.named import SITUATIONS
from unit.plugins.plugin_utils.preflight.reports import report, step, workload


def words(text: str) -> str:
    """The text without its layout."""
    return " ".join(text.split())


def test_a_reason_that_several_workloads_have_is_one_line() -> None:
    lost = [
        workload(f"Pod shop/{name}", "no", steps=(step(pod=name, volume=f"shop/{name}-data"),)) for name in ("a", "b")
    ]
    (stop,) = create_view(report(workloads=tuple(lost))).parts["stops"].lines
    assert stop.cells[:2] == ("Pod shop/a, Pod shop/b", "stage is blocked on win-1")
    text = words(render_terminal(report(workloads=tuple(lost)), 200))
    assert "Pod shop/a, Pod shop/b stage is blocked on win-1 the driver does not work on win-1" in text
    assert "-> Repair the driver." in text


def test_no_more_reasons_than_a_reader_takes() -> None:
    many = tuple(step("stage", nodes=(f"win-{number}",)) for number in range(30))
    part = create_view(report(workloads=(workload(starts_again="no", steps=many),)), 20).parts["stops"]
    assert (len(part.lines), part.hidden) == (20, 10)


def test_a_step_that_does_not_decide_is_no_reason() -> None:
    lost = report(workloads=(workload(starts_again="unknown", steps=(step("schedule", decides=False),)),))
    assert create_view(lost).parts["stops"].lines == ()


def test_every_form_shows_where_a_real_cluster_stops() -> None:
    evaluated = evaluate(SITUATIONS["two_volumes_in_two_zones"].world().snapshot())
    assert "Deployment shop/zoned schedule is blocked on win-2" in words(render_terminal(evaluated, 160))
    assert "schedule is blocked on win-2" in render_html(evaluated)


def test_a_name_from_a_cluster_stays_text() -> None:
    lost = report(workloads=(workload(starts_again="no", steps=(step(because="<script>"),)),))
    assert "&lt;script&gt;" in render_html(lost)


def test_a_report_in_which_all_is_ready_has_no_such_part() -> None:
    well = report(workloads=(workload(),))
    assert "Where pods stop" not in render_html(well)
    assert "WHAT TO DO" not in render_terminal(well)
