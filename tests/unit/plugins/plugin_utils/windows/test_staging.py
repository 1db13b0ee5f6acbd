# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Getting an executable onto a node and into its place: what goes wrong there has its own reason and touches nothing that serves."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import prove, stage
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.apply import HostApplier
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import builtin
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.control import WaitLimits
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.lock import NodeLock, make_lock_owner
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.model import ExecutableSource, HostSnapshot
from unit.plugins.plugin_utils.windows.simulated import (
    NEW,
    OLD,
    Artifact,
    Artifacts,
    Host,
    commands_like,
    failed,
    nothing_half_done,
    still_serves,
    wanted,
)


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def with_checksum(artifact: Artifact) -> dict[str, str]:
    return {"checksum": "0" * 64}


def with_missing_file(artifact: Artifact) -> dict[str, str]:
    return {"source": artifact.url + ".gone"}


def with_closed_port(artifact: Artifact) -> dict[str, str]:
    return {"source": f"http://127.0.0.1:{closed_port()}/csi-proxy.exe"}


def with_tls_on_plain_port(artifact: Artifact) -> dict[str, str]:
    return {"source": artifact.url.replace("http://", "https://")}


@pytest.mark.parametrize(
    ("options", "reason", "words"),
    [
        (with_checksum, "checksum_mismatch", ["SHA-256", "expected " + "0" * 64, "removed"]),
        (with_missing_file, "download_failed", ["404", "curl 22", ".gone"]),
        (with_closed_port, "download_failed", ["curl 7", "firewalls"]),
        (with_tls_on_plain_port, "tls_failed", ["TLS", "curl 35"]),
    ],
)
@pytest.mark.parametrize("upgrade", [False, True], ids=["install", "upgrade"])
def test_a_source_that_fails(
    host: Host,
    artifacts: Artifacts,
    options: Callable[[Artifact], dict[str, str]],
    reason: str,
    words: list[str],
    upgrade: bool,
) -> None:
    old = wanted(artifacts.csi_proxy(OLD))
    if upgrade:
        host.run(old)
    artifact = artifacts.csi_proxy(NEW)
    desired = wanted(artifact, **options(artifact))
    error = failed(host, desired)
    assert error.reason == reason
    assert all(word in str(error) for word in words), str(error)
    if upgrade:
        still_serves(host, old)
        assert not host.run(old).changed
    else:
        nothing_half_done(host, desired)


def test_check_mode_asks_whether_the_node_can_download_and_writes_nothing(host: Host, artifacts: Artifacts) -> None:
    artifact = artifacts.csi_proxy(NEW)
    assert host.run(wanted(artifact), check=True, probe=True).changed
    for options, reason in ((with_missing_file, "download_failed"), (with_closed_port, "download_failed")):
        error = failed(host, wanted(artifact, **options(artifact)), probe=True)
        assert error.reason == reason
        assert "could not download" in str(error)
    assert commands_like(host, "curl.exe") == 3
    assert commands_like(host, "curl.exe.*--output") == 0
    assert host.observe(wanted(artifact)).install_dir_exists is False


def test_a_file_of_the_controller_is_compared_with_its_checksum_before_the_first_change(
    host: Host, artifacts: Artifacts
) -> None:
    artifact = artifacts.csi_proxy(NEW)
    location = str(artifact.path)
    assert host.run(wanted(artifact, source=location), check=True).changed
    error = failed(host, wanted(artifact, source=location, checksum="0" * 64), probe=True)
    assert (error.reason, location in str(error)) == ("checksum_mismatch", True), str(error)
    # The host need not read it: it has the release.
    host.run(wanted(artifact))
    artifact.path.unlink()
    assert not host.run(wanted(artifact, source=location), check=True).changed


@pytest.mark.parametrize(("tool", "reason"), [("curl", "tool_missing"), ("tar", "unpack_failed")])
def test_a_tool_that_is_not_there(host: Host, artifacts: Artifacts, tool: str, reason: str) -> None:
    """The words of cmd.exe name it."""
    artifact = artifacts.csi_proxy(NEW)
    host.plant(files={rf"C:\Windows\System32\{tool}.exe": None})
    error = failed(host, wanted(artifact, **({"source": str(artifact.path)} if tool == "tar" else {})))
    assert error.reason == reason
    assert rf"\{tool}.exe' is not recognized" in str(error), str(error)


def test_full_disk_while_pulling_and_while_pushing(host: Host, artifacts: Artifacts) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.fault(disk_free=500)
    for desired in (wanted(artifact), wanted(artifact, source=str(artifact.path))):
        error = failed(host, desired)
        assert "the disk is full" in str(error)
        nothing_half_done(host, desired)
    host.clear_faults()
    assert host.run(wanted(artifact)).changed


