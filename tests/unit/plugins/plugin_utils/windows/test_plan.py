# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planner, as a table: what is found, what is wanted, and the steps between. No node is involved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import csi_proxy as catalog
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import access, model, parse, plan, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import ChangeRefusedError

PIPES = catalog.PIPES
WANTED = model.Desired(
    state="present",
    version="1.3.0",
    sha256="b" * 64,
    source=model.ExecutableSource("https://mirror.example.com/csi-proxy.exe"),
    flags=(r"-log_file=C:\var\log\csi-proxy\csi-proxy.log", "-logtostderr=false"),
    log_file=r"C:\var\log\csi-proxy\csi-proxy.log",
    required_pipes=PIPES,
)
OLDER = replace(WANTED, version="1.1.3", sha256="a" * 64)
DRIVE = "C:\\"
# What Get-Acl shows of C:\ on Windows Server in public audit scripts.
SERVER_DRIVE = (
    "D:PAI(A;OICIIO;GA;;;CO)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICI;0x1200a9;;;BU)"
)


def with_access(
    install_dir: str = "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", drive: str = SERVER_DRIVE
) -> tuple[tuple[str, access.AccessList | None], ...]:
    return ((DRIVE, access.parse_access_list(drive)), (model.INSTALL_DIR, access.parse_access_list(install_dir)))


EMPTY = model.HostSnapshot(
    observed_at=0.0,
    host=model.HostIdentity("win-1", boot_time="2026-01-01T00:00:00Z"),
    service=None,
    dependents=(),
    running_dependents=(),
    other_services=(),
    rancher=False,
    processes=(),
    pipes=(),
    executable_sha256=None,
    staged_sha256=None,
    owns_install_dir=False,
    install_dir_exists=False,
    install_dir_entries=(),
    access=((DRIVE, access.parse_access_list(SERVER_DRIVE)), (model.INSTALL_DIR, None)),
    lock=None,
    log_dir_exists=False,
)


def service(desired: model.Desired, **changes: Any) -> model.Service:
    return replace(
        model.Service(
            name="csi-proxy",
            state=model.RUNNING,
            pid=100,
            start=2,
            delayed=False,
            command_line=desired.command_line,
            description=model.DESCRIPTION,
            recovery=model.RECOVERY,
            delete_pending=False,
            record=model.Record(desired.version, desired.sha256, 100),
        ),
        **changes,
    )


def installed(desired: model.Desired, staged: model.Desired = WANTED, **changes: Any) -> model.HostSnapshot:
    """A node on which ``desired`` runs, seen by a run that wants ``staged``."""
    here = (desired.release_dir_name,)
    return replace(
        EMPTY,
        service=service(desired),
        processes=(parse.Process("csi-proxy.exe", 100),),
        pipes=PIPES,
        executable_sha256=desired.sha256,
        staged_sha256=desired.sha256 if desired == staged else None,
        owns_install_dir=True,
        install_dir_exists=True,
        install_dir_entries=here,
        access=with_access(),
        log_dir_exists=True,
        **changes,
    )


def steps_of(desired: model.Desired, snapshot: model.HostSnapshot) -> tuple[plan.PlanStep, ...]:
    return plan.plan(desired, snapshot).steps


def kinds(desired: model.Desired, snapshot: model.HostSnapshot) -> list[str]:
    return [step.kind for step in steps_of(desired, snapshot)]


def with_service(snapshot: model.HostSnapshot, **changes: Any) -> model.HostSnapshot:
    assert snapshot.service is not None
    return replace(snapshot, service=replace(snapshot.service, **changes))


def with_record(snapshot: model.HostSnapshot, **changes: Any) -> model.HostSnapshot:
    assert snapshot.service is not None
    return with_service(snapshot, record=replace(snapshot.service.record, **changes))


CONVERGED = installed(WANTED)
COMMITTED = with_record(
    replace(CONVERGED, executable_sha256=WANTED.sha256),
    release="1.1.3",
    sha256=OLDER.sha256,
    previous=OLDER.command_line,
    previous_pid=100,
)


