# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook gives the action every option, and the defaults that it documents are the action's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.action.upgrade import ActionModule
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, as_list
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import run as data_run
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.baselines import Baselines
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import Manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import ChangeObject
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal, UpgradeTarget
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.run import Upgrade
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of

PLAYBOOKS = Path(__file__).parents[4] / "playbooks"
PREFIX = "kubewin_upgrade_"
SPEC = ActionModule.argument_spec
DOCUMENTED = [name for name, rule in INPUTS.items() if name.removeprefix(PREFIX) in SPEC and rule.default is not None]
OF_LATER_STEPS = {"plan", "batch", "results", "failures"}
# What the action reads of the hosts of the playbook's run.
OF_THE_RUN = {"name", "hosts"}


def steps(content: Any) -> Iterator[dict[str, str]]:
    """The options of each task that calls the action, however deep it is nested."""
    for entry in content if isinstance(content, list) else []:
        if "kubewin.csi.upgrade" in entry:
            yield entry["kubewin.csi.upgrade"]
        for name in ("tasks", "block", "rescue", "always"):
            yield from steps(entry.get(name))


def test_the_first_step_has_every_option_and_the_others_only_their_own() -> None:
    files = [PLAYBOOKS / "upgrade.yml", *sorted((PLAYBOOKS / "tasks").glob("upgrade_*.yml"))]
    found = {step["step"]: step for file in files for step in steps(yaml.safe_load(file.read_text("utf-8")))}
    assert found["prepare"].keys() == SPEC.keys() - OF_LATER_STEPS - OF_THE_RUN
    assert [step.keys() for name, step in found.items() if name != "prepare"] == [{"step", "plan"}] * 4


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_playbook_documents_the_actions_default(name: str) -> None:
    option, default = SPEC[name.removeprefix(PREFIX)], INPUTS[name].default
    assert option["default"] == (as_list(default) if option["type"] == "list" else default)


@pytest.mark.parametrize("lost", [True, False], ids=["first try without an answer", "refused at once"])
def test_the_lease_stays_while_a_write_of_a_failed_step_may_arrive(lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore()
    store._put("/api/v1/nodes/win-1", {"metadata": {"name": "win-1"}, "spec": {}})
    request, answers = store.request, [TimeoutError(), ApiError(403)] if lost else [ApiError(403)]

    def refuse_nodes(method: str, path: str, **params: Any) -> Response:
        if (method, path) == ("PATCH", "/api/v1/nodes/win-1"):
            raise answers.pop(0) if len(answers) > 1 else answers[0]
        return request(method, path, **params)

    monkeypatch.setattr(store, "request", refuse_nodes)
    options = {**{name: rule.get("default") for name, rule in SPEC.items()}, "name": "nine", "namespace": "kubewin"}
    make: Any = ActionModule
    action = make(None, None, None, None, None, None)
    action._options = {**options, "kubeconfig": "", "context": "", "host": ""}
    holder = identify_process(os.getpid())
    upgrade = Upgrade(client_of(store), options, holder, action)
    with pytest.raises(ClusterError), action._hold_lease(holder, upgrade):
        upgrade.executor.execute(ChangeObject("cordon", "win-1", Journal("nine", "tasks", UpgradeTarget(), "", ())))
    assert any("/leases/" in path for path in store.things) == lost


def test_an_account_that_may_not_read_the_data_removes_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(ObjectStore())
    baseline = Manifest("shop", "db", "pv-db", "listing", "2026-01-01T00:00:00Z", ())
    Baselines(client, "kubewin", "nine").write("shop/db", baseline, ())

    def refuse(*_given: Any) -> None:
        raise ClusterError("the role kubewin-csi-data is missing", "forbidden")

    def take_defaults(_action: Any, _module: str, spec: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        return {**{name: rule.get("default") for name, rule in spec.items()}, **given}

    monkeypatch.setattr(data_run, "require_roles", refuse)
    monkeypatch.setattr(ActionModule, "connect", lambda *_given: client)
    monkeypatch.setattr(ActionModule, "read_options", take_defaults)
    make: Any = ActionModule
    action = make(None, None, None, None, None, None)
    action._options = {"verify": {}, "append_only": [], "name": "nine", "namespace": "kubewin"}
    with pytest.raises(ClusterError):
        action.read_data(["shop/db"], compare=False)
    assert Baselines(client, "kubewin", "nine").read("shop/db") == baseline
