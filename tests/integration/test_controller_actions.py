# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that run on the controller, under every ansible-core line: in real runs, against hosts whose settings would break them.

Neither host exists: nothing may connect to them. The module's process itself: tests/unit/plugins/plugin_utils/test_controller.py.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from integration.playbooks import Run, lines, play

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
import importlib.util, sys
from pathlib import Path
import kubernetes.config.kube_config
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction

spec = importlib.util.spec_from_file_location("probe", Path(__file__).parents[1] / "library" / "probe.py")
probe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(probe)


class ActionModule(ControllerAction):
    module = probe
"""

MODULE = """\
import os, signal, sys, time
from ansible.module_utils.basic import AnsibleModule, env_fallback

ARGUMENT_SPEC = {
    "does": {"type": "str", "required": True},
    "secret": {"type": "str", "no_log": True, "fallback": (env_fallback, ["PROBE_SECRET"])},
    "number": {"type": "int", "default": 0},
    "listed": {"type": "list", "elements": "str"},
    "file": {"type": "path"},
    "progress_file": {"type": "path"},
}


def main():
    module = AnsibleModule(ARGUMENT_SPEC, supports_check_mode=True)
    does = module.params["does"]
    if does == "exit":
        from kubernetes.config import kube_config
        module.warn("a warning")
        module.deprecate("a deprecation", version="9.0.0", collection_name="kubewin.csi")
        module.exit_json(
            changed=True, text=f"the secret is {module.params['secret']}", number=module.params["number"], cwd=os.getcwd(),
            listed=module.params["listed"], kubeconfig=kube_config.KUBE_CONFIG_DEFAULT_LOCATION, check=module.check_mode,
            diff_mode=module._diff, verbosity=module._verbosity, parent=os.getppid(), progress=module.params["progress_file"],
            tmpdir=os.path.dirname(module.tmpdir), loaded=sys.argv[0], diff={"before": "a\\n", "after": "b\\n"},
        )
    if does == "fail":
        module.fail_json(msg=f"refused {module.params['secret']}", reason="refused")
    if does == "crash":
        raise ValueError("no such thing")
    if does == "print":
        print("{'garbage'")
    if does == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "report":
        with open(module.params["progress_file"], "a") as file:
            print("half way", file=file)
        module.exit_json(changed=False)
    if does == "wait":
        while os.path.exists(module.params["progress_file"]):
            time.sleep(0.05)
        open(module.params["file"], "w").close()


if __name__ == "__main__":
    main()
