# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""preflight_info at its edge: what is refused before anybody is contacted, when it fails, and what it leaves behind."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.utils.display import Display
from ansible_collections.kubewin.csi.plugins.action import preflight_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.planned_run import PlannedRun
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import (
    ReadinessOptions,
    encode_snapshot,
    is_passed,
    load_snapshot,
    name_cluster,
    report_readiness,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.suppress import read_suppression
from integration.playbooks import play
from situations.cluster import healthy
from situations.named import SITUATIONS

# No server listens there; a task that got so far would report that.
UNREACHABLE = {"host": "http://127.0.0.1:9", "api_key": "nobody", "api_timeout": 1}


def tasks(folder: Path, *options: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the module once for each set of options, in one play; the results."""
    results = folder / "results.json"
    steps: list[dict[str, Any]] = [
        {"kubewin.csi.preflight_info": {**UNREACHABLE, **one}, "register": f"r{number}", "ignore_errors": True}
        for number, one in enumerate(options)
    ]
    content = "{{ [" + ", ".join(f"r{number}" for number in range(len(options))) + "] | to_json }}"
    steps.append({"ansible.builtin.copy": {"dest": str(results), "content": content, "mode": "0600"}})
    playbook = folder / "play.yml"
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": steps}]), encoding="utf-8")
    done = play(str(playbook), "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}")
    assert results.exists(), done.screen
    found: list[dict[str, Any]] = json.loads(results.read_text(encoding="utf-8"))
    return found


def test_wrong_options_are_refused_by_name_before_any_connection(tmp_path: Path) -> None:
    broken, older, empty = tmp_path / "broken.json", tmp_path / "older.json", tmp_path / "empty.json"
    broken.write_text("{", encoding="utf-8")
    older.write_text('{"snapshot_version": 0}', encoding="utf-8")
    empty.write_text("[]", encoding="utf-8")
    accepted = {"id": "CSI-V10", "object": "x", "reason": "r", "expires": "tomorrow"}
    expected: list[tuple[dict[str, Any], str]] = [
        ({"target": {"kubernetes": "soon"}}, "kubernetes: 'soon' is not a release number"),
        ({"suppressions": [accepted]}, "expires is 'tomorrow', expected a day"),
        ({"snapshot_from": str(broken)}, f"{broken} cannot be read"),
        ({"snapshot_from": str(tmp_path / "none.json")}, "No such file"),
        ({"snapshot_from": str(empty)}, "expected a file that an earlier run wrote"),
        ({"snapshot_from": str(older)}, "snapshot_version is 0"),
    ]
    results = tasks(tmp_path, *(options for options, dummy in expected))
    for (options, words), result in zip(expected, results, strict=True):
        assert result["failed"], options
        assert result["reason"] == "configuration"
        assert words in result["msg"]
        assert str(options).count(str(tmp_path)) == result["msg"].count(str(tmp_path))


def test_a_report_that_cannot_be_written_is_an_error_and_is_not_lost(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_bytes(encode_snapshot(healthy().snapshot()))
    place = tmp_path / "file"
    place.write_text("", encoding="utf-8")
    options = {"snapshot_from": str(snapshot), "output_dir": str(place / "below")}
    [result] = tasks(tmp_path, options)
    assert result["failed"]
    assert f"cannot write the report to {place / 'below'}" in result["msg"]
    assert result["verdict"] in ("ready", "unknown")


def test_a_report_names_the_context_of_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("K8S_AUTH_CONTEXT", "K8S_AUTH_HOST", "K8S_AUTH_KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("erp-test", "erp-prod")]
    config: dict[str, Any] = {
        "current-context": "erp-prod",
        "contexts": contexts,
        "clusters": [{"name": "c", "cluster": {"server": "https://a:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    for options, expected in (
        ({"context": "erp-test"}, "erp-test"),
        ({"kubeconfig": str(kubeconfig)}, "erp-prod"),
        ({"kubeconfig": config}, "erp-prod"),
        ({"host": "https://api.erp.example.com:6443"}, "api.erp.example.com"),
        ({"kubeconfig": str(tmp_path / "none")}, ""),
    ):
        assert name_cluster(options) == expected


@pytest.mark.parametrize("content", ["a: [", "text", "{}"])
def test_a_kubeconfig_that_cannot_be_read_is_left_to_the_client_to_report(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("K8S_AUTH_CONTEXT", "K8S_AUTH_HOST"):
        monkeypatch.delenv(name, raising=False)
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(content, encoding="utf-8")
    assert name_cluster({"kubeconfig": str(kubeconfig)}) == ""
    assert name_cluster({"kubeconfig": str(tmp_path)}) == ""


def test_a_run_is_refused_for_what_it_would_break_and_for_nothing_else(tmp_path: Path) -> None:
    """On a cluster with a blocker of its own: only taking the driver from a node with volumes stops the run."""
    world = SITUATIONS["a_raw_block_volume"].world()
    plugin = copy.deepcopy(world.get("DaemonSet", "vsphere-csi-node-windows", "vmware-system-csi"))
    del plugin["metadata"]["generation"]
    asked = ReadinessOptions(snapshot=world.snapshot(), fail_on="blocked", output_dir=str(tmp_path / "out"))
    requests = []
    for pool in ({}, {"pool": "gold"}):
        plugin["spec"]["template"]["spec"]["nodeSelector"].update(pool)
        run = PlannedRun(("vsphere",), (copy.deepcopy(plugin),), frozenset(["win-1", "win-2"]))
        requests.append(replace(asked, run=run))
    accepted = [{"id": "CSI-G03", "object": "Node win-*", "reason": "moved by hand", "expires": "2099-01-01"}]
    requests.append(replace(requests[1], suppressions=tuple(map(read_suppression, accepted))))
    unused: Any = None
    quiet, refused, suppressed = (report_readiness(unused, request, unused) for request in requests)
    result = quiet.as_dict(details=False)
    assert (quiet.failure, result["verdict"], result["blockers"]) == ("", "ready", [])
    assert any("will not start again" in line for line in result["table"])
    result = refused.as_dict(details=False)
    assert (refused.reason, result["verdict"]) == ("not_ready", "blocked")
    assert {one["id"] for one in result["blockers"]} == {"CSI-G03"}
    assert "CSI-G03 Node win-1, driver csi.vsphere.vmware.com" in refused.failure
    assert suppressed.failure == ""
    assert "2 findings suppressed by kubewin_suppressions" in suppressed.as_dict(details=False)["table"]
    # Nobody reads the report of something that has not happened as one of the cluster.
    assert not (tmp_path / "out").exists()


def test_a_refusal_counts_findings_in_plain_words(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_bytes(encode_snapshot(SITUATIONS["a_raw_block_volume"].world().snapshot()))
    asked = {"snapshot_from": str(snapshot), "fail_on": "blocked"}
    (refused,) = tasks(tmp_path, asked)
    assert refused["counts"]["blocker"] == 1
    assert refused["msg"].startswith("the verdict is blocked: 1 blocker")
    assert "1 blockers" not in refused["msg"]
    assert refused["report"]["collection"] == "1.0.0"


BLOCKED = evaluate(SITUATIONS["a_driver_without_its_controller"].world().snapshot())
READY = evaluate(healthy().snapshot())
UNKNOWN = evaluate(SITUATIONS["pods_could_not_be_read"].world().snapshot())
WARNED = replace(READY, findings=(replace(BLOCKED.findings[0], severity="warning", doubt=False),))


@pytest.mark.parametrize(
    ("fail_on", "ready", "warned", "unknown", "blocked"),
    [
        ("never", True, True, True, True),
        ("blocked", True, True, True, False),
        ("unknown", True, True, False, False),
        ("warning", True, False, False, False),
    ],
)
def test_when_it_fails(fail_on: str, ready: bool, warned: bool, unknown: bool, blocked: bool) -> None:
    assert (READY.verdict, WARNED.verdict, UNKNOWN.verdict, BLOCKED.verdict) == ("ready", "ready", "unknown", "blocked")
    found = [is_passed(report, fail_on) for report in (READY, WARNED, UNKNOWN, BLOCKED)]
    assert found == [ready, warned, unknown, blocked]


def test_a_saved_snapshot_is_the_one_that_was_taken(tmp_path: Path) -> None:
    taken = healthy().snapshot()
    path = tmp_path / "snapshot.json"
    path.write_bytes(encode_snapshot(taken))
    assert load_snapshot(str(path)) == taken


def test_the_displayed_report_has_no_secret_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a proxy quotes the request in its answer."""
    displayed: list[str] = []
    action = object.__new__(preflight_info.ActionModule)
    action.secrets = frozenset(["sha256~planted"])
    action._display = Display()
    monkeypatch.setattr(action._display, "display", displayed.append)
    action.display("pods were not read: Bearer sha256~planted is refused")
    assert displayed == ["pods were not read: Bearer ******** is refused"]
