# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that the actions accept are the ones that they document."""

from __future__ import annotations

import re
import threading
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.action import csi_proxy, csi_proxy_info
from ansible_collections.kubewin.csi.plugins.doc_fragments import attributes, windows
from ansible_collections.kubewin.csi.plugins.modules import csi_proxy as csi_proxy_stub
from ansible_collections.kubewin.csi.plugins.modules import csi_proxy_info as csi_proxy_info_stub
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.desired import CSI_PROXY, INFO, build_desired
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ChangeRefusedError, NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Clock

FRAGMENTS = {
    "kubewin.csi.attributes": attributes.ModuleDocFragment.DOCUMENTATION,
    "kubewin.csi.attributes.info": attributes.ModuleDocFragment.INFO,
    # Compared with kubernetes.core's options in tests/unit/plugins/modules/test_argument_specs.py.
    "kubernetes.core.k8s_auth_options": "{}",
    "kubewin.csi.cluster": "{}",
    "kubewin.csi.windows": windows.ModuleDocFragment.DOCUMENTATION,
}
COMPARED = ("type", "elements", "choices", "default", "required", "no_log", "aliases")


def documented(stub: Any) -> dict[str, Any]:
    documentation = yaml.safe_load(stub.DOCUMENTATION)
    options: dict[str, Any] = {}
    for fragment in documentation["extends_documentation_fragment"]:
        options.update(yaml.safe_load(FRAGMENTS[fragment]).get("options") or {})
    options.update(documentation.get("options") or {})
    return options


def reduced(options: dict[str, Any], nested: str) -> dict[str, Any]:
    """Name -> what matters of an option; ``nested`` is the key that holds sub-options."""
    result = {}
    for name, option in options.items():
        entry: dict[str, Any] = {key: option[key] for key in COMPARED if option.get(key) is not None}
        if not entry.get("required", True):
            del entry["required"]
        if nested in option:
            entry["suboptions"] = reduced(option[nested], nested)
        result[name] = entry
    return result


@pytest.mark.parametrize(
    ("spec", "stub"), [(CSI_PROXY, csi_proxy_stub), (INFO, csi_proxy_info_stub)], ids=["csi_proxy", "csi_proxy_info"]
)
def test_options_and_documentation_agree(spec: dict[str, Any], stub: Any) -> None:
    assert reduced(spec, "options") == reduced(documented(stub), "suboptions")


@pytest.mark.parametrize("stub", [csi_proxy_stub, csi_proxy_info_stub])
def test_everything_is_described(stub: Any) -> None:
    for name, option in documented(stub).items():
        assert option.get("description"), name


@pytest.mark.parametrize(
    ("task", "keyword"),
    [
        ({"become": True}, "become"),
        ({"environment": [{"HTTP_PROXY": "http://proxy"}]}, "environment"),
        ({"async_val": 60}, "async"),
    ],
)
@pytest.mark.parametrize("action", [csi_proxy, csi_proxy_info])
def test_keywords_without_effect_are_refused_by_name(action: Any, task: dict[str, Any], keyword: str) -> None:
    given = {"become": False, "environment": [], "async_val": 0, "action": "kubewin.csi.csi_proxy", "args": {}, **task}
    plugin = action.ActionModule(
        SimpleNamespace(**given), SimpleNamespace(become=None), SimpleNamespace(remote_addr="win-1"), None, None, None
    )
    result = plugin.run()
    assert result["failed"]
    assert result["reason"] == "keyword_unsupported"
    assert keyword in result["msg"]


def test_bad_options_are_reported_before_the_node_is_read() -> None:
    task = SimpleNamespace(become=False, environment=[], async_val=0, action="kubewin.csi.csi_proxy")
    for args, reason in (
        ({"nosuch": 1}, "bad_option"),
        ({"version": "1.3.0"}, "checksum_missing"),
        ({"version": "1.0.0", "checksum": "0" * 64}, "release_floor"),
    ):
        task.args = args
        make: Any = csi_proxy.ActionModule
        result = make(task, SimpleNamespace(become=None), SimpleNamespace(remote_addr="win-1"), None, None, None).run()
        assert (result["failed"], result["reason"]) == (True, reason)
        assert "csi_proxy" not in result


def test_a_relative_source_starts_where_the_run_was_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    exe = tmp_path / "dist" / "csi-proxy-1.3.0.exe"
    exe.parent.mkdir()
    exe.touch()
    monkeypatch.chdir(tmp_path)
    make: Any = csi_proxy.ActionModule
    values = {name: spec.get("default") for name, spec in CSI_PROXY.items()}
    options = {**values, "version": "1.3.0", "checksum": "0" * 64, "source": "./dist/csi-proxy-1.3.0.exe"}
    desired = make(None, None, None, None, None, None).prepare(options)
    assert desired.source.location == str(exe)


def taken(variables: dict[str, Any], **args: Any) -> dict[str, Any]:
    """The options that a task has by from_variables, without those that have no value."""
    task = SimpleNamespace(args={"from_variables": True, **args})
    templar = SimpleNamespace(
        template=lambda given: {name: "value of it" if value == "{{ it }}" else value for name, value in given.items()}
    )
    make: Any = csi_proxy.ActionModule
    found: dict[str, Any] = make(task, None, None, None, templar, None)._validate_options(
        {"omit": "omitted", **variables}
    )
    return {name: value for name, value in found.items() if value is not None and name != "from_variables"}