@pytest.mark.parametrize(
    ("found", "steps"),
    [
        pytest.param(CONVERGED, [], id="converged"),
        pytest.param(
            EMPTY,
            [
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
            ],
            id="empty node",
        ),
        pytest.param(installed(OLDER), ["fetch", "promote", "commit", "stop", "start", "record"], id="upgrade"),
        pytest.param(
            replace(
                installed(OLDER),
                staged_sha256=WANTED.sha256,
                install_dir_entries=(OLDER.release_dir_name, WANTED.release_dir_name),
            ),
            ["commit", "stop", "start", "record"],
            id="upgrade, interrupted after the release was staged",
        ),
        pytest.param(COMMITTED, ["stop", "start", "record"], id="committed, the old process still runs"),
        pytest.param(
            with_service(COMMITTED, state=model.STOPPED, pid=0),
            ["stop", "start", "record"],
            id="committed and stopped, the old process lingers",
        ),
        pytest.param(
            replace(with_service(COMMITTED, state=model.STOPPED, pid=0), processes=(), pipes=()),
            ["start", "record"],
            id="committed, stopped and gone",
        ),
        pytest.param(with_service(COMMITTED, pid=200), ["record"], id="committed and started, never recorded"),
        pytest.param(
            with_record(CONVERGED, release="1.1.3", sha256=OLDER.sha256, proven_pid=100),
            ["stop", "start", "record"],
            id="configured, but the process was proven as another release",
        ),
        pytest.param(with_service(CONVERGED, start=3), ["configure"], id="start mode"),
        pytest.param(with_service(CONVERGED, description="x"), ["describe"], id="description"),
        pytest.param(with_record(CONVERGED, sha256=""), ["record"], id="record"),
        pytest.param(replace(CONVERGED, pipes=PIPES[1:]), ["stop", "start", "record"], id="a pipe is missing"),
        pytest.param(with_service(CONVERGED, state=model.START_PENDING), ["start", "record"], id="starting"),
        pytest.param(with_service(CONVERGED, state=model.STOP_PENDING), ["stop", "start", "record"], id="stopping"),
        pytest.param(
            replace(CONVERGED, access=with_access("D:PAI(A;OICI;FA;;;WD)(A;OICI;FA;;;BA)")),
            ["secure_directory"],
            id="access",
        ),
        pytest.param(
            replace(CONVERGED, install_dir_entries=(WANTED.release_dir_name, "1.1.3-x", "1.2.1-y", "stage-z", "mine")),
            [],
            id="old releases and leftovers are no change by themselves",
        ),
        pytest.param(
            with_service(
                replace(
                    CONVERGED,
                    install_dir_entries=(
                        *(WANTED.release_dir_name, "1.1.3-x", "1.2.1-y", "stage-z"),
                        *("mine", "1.1.3", "1.1.3.old copy", "1.1.3+a&b-x"),
                    ),
                ),
                start=3,
            ),
            ["configure", "prune", "prune", "prune"],
            id="old releases and leftovers go along, not what is not ours",
        ),
        pytest.param(
            replace(CONVERGED, lock=model.LockOwner("x", 0)),
            ["clear_lock"],
            id="a lock and nothing to do",
        ),
        pytest.param(
            replace(with_service(CONVERGED, state=model.STOPPED, pid=0), staged_sha256=None, processes=(), pipes=()),
            ["fetch", "set_aside", "promote", "start", "record"],
            id="the executable vanished",
        ),
        pytest.param(
            replace(CONVERGED, staged_sha256="c" * 64, executable_sha256="c" * 64),
            ["fetch", "set_aside", "promote", "stop", "start", "record"],
            id="another executable runs under the release's path",
        ),
    ],
)
def test_steps(found: model.HostSnapshot, steps: list[str]) -> None:
    assert kinds(WANTED, found) == steps


@pytest.mark.parametrize(
    ("changes", "found", "reason"),
    [
        ({}, with_service(CONVERGED, delete_pending=True), "marked_for_deletion"),
        ({}, with_service(CONVERGED, command_line=r"%SystemDrive%\x\csi-proxy.exe"), "foreign_owner"),
        ({}, with_service(replace(CONVERGED, pipes=()), description="OpenShift managed csi-proxy"), "foreign_owner"),
        (
            {},
            replace(
                with_service(CONVERGED, state=model.STOPPED, pid=0), processes=(parse.Process("csi-proxy.exe", 7),)
            ),
            "pipes_taken",
        ),
        (
            {},
            replace(EMPTY, other_services=(("csiproxy", r"C:\x\csi-proxy.exe"),)),
            "second_service",
        ),
        ({}, replace(EMPTY, install_dir_exists=True), "directory_foreign"),
        ({"version": "1.1.3", "sha256": "a" * 64}, CONVERGED, "downgrade"),
        ({"source": None}, EMPTY, "source_missing"),
        ({"state": "absent"}, with_service(CONVERGED, command_line=r"C:\x\csi-proxy.exe"), "foreign_owner"),
        ({"state": "absent"}, replace(EMPTY, pipes=PIPES), "foreign_owner"),
    ],
)
def test_refusals(changes: dict[str, Any], found: model.HostSnapshot, reason: str) -> None:
    with pytest.raises(ChangeRefusedError) as refused:
        plan.plan(replace(WANTED, **changes), found)
    assert refused.value.reason == reason
    assert refused.value.message
    assert refused.value.remedy


def test_without_a_source_a_node_that_has_the_release_is_as_wanted() -> None:
    assert kinds(replace(WANTED, source=None), CONVERGED) == []


