# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ordinary life of csi-proxy on a node: install, converge, upgrade, repair, adopt, remove."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import csi_proxy as catalog
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model, plan, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from unit.plugins.plugin_utils.windows.simulated import NEW, OLD, Artifacts, Host, wanted

WRITES = (" add ", " create ", " config ", " delete ", " start ", " stop ", "md ", "ren ", "move ", "rd ", "del ", ">")
REQUESTS_OF_A_SHELL = 2
REQUESTS_OF_A_LINE = 3


def state_of(host: Host, desired: model.Desired) -> dict[str, object]:
    return prove.describe_state(desired, host.observe(desired))


def test_first_installation_by_pull(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    outcome = host.run(desired)
    assert outcome.changed
    assert [step.kind for step in outcome.steps] == [
        "remember_directory",
        "create_directory",
        "secure_directory",
        "create_log_directory",
        "fetch",
        "promote",
        "create_service",
        "describe",
        "set_recovery",
        "start",
        "record",
    ]
    assert REQUESTS_OF_A_SHELL + REQUESTS_OF_A_LINE * len(host.lines) <= 30
    state = state_of(host, desired)
    assert state["managed_by"] == "kubewin"
    assert state["serving"] is True
    assert state["drift"] == []
    assert state["executable"] == {"path": desired.executable, "sha256": desired.sha256, "release": NEW}
    service = state["service"]
    assert isinstance(service, dict)
    assert service["recovery"] == {
        "reset_seconds": 86400,
        "actions": [{"type": "restart", "delay_ms": delay_ms} for delay_ms in (10000, 30000, 60000)],
    }
    assert service["start_mode"] == "auto"
    assert state["pipes"] == list(catalog.PIPES)


def test_a_converged_run_is_one_line_and_writes_nothing(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.forget()
    outcome = host.run(desired)
    assert not outcome.changed
    assert outcome.steps == ()
    assert len(host.lines) == 1
    written = [
        step for step in host.steps() if any(word in step.replace("2>nul", "").replace(">nul", "") for word in WRITES)
    ]
    assert [step for step in written if not step.startswith("echo")] == []


def test_check_mode_plans_what_the_run_then_does(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    planned = host.run(desired, check=True)
    assert planned.changed
    assert len(host.lines) == 1
    assert host.observe(desired).service is None
    assert host.run(desired).steps == planned.steps


def test_push_streams_the_file_from_the_controller(host: Host, artifacts: Artifacts) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.run(wanted(artifact, source=str(artifact.path)))
    assert state_of(host, wanted(artifact))["serving"] is True


def test_upgrade_replaces_the_release_and_keeps_the_old_one_on_disk(host: Host, artifacts: Artifacts) -> None:
    old, new = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)
    before = host.observe(old)
    outcome = host.run(new)
    assert [step.kind for step in outcome.steps] == ["fetch", "promote", "commit", "stop", "start", "record"]
    after = host.observe(new)
    assert after.service is not None
    assert before.service is not None
    assert after.service.pid != before.service.pid
    assert after.service.record.release == NEW
    assert after.service.record.previous == ""
    assert set(after.install_dir_entries) == {old.release_dir_name, new.release_dir_name}
    assert not host.run(new).changed


def test_upgrade_waits_for_the_process_that_outlives_the_service(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(OLD, stop="linger:600000")))
    host.forget()
    host.run(wanted(artifacts.csi_proxy(NEW)))
    steps = host.steps()
    stopped = next(i for i, step in enumerate(steps) if " stop csi-proxy" in step)
    killed = next(i for i, step in enumerate(steps) if "taskkill" in step)
    started = next(i for i, step in enumerate(steps) if " start csi-proxy" in step)
    assert stopped < killed < started


def test_a_third_release_pushes_out_the_first(host: Host, artifacts: Artifacts) -> None:
    first, second, third = (wanted(artifacts.csi_proxy(version)) for version in (OLD, "1.2.1", NEW))
    for desired in (first, second, third):
        host.run(desired)
    assert set(host.observe(third).install_dir_entries) == {second.release_dir_name, third.release_dir_name}


def test_downgrade_needs_leave(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(NEW)))
    with pytest.raises(NodeError) as refused:
        host.run(wanted(artifacts.csi_proxy(OLD)))
    assert refused.value.reason == "downgrade"
    assert host.run(wanted(artifacts.csi_proxy(OLD), allow_downgrade=True)).changed
    assert host.observe(wanted(artifacts.csi_proxy(OLD))).service.record.release == OLD  # type: ignore[union-attr]  # it runs