@pytest.mark.parametrize("blank", [None, "", [], "omitted"])
@pytest.mark.parametrize("name", sorted(CSI_PROXY.keys() - {"from_variables", "unchanged"}))
def test_a_blank_variable_of_the_role_is_not_given(name: str, blank: Any) -> None:
    assert taken({f"csi_proxy_{name}": blank}) == taken({})


def test_a_variable_of_the_role_is_an_option() -> None:
    given = {
        "csi_proxy_quiesce_timeout": 0,
        "csi_proxy_source_check_revocation": False,
        "csi_proxy_source": "{{ it }}",
    }
    wanted = {
        "quiesce_timeout": 0,
        "source_check_revocation": False,
        "source": "value of it",
    }
    assert taken(given) == taken({}) | wanted
    assert taken({"csi_proxy_quiesce_timeout": "4"})["quiesce_timeout"] == 4
    assert taken({"csi_proxy_state": "absent"}, state="present")["state"] == "present"


def test_the_role_has_a_variable_for_every_option_and_no_other() -> None:
    text = (Path(__file__).parents[4] / "roles" / "csi_proxy" / "meta" / "argument_specs.yml").read_text("utf-8")
    for entry in yaml.safe_load(text)["argument_specs"].values():
        names = {name.removeprefix("csi_proxy_") for name in entry["options"]}
        assert names == CSI_PROXY.keys() - {"from_variables", "unchanged"}


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        ([], ""),
        ([{"step": "prune", "description": "remove an old release"}], ""),
        (
            [{"step": "start", "description": "start it"}],
            "win-1: csi-proxy missing (start it), expected 1.3.0, which this run installed",
        ),
        (
            ChangeRefusedError("downgrade", "The node has 1.4.0.", "Correct it."),
            "win-1: csi-proxy missing (The node has 1.4.0. Correct it)",
        ),
        (NodeError("locked", "Another run is changing this node."), "Another run is changing this node"),
    ],
)
def test_a_csi_proxy_that_another_run_changed_is_found(plan: list[dict[str, str]] | NodeError, found: str) -> None:
    state = {"csi_proxy": {"executable": None}}

    class Reread(csi_proxy.ActionModule):
        def _converge(self, *_given: Any, **_options: Any) -> dict[str, Any]:
            if isinstance(plan, NodeError):
                plan.result.update(state)
                raise plan
            return {**state, "plan": plan}

    make: Any = Reread
    values = {name: spec.get("default") for name, spec in CSI_PROXY.items()} | {"unchanged": True}
    desired = build_desired({**values, "checksum": "0" * 64})
    templar = SimpleNamespace(available_variables={"inventory_hostname": "win-1"})
    action = make(SimpleNamespace(args={}), None, None, None, templar, None)
    if not found:
        assert action.work(None, desired, values)["plan"] == plan
        return
    with pytest.raises(NodeError) as raised:
        action.work(None, desired, values)
    assert str(raised.value).startswith(found)
    assert ("another run or user" in str(raised.value)) is (raised.value.reason == "changed_meanwhile")


def test_a_task_waits_for_the_lock_of_an_ended_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan and its change have one memory of the other run."""
    locks: list[Any] = []

    def converge(_node: Any, desired: model.Desired, *, lock: Any, **_given: Any) -> Any:
        locks.append(lock)
        raise ChangeRefusedError("downgrade", "", "")

    monkeypatch.setattr(prove, "converge", converge)
    make: Any = csi_proxy.ActionModule
    values = {name: spec.get("default") for name, spec in CSI_PROXY.items()}
    action = make(None, None, None, None, SimpleNamespace(available_variables={}), None)
    node: Any = SimpleNamespace(clock=Clock())
    for check in (True, False):
        with pytest.raises(ChangeRefusedError):
            action._converge(node, build_desired({**values, "checksum": "0" * 64}), values, check=check)
    assert len(locks) == 2
    assert locks[0] is locks[1]


def test_a_slow_host_is_reported_by_name_with_its_step() -> None:
    messages: list[str] = []
    reported = threading.Event()

    def display(line: str) -> None:
        messages.append(line)
        reported.set()

    class Slow(csi_proxy_info.ActionModule):
        seldom = staticmethod(lambda: repeat(0.01))

        def work(self, *_given: Any) -> dict[str, Any]:
            self.show_progress("stopping service csi-proxy")
            assert reported.wait(120)
            return {"changed": False}

    task = SimpleNamespace(
        become=False,
        environment=[],
        async_val=0,
        action="kubewin.csi.csi_proxy_info",
        args={},
        check_mode=False,
        diff=False,
    )
    make: Any = Slow
    connection = SimpleNamespace(
        transport="winrm", _connect=lambda: None, become=None, _shell=SimpleNamespace(tmpdir="x")
    )
    plugin = make(task, connection, SimpleNamespace(remote_addr="10.0.0.7", check_mode=False), None, None, None)
    plugin._display = SimpleNamespace(display=display, vv=lambda *_line, **_host: None)
    assert plugin.run(task_vars={"inventory_hostname": "win-1"})["changed"] is False
    assert re.fullmatch(r"  win-1: stopping service csi-proxy \(\d+ s so far\)", messages[0])
