# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Text of other users: nothing in what is shown of it acts, and it is written back as it was read."""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base import findings as deploy
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import join_lines, mask_controls
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import listing
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import compare_manifests, format_report
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import Manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateProblem, NodeEvaluation
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import verdict as readiness
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import encode_snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify import explain
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ConnectionLostError, NodeError
from situations.cluster import healthy

from ..kube.fakes import ApiError, Response, Script

# A title for the terminal, a colour, a line taken back, C1's own introducer, an override of the direction, a separator.
NASTY = "\x1b]0;owned\x07 \x1b[31mred\rREADY \x9b2J \x7f \u202edellatsni\u2066 \u200f \u2028end\ttab\nline\r\nlast"
KEPT = "\t\n"


def acts(text: str) -> list[str]:
    """What is left of it that acts on a terminal or on the order of the line."""
    return [
        one for one in text.replace("\r\n", "\n")
        if one not in KEPT
        and (unicodedata.category(one) in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(one) in
             ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") or one in "\u200e\u200f\u061c")
    ]  # fmt: skip


EVERY = [chr(code) for code in range(0x3000) if acts(chr(code))]


def raw(value: Any) -> Response:
    """A server's answer with everything that JSON lets stand unescaped."""
    made = Response({})
    made.data = json.dumps(value, ensure_ascii=False).encode()
    return made


def test_a_stored_snapshot_acts_on_nothing_and_is_read_as_it_was() -> None:
    snapshot = dataclasses.replace(healthy().snapshot(), name="".join(EVERY))
    stored = encode_snapshot(snapshot)
    assert acts(stored.decode()) == []
    assert Snapshot.from_dict(json.loads(stored)) == snapshot


def test_no_control_character_acts_once_it_is_masked() -> None:
    assert len(EVERY) > 70
    for one in EVERY:
        masked = mask_controls(f"a{one}b")
        assert acts(masked) == []
        assert masked not in ("ab", f"a{one}b")
        assert mask_controls(masked) == masked


def test_a_line_is_one_line() -> None:
    made = join_lines(NASTY)
    assert acts(made) == []
    assert made.split() == made.split(" ")


def test_objects_of_the_cluster_are_written_back_as_they_were() -> None:
    script = Script(raw({"metadata": {"name": "a", "annotations": {"note": NASTY}}}))
    client = Client(script, retry_for=0)
    found = client.get(kinds.PERSISTENT_VOLUME_CLAIM, "a", "shop")
    assert found is not None
    client.create_new(kinds.PERSISTENT_VOLUME_CLAIM, found, dry_run=False)
    assert script.asked[-1][2]["body"]["metadata"]["annotations"] == {"note": NASTY}
    client.apply({"apiVersion": "v1", "kind": "ConfigMap", **found}, dry_run=True)
    assert json.loads(script.asked[-1][2]["body"])["metadata"]["annotations"] == {"note": NASTY}


def test_logs_warnings_and_errors_are_masked() -> None:
    log = Response()
    log.data = NASTY.encode()
    printed = Client(Script(log), retry_for=0).read_log("shop", "web", "app")
    warned = Client(Script(Response({"metadata": {}}, {"Warning": f'299 - "{NASTY}"'})), retry_for=0)
    warnings = warned.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, dry_run=True).warnings
    with pytest.raises(ClusterError) as refused:
        Client(Script(ApiError(422, {"message": NASTY})), retry_for=0).get(kinds.POD, "web", "shop")
    for text in (printed, *warnings, str(refused.value)):
        assert "end" in text
        assert acts(text) == []
    assert "\n" not in str(refused.value)


def test_text_of_a_host_is_cleaned() -> None:
    printed = commands.join_text([NASTY.encode()])
    assert acts(printed) == []
    assert printed.endswith("line\r\nlast")
    assert acts(str(ConnectionLostError(f"banner: {NASTY}"))) == []


def test_names_of_files_on_a_volume_forge_no_line() -> None:
    """cmd separates its lines by CR LF alone, and other characters that end a line may be part of a name."""
    name = "evil\u202etxt\u2028\x85.exe"
    text = f" Directory of C:\\data\r\n\r\n11/22/2026  09:30 AM                 3 {name}\r\n"
    found = listing.parse_listing(text, "C:\\data")
    assert found is not None
    assert [entry.path for entry in found.entries] == [name]
    before, after = (Manifest("shop", "data", "pv", "listing", "", entries) for entries in ((), found.entries))
    report = format_report(before, after, compare_manifests(before, after, ()))
    assert acts(report) == []
    assert len(report.splitlines()) == 3


def test_findings_hold_lines() -> None:
    made: list[Any] = [
        deploy.Finding("CSI-D00", "note", NASTY, NASTY, NASTY),
        readiness.ReportFinding("CSI-C00", "note", NASTY, NASTY, NASTY, (NASTY,), NASTY, ""),
        GateProblem("CSI-G00", "red", NASTY, NASTY),
        NodeEvaluation("win-1", "", (), (NASTY,)),
    ]
    for one in made:
        text = json.dumps(serialize(one), ensure_ascii=False)
        assert acts(text) == []
        assert "\\n" not in text


def test_words_of_a_pod_a_node_or_an_event_forge_no_line() -> None:
    words = "denied\r\nfatal: [win-2]: FAILED!\nok: [win-1]"
    waiting = {"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "Err", "message": words}}}]}
    pod = {"metadata": {"name": "a", "namespace": "b", "uid": "u"}, "spec": {"containers": []}, "status": waiting}
    event = {"type": "Warning", "reason": "FailedMount", "message": words, "metadata": {}}
    node = {
        "metadata": {"name": "win-1"},
        "status": {"conditions": [{"type": "Ready", "reason": "a", "message": words}]},
    }
    made = [
        explain.explain_waiting(pod, ()),
        explain.explain_waiting(pod, explain.select_warnings([event])),
        ObservedNode.from_object(node).not_ready_because,
        PodFacts.from_object(pod).containers[0].waiting_message,
        str(NodeError("a", words, remedy=words, detail=words)),
    ]
    for text in made:
        assert "fatal" in text
        assert len(text.splitlines()) == 1