def test_a_stopped_service_is_started_again(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.agent.run(r"C:\Windows\System32\sc.exe stop csi-proxy")
    assert state_of(host, desired)["serving"] is False
    outcome = host.run(desired)
    assert [step.kind for step in outcome.steps] == ["stop", "start", "record"]
    assert state_of(host, desired)["serving"] is True


def test_of_a_service_that_was_restarted_and_then_stopped_the_process_is_named(
    host: Host, artifacts: Artifacts
) -> None:
    """The process that outlives the stop has an unrecorded PID: nothing shows that it is the service's."""
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    first = host.observe(desired).processes[0].pid
    host.agent.run(rf"C:\Windows\System32\taskkill.exe /F /PID {first}")
    host.agent.control("clock", advance_ms=60000)
    assert not host.run(desired).changed
    assert host.observe(desired).processes[0].pid != first
    pid = host.observe(desired).processes[0].pid
    host.agent.run(r"C:\Windows\System32\sc.exe stop csi-proxy")
    host.agent.control("clock", advance_ms=5000)
    with pytest.raises(NodeError) as refused:
        host.run(desired)
    assert (refused.value.reason, f"taskkill /F /PID {pid}" in str(refused.value)) == ("pipes_taken", True)
    host.agent.run(rf"C:\Windows\System32\taskkill.exe /F /PID {pid}")
    assert host.run(desired).changed
    assert state_of(host, desired)["serving"] is True


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ("config csi-proxy start= delayed-auto", ["configure"]),
        ('failure csi-proxy reset= 9 actions= "restart/7"', ["set_recovery"]),
        ('failure csi-proxy reset= 0 actions= ""', ["set_recovery"]),
    ],
)
def test_each_setting_is_corrected_by_its_own_step(
    host: Host, artifacts: Artifacts, change: str, kinds: list[str]
) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.agent.run(rf"C:\Windows\System32\sc.exe {change}")
    assert [step.kind for step in host.run(desired).steps] == kinds
    assert not host.run(desired).changed


def test_another_flag_restarts_the_service(host: Host, artifacts: Artifacts) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.run(wanted(artifact))
    desired = wanted(artifact, require_privacy=False)
    assert [step.kind for step in host.run(desired).steps] == ["commit", "stop", "start", "record"]
    assert not host.run(desired).changed


def test_access_rights_are_set_again_when_a_user_widened_them(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.agent.run(r'C:\Windows\System32\icacls.exe C:\csi-proxy /grant:r "*S-1-5-32-545:(OI)(CI)F"')
    outcome = host.run(desired)
    assert [step.kind for step in outcome.steps] == ["secure_directory"]
    assert plan.compare_with_desired(desired, host.observe(desired)) == ()


def test_absent_removes_service_files_and_record(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(NEW)))
    gone = wanted(None, state="absent")
    outcome = host.run(gone)
    assert [step.kind for step in outcome.steps] == ["stop", "delete_service", "remove_files", "forget_directory"]
    snapshot = host.observe(gone)
    assert (snapshot.service, snapshot.pipes, snapshot.install_dir_exists, snapshot.owns_install_dir) == (
        None,
        (),
        False,
        False,
    )
    assert snapshot.processes == ()
    assert not host.run(gone).changed


def plant_elsewhere(host: Host, name: str = "csiproxy", description: str = "", command: str = "") -> None:
    path = r"C:\etc\kubernetes\node\bin\csi-proxy.exe"
    host.plant(
        files={path: {"exe": {"kind": "csi-proxy", "release": OLD}}, r"C:\etc\kubernetes\logs": {"dir": True}},
        services=[
            {
                "name": name,
                "command": command
                or rf"{path} -windows-service -log_file=C:\etc\kubernetes\logs\csi-proxy.log -logtostderr=false",
                "start": "auto",
                "description": description,
                "running": not command,
            }
        ],
    )


