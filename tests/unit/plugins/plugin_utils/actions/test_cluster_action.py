# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the tasks of a run wait for an API server that refuses connections."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible import constants as C
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import cluster_action
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import UnreachableError
from unit.plugins.plugin_utils.kube.fakes import ObjectStore, client_of


class Task(ClusterAction):
    def work(self, options: Mapping[str, Any]) -> None:
        """Do nothing."""


def connect(host: str) -> Client:
    """As the next task of the run does."""
    task = object.__new__(Task)
    task.task_vars = {}
    return task.connect({"host": host, "api_key": "t", "api_timeout": 2})


def test_an_api_server_that_this_run_has_not_reached_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        stopped = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(UnreachableError, match=r"^the API server refuses connections: "):
        connect(stopped)
    with monkeypatch.context() as reachable:
        reachable.setattr(cluster_action, "connect", lambda *_args: client_of(ObjectStore()))
        connect(stopped)
    # It restarts between two tasks.
    with pytest.raises(UnreachableError, match=r"^the API server refuses connections for 2 s: "):
        connect(stopped)


def test_a_playbook_asks_an_api_server_that_does_not_answer_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path))
    hosts: list[str] = []

    def give_up(options: Mapping[str, Any], *_limits: Any) -> Client:
        hosts.append(options["host"])
        raise UnreachableError("no response from the API server for 20 s", "unreachable")

    monkeypatch.setattr(cluster_action, "connect", give_up)
    task = object.__new__(Task)
    for inputs in ({"playbook": "status"}, {"playbook": "status"}, {}):
        task.task_vars = {"kubewin_inputs": inputs}
        with pytest.raises(UnreachableError, match="no response from the API server for 20 s"):
            task.connect({"host": "https://a", "api_timeout": 20})
    task.task_vars = {"kubewin_inputs": {"playbook": "status"}}
    with pytest.raises(UnreachableError):
        task.connect({"host": "https://b", "api_timeout": 20})
    # A task of another play may be repeated until the server answers, and another server is asked.
    assert hosts == ["https://a", "https://a", "https://b"]


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
