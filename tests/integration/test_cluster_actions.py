# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that work with the cluster in their task's process, under every ansible-core line, against hosts whose settings would break them.

Neither host exists: nothing may connect to them.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from integration.playbooks import Run, lines, meanwhile, play, start
from lab.handle import eventually

HOSTS = {
    "winrm": {
        "ansible_connection": "winrm", "ansible_shell_type": "powershell", "ansible_user": "a", "ansible_password": "b",
        "ansible_remote_tmp": "C:\\none",
    },
    "ssh": {
        "ansible_connection": "ssh", "ansible_shell_type": "cmd", "ansible_become": True, "ansible_become_method": "runas",
        "ansible_become_user": "SYSTEM",
    },
}  # fmt: skip

ACTION = """\
import time
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError


class ActionModule(ClusterAction):
    argument_spec = {
        "does": {"type": "str", "required": True},
        "secret": {"type": "str", "no_log": True},
        "number": {"type": "int", "default": 0},
        "listed": {"type": "list", "elements": "str"},
        "file": {"type": "path"},
    }
    remainder = "Nothing is left."

    def work(self, options):
        does = options["does"]
        if does == "return":
            from kubernetes.config import kube_config
            self.warn("a warning")
            self.show(f"half way with {options['secret']}")
            self.result.update(
                changed=True, text=f"the secret is {options['secret']}", number=options["number"], pair=("a", 1),
                listed=options["listed"], kubeconfig=kube_config.KUBE_CONFIG_DEFAULT_LOCATION, check=self.check_mode,
            )
        if does == "refuse":
            self.result["read"] = 3
            raise TaskError(f"refused {options['secret']}", "refused", nodes=["win-1"])
        if does == "forbid":
            raise ClusterError("Node win-1: 403", "forbidden", 403)
        if does == "crash":
            raise ValueError("no such thing")
        if does == "wait":
            try:
                open(options["file"] + ".began", "w").close()
                time.sleep(600)
            finally:
                open(options["file"], "w").close()
"""

TASKS: list[dict[str, Any]] = [
    {
        "name": "returns", "probe": {"does": "return", "secret": "hidden", "number": "{{ 3 }}", "listed": "a,b"},
        "environment": {"KUBECONFIG": "/from/the/task"},
    },
    {"name": "checks", "probe": {"does": "return", "secret": "hidden"}, "check_mode": True},
    {"name": "refuses", "probe": {"does": "refuse", "secret": "hidden"}},
    {"name": "is forbidden", "probe": {"does": "forbid"}},
    {"name": "crashes", "probe": {"does": "crash"}},
    {"name": "waits", "probe": {"does": "wait", "file": "{{ playbook_dir }}/{{ inventory_hostname }}"}, "timeout": 2},
    {"name": "lacks", "probe": {}},
    {"name": "mistypes", "probe": {"does": "return", "nubmer": 3}},
    {"name": "becomes", "probe": {"does": "return"}, "become": True},
    {"name": "has its defaults", "kubewin.csi.driver_info": {"driver": "smb"}},
    {"name": "asks whom", "kubewin.csi.node_info": {}, "environment": {"K8S_AUTH_KUBECONFIG": "/from/the/environment"}},
    {"name": "has inputs", "kubewin.csi.node_info": {}, "vars": {"kubewin_inputs": {}, "kubewin_kubeconfig": "{{ {'of': 'inputs'} }}"}},
]  # fmt: skip


def write_probe(folder: Path, plays: list[dict[str, Any]]) -> None:
    """The probe action, its playbook and its inventory."""
    for name, text in (("action_plugins", ACTION), ("library", "DOCUMENTATION = ''\n")):
        (folder / name).mkdir()
        (folder / name / "probe.py").write_text(text, encoding="utf-8")
    (folder / "probe.yml").write_text(json.dumps(plays), encoding="utf-8")
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": HOSTS}}), encoding="utf-8")


