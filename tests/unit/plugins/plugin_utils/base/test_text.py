# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Text of other users: nothing in it acts, and it is written back as it was read."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, TypedDict

import msgspec
import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base import findings as deploy
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.text import (
    decode_controls,
    decode_json,
    encode_controls,
    encode_json_controls,
    join_lines,
    mask_controls,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import listing
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import GateProblem, NodeEvaluation
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import verdict as readiness
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify import explain
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ConnectionLostError, NodeError

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


def test_every_control_character_is_carried_and_restored() -> None:
    assert len(EVERY) > 70
    for one in EVERY:
        text = f"a{one}b"
        assert acts(encode_controls(text)) == []
        assert mask_controls(encode_controls(text)) == encode_controls(text)
        assert decode_controls(encode_controls(text)) == text


# What stands for others here: a private-use character of a tenant's own is no escape sequence when it is sent back.
GENUINE = [
    "\U000f001b",
    "\U000f202e",
    "\U000f000d",
    "\U000f3000",
    "\U000f3000\U000f001b",
    "\x1b\U000f001b\U000f3000",
    "\U000f0041",
]


@pytest.mark.parametrize("text", GENUINE)
def test_private_use_characters_round_trip(text: str) -> None:
    assert decode_controls(encode_controls(text)) == text
    assert decode_controls(encode_controls(decode_controls(encode_controls(text)))) == text


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "written",
    [*EVERY, *GENUINE, NASTY, "\U0001f600", "C:\\temp\\u001b", "\\\\u001b", "\\\x1b", "ends with \\", "plain"],
)
def test_json_decodes_to_what_the_text_itself_would_be(written: str, ascii_only: bool) -> None:
    data = json.dumps({written: [written, 1, None]}, ensure_ascii=ascii_only).encode()
    decoded = json.loads(encode_json_controls(data))
    assert decoded == {encode_controls(written): [encode_controls(written), 1, None]}
    assert decode_controls(decoded) == {written: [written, 1, None]}


class Brief(TypedDict):
    """What a decoder keeps."""

    kept: dict[str, str]


@pytest.mark.parametrize("written", [*EVERY, *GENUINE, NASTY, "\U0001f600", "C:\\temp\\u001b", "\\\\u001b", "plain"])
def test_json_of_which_few_fields_are_decoded_is_searched_in_these(written: str) -> None:
    decoder = msgspec.json.Decoder(Brief).decode
    data = json.dumps({"kept": {written: written}, "skipped": NASTY}).encode()
    carried = encode_controls(written)
    assert decode_json(data, decoder, msgspec.json.encode) == {"kept": {carried: carried}}


def test_a_character_in_a_field_that_is_skipped_costs_nothing() -> None:
    decoded: list[bytes] = []

    def decode(data: bytes) -> Any:
        decoded.append(data)
        return {"kept": "plain"}

    data = json.dumps({"kept": "plain", "skipped": NASTY}).encode()
    assert decode_json(data, decode, msgspec.json.encode) == {"kept": "plain"}
    assert decoded == [data]


def test_a_page_without_such_characters_is_not_copied() -> None:
    page = json.dumps({"command": "a < b && c > d", "name": "größe"}).replace("<", "\\u003c").encode()
    assert encode_json_controls(page) is page


def test_a_line_is_one_line() -> None:
    made = join_lines(NASTY)
    assert acts(made) == []
    assert made.split() == made.split(" ")


def test_objects_of_the_cluster_are_cleaned_and_written_back_as_they_were() -> None:
    script = Script(raw({"metadata": {"name": "a", "annotations": {"note": NASTY, "icon": GENUINE[0]}}}))
    client = Client(script, retry_for=0)
    found = client.get(kinds.PERSISTENT_VOLUME_CLAIM, "a", "shop")
    assert found is not None
    assert acts(json.dumps(found, ensure_ascii=False)) == []
    client.create_new(kinds.PERSISTENT_VOLUME_CLAIM, found, dry_run=False)
    assert script.asked[-1][2]["body"]["metadata"]["annotations"] == {"note": NASTY, "icon": GENUINE[0]}
    client.apply({"apiVersion": "v1", "kind": "ConfigMap", **found}, dry_run=True)
    assert json.loads(script.asked[-1][2]["body"])["metadata"]["annotations"] == {"note": NASTY, "icon": GENUINE[0]}


def test_watched_objects_logs_warnings_and_errors_are_cleaned() -> None:
    watched = Response(lines=[{"type": "ADDED", "object": {"metadata": {"name": NASTY}}}])
    events = list(Client(Script(watched), retry_for=0).watch(kinds.POD, "1", 1))
    log = Response()
    log.data = NASTY.encode()
    printed = Client(Script(log), retry_for=0).read_log("shop", "web", "app")
    warned = Client(Script(Response({"metadata": {}}, {"Warning": f'299 - "{NASTY}"'})), retry_for=0)
    warnings = warned.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, dry_run=True).warnings
    with pytest.raises(ClusterError) as refused:
        Client(Script(ApiError(422, {"message": NASTY})), retry_for=0).get(kinds.POD, "web", "shop")
    for text in (events[0][1]["metadata"]["name"], printed, *warnings, str(refused.value)):
        assert "end" in text
        assert acts(text) == []
    assert "\n" not in str(refused.value)


def test_text_of_a_host_is_cleaned() -> None:
    printed = commands.join_text([NASTY.encode()])
    assert acts(printed) == []
    assert printed.endswith("line\r\nlast")
    assert acts(str(ConnectionLostError(f"banner: {NASTY}"))) == []


def test_names_of_files_on_a_volume_are_cleaned() -> None:
    text = " Directory of C:\\data\r\n\r\n11/22/2026  09:30 AM                 3 evil\u202etxt.exe\r\n"
    found = listing.parse_listing(mask_controls(text), "C:\\data")
    assert found is not None
    assert [acts(one.path) for one in found.entries] == [[]]


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