def plant_rancher(host: Host) -> None:
    """The service as rancher-wins creates it: https://github.com/rancher/wins/blob/v0.5.5/pkg/csiproxy/csi.go."""
    path = r"C:\Windows\system32\csi-proxy.exe"
    command = rf"{path} -windows-service -log_file=\etc\rancher\wins\csi-proxy.log -logtostderr=false"
    host.plant(
        files={path: {"exe": {"kind": "csi-proxy", "release": OLD}}, r"C:\etc\rancher\wins": {"dir": True}},
        services=[{"name": "csiproxy", "command": command, "start": "auto", "running": True}],
    )


TAKEN_OVER = pytest.mark.parametrize(
    ("plant", "manager"), [(plant_elsewhere, "foreign"), (plant_rancher, "rancher-wins")], ids=["foreign", "rancher"]
)


@TAKEN_OVER
def test_a_service_elsewhere_is_adopted_through_the_same_commit(
    host: Host, artifacts: Artifacts, plant: Callable[[Host], None], manager: str
) -> None:
    plant(host)
    desired = wanted(artifacts.csi_proxy(NEW), take_over="rancher-wins")
    before = host.observe(desired)
    assert plan.find_manager(before) == manager
    outcome = host.run(desired)
    assert "commit" in [step.kind for step in outcome.steps]
    after = host.observe(desired)
    assert after.service is not None
    assert after.service.name == "csiproxy"
    assert after.service.record.adopted_from == before.service.command_line  # type: ignore[union-attr]  # planted
    assert plan.find_manager(after) == "adopted"
    assert prove.describe_state(desired, after)["serving"] is True
    # From now on without a request.
    assert not host.run(replace(desired, take_over="")).changed


def test_a_service_of_this_collection_is_its_own_whatever_its_flags_name(host: Host, artifacts: Artifacts) -> None:
    desired = replace(wanted(artifacts.csi_proxy(NEW)), flags=(r"-kubelet-path=C:\var\lib\rancher\kubelet",))
    host.run(desired)
    assert plan.find_manager(host.observe(desired)) == "kubewin"


def test_rancher_wins_gets_its_service_back_after_a_removal(host: Host, artifacts: Artifacts) -> None:
    """Where the service is missing, rancher-wins creates it when it starts, and it is verified only."""
    plant_rancher(host)
    new = artifacts.csi_proxy(NEW)
    host.run(wanted(new, take_over="rancher-wins"))
    host.run(wanted(None, state="absent"))
    absent = host.observe(wanted(new))
    assert (absent.service, absent.pipes, absent.processes) == (None, (), ())
    plant_rancher(host)
    outcome = host.run(wanted(new))
    assert not outcome.changed
    assert plan.find_manager(outcome.snapshot) == "rancher-wins"


@TAKEN_OVER
def test_failed_adoption_returns_to_the_executable_elsewhere(
    host: Host, artifacts: Artifacts, plant: Callable[[Host], None], manager: str
) -> None:
    plant(host)
    desired = wanted(artifacts.csi_proxy(NEW, start="exit:2"), take_over="rancher-wins")
    before = host.observe(desired).service
    with pytest.raises(NodeError) as failed:
        host.run(desired)
    assert failed.value.result["rolled_back"] is True
    after = host.observe(desired)
    assert after.service is not None
    assert before is not None
    assert after.service.command_line == before.command_line
    assert after.service.state == model.RUNNING
    assert after.pipes
    assert plan.find_manager(after) == manager


