# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where pods stop: one line for each reason, and each step of each group of nodes."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.markdown import render_markdown
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.paths import list_stops, list_walks
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_terminal
from situations.named import SITUATIONS
from unit.plugins.plugin_utils.preflight.reports import report, step, workload


def words(text: str) -> str:
    """The text without its layout."""
    return " ".join(text.split())


def test_a_reason_that_several_workloads_have_is_one_line() -> None:
    lost = [
        workload(f"Pod shop/{name}", "no", steps=(step(pod=name, volume=f"shop/{name}-data"),)) for name in ("a", "b")
    ]
    [one], more = list_stops(report(workloads=tuple(lost)), 20)
    assert (one.pods, one.at, one.where, more) == (
        ("Pod shop/a", "Pod shop/b"),
        "stage is blocked",
        "win-1",
        0,
    )
    text = words(render_terminal(report(workloads=tuple(lost)), 200))
    assert "Pod shop/a, Pod shop/b stage is blocked win-1 the driver does not work on win-1" in text
    assert "-> Repair the driver." in text


def test_no_more_reasons_than_a_reader_takes() -> None:
    many = tuple(step("stage", nodes=(f"win-{number}",)) for number in range(30))
    found, more = list_stops(report(workloads=(workload(starts_again="no", steps=many),)), 20)
    assert (len(found), more) == (20, 10)


def test_steps_that_do_not_decide_are_shown_in_the_longer_forms_only() -> None:
    lost = report(workloads=(workload(starts_again="unknown", steps=(step("schedule", decides=False),)),))
    assert list_stops(lost, 20) == ((), 0)
    assert "schedule ✗" in render_markdown(lost)


def test_each_group_of_nodes_has_its_six_steps() -> None:
    both = (
        step("schedule", nodes=("win-3",), volume=""),
        step("attach", "unknown", nodes=("win-1", "win-2")),
        step("stage", nodes=("win-2",)),
    )
    [walk] = list_walks(report(workloads=(workload(starts_again="no", steps=both),)), 20)
    [(pod, paths)] = walk.paths
    assert pod == "db"
    assert {path.nodes: [reached for dummy, reached in path.steps] for path in paths} == {
        "win-1": ["yes", "yes", "yes", "unknown", "yes", "yes"],
        "win-2": ["yes", "yes", "yes", "unknown", "no", "never"],
        "win-3": ["yes", "yes", "no", "never", "never", "never"],
    }


def test_every_form_shows_where_a_real_cluster_stops() -> None:
    evaluated = evaluate(SITUATIONS["two_volumes_in_two_zones"].world().snapshot())
    assert "Deployment shop/zoned schedule is blocked win-2" in words(render_terminal(evaluated, 160))
    assert "| win-1 | bind ✓ provision ✓ schedule ✗ attach · stage · publish · |" in render_markdown(evaluated)
    page = render_html(evaluated)
    assert page.count('<span class="mark no" title="schedule: blocked">schedule</span>') == 2
    assert '<span class="mark never" title="publish: not reached">publish</span>' in page


def test_a_name_from_a_cluster_stays_text() -> None:
    lost = report(workloads=(workload(starts_again="no", steps=(step(because="<script>", volume="a/<b>"),)),))
    assert "&lt;script&gt;" in render_html(lost)
    assert "&lt;b&gt;" in render_html(lost)


def test_a_report_in_which_all_is_ready_has_no_such_part() -> None:
    well = report(workloads=(workload(),))
    assert "Where pods stop" not in render_html(well) + render_markdown(well)
    assert "WHAT TO DO FIRST" not in render_terminal(well)
