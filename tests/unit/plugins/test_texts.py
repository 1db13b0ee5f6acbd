# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages that were once misleading name the cause and the first remedy."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan import DriverPlan, plan_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model, parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import plan as windows_plan
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.channel import open_channel
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import (
    ChangeRefusedError,
    ChannelError,
    build_access_error,
)
from situations.cluster import healthy
from unit.plugins.plugin_utils.drivers.worlds import VSPHERE, controller, snapshot
from unit.plugins.plugin_utils.windows.connections import Refusing
from unit.plugins.plugin_utils.windows.test_plan import CONVERGED, EMPTY, WANTED, with_service

ROOT = Path(__file__).parents[3]


def found(made: DriverPlan, finding: str) -> Any:
    return next((one for one in made.findings if one.id == finding), None)


def unread(*resources: str) -> Report:
    rules = tuple(Unread(one, "forbidden", f"apps {one}: list") for one in resources)
    return evaluate(replace(healthy().snapshot(), unread=rules))


def test_a_refused_logon_has_user_and_password_checked_first() -> None:
    remedy = "Check ansible_user and ansible_password first."
    error = AnsibleConnectionFailure("the specified credentials were rejected by the server")
    with pytest.raises(ChannelError) as caught:
        open_channel(Refusing(error))
    refused = caught.value
    assert remedy in str(refused)
    assert remedy not in str(build_access_error("The node denied reading the service 'csi-proxy'."))


def test_a_missing_source_is_called_as_the_inventory_calls_it() -> None:
    with pytest.raises(ChangeRefusedError) as refusal:
        windows_plan.plan(replace(WANTED, source=None), EMPTY)
    assert "csi_proxy_source (option source) is not set" in refusal.value.message
    assert refusal.value.remedy.startswith("Set csi_proxy_source to ")


def test_a_service_that_is_stopped_is_not_stopped_again() -> None:
    left = replace(with_service(CONVERGED, state=model.STOPPED, pid=0), processes=(parse.Process("csi-proxy.exe", 7),))
    planned = windows_plan.plan(replace(WANTED, state="absent"), left)
    (stop,) = [step.description for step in planned.steps if step.kind == "stop"]
    assert stop.startswith("end the remaining process of the stopped service ")
    running = windows_plan.plan(replace(WANTED, state="absent"), CONVERGED)
    assert any(step.description.startswith("stop the service ") for step in running.steps)


def test_a_controller_at_0_replicas_is_scaled_up() -> None:
    stopped = replace(controller(available=0), desired=0)
    finding = found(plan_driver(VSPHERE, DriverRequest(), snapshot(controllers=(stopped,))), "CSI-D31")
    assert finding.message == "it is scaled to 0 replicas"
    assert finding.remedy == "kubectl -n vmware-system-csi scale deployment vsphere-csi-controller --replicas=1"


def test_all_rules_that_an_account_lacks_are_one_command() -> None:
    findings = [one for one in unread("deployments", "statefulsets", "jobs").findings if one.id == "CSI-C01"]
    (remedy,) = {one.remedy for one in findings}
    path = re.fullmatch(
        r"kubectl apply -f (\S+) \(once, then bind its ClusterRole kubewin-preflight to this account\)", remedy
    )
    assert path is not None
    assert yaml.safe_load(Path(path.group(1)).read_text(encoding="utf-8"))["metadata"]["name"] == "kubewin-preflight"
    assert "missing rule: apps jobs: list" in [reported for one in findings for reported in one.evidence]


def test_a_task_that_checks_is_not_called_after_what_it_refuses() -> None:
    """It prints ok."""
    for path in [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")]:
        for name, task in _tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            if "ansible.builtin.assert" in task:
                assert not re.match(r"(Refuse|Insist)\b", name), f"{path.relative_to(ROOT)}: {name}"


def test_the_name_of_a_task_is_that_of_every_batch() -> None:
    """ansible-core 2.19 fills the name in for the first batch of a play, and shows that one for each further batch."""
    for path in [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/tasks/*.yml")]:
        names = [name for name, _task in _tasks(yaml.safe_load(path.read_text(encoding="utf-8")))]
        assert [name for name in names if "{{" in name] == [], path.relative_to(ROOT)


def _tasks(node: Any) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(node, list):
        return [task for one in node for task in _tasks(one)]
    if not isinstance(node, dict):
        return []
    inner = [task for key in ("tasks", "block", "rescue", "always") for task in _tasks(node.get(key))]
    return [(str(node.get("name", "")), node), *inner]


def test_no_sentence_counts_zero_nodes() -> None:
    assert " on 0 nodes" not in json.dumps(unread("deployments").as_dict())
