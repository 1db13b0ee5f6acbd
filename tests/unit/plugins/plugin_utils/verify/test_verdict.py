# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a proof is worth: only what was read back counts, and a fault is charged to the node that has it."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.verdict import (
    Proof,
    VerifyStep,
    compare_content,
    describe_failures,
    list_proven_nodes,
    settle,
)

BROKEN = ("win-2", "FailedMount: no pipe", "start csi-proxy")


def proof(node: str, verdict: str = "proven", **more: object) -> Proof:
    return Proof("vsphere", node, "disks", verdict, **more)  # type: ignore[arg-type]  # the cases are checked one by one


@pytest.mark.parametrize(
    ("read", "wrong"),
    [
        ("a b\r\n", ""),
        ("a b", ""),
        ("a b \r\n", 'the file differs: written "a b", read "a b "'),
        ("", 'the file differs: written "a b", read nothing'),
        ("A B\r\n", 'the file differs: written "a b", read "A B"'),
    ],
)
def test_a_file_is_the_same_or_it_is_not(read: str, wrong: str) -> None:
    assert compare_content("a b", read) == wrong


def test_a_volume_that_fails_on_a_broken_node_is_attributed_to_the_node() -> None:
    one, two = settle([proof("win-1", not_on=BROKEN), proof("win-2", "failed", error="no pipe")])
    assert (one.verdict, one.note) == ("proven", "not read on win-2, which has a problem of its own")
    assert two.verdict == "failed"


def test_a_volume_that_fails_where_another_one_works_has_failed() -> None:
    one, two = settle([proof("win-1", not_on=BROKEN, volume="pvc-1"), proof("win-2")])
    assert (one.verdict, one.remedy) == ("failed", "start csi-proxy")
    assert one.error == "volume pvc-1 could not be used on win-2, where another one works: FailedMount: no pipe"
    assert two.verdict == "proven"


def test_only_proven_nodes_are_handed_on() -> None:
    found = [proof("win-2"), proof("win-1"), proof("win-3", "failed"), proof("win-4", "not_run")]
    assert list_proven_nodes(found) == {"vsphere": ["win-1", "win-2"]}
    assert list_proven_nodes([proof("win-1", "failed")]) == {"vsphere": []}


def test_the_headline_names_each_failure_with_its_remedy_and_what_was_not_tried() -> None:
    assert describe_failures([proof("win-1")]) == ""
    text = describe_failures(
        [proof("win-1", "failed", error="no", remedy="do"), proof("win-2", "not_run"), proof("win-3")]
    )
    assert text.splitlines() == [
        "vsphere on win-1: no -> do",
        "not tried before the timeout: vsphere on win-2 -> raise timeout",
    ]


def test_seconds_are_those_of_all_steps() -> None:
    steps = (VerifyStep("start", "win-1", 1.25, True), VerifyStep("write", "win-1", 0.5, True))
    assert proof("win-1", steps=steps).as_dict()["seconds"] == 1.8