def test_quarantined_while_it_is_staged(host: Host, artifacts: Artifacts) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(quarantine=r"csi-proxy\.exe$", times=-1)
    error = failed(host, desired)
    assert error.reason == "quarantined"
    assert "antivirus" in str(error)
    nothing_half_done(host, desired)


@pytest.mark.parametrize("rest", ["", ".gone"], ids=["downloaded", "failed"])
def test_secrets_of_a_source_are_on_no_line_and_in_no_text(host: Host, artifacts: Artifacts, rest: str) -> None:
    """Lines are shown by -vvv, by process lists and by audit logs of the node."""
    artifact = artifacts.csi_proxy(NEW)
    source = artifact.url.replace("http://", "http://robot:TOP@SECRET%21@") + rest + '?sig=SECRET%2B&x="<SECRET>"'
    desired = wanted(artifact, source=source)
    texts = [str(failed(host, desired))] if rest else [str(host.run(desired))]
    texts += [*host.lines, *host.notes, *host.steps(), str(host.agent.control("state"))]
    assert any("curl.exe" in text for text in texts)
    assert [text for text in texts if "SECRET" in text] == []


@pytest.mark.parametrize(
    "message",
    [
        "curl: (6) Could not resolve host: robot:SECRET@files",
        "curl: (3) URL using bad/illegal format: sig=SECRET&x=1",
        "curl: (67) Access denied for SECRET",
    ],
)
def test_secrets_that_curl_repeats_are_hidden(message: str) -> None:
    source = ExecutableSource("https://robot:SECRET@files/csi-proxy.exe?sig=SECRET&x=1")
    assert "SECRET" in message
    reported = stage.remove_secrets(message, source)
    assert "SECRET" not in reported
    assert "(hidden)" in reported
    assert stage.remove_secrets(message, None) == message


def test_a_scan_that_holds_the_new_executable_is_waited_for_without_another_download(
    host: Host, artifacts: Artifacts
) -> None:
    host.run(wanted(artifacts.csi_proxy(OLD)))
    desired = wanted(artifacts.csi_proxy(NEW))
    host.fault(scan=r"stage-.*csi-proxy\.exe$", delay_ms=20_000)
    host.forget()
    assert host.run(desired).changed
    assert commands_like(host, "curl.exe") == 1
    assert 1 < commands_like(host, "^move .*stage-") < 8
    assert any("virus scan" in note for note in host.notes)
    assert not [name for name in host.observe(desired).install_dir_entries if name.startswith(("stage-", "aside-"))]


@pytest.mark.parametrize("push", [False, True], ids=["pull", "push"])
def test_a_scan_that_keeps_the_new_executable_for_itself_is_waited_for(
    host: Host, artifacts: Artifacts, push: bool
) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.fault(match=r"certutil.*stage-", rc=0x80070020, times=3)
    host.forget()
    assert host.run(wanted(artifact, **({"source": str(artifact.path)} if push else {}))).changed
    assert commands_like(host, r"curl\.exe|tar\.exe") == 1
    assert commands_like(host, r"certutil.*stage-") == 4


def test_a_scan_that_never_ends_is_named_and_the_old_release_was_not_touched(host: Host, artifacts: Artifacts) -> None:
    old, desired = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)
    pid = host.observe(old).processes
    host.fault(scan=r"stage-.*csi-proxy\.exe$", delay_ms=3_600_000)
    host.forget()
    error = failed(host, desired)
    assert (error.reason, "virus scan" in str(error)) == ("file_in_use", True)
    assert commands_like(host, "curl.exe") == 1
    assert commands_like(host, r"sc\.exe (config|stop)") == 0
    still_serves(host, old)
    assert host.observe(old).processes == pid
    host.clear_faults()
    assert host.run(desired).changed
    assert not [name for name in host.observe(desired).install_dir_entries if name.startswith("stage-")]


