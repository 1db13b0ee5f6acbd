# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The report as JUnit XML, as a CI system reads it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.junit import render_junit
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Assumption
from unit.plugins.plugin_utils.preflight.reports import report, troubled, workload


def test_each_workload_node_and_assumption_is_a_test_case() -> None:
    assumed = Assumption("room", "Nodes have room", ("StatefulSet shop/db",))
    root = ElementTree.fromstring(render_junit(replace(troubled(), assumptions=(assumed,))))
    counts = {
        suite.get("name"): [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] for suite in root
    }
    assert counts == {
        "workloads": ["3", "1", "1", "0"],
        "nodes": ["2", "1", "0", "0"],
        "assumptions": ["1", "0", "0", "1"],
    }
    elements = {
        suite.get("name"): [len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error", "skipped")]
        for suite in root
    }
    assert elements == {"workloads": [1, 1, 0], "nodes": [1, 0, 0], "assumptions": [0, 0, 1]}
    failure = root.find(".//testcase[@name='Deployment shop/web']/failure")
    assert failure is not None
    assert failure.get("message") == "claim shop/pv-2-claim: no driver on win-2"
    assert failure.text == "inspect it"
    skipped = root.find(".//testcase[@name='Nodes have room']/skipped")
    assert skipped is not None
    assert skipped.text == "kubectl describe nodes -l kubernetes.io/os=windows"


def test_names_that_xml_forbids_are_shown_by_their_code() -> None:
    lost = workload("Deployment shop/\x00\ud800", "no", because="<b>\x1b", accepted="")
    (case,) = ElementTree.fromstring(render_junit(report(workloads=(lost,)))).iter("testcase")
    assert case.get("name") == "Deployment shop/\\x00\\ud800"
