# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""build_csi_proxy.yml: the same bytes everywhere, no network needed, clear refusals.

Every run is a real ``ansible-playbook`` with the machine's own Go. The air-gapped build has a module
cache of its own.
Go's build cache is keyed by what goes into a package, so a path that leaked in would be compiled anew and show in the
bytes. `make torture` gives it a build cache of its own too, which compiles the standard library once more.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.csi_proxy import RECOMMENDED
from integration.playbooks import ROOT, Run, play

PACKAGE = "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy"
# Nobody listens on the discard port: whatever wants the network fails at once.
NO_NETWORK = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
BUILD_SECONDS = 1800
WINDOWS = {"GOOS": "windows", "GOARCH": "amd64", "GOAMD64": "v1", "CGO_ENABLED": "0", "GOFIPS140": "off"}
CHANGES = 3  # the directory, the exe and its hash


def build(
    output: Path,
    *arguments: str,
    root: Path = ROOT,
    environment: dict[str, str] | None = None,
    inventory: str = "localhost,",
) -> Run:
    """Run the playbook of the folder at `root` into `output`."""
    playbook = str(root / "playbooks" / "build_csi_proxy.yml")
    variables = {"kubewin_output_dir": str(output)}
    return play(playbook, inventory, *arguments, variables=variables, env=environment, timeout=BUILD_SECONDS)


def go_env(name: str) -> str:
    return subprocess.run(["go", "env", name], capture_output=True, text=True, check=True).stdout.strip()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def executable(output: Path) -> Path:
    return output / f"csi-proxy-{RECOMMENDED}.exe"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of one plain build."""
    output = tmp_path_factory.mktemp("plain") / "out"
    run = build(output)
    assert run.code == 0, run.screen
    assert len(run.changed) == CHANGES
    assert not run.summary["failure"], run.screen
    return output


def test_the_result_and_its_hash_agree(built: Path) -> None:
    exe = executable(built)
    assert exe.read_bytes()[:2] == b"MZ"
    assert (built / f"{exe.name}.sha256").read_text(encoding="ascii") == f"{sha256(exe)}  {exe.name}\n"


def test_the_guide_has_the_hash_that_its_release_of_go_gives(built: Path) -> None:
    page = (ROOT / "docs" / "docsite" / "rst" / "guide_build.rst").read_text(encoding="utf-8")
    (release_of_go,) = re.findall(r"With Go ([0-9.]+):", page)
    (documented,) = re.findall(r"``([0-9a-f]{64})``", page)
    # The file names the release of Go, so another release gives another hash.
    assert (documented == sha256(executable(built))) == (go_env("GOVERSION") == f"go{release_of_go}")


@pytest.mark.torture
def test_version_is_stamped(built: Path, tmp_path: Path) -> None:
    """The release occurs once more than in the same build without -X (module names carry it too)."""
    unstamped = tmp_path / "unstamped.exe"
    subprocess.run(
        ["go", "build", "-o", str(unstamped), "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", PACKAGE],
        cwd=ROOT / "playbooks" / "files" / "csi_proxy_build" / RECOMMENDED,
        env={**os.environ, **WINDOWS, "GOFLAGS": "-mod=readonly"},
        check=True,
    )
    stamp = f"v{RECOMMENDED}".encode()
    assert executable(built).read_bytes().count(stamp) == unstamped.read_bytes().count(stamp) + 1


def test_check_mode_announces_the_files_and_writes_none(tmp_path: Path) -> None:
    output = tmp_path / "out"
    announced = build(output, "--check")
    assert announced.code == 0, announced.screen
    assert len(announced.changed) == CHANGES
    assert not output.exists()


@pytest.mark.parametrize("own_build_cache", [False, pytest.param(True, marks=pytest.mark.torture)])
def test_air_gapped_build_elsewhere_replaces_a_damaged_exe_byte_by_byte(
    built: Path, tmp_path: Path, own_build_cache: bool
) -> None:
    """Another folder, a file mirror made from the module cache, a module cache of its own, no network, and flags of the user."""
    root = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "playbooks", root / "playbooks")
    output = tmp_path / "out"
    shutil.copytree(built, output)
    executable(output).write_bytes(b"MZ damaged")
    environment = {
        **NO_NETWORK,
        "GOPROXY": f"file://{go_env('GOMODCACHE')}/cache/download",
        "GOMODCACHE": str(tmp_path / "modules"),
        "GOFLAGS": "-tags=extra",
        "GOARCH": "arm64",
        **({"GOCACHE": str(tmp_path / "cache")} if own_build_cache else {}),
    }
    run = build(output, root=root, environment=environment)
    assert run.code == 0, run.screen
    assert executable(output).read_bytes() == executable(built).read_bytes()
    subprocess.run(
        ["go", "clean", "-modcache"], env={**os.environ, "GOMODCACHE": str(tmp_path / "modules")}, check=True
    )


def test_a_missing_mirror_is_named_without_its_password(tmp_path: Path) -> None:
    mirror = "http://builder:s3cr3t@127.0.0.1:9/go"
    run = build(
        tmp_path / "out", environment={**NO_NETWORK, "GOPROXY": mirror, "GOMODCACHE": str(tmp_path / "modules")}
    )
    assert run.code != 0
    assert "127.0.0.1:9/go" in run.screen
    assert "GOPROXY" in run.screen
    assert "s3cr3t" not in run.screen
    assert not (tmp_path / "out").exists()


def test_absent_and_old_go_are_refused(tmp_path: Path) -> None:
    shells = tmp_path / "bin"
    shells.mkdir()
    (shells / "sh").symlink_to("/bin/sh")
    absent = build(tmp_path / "out", environment={"PATH": str(shells)})
    assert absent.code != 0
    assert "needs go 1.24.3 or later on PATH" in absent.screen
    assert "An execution environment usually has no Go: build on a machine that has it, then set csi_proxy_source" in (
        absent.screen
    )

    old = shells / "go"
    old.write_text("#!/bin/sh\necho 'note: module requires Go 1.24' >&2; exit 1\n", encoding="ascii")
    old.chmod(0o755)
    refused = build(tmp_path / "out", environment={"PATH": f"{shells}:{os.environ['PATH']}"})
    assert refused.code != 0
    assert f"csi-proxy {RECOMMENDED}: note: module requires Go 1.24" in refused.screen
    assert not (tmp_path / "out").exists()


def test_second_run_changes_nothing_with_an_inventory_made_for_windows_hosts(built: Path, tmp_path: Path) -> None:
    """all:vars of winrm and PowerShell must not decide how an explicit localhost is reached; our own variables count."""
    inventory = tmp_path / "hosts.ini"
    text = (
        "localhost\n[windows]\nwin-1\n[all:vars]\nansible_connection=winrm\nansible_shell_type=powershell\n"
        "ansible_become=true\nansible_python_interpreter=C:\\nowhere\\python.exe\n"
    )
    inventory.write_text(text, encoding="ascii")
    before = {path.name: path.stat().st_mtime_ns for path in built.iterdir()}
    again = build(built, inventory=str(inventory))
    assert again.code == 0, again.screen
    assert again.changed == []
    assert {path.name: path.stat().st_mtime_ns for path in built.iterdir()} == before
    assert sha256(executable(built)) in again.screen
