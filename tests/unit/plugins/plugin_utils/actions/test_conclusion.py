# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run ends, and why: the message of a task, that of each failed item of a loop, or at least the name of the task."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.commands import Invocation
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.conclusion import (
    conclude,
    describe_failure,
    read_work,
)

OPTIONS = dict.fromkeys(["result", "outcome"]) | {"next": []}
OPTIONS |= dict.fromkeys(["nodes", "rescue", "removed", "accept_unproven"], False)


@pytest.mark.parametrize(
    ("options", "check", "outcome"),
    [
        ({}, False, "done"),
        ({"result": {"outcome": "paused"}}, False, "paused"),
        ({"result": {"msg": "no room"}}, False, "failed"),
        ({"result": {"msg": "no room", "changed": True}}, False, "failed"),
        ({"result": {"msg": "no room", "changed": False}}, False, "refused"),
        ({"result": {"msg": "no room", "changed": False, "outcome": "failed"}}, False, "failed"),
        ({"result": {"msg": "no room"}, "outcome": "refused"}, False, "refused"),
        ({"result": {"msg": "no room", "outcome": "failed"}}, True, "refused"),
    ],
)
def test_a_run_that_fails_before_its_first_change_is_refused(
    options: dict[str, Any], check: bool, outcome: str
) -> None:
    all_options: dict[str, Any] = {**OPTIONS, **options}
    work = read_work(all_options, {}, check=check, refusal="")
    summary, _text = conclude(all_options, {}, work, Invocation(), check=check)
    assert summary["outcome"] == outcome


def test_a_task_reports_why() -> None:
    assert describe_failure({"failed": True, "msg": "csi-proxy is stopped"}, "Start it") == "csi-proxy is stopped"


def test_a_loop_reports_each_failed_item_once() -> None:
    items = [
        {"failed": True, "msg": "win-1 is red"},
        {"failed": False, "msg": "green"},
        {"failed": True, "msg": "win-1 is red"},
        {"failed": True, "msg": "win-2 is red"},
    ]
    assert (
        describe_failure({"failed": True, "msg": "One or more items failed", "results": items}, "Read")
        == "win-1 is red\nwin-2 is red"
    )


def test_results_of_the_module_itself_do_not_hide_its_message() -> None:
    convert = {
        "failed": True,
        "msg": "shop/data: the claim is in use",
        "results": [{"claim": "shop/data", "status": "unchanged"}],
    }
    assert describe_failure(convert, "Convert") == "shop/data: the claim is in use"
    assert describe_failure({"failed": True, "msg": "no such file", "results": ["win-1"]}, "Read") == "no such file"


def test_a_task_without_a_message_and_one_that_hides_it_are_named() -> None:
    assert describe_failure({"failed": True}, "Copy the exe") == "Copy the exe failed without a message"
    hidden = {"failed": True, "msg": "password is hunter2", "_ansible_no_log": True}
    assert describe_failure(hidden, "Copy the exe") == "Copy the exe failed; no_log hides why"
    assert (
        describe_failure({"failed": True, "censored": "the output has been hidden"}, "Copy")
        == "Copy failed; no_log hides why"
    )
