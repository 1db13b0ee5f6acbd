# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on a node: each has its own reason and text, and nothing is left half done."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import csi_proxy as catalog
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.control import Control, WaitLimits
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.lock import NodeLock, make_lock_owner
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Clock
from unit.plugins.plugin_utils.windows.simulated import (
    NEW,
    OLD,
    Artifacts,
    Host,
    HostClock,
    RenewingClock,
    commands_like,
    failed,
    nothing_half_done,
    still_serves,
    wanted,
)


@pytest.mark.parametrize("upgrade", [False, True], ids=["install", "upgrade"])
@pytest.mark.parametrize(
    ("behaviour", "fault", "reason", "words"),
    [
        ({"start": "exit:2"}, None, "start_failed", "1053"),
        ({"start": "not-a-service"}, None, "start_failed", "1053"),
        ({"start": "crash:2"}, None, "start_failed", "stopped"),
        ({"pipes": "none"}, None, "no_pipes", "csi-proxy-disk-v1"),
        ({}, {"block": r"\\1\.3\.0-", "code": 1260}, "blocked_by_policy", "1260"),
        ({}, {"block": r"\\1\.3\.0-", "code": 577}, "blocked_by_policy", "577"),
        ({}, {"block": r"\\1\.3\.0-", "code": 4551}, "blocked_by_policy", "App Control"),
        ({}, {"block": r"\\1\.3\.0-", "code": 4557}, "blocked_by_policy", "App Control"),
        ({}, {"block": r"\\1\.3\.0-", "code": 4582}, "blocked_by_policy", "App Control"),
        # The account may start services: sc.exe said 5 for the executable.
        ({}, {"block": r"\\1\.3\.0-", "code": 5}, "blocked_by_policy", "Defender"),
        ({}, {"match": r"sc\.exe start", "rc": 225}, "quarantined", "225"),
        ({}, {"match": r"sc\.exe start", "rc": 1069}, "start_failed", "1069"),
    ],
)
def test_an_executable_that_does_not_serve(
    host: Host,
    artifacts: Artifacts,
    behaviour: dict[str, str],
    fault: dict[str, object] | None,
    reason: str,
    words: str,
    upgrade: bool,
) -> None:
    old, desired = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW, **behaviour))
    if upgrade:
        host.run(old)
    if fault:
        host.fault(**fault)
    error = failed(host, desired)
    assert error.reason == reason
    assert words in str(error)
    assert error.result["rolled_back"] is True, error.result
    if upgrade:
        assert f"csi-proxy {OLD} is restored and serving" in str(error)
        host.clear_faults()
        still_serves(host, old)
        assert not host.run(old).changed
    else:
        assert "was removed" in str(error)
        nothing_half_done(host, desired)


def test_the_error_carries_the_last_lines_of_the_log(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(OLD)))
    error = failed(host, wanted(artifacts.csi_proxy(NEW, pipes="none")))
    tail = error.result["log_tail"]
    assert isinstance(tail, list)
    assert any("Version" in line for line in tail), tail


@pytest.mark.parametrize(
    ("match", "rc", "reason"),
    [
        (r"sc\.exe create", 5, "access_denied"),
        (r"reg\.exe add HKLM\\SOFTWARE", 1, "access_denied"),
        (r"icacls\.exe .*/reset", 5, "access_denied"),
        (r"sc\.exe failure", 5, "access_denied"),
    ],
)
def test_denied_while_installing(host: Host, artifacts: Artifacts, match: str, rc: int, reason: str) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(match=match, rc=rc)
    error = failed(host, desired)
    assert error.reason == reason, str(error)
    nothing_half_done(host, desired)
    assert host.run(desired).changed