@pytest.mark.parametrize("serving", [True, False])
def test_wicd_is_verified_and_left_alone(host: Host, artifacts: Artifacts, serving: bool) -> None:
    path = r"C:\k\csi-proxy.exe"
    host.plant(
        files={path: {"exe": {"kind": "csi-proxy", "release": OLD}}},
        services=[
            {
                "name": "csi-proxy",
                "command": rf"{path} -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=2",
                "description": "OpenShift managed csi-proxy",
                "running": serving,
            }
        ],
    )
    host.forget()
    desired = wanted(artifacts.csi_proxy(NEW))
    if serving:
        outcome = host.run(desired)
        assert not outcome.changed
        assert plan.find_manager(outcome.snapshot) == "wicd"
    else:
        with pytest.raises(NodeError) as refused:
            host.run(desired)
        assert refused.value.reason == "foreign_owner"
        assert refused.value.result["csi_proxy"]["managed_by"] == "wicd"  # type: ignore[index]  # a result's part
    assert not any(" config " in step or " start " in step for step in host.steps())


def test_nssm_is_recognised_by_what_it_runs(host: Host, artifacts: Artifacts) -> None:
    host.plant(
        files={
            r"C:\k\nssm.exe": {"exe": {"kind": "service"}},
            r"C:\k\csi-proxy.exe": {"exe": {"kind": "csi-proxy", "release": OLD}},
        },
        services=[{"name": "csi-proxy", "command": r"C:\k\nssm.exe", "running": True}],
        registry=[
            {
                "key": r"HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy\Parameters",
                "name": "Application",
                "type": "REG_EXPAND_SZ",
                "data": r"C:\k\csi-proxy.exe",
            }
        ],
        processes=[{"path": r"C:\k\csi-proxy.exe", "pipes": list(catalog.PIPES)}],
    )
    outcome = host.run(wanted(artifacts.csi_proxy(NEW)))
    assert not outcome.changed
    state = prove.describe_state(wanted(artifacts.csi_proxy(NEW)), outcome.snapshot)
    assert (state["managed_by"], state["serving"]) == ("nssm", True)


def test_a_host_process_pod_is_verified_and_left_alone(host: Host, artifacts: Artifacts) -> None:
    host.plant(processes=[{"image": "csi-proxy.exe", "pipes": list(catalog.PIPES)}])
    outcome = host.run(wanted(artifacts.csi_proxy(NEW)))
    assert not outcome.changed
    assert plan.find_manager(outcome.snapshot) == "host-process"
    with pytest.raises(NodeError) as refused:
        host.run(wanted(None, state="absent"))
    assert refused.value.reason == "foreign_owner"


def test_a_directory_of_another_owner_is_never_taken(host: Host, artifacts: Artifacts) -> None:
    host.plant(files={r"C:\csi-proxy\notes.txt": {"text": "mine"}})
    with pytest.raises(NodeError) as refused:
        host.run(wanted(artifacts.csi_proxy(NEW)))
    assert refused.value.reason == "directory_foreign"


def test_an_executable_that_vanished_is_put_back(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.agent.run(r"C:\Windows\System32\sc.exe stop csi-proxy")
    for process in host.observe(desired).processes:
        host.agent.run(rf"C:\Windows\System32\taskkill.exe /F /PID {process.pid}")
    host.plant(files={desired.executable: None})
    outcome = host.run(desired)
    assert {"fetch", "set_aside", "promote", "start"} <= {step.kind for step in outcome.steps}
    assert not host.run(desired).changed
    assert host.observe(desired).install_dir_entries == (desired.release_dir_name,)


def test_german_labels(german_host: Host, artifacts: Artifacts) -> None:
    german_host.run(wanted(artifacts.csi_proxy(OLD)))
    desired = wanted(artifacts.csi_proxy(NEW))
    german_host.run(desired)
    assert not german_host.run(desired).changed
    assert state_of(german_host, desired)["serving"] is True
    assert german_host.run(wanted(None, state="absent")).changed


def test_leftovers_of_a_hundred_runs_are_removed_on_as_many_lines_as_required(host: Host, artifacts: Artifacts) -> None:
    old = wanted(artifacts.csi_proxy(OLD))
    host.run(old)
    left = [f"stage-{number:032x}" for number in range(100)]
    host.plant(files={rf"{model.INSTALL_DIR}\{name}": {"dir": True} for name in left})
    new = wanted(artifacts.csi_proxy(NEW))
    assert host.run(new).changed
    assert not set(left) & set(host.observe(new).install_dir_entries)
    assert not host.run(new).changed
