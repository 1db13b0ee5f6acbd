# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the tasks of a run wait for an API server that does not answer; where they find the kubeconfig; what they display and return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible import constants as C
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import cluster_action
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import ArgumentSpec
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import CONNECT_FOR
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import UnreachableError
from unit.plugins.plugin_utils.actions.tasks import run_task
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of

NASTY = "\x1b[2J\u202eb\x9bc"


class Task(ClusterAction):
    def work(self, options: Mapping[str, Any]) -> None:
        """Do nothing."""


class Failing(ClusterAction):
    """Shows and returns a text of another user."""

    argument_spec: ClassVar[ArgumentSpec] = {}

    def work(self, options: Mapping[str, Any]) -> None:
        self.display(f"shown {NASTY}")
        self.warn(NASTY)
        self.result["objects"] = [{"metadata": {"annotations": {NASTY: NASTY}}}]
        raise TaskError(NASTY, "invalid")


class Answers:
    """Stands in for kube.connect. answers: whether the API server does. tries: for how many seconds a failing server was asked again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.answers, self.tries = False, list[float]()
        monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(folder))
        monkeypatch.setattr(cluster_action, "connect", self._connect)

    def _connect(self, _options: Mapping[str, Any], _retry_for: float, connect_for: float) -> Client:
        self.tries.append(connect_for)
        if not self.answers:
            raise UnreachableError("no response from the API server", "unreachable")
        return client_of(ObjectStore())

    def run_task(self, **inputs: str) -> None:
        task = object.__new__(Task)
        task.task_vars = {"kubewin_inputs": inputs}
        task.connect({"host": "https://a", "api_timeout": 60})


def test_no_control_character_acts_in_what_a_task_displays_or_returns(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_task(Failing)
    shown = capsys.readouterr().out
    for text in (shown, json.dumps(result, ensure_ascii=False)):
        assert "\U000f001b[2J" in text
        assert not set(NASTY) & {"\x1b", "\u202e", "\x9b"} & set(text)
    assert [*result["objects"][0]["metadata"]["annotations"]] == ["\U000f001b[2J\U000f202eb\U000f009bc"]


def test_an_api_server_is_waited_for_once_the_run_has_reached_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = Answers(monkeypatch, tmp_path)
    with pytest.raises(UnreachableError):
        server.run_task()
    server.answers = True
    server.run_task()
    # It restarts between two tasks.
    server.answers = False
    for _task in range(2):
        with pytest.raises(UnreachableError):
            server.run_task(playbook="status")
    assert server.tries == [CONNECT_FOR, CONNECT_FOR, 60.0, 60.0]


def test_a_playbook_asks_an_api_server_that_does_not_answer_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = Answers(monkeypatch, tmp_path)
    for _task in range(2):
        with pytest.raises(UnreachableError, match="no response from the API server"):
            server.run_task(playbook="status")
    assert len(server.tries) == 1
    # A task of another play may be repeated until the server answers.
    server.answers = True
    server.run_task()
    server.run_task(playbook="status")
    assert len(server.tries) == 3


@pytest.mark.parametrize(
    ("environment", "variables", "kubeconfig"),
    [
        ("", {}, None),
        ("./its.kubeconfig", {}, "its.kubeconfig"),
        ("./its.kubeconfig", {"kubewin_kubeconfig": ""}, "its.kubeconfig"),
        ("./its.kubeconfig", {"kubewin_kubeconfig": "mine"}, "mine"),
        ("", {"kubewin_kubeconfig": {"kind": "Config"}}, {"kind": "Config"}),
    ],
)
def test_a_kubeconfig_is_resolved_from_the_starting_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: str, variables: dict[str, Any], kubeconfig: Any
) -> None:
    """The environment names one as kubewin_kubeconfig does, which comes first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("K8S_AUTH_KUBECONFIG", environment)
    templar = Templar(loader=DataLoader())
    resolved = str(tmp_path / kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    access = cluster_action.read_access(templar, {"kubewin_inputs": {}, **variables})
    assert access == ({} if resolved is None else {"kubeconfig": resolved})
    assert cluster_action.read_access(templar, variables) == {}