@pytest.fixture(scope="module", params=lines())
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """All tasks once, each on both hosts."""
    folder = tmp_path_factory.mktemp("probe").resolve()
    play_of: dict[str, Any] = {
        "hosts": "all",
        "gather_facts": False,
        "ignore_errors": True,
        "vars": {"ansible_python_interpreter": "/none/python"},
        "module_defaults": {"group/kubewin.csi.cluster": {"kubeconfig": {"of": "defaults"}}},
        "tasks": TASKS[:-2],
    }
    # The last ones take their access from the environment, and from the inputs of the playbooks.
    write_probe(folder, [play_of, {**play_of, "module_defaults": {}, "tasks": TASKS[-2:]}])
    environment = {"KUBECONFIG": "/of/the/run", "TMPDIR": str(folder)}
    done = play(str(folder / "probe.yml"), folder / "hosts.yml", core=request.param, env=environment)
    assert done.code == 0, done.screen
    return folder, done


def both(run: Run, task: str, event: str) -> list[dict[str, Any]]:
    """The results of a task on both hosts."""
    results = run.results(task, event)
    assert sorted(results) == sorted(HOSTS), run.screen
    return [results[host] for host in HOSTS]


def test_options_are_converted_and_results_returned(run: tuple[Path, Run]) -> None:
    _folder, done = run
    for result in both(done, "returns", "ok"):
        assert (result["changed"], result["number"], result["listed"], result["pair"]) == (
            True,
            3,
            ["a", "b"],
            ["a", 1],
        )
        assert (result["check"], result["kubeconfig"]) == (False, "/from/the/task")
        assert "a warning" in json.dumps(result["warnings"])
    for result in both(done, "checks", "ok"):
        assert (result["check"], result["kubeconfig"]) == (True, "/of/the/run")


def test_a_secret_is_masked_in_results_errors_and_progress(run: tuple[Path, Run]) -> None:
    _folder, done = run
    assert both(done, "returns", "ok")[0]["text"] == "the secret is " + "*" * 8
    assert done.screen.splitlines().count(f"  half way with {'*' * 8}") == 2 * len(HOSTS)
    assert both(done, "refuses", "ignored")[0]["msg"] == f"refused {'*' * 8}"
    assert "hidden" not in done.screen


def test_each_failure_says_why_with_what_was_read_by_then(run: tuple[Path, Run]) -> None:
    _folder, done = run
    for result in both(done, "refuses", "ignored"):
        assert (result["reason"], result["read"], result["nodes"]) == ("refused", 3, ["win-1"])
    for result in both(done, "is forbidden", "ignored"):
        assert (result["reason"], result["msg"]) == ("forbidden", "Node win-1: 403")
    expected = {
        "crashes": "no such thing",
        "lacks": "missing required arguments: does",
        "mistypes": "nubmer",
        "becomes": "probe: keyword become, expected none: the task works on the controller. Remove become or --become.",
    }
    for task, message in expected.items():
        for result in both(done, task, "ignored"):
            assert message in result["msg"], result


def test_a_tasks_time_limit_lets_the_action_clean_up(run: tuple[Path, Run]) -> None:
    folder, done = run
    for result in both(done, "waits", "ignored"):
        assert "2" in result["msg"], result
    assert all((folder / host).exists() for host in HOSTS)


def test_access_comes_from_module_defaults_the_environment_and_inputs(run: tuple[Path, Run]) -> None:
    """Each names a kubeconfig that cannot be used: the errors differ from those without any."""
    _folder, done = run
    for task in ("has its defaults", "asks whom", "has inputs"):
        for result in both(done, task, "ignored"):
            assert result["reason"] == "configuration", result
            assert "Invalid kube-config" in result["msg"], result


@pytest.mark.parametrize("core", lines())
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_terminated_run_lets_the_action_clean_up(number: signal.Signals, core: str, tmp_path: Path) -> None:
    """SIGKILL tells the task's process nothing: it notices that the run is gone."""
    task = {"probe": {"does": "wait", "file": "{{ playbook_dir }}/ended"}}
    write_probe(tmp_path, [{"hosts": "winrm", "gather_facts": False, "tasks": [task]}])
    began, ended = tmp_path / "ended.began", tmp_path / "ended"
    process = start(str(tmp_path / "probe.yml"), tmp_path / "hosts.yml", record=tmp_path / "record", core=core)
    try:
        meanwhile(process, began.exists, "the action works", 60)
        process.send_signal(number)
        eventually(ended.exists, "the action cleaned up", 60)
    finally:
        process.kill()
        process.communicate()