@pytest.mark.parametrize(
    ("changes", "owner"),
    [
        ({}, "kubewin"),
        ({"record": model.Record(adopted_from="x")}, "adopted"),
        ({"description": "OpenShift managed csi-proxy", "command_line": r"C:\k\csi-proxy.exe"}, "wicd"),
        ({"command_line": r"C:\k\nssm.exe", "application": r"C:\k\csi-proxy.exe"}, "nssm"),
        (
            {"command_line": r"C:\x\csi-proxy.exe -windows-service -log_file=\etc\rancher\wins\csi-proxy.log"},
            "rancher-wins",
        ),
        ({"command_line": r"C:\csi-proxy-of-others\csi-proxy.exe"}, "foreign"),
    ],
)
def test_owners(changes: dict[str, Any], owner: str) -> None:
    assert plan.find_manager(with_service(CONVERGED, **changes)) == owner


WINS = (
    r"C:\Windows\system32\csi-proxy.exe -windows-service -log_file=\etc\rancher\wins\csi-proxy.log -logtostderr=false"
)


def test_the_service_of_rancher_wins_is_taken_over_on_request_alone() -> None:
    found = with_service(CONVERGED, name="csiproxy", command_line=WINS, record=model.Record())
    assert kinds(WANTED, found) == []
    taken = replace(WANTED, take_over="rancher-wins")
    assert {"commit", "stop", "start", "record"} <= set(kinds(taken, found))
    assert [drift.item for drift in plan.compare_with_desired(WANTED, found)] == []
    # It is asked for another manager's, or removed.
    assert kinds(taken, with_service(found, description="OpenShift managed csi-proxy")) == []
    with pytest.raises(ChangeRefusedError) as refused:
        plan.plan(replace(taken, state="absent", take_over=""), found)
    assert refused.value.reason == "foreign_owner"
    with pytest.raises(ChangeRefusedError) as stopped:
        plan.plan(WANTED, replace(found, pipes=()))
    assert "or set take_over (csi_proxy_take_over) to rancher-wins; or remove it there" in stopped.value.remedy


def test_owner_without_a_service() -> None:
    assert plan.find_manager(EMPTY) == "none"
    assert plan.find_manager(replace(EMPTY, pipes=PIPES)) == "host-process"


@pytest.mark.parametrize(
    ("found", "serving"),
    [
        (CONVERGED, True),
        (with_service(CONVERGED, state=model.STOPPED), False),
        (with_service(CONVERGED, pid=101), False),
        (replace(CONVERGED, pipes=PIPES[:-1]), False),
        (EMPTY, False),
    ],
)
def test_serving_needs_state_stable_process_and_pipes(found: model.HostSnapshot, serving: bool) -> None:
    assert plan.is_serving(PIPES, found) is serving


def test_absent_keeps_a_directory_that_the_collection_did_not_create() -> None:
    found = replace(CONVERGED, owns_install_dir=False, service=None, processes=(), pipes=())
    assert kinds(replace(WANTED, state="absent"), found) == []


def test_absent_steps() -> None:
    gone = replace(WANTED, state="absent")
    assert kinds(gone, CONVERGED) == ["stop", "delete_service", "remove_files", "forget_directory"]
    assert kinds(gone, replace(CONVERGED, service=None, processes=(), pipes=())) == ["remove_files", "forget_directory"]
    assert kinds(gone, EMPTY) == []


def test_the_diff_has_what_differs_and_nothing_where_nothing_is_changed() -> None:
    nothing: dict[str, object] = {"before": {}, "after": {}}
    assert prove.preview(WANTED, CONVERGED, ()) == nothing
    assert prove.preview(WANTED, installed(OLDER), ()) == nothing
    changed = prove.preview(WANTED, installed(OLDER), steps_of(WANTED, installed(OLDER)))
    assert changed["before"]["recorded_release"] == "1.1.3"
    assert changed["after"]["recorded_release"] == "1.3.0"
    assert "1.1.3" in changed["before"]["command_line"]
    assert changed["after"]["command_line"] == WANTED.command_line
    assert changed["before"].keys() == changed["after"].keys() >= {"executable_sha256"}
    assert changed["before"].keys().isdisjoint({"recovery", "description", "start_mode"})
    staged = replace(WANTED, state="staged")
    only_staged = prove.preview(staged, EMPTY, steps_of(staged, EMPTY))
    assert only_staged == {"before": {"staged_sha256": None}, "after": {"staged_sha256": WANTED.sha256}}
    gone = replace(WANTED, state="absent")
    removed = prove.preview(gone, CONVERGED, steps_of(gone, CONVERGED))
    left: dict[str, object] = {"install_dir": model.INSTALL_DIR}
    assert removed == {"before": {"service": "csi-proxy", **left}, "after": {"service": None, "install_dir": None}}
    rest = replace(CONVERGED, service=None, processes=(), pipes=())
    assert prove.preview(gone, rest, steps_of(gone, rest)) == {"before": left, "after": {"install_dir": None}}


def test_credentials_in_a_url_are_not_shown() -> None:
    secret = replace(
        WANTED, source=model.ExecutableSource("https://user:secret@mirror.example.com/csi-proxy.exe?sig=secret")
    )
    assert not any("secret" in step.description for step in steps_of(secret, EMPTY))