"""

TASKS: list[dict[str, Any]] = [
    {
        "name": "exits", "probe": {"does": "exit", "secret": "hidden", "number": "{{ 3 }}", "listed": "a,b"},
        "environment": {"KUBECONFIG": "/from/the/task"},
    },
    {"name": "checks", "probe": {"does": "exit"}, "check_mode": True, "environment": {"PROBE_SECRET": "concealed"}},
    {"name": "fails", "probe": {"does": "fail", "secret": "hidden"}},
    {"name": "crashes", "probe": {"does": "crash"}},
    {"name": "prints", "probe": {"does": "print"}},
    {"name": "dies", "probe": {"does": "die"}},
    {"name": "reports", "probe": {"does": "report"}},
    {"name": "waits", "probe": {"does": "wait", "file": "{{ playbook_dir }}/{{ inventory_hostname }}"}, "timeout": 2},
    {"name": "lacks", "probe": {}},
    {"name": "has its defaults", "kubewin.csi.driver_info": {"driver": "smb"}},
    {"name": "asks whom", "kubewin.csi.node_info": {}, "environment": {"K8S_AUTH_KUBECONFIG": "/from/the/environment"}},
    {"name": "has inputs", "kubewin.csi.node_info": {}, "vars": {"_kubewin_kubeconfig": "{{ {'of': 'inputs'} }}", "kubewin_context": ""}},
]  # fmt: skip


@pytest.fixture(scope="module", params=lines())
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """All tasks once, each on both hosts."""
    folder = tmp_path_factory.mktemp("probe").resolve()
    for name, text in (("action_plugins", ACTION), ("library", MODULE)):
        (folder / name).mkdir()
        (folder / name / "probe.py").write_text(text, encoding="utf-8")
    play_of: dict[str, Any] = {
        "hosts": "all",
        "gather_facts": False,
        "ignore_errors": True,
        "vars": {"ansible_python_interpreter": "/none/python"},
        "module_defaults": {"group/kubewin.csi.cluster": {"kubeconfig": {"of": "defaults"}}},
        "tasks": TASKS,
    }
    # The last ones take their access from the environment, and from the inputs of the playbooks.
    apart = {**play_of, "module_defaults": {}, "tasks": TASKS[-2:]}
    play_of["tasks"] = TASKS[:-2]
    (folder / "probe.yml").write_text(json.dumps([play_of, apart]), encoding="utf-8")
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": HOSTS}}), encoding="utf-8")
    environment = {"KUBECONFIG": "/of/the/run", "TMPDIR": str(folder)}
    done = play(str(folder / "probe.yml"), folder / "hosts.yml", "--diff", "-vvv", core=request.param, env=environment)
    assert done.code == 0, done.screen
    return folder, done


def both(run: Run, task: str, event: str) -> list[dict[str, Any]]:
    found = run.results(task, event)
    assert sorted(found) == sorted(HOSTS), run.screen
    return [found[host] for host in HOSTS]


def test_a_module_gets_all_that_ansibles_own_wrapper_gives_it(run: tuple[Path, Run]) -> None:
    folder, done = run
    for result in both(done, "exits", "ok"):
        assert result["text"] == "the secret is " + "*" * 8
        assert (result["changed"], result["number"], result["listed"]) == (True, 3, ["a", "b"])
        assert (result["check"], result["diff_mode"], result["verbosity"]) == (False, True, 3)
        assert (result["cwd"], result["tmpdir"]) == (str(folder), str(folder))
        assert result["kubeconfig"] == "/from/the/task"
        assert "invocation" not in result
        assert "a warning" in json.dumps(result["warnings"])
        assert "a deprecation" in json.dumps(result["deprecations"])
    for result in both(done, "checks", "ok"):
        assert (result["check"], result["progress"], result["kubeconfig"]) == (True, None, "/of/the/run")
        assert result["text"] == "the secret is " + "*" * 8
    assert "hidden" not in done.screen
    assert "concealed" not in done.screen
    assert not [name for name in os.listdir(folder) if name.startswith(("ansible-moduletmp", "kubewin-progress"))]


def test_the_task_reports_each_end_of_a_module(run: tuple[Path, Run]) -> None:
    _folder, done = run
    expected = {
        "fails": f"refused {'*' * 8}",
        "crashes": "kubewin.csi.probe: the process of the module ended with code 1: ValueError: no such thing, expected a result.",
        "prints": "kubewin.csi.probe: the process of the module ended with code 0: no output, expected a result.",
        "dies": "kubewin.csi.probe: the process of the module was ended by SIGKILL, expected a result.",
        "lacks": "missing required arguments: does",
    }
    for task, message in expected.items():
        for result in both(done, task, "ignored"):
            assert result["msg"].startswith(message), result
    # As the message describes for -vvv.
    for result in both(done, "crashes", "ignored"):
        assert result["traceback"][-2:] == ['    raise ValueError("no such thing")', "ValueError: no such thing"]
    assert done.screen.count('"ValueError: no such thing"') == len(HOSTS)


def test_a_tasks_time_limit_ends_the_module_in_order(run: tuple[Path, Run]) -> None:
    """It detects that its progress file was deleted, as modules that clean up do."""
    folder, done = run
    for result in both(done, "waits", "ignored"):
        assert re.search(r"\b2\b", result["msg"]), result
    deadline = time.monotonic() + 60
    while not all((folder / host).exists() for host in HOSTS):
        assert time.monotonic() < deadline, "the module did not end"
        time.sleep(0.05)


def test_progress_of_a_module_is_shown(run: tuple[Path, Run]) -> None:
    assert len(re.findall(r"^  half way$", run[1].screen, re.MULTILINE)) == len(HOSTS)


def test_access_comes_from_module_defaults_the_environment_and_inputs(run: tuple[Path, Run]) -> None:
    """Each names a kubeconfig that cannot be used: the errors differ from those without any."""
    _folder, done = run
    for task in ("has its defaults", "asks whom", "has inputs"):
        for result in both(done, task, "ignored"):
            assert result["reason"] == "configuration", result
            assert "Invalid kube-config" in result["msg"], result
