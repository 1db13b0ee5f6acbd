# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's state file, its settings, and the inventories made from it."""

from __future__ import annotations

import dataclasses
import fcntl
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import inventory, state
from lab.cluster.settings import Answer, Driver, Settings, Source
from lab.state import TRANSPORTS, Artifact, Host, LabError, LabState


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBEWIN_LAB_ROOT", str(tmp_path))
    return tmp_path


def lab(root: Path) -> LabState:
    (root / "one").mkdir()
    return LabState(
        name="one",
        directory=str(root / "one"),
        server="https://127.0.0.1:1",
        ca="/ca.crt",
        audit="/audit.log",
        windows="wine",
        requested_windows="auto",
        started="now",
        kubeconfigs={"kubewin": "/kubewin.yaml"},
        hosts=(Host("win-1", "win-1", "127.0.11.1", "wine", "127.0.0.1:5", 10, 11, 12),),
        artifacts=(
            Artifact("1.1.3", "/a", "aa", "http://x/1.1.3", "https://x/1.1.3"),
            Artifact("1.3.0", "/b", "bb", "http://x/1.3.0", "https://x/1.3.0"),
        ),
        user="Administrator",
        password_file="/password",
        ssh_key="/key",
        ssh_known_hosts="/known",
    )


def test_state_survives_the_file(root: Path) -> None:
    made = lab(root)
    state.save(made)
    assert state.load("one") == made


def test_state_is_private(root: Path) -> None:
    made = lab(root)
    state.save(made)
    assert made.paths.state.stat().st_mode & 0o777 == 0o600


def test_a_missing_lab_reports_the_remedy() -> None:
    with pytest.raises(LabError, match="python -m lab up --name one"):
        state.load("one")


@pytest.mark.parametrize("name", ["", "..", "A", "a/b", "-a", "a-", "a" * 33])
def test_names_that_are_no_folder_are_refused(name: str) -> None:
    with pytest.raises(LabError, match="lower case letters"):
        state.paths(name)


def test_unknown_host_lists_the_known(root: Path) -> None:
    with pytest.raises(LabError, match="no Windows host 'win-9'; its hosts are win-1"):
        lab(root).host("win-9")


def test_alive_reads_the_lock(root: Path) -> None:
    assert not state.alive("one")
    (root / "one").mkdir()
    with (root / "one" / "lock").open("w") as lock:
        assert not state.alive("one")
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert state.alive("one")
    assert not state.alive("one")


def test_settings_survive_the_file_and_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.json"
    source = Source(path)
    assert source.get() == Settings()
    wanted = Settings(
        backoff=(1.0,), stale=("win-1",), drivers={"d": Driver("{node}", {"k": "v"})}, exec_answers=(Answer("x", 3),)
    )
    wanted.write(path)
    assert source.get() == wanted
    Settings(bad_images=("*:gone",)).write(path)
    assert not source.get().pullable("a:gone")
    assert source.get().pullable("a:nosuchtag")


def test_backoff_ends_with_its_last_step() -> None:
    settings = Settings(backoff=(0.5, 1.0))
    assert [settings.restart_delay(count) for count in range(4)] == [0.5, 1.0, 1.0, 1.0]


def content(root: Path, transport: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(variables of all, variables of the group, variables of the host) as Ansible reads them."""
    found = inventory.write(lab(root))
    read = yaml.safe_load(Path(found[transport]).read_text(encoding="utf-8"))["all"]
    group = read["children"]["windows"]
    return read["vars"], group["vars"], group["hosts"]["win-1"]


@pytest.mark.parametrize(("transport", "port"), [("ntlm-http", 10), ("basic-https", 11), ("ssh", 12), ("psrp", 11)])
def test_inventory_goes_to_the_transports_port(root: Path, transport: str, port: int) -> None:
    assert content(root, transport)[2] == {"ansible_host": "127.0.11.1", "ansible_port": port}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_inventory_holds_no_secret_and_all_that_plays_need(root: Path, transport: str) -> None:
    shared, group, _host = content(root, transport)
    assert shared["kubewin_kubeconfig"] == "/kubewin.yaml"
    assert (shared["csi_proxy_version"], shared["csi_proxy_checksum"]) == ("1.3.0", "sha256:bb")
    assert group.get("ansible_password", "").startswith("{{ lookup") or transport == "ssh"


def test_ssh_finds_the_known_hosts_of_a_checkout_whose_path_has_a_space(root: Path) -> None:
    found = inventory.write(dataclasses.replace(lab(root), ssh_known_hosts="/a checkout/known"))
    group = yaml.safe_load(Path(found["ssh"]).read_text(encoding="utf-8"))["all"]["children"]["windows"]["vars"]
    words = ["ssh", "-F", "none", "-G", *shlex.split(group["ansible_ssh_common_args"]), "host"]
    settings = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "userknownhostsfile /a checkout/known" in settings


@pytest.mark.parametrize("transport", ["basic-https", "ntlm-https"])
def test_https_inventories_verify(root: Path, transport: str) -> None:
    shared, group, _host = content(root, transport)
    assert group["ansible_winrm_ca_trust_path"] == "/ca.crt"
    assert "ansible_winrm_server_cert_validation" not in group
    assert shared["csi_proxy_source"] == "https://x/1.3.0"


def test_a_node_can_be_slower_than_the_others() -> None:
    settings = Settings(start_delay=0.1, node_delays={"win-2": 9.0})
    assert (settings.delay("win-1"), settings.delay("win-2")) == (0.1, 9.0)