def test_a_name_that_is_marked_for_deletion_for_a_moment_is_waited_for(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(match=r"sc\.exe create", rc=1072)
    assert host.run(desired).changed
    assert not host.run(desired).changed


def test_a_name_that_stays_marked_for_deletion_is_an_error_of_its_own(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(match=r"sc\.exe create", rc=1072, times=-1)
    error = failed(host, desired)
    assert error.reason == "marked_for_deletion", str(error)
    nothing_half_done(host, desired)


def test_reading_the_service_is_denied(host: Host, artifacts: Artifacts) -> None:
    host.fault(match=r"sc\.exe queryex", rc=5, times=-1)
    error = failed(host, wanted(artifacts.csi_proxy(NEW)))
    assert error.reason == "access_denied"
    assert "Administrators" in str(error)


class ClosingClock(HostClock):
    """While a run waits, the last handle of the service is closed."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._agent.control("plant", services=[{"name": "csi-proxy", "handles": 0}])


def test_marked_for_deletion_by_an_open_handle(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.plant(services=[{"name": "csi-proxy", "handles": 1}])
    error = failed(host, wanted(None, state="absent"))
    assert error.reason == "marked_for_deletion"
    assert "services.msc" in str(error)
    assert failed(host, desired).reason == "marked_for_deletion"
    # Its handle is closed while the next run reads.
    assert host.run(desired, clock=ClosingClock(host.agent)).changed


def test_running_dependents_are_named_and_not_stopped(host: Host, artifacts: Artifacts) -> None:
    old = wanted(artifacts.csi_proxy(OLD))
    host.run(old)
    host.plant(
        files={r"C:\k\user.exe": {"exe": {"kind": "service"}}},
        services=[{"name": "pipe-user", "command": r"C:\k\user.exe", "dependencies": ["csi-proxy"], "running": True}],
    )
    error = failed(host, wanted(artifacts.csi_proxy(NEW)))
    assert error.reason == "dependents_running"
    assert "pipe-user" in str(error)
    assert "1051" in str(error)
    still_serves(host, old)
    assert host.agent.control("state")["state"]["services"]["pipe-user"]["state"] == model.RUNNING


def test_the_service_manager_refuses_the_stop(host: Host, artifacts: Artifacts) -> None:
    old = wanted(artifacts.csi_proxy(OLD))
    host.run(old)
    host.fault(match=r"sc\.exe stop", rc=1051)
    assert failed(host, wanted(artifacts.csi_proxy(NEW))).reason == "dependents_running"
    still_serves(host, old)


def test_a_busy_service_is_retried(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(OLD)))
    host.fault(match=r"sc\.exe stop", rc=1061)
    assert host.run(wanted(artifacts.csi_proxy(NEW))).changed


def test_a_live_run_holds_the_lock(host: Host, artifacts: Artifacts) -> None:
    host.plant(
        files={
            rf"{model.LOCK_DIR}\owner": {
                "text": "id=0123456789ab at=1700000000 renewed=1700000000 process=tower/abc/77-5 .\r\n"
            }
        }
    )
    desired = wanted(artifacts.csi_proxy(NEW))
    with pytest.raises(NodeError) as caught:
        host.run(desired, is_alive=lambda owner: True, clock=RenewingClock(host, 10000))
    assert caught.value.reason == "locked"
    assert all(word in str(caught.value) for word in ("tower/abc/77-5", "0123456789ab"))
    assert host.observe(desired).lock is not None
    assert host.run(desired, is_alive=lambda owner: False).changed
    assert host.observe(desired).lock is None


@pytest.mark.parametrize("alive", [None, True])
def test_a_lock_that_is_not_renewed_is_pushed_aside(host: Host, artifacts: Artifacts, alive: bool | None) -> None:
    """Also if a process has its holder's number: it may be another program's."""
    owner = "id=0123456789ab at=1700000000 renewed=1700000000 process=tower/abc/77-5 .\r\n"
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": owner}})
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired, is_alive=lambda owner: alive)
    snapshot = host.observe(desired)
    assert (snapshot.lock, snapshot.lock_leftovers) == (None, ())


@pytest.mark.parametrize("alive", [None, True])
def test_a_lock_of_a_run_that_was_killed_is_followed_within_a_minute(
    host: Host, artifacts: Artifacts, alive: bool | None
) -> None:
    """On another controller, or in another container whose processes have the same numbers."""
    host.run(wanted(artifacts.csi_proxy(OLD)))
    owner = f"id=0123456789ab at={time.time():.0f} renewed={time.time():.0f} process=tower/abc/77-5 .\r\n"
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": owner}})
    clock = HostClock(host.agent)
    began = clock.monotonic()
    desired = wanted(artifacts.csi_proxy(NEW))
    lock = NodeLock(make_lock_owner(clock), clock, lambda owner: alive)
    assert host.run(desired, check=True, clock=clock, lock=lock).changed
    # The plan waits for a run that may be alive only, and what it waited counts.
    assert (clock.monotonic() - began < 10) is (alive is None)
    notes = host.notes
    assert host.run(desired, clock=clock, lock=lock).changed
    assert 45 < clock.monotonic() - began < 75
    assert any("waiting for lock 0123456789ab of tower/abc/77-5" in note for note in notes + host.notes)
    assert host.observe(desired).lock is None


def test_a_process_with_the_number_of_an_ended_holder_does_not_keep_its_lock() -> None:
    clock = Clock()
    owner = make_lock_owner(clock)
    lock = NodeLock(make_lock_owner(clock), clock)
    assert lock.is_alive(owner)
    assert not lock.is_stale(owner)
    # It has started at another time.
    assert lock.is_stale(replace(owner, process=f"{owner.process}0"))


@pytest.mark.parametrize("behind", [0, 1000])
@pytest.mark.parametrize("renewing", [100, 10000])
def test_a_lock_that_is_renewed_is_not_taken_over(host: Host, artifacts: Artifacts, renewing: int, behind: int) -> None:
    """Also where the clock of its controller is behind."""
    host.run(wanted(artifacts.csi_proxy(OLD)))
    began_there = time.time() - behind
    owner = f"id=0123456789ab at={began_there:.0f} renewed={began_there:.0f} process=tower/abc/77-5 .\r\n"
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": owner}})
    clock = RenewingClock(host, renewing)
    began = clock.monotonic()
    desired = wanted(artifacts.csi_proxy(NEW))
    if renewing < 1000:
        assert host.run(desired, is_alive=lambda owner: None, clock=clock).changed
        assert clock.monotonic() - began > renewing + 40
        return
    with pytest.raises(NodeError) as caught:
        host.run(desired, is_alive=lambda owner: None, clock=clock)
    assert caught.value.reason == "locked"
    assert "still held; waited 18" in str(caught.value)


def test_a_line_that_waits_on_the_node_renews_the_lock(host: Host, artifacts: Artifacts) -> None:
    """Also when its controller is killed: until the line has ended, no other run follows."""
    host.run(wanted(artifacts.csi_proxy(OLD, stop="linger:2500")))
    host.forget()
    assert host.run(wanted(artifacts.csi_proxy(NEW))).changed
    assert host.steps().count("echo .") > 1


def test_a_second_csi_proxy_serves_the_pipes(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.agent.run(r"C:\Windows\System32\sc.exe stop csi-proxy")
    for process in host.observe(desired).processes:
        host.agent.run(rf"C:\Windows\System32\taskkill.exe /F /PID {process.pid}")
    host.plant(processes=[{"image": "csi-proxy.exe", "pipes": list(catalog.PIPES)}])
    error = failed(host, desired)
    assert error.reason == "pipes_taken"
    assert "HostProcess" in str(error)


def test_a_killed_command_interpreter_is_reported(host: Host, artifacts: Artifacts) -> None:
    from lab.windows.channel import Cut

    with pytest.raises(NodeError) as caught:
        host.run(wanted(artifacts.csi_proxy(NEW)), cut=Cut("killed", 0, after_steps=5))
    assert caught.value.reason == "interrupted"


def test_a_lost_connection_is_reported(host: Host, artifacts: Artifacts) -> None:
    from lab.windows.channel import Cut

    with pytest.raises(NodeError) as caught:
        host.run(wanted(artifacts.csi_proxy(NEW)), cut=Cut("request_lost", 2))
    assert caught.value.reason == "connection_lost"


def test_a_line_whose_reply_was_lost_does_not_commit_after_the_rollback(host: Host, artifacts: Artifacts) -> None:
    """The run gets no answer and rolls back; what it sent still runs, and must not commit later."""
    from lab.windows.channel import Cut
    from lab.windows.cuts import conversation

    old, new = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)
    host.agent.control("snapshot")
    host.forget()
    host.run(new)
    commit = next(at for at, sent in enumerate(conversation(host.agent)) if "sc.exe config" in sent.line)
    host.agent.control("restore")
    # Its way to the commit ends while the run is still busy going back, and so still holds the lock.
    host.fault(match="reg.exe add .*PreviousPid", delay_ms=200)
    host.fault(match="reg.exe delete .*Previous ", delay_ms=800)
    with pytest.raises(NodeError) as caught:
        host.run(new, cut=Cut("reply_lost", commit, for_good=False))
    assert caught.value.result["rolled_back"] is True
    host.quiet()
    still_serves(host, old)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_during_the_swap_undoes_it(
    host: Host, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    """What Ansible's task timeout and Ctrl-C raise is no Exception; the old release must serve again all the same."""
    old = wanted(artifacts.csi_proxy(OLD))
    host.run(old)

    def interrupted(*args: object, **kwargs: object) -> int:
        monkeypatch.undo()
        raise interrupt

    monkeypatch.setattr(Control, "wait_serving", interrupted)
    with pytest.raises(interrupt):
        host.run(wanted(artifacts.csi_proxy(NEW)))
    still_serves(host, old)


def stopped_for_good(host: Host, desired: model.Desired) -> None:
    host.run(desired)
    host.agent.run(r"C:\Windows\System32\sc.exe stop csi-proxy")
    for process in host.observe(desired).processes:
        host.agent.run(rf"C:\Windows\System32\taskkill.exe /F /PID {process.pid}")


@pytest.mark.parametrize("missing", ["file", "folder", "nothing"])
def test_a_pod_that_took_over_is_never_killed_and_no_file_is_made(
    host: Host, artifacts: Artifacts, missing: str
) -> None:
    """The stopped service's executable may be gone: then nothing shows that the process is the service's."""
    desired = wanted(artifacts.csi_proxy(NEW))
    stopped_for_good(host, desired)
    if missing != "nothing":
        host.plant(files={desired.executable if missing == "file" else desired.executable.rpartition("\\")[0]: None})
    host.plant(processes=[{"image": "csi-proxy.exe", "pipes": list(catalog.PIPES)}])
    before = host.agent.control("state")["state"]["files"].keys()
    host.forget()
    assert failed(host, desired).reason == "pipes_taken"
    assert host.agent.control("state")["state"]["files"].keys() == before
    assert not any("taskkill" in step for step in host.steps())


def test_a_bookkeeping_failure_does_not_roll_back_a_proven_release(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(OLD)))
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(match=r"reg\.exe add .* /v Release", rc=1)
    error = failed(host, desired)
    assert "rolled_back" not in error.result
    snapshot = host.observe(desired)
    assert snapshot.service is not None
    assert snapshot.service.command_line == desired.command_line
    assert snapshot.service.state == model.RUNNING
    assert [step.kind for step in host.run(desired).steps] == ["record"]


def test_a_directory_in_use_is_not_forgotten(host: Host, artifacts: Artifacts) -> None:
    host.run(wanted(artifacts.csi_proxy(NEW)))
    gone = wanted(None, state="absent")
    host.fault(match=r"^rd .*csi-proxy", rc=32, times=1)
    error = failed(host, gone)
    assert error.reason == "file_in_use"
    assert host.observe(gone).owns_install_dir
    assert [step.kind for step in host.run(gone).steps] == ["remove_files", "forget_directory"]
    assert not host.observe(gone).install_dir_exists


@pytest.mark.parametrize("owner", ["", "garbage\r\n", "id=../x at=1 .\r\n"])
def test_a_lock_without_a_readable_holder_blocks_no_run(host: Host, artifacts: Artifacts, owner: str) -> None:
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": owner}})
    desired = wanted(artifacts.csi_proxy(NEW))
    assert host.run(desired, is_alive=lambda found: None).changed
    snapshot = host.observe(desired)
    assert (snapshot.lock, snapshot.lock_leftovers) == (None, ())


def test_a_converged_node_is_converged_while_another_run_holds_the_lock(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    owner = "id=0123456789ab at=1700000000 renewed=1700000000 process=tower/abc/77-5 .\r\n"
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": owner}})
    assert not host.run(desired, is_alive=lambda found: True).changed
    assert host.observe(desired).lock is not None


def test_a_fresh_lock_is_not_pushed_aside_in_place_of_a_stale_one(host: Host) -> None:
    """Between reading a stale lock and its removal another run may have taken over."""
    fresh = "id=ffffffffffff at=1700000000 renewed=1700000000 process=tower/abc/78-5 .\r\n"
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": fresh}})
    node = host.node()
    stale = model.LockOwner("0123456789ab", 0.0, "tower/abc/77-5")
    lock = NodeLock(model.LockOwner("aaaaaaaaaaaa", 0.0, "here/def/79-5"), node.clock)
    failure = node.chain(lock.acquire_steps(stale))[1]
    assert failure is not None
    assert failure.label == "lock still"
    assert b"ffffffffffff" in host.agent.run(rf"type {model.LOCK_DIR}\owner").stdout


def test_a_run_whose_lock_was_taken_stops_before_its_next_step(host: Host, artifacts: Artifacts) -> None:
    old = wanted(artifacts.csi_proxy(OLD))
    host.run(old)
    other = "id=ffffffffffff at=1700000000 renewed=1700000000 process=tower/abc/78-5 .\r\n"
    node = host.node()
    control = Control(node, NodeLock(make_lock_owner(node.clock), node.clock), WaitLimits(), host.notes.append)
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": other}})
    host.forget()
    with pytest.raises(NodeError) as caught:
        control.stop("csi-proxy", "csi-proxy.exe", set(), is_stopped=False)
    assert caught.value.reason == "lock_lost"
    assert not any("sc.exe stop" in step for step in host.steps())


@pytest.mark.parametrize("upgrade", [False, True], ids=["install", "upgrade"])
def test_a_first_start_that_times_out_is_retried_once(host: Host, artifacts: Artifacts, upgrade: bool) -> None:
    """A scan of a large unsigned program may take longer than the service control manager waits (1053)."""
    if upgrade:
        host.run(wanted(artifacts.csi_proxy(OLD)))
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(match=r"sc\.exe start", rc=1053)
    host.forget()
    assert host.run(desired).changed
    assert commands_like(host, r"sc\.exe start") == 2
    assert any("1053" in note for note in host.notes)
    assert not host.run(desired).changed


def test_a_start_that_stays_too_slow_names_the_scan(host: Host, artifacts: Artifacts) -> None:
    old = wanted(artifacts.csi_proxy(OLD))
    host.run(old)
    host.fault(block=r"\\1\.3\.0-", code=1053)
    error = failed(host, wanted(artifacts.csi_proxy(NEW)))
    assert error.reason == "start_failed"
    assert "antivirus scan" in str(error)
    still_serves(host, old)


@pytest.mark.parametrize("kind", ["reply_lost", "hung_up"])
def test_a_controller_that_is_killed_in_the_swap_leaves_a_service_that_runs(
    host: Host, artifacts: Artifacts, kind: str
) -> None:
    """WinRS continues a line whose client has disconnected; under ssh its output leads nowhere from then on."""
    from lab.windows.channel import Cut
    from lab.windows.cuts import conversation

    old, new = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)
    host.agent.control("snapshot")
    host.forget()
    host.run(new)
    sent = conversation(host.agent)
    swap = next(at for at, line in enumerate(sent) if "sc.exe stop" in line.line)
    cuts = (
        [Cut("reply_lost", at) for at in range(len(sent))]
        if kind == "reply_lost"
        else [Cut("hung_up", swap, after) for after in range(1, sent[swap].steps + 1)]
    )
    ends = set()
    for cut in cuts:
        host.agent.control("restore")
        host.forget()
        with pytest.raises(NodeError):
            host.run(new, cut=cut)
        host.quiet()
        host.agent.control("clock", advance_ms=5000)
        found = host.observe(new)
        assert found.service is not None
        assert found.service.state == model.RUNNING, cut
        assert found.service.pid in {process.pid for process in found.processes}, cut
        assert found.pipes, cut
        ends.add(found.service.command_line)
    assert ends == {old.command_line, new.command_line}


def test_the_process_of_a_restart_that_was_cut_off_is_known_to_the_next_run(host: Host, artifacts: Artifacts) -> None:
    """Also where Windows restarted the service since its process was recorded."""
    from lab.windows.channel import Cut
    from lab.windows.cuts import conversation

    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.agent.run(rf"C:\Windows\System32\taskkill.exe /F /PID {host.observe(desired).processes[0].pid}")
    host.agent.control("clock", advance_ms=60000)
    host.agent.control("snapshot")
    unseen = {"match": r"^dir /b \S*csi-proxy-", "rc": 1}  # so the run restarts a service that it finds without pipes
    host.fault(**unseen)
    host.forget()
    assert host.run(desired).changed
    sent = conversation(host.agent)
    swap = next(at for at, line in enumerate(sent) if "sc.exe start" in line.line)
    for after in range(1, sent[swap].steps + 1, 2):
        host.agent.control("restore")
        host.fault(**unseen)
        with contextlib.suppress(NodeError):
            host.run(desired, cut=Cut("killed", swap, after))
        host.clear_faults()
        host.agent.control("clock", advance_ms=5000)
        host.run(desired)
        still_serves(host, desired)


def test_check_mode_refuses_what_the_run_would_stop_at(host: Host, artifacts: Artifacts) -> None:
    """The playbooks ask before they touch the node."""
    old, new = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)
    owner = "id=0123456789ab at=1700000000 renewed=1700000000 process=tower/abc/77-5 .\r\n"
    host.plant(files={rf"{model.LOCK_DIR}\owner": {"text": owner}})
    with pytest.raises(NodeError) as caught:
        host.run(new, check=True, is_alive=lambda found: True, clock=RenewingClock(host, 10000))
    assert caught.value.reason == "locked"
    host.plant(
        files={model.LOCK_DIR: None, r"C:\k\user.exe": {"exe": {"kind": "service"}}},
        services=[{"name": "pipe-user", "command": r"C:\k\user.exe", "dependencies": ["csi-proxy"], "running": True}],
    )
    for desired in (new, wanted(artifacts.csi_proxy(NEW), state="staged"), wanted(None, state="absent")):
        with pytest.raises(NodeError) as caught:
            host.run(desired, check=True)
        assert caught.value.reason == "dependents_running"