def test_an_executable_that_is_removed_after_its_verification_leaves_the_old_release(
    host: Host, artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, desired = wanted(artifacts.csi_proxy(OLD)), wanted(artifacts.csi_proxy(NEW))
    host.run(old)

    def meanwhile(applier: HostApplier, _snapshot: HostSnapshot) -> None:
        gone = builtin("rd", stage.build_stage_dir(applier.lock.me.identity), switches="/s /q")
        assert host.node().chain([("gone", gone)])[1] is None

    monkeypatch.setattr(HostApplier, "_check_unchanged", meanwhile)
    error = failed(host, desired)
    assert (error.reason, "removed it" in str(error)) == ("file_in_use", True)
    still_serves(host, old)


@pytest.mark.parametrize("push", [False, True], ids=["pull", "push"])
def test_a_run_that_dies_while_it_stages_keeps_no_other_one_waiting(
    host: Host, artifacts: Artifacts, push: bool
) -> None:
    from lab.windows.channel import Cut

    artifact = artifacts.csi_proxy(NEW)
    desired = wanted(artifact, **({"source": str(artifact.path)} if push else {}))
    host.agent.control("snapshot")
    with contextlib.suppress(NodeError):
        host.run(desired)
    at = next(number for number, line in enumerate(host.lines) if "certutil" in line and "stage-" in line)
    host.agent.control("restore")
    with pytest.raises(NodeError):
        host.run(desired, cut=Cut("reply_lost", at))
    host.quiet()
    assert host.observe(desired).lock is None
    # Nobody knows whether it lives.
    assert host.run(desired, is_alive=lambda _owner: None, limits=WaitLimits(lock=1.0)).changed


@pytest.mark.parametrize("upgrade", [False, True], ids=["install", "upgrade"])
def test_a_change_by_another_run_during_the_download_is_not_repeated(
    host: Host, artifacts: Artifacts, upgrade: bool
) -> None:
    if upgrade:
        host.run(wanted(artifacts.csi_proxy(OLD)))
    desired = wanted(artifacts.csi_proxy(NEW))
    others: list[bool] = []

    def report(text: str) -> None:
        if "SHA-256" in text and not others:
            others.append(host.run(desired).changed)

    host.forget()
    node = host.node()
    lock = NodeLock(make_lock_owner(node.clock), node.clock, lambda _owner: True)
    slower = prove.converge(node, desired, report=report, lock=lock)
    assert others == [True]
    assert commands_like(host, r"sc\.exe start") == 1
    assert not host.run(desired).changed
    assert host.observe(desired).lock is None
    assert not [name for name in slower.snapshot.install_dir_entries if name.startswith("stage-")]


def test_a_damaged_executable_that_cannot_be_replaced_is_replaced_by_the_next_run(
    host: Host, artifacts: Artifacts
) -> None:
    desired = wanted(artifacts.csi_proxy(NEW))
    host.run(desired)
    host.plant(files={desired.executable: {"exe": {"kind": "csi-proxy", "release": NEW, "pipes": "none"}}})
    host.fault(scan=r"stage-.*csi-proxy\.exe$", delay_ms=3_600_000)
    assert failed(host, desired).reason == "file_in_use"
    # An executable of unknown content is not put back; its process serves until the next run.
    assert host.observe(desired).executable_sha256 is None
    host.clear_faults()
    assert "start" in {step.kind for step in host.run(desired).steps}
    assert not host.run(desired).changed


def untouched(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether services, processes and registry are what they were, up to the record of the directory."""
    return all(before[part] == after[part] for part in ("services", "processes", "registry"))


def test_a_staged_release_touches_nothing_that_serves_and_is_then_swapped_without_a_download(
    host: Host, artifacts: Artifacts
) -> None:
    host.run(wanted(artifacts.csi_proxy(OLD)))
    before = host.agent.control("state")["state"]
    artifact = artifacts.csi_proxy(NEW)
    staged = host.run(wanted(artifact, state="staged"))
    assert [step.kind for step in staged.steps] == ["fetch", "promote"]
    assert untouched(before, host.agent.control("state")["state"])
    assert not host.run(wanted(artifact, state="staged")).changed
    host.forget()
    swapped = host.run(wanted(artifact))
    assert {"commit", "stop", "start"} <= {step.kind for step in swapped.steps}
    assert commands_like(host, "curl.exe") == 0
    assert not host.run(wanted(artifact)).changed


def test_a_damaged_executable_is_replaced_in_advance_and_its_process_when_the_service_may_stop(
    host: Host, artifacts: Artifacts
) -> None:
    artifact = artifacts.csi_proxy(NEW)
    host.run(wanted(artifact))
    before = host.observe(wanted(artifact)).processes
    host.plant(files={wanted(artifact).executable: {"exe": {"kind": "csi-proxy", "release": NEW, "pipes": "none"}}})
    host.run(wanted(artifact, state="staged"))
    found = host.observe(wanted(artifact))
    assert (found.executable_sha256, found.processes) == (artifact.sha256, before)
    assert "start" in {step.kind for step in host.run(wanted(artifact)).steps}
    assert host.observe(wanted(artifact)).processes != before
    assert not host.run(wanted(artifact)).changed
