# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""build_csi_proxy.yml: the same bytes everywhere, no network needed, signing before the hash, clear refusals.

Every run is a real ``ansible-playbook`` with the machine's own Go. Two of them compile: the plain build, and the air-gapped
one, which has a module cache of its own. Tests of what comes after the compiler begin with the executable of the plain build.
Go's build cache is keyed by what goes into a package, so a path that leaked in would be compiled anew and show in the
bytes. `make torture` gives it a build cache of its own too, which compiles the standard library once more.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy"
RECIPES = sorted(path.parent.name for path in (ROOT / "playbooks" / "files" / "csi_proxy_build").glob("*/go.mod"))
RELEASE = "1.1.3"  # the smaller one; the other differs in data only
# Nobody listens on the discard port: whatever wants the network fails at once.
NO_NETWORK = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
BUILD_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Play:
    """One run of the playbook: exit code, what it printed, tasks that changed something."""

    rc: int
    text: str
    changed: int


def play(
    output: Path,
    *,
    root: Path = ROOT,
    check: bool = False,
    environment: dict[str, str] | None = None,
    inventory: str = "localhost,",
    **variables: object,
) -> Play:
    """Run the playbook of the checkout at `root` into `output`."""
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        inventory,
        str(root / "playbooks" / "build_csi_proxy.yml"),
        "-e",
        json.dumps({"kubewin_csi_proxy_release": RELEASE, "kubewin_output_dir": str(output), **variables}),
        *(["--check"] if check else []),
    ]
    clean = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_PIPELINING": "1"}
    done = subprocess.run(
        command,
        cwd=output.parent,
        env={**clean, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    text = done.stdout + done.stderr
    recap = [line for line in text.splitlines() if line.startswith("localhost ") and "changed=" in line]
    changed = int(recap[-1].split("changed=")[1].split()[0]) if recap else 0
    return Play(done.returncode, text, changed)


def go_env(name: str) -> str:
    return subprocess.run(["go", "env", name], capture_output=True, text=True, check=True).stdout.strip()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def record(output: Path) -> dict[str, object]:
    loaded = json.loads((output / f"csi-proxy-{RELEASE}.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def executable(output: Path) -> Path:
    return output / f"csi-proxy-{RELEASE}.exe"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of one plain build."""
    output = tmp_path_factory.mktemp("plain") / "out"
    run = play(output)
    assert run.rc == 0, run.text
    assert run.changed > 0
    return output


def test_result_hash_and_record_agree(built: Path) -> None:
    exe = executable(built)
    assert exe.read_bytes()[:2] == b"MZ"
    assert (built / f"{exe.name}.sha256").read_text(encoding="ascii") == f"{sha256(exe)}  {exe.name}\n"
    written = record(built)
    assert written["sha256"] == sha256(exe)
    assert written["unsigned_sha256"] == written["sha256"]
    assert written["signed"] is False
    assert written["size"] == exe.stat().st_size
    assert written["release"] == RELEASE
    assert written["go"] == go_env("GOVERSION")


def test_version_is_stamped(built: Path, tmp_path: Path) -> None:
    """The release occurs once more than in the same build without -X (module names carry it too)."""
    unstamped = tmp_path / "unstamped.exe"
    written = record(built)
    environment, arguments = written["env"], written["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    plain = [word.split(" -X ")[0] for word in arguments]
    assert plain != arguments
    subprocess.run(
        ["go", "build", "-o", str(unstamped), *plain, PACKAGE],
        cwd=ROOT / "playbooks" / "files" / "csi_proxy_build" / RELEASE,
        env={**os.environ, **environment, "GOFLAGS": "-mod=readonly"},
        check=True,
    )
    stamp = f"v{RELEASE}".encode()
    assert executable(built).read_bytes().count(stamp) == unstamped.read_bytes().count(stamp) + 1


@pytest.fixture
def compiled(built: Path, tmp_path: Path) -> str:
    """A go command that is the machine's own, but compiles nothing: its executable is that of the plain build."""
    go = tmp_path / "compiled-go"
    go.write_text(
        f'#!/bin/sh\n[ "$1" = build ] || exec go "$@"\nexec cp -- {executable(built)} "$3"\n', encoding="ascii"
    )
    go.chmod(0o755)
    return str(go)


def test_second_run_changes_nothing(built: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in built.iterdir()}
    again = play(built)
    assert again.rc == 0, again.text
    assert again.changed == 0
    assert {path.name: path.stat().st_mtime_ns for path in built.iterdir()} == before
    assert sha256(executable(built)) in again.text


def test_check_mode_reports_its_plan_and_writes_nothing(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    would = play(output, check=True)
    assert would.rc == 0, would.text
    assert would.changed == 1
    assert f"Would build csi-proxy {RELEASE}" in would.text
    assert not output.exists()

    settled = play(built, check=True)
    assert settled.rc == 0, settled.text
    assert settled.changed == 0


@pytest.mark.parametrize("own_build_cache", [False, pytest.param(True, marks=pytest.mark.torture)])
def test_air_gapped_build_elsewhere_replaces_a_damaged_exe_byte_by_byte(
    built: Path, tmp_path: Path, own_build_cache: bool
) -> None:
    """Another folder, a file mirror made from the module cache, a module cache of its own, and no network."""
    root = tmp_path / "elsewhere"
    shutil.copytree(ROOT / "playbooks", root / "playbooks")
    output = tmp_path / "out"
    shutil.copytree(built, output)
    executable(output).write_bytes(b"MZ damaged")
    run = play(
        output,
        root=root,
        environment=NO_NETWORK,
        kubewin_go_proxy=f"file://{go_env('GOMODCACHE')}/cache/download",
        kubewin_go_env={
            "GOFLAGS": "-mod=readonly -modcacherw",
            "GOMODCACHE": str(tmp_path / "modules"),
            **({"GOCACHE": str(tmp_path / "cache")} if own_build_cache else {}),
        },
    )
    assert run.rc == 0, run.text
    assert executable(output).read_bytes() == executable(built).read_bytes()
    assert (output / f"csi-proxy-{RELEASE}.json").read_bytes() == (built / f"csi-proxy-{RELEASE}.json").read_bytes()


def test_missing_mirror_is_named(tmp_path: Path) -> None:
    mirror = f"file://{tmp_path}/empty-mirror"
    run = play(
        tmp_path / "out",
        environment=NO_NETWORK,
        kubewin_go_proxy=mirror,
        kubewin_go_env={"GOFLAGS": "-mod=readonly -modcacherw", "GOMODCACHE": str(tmp_path / "modules")},
    )
    assert run.rc != 0
    assert f"GOPROXY={mirror}" in run.text
    assert "kubewin_go_proxy" in run.text
    assert not (tmp_path / "out").exists()


def test_a_mirrors_password_is_not_shown(tmp_path: Path) -> None:
    mirror = "http://builder:s3cr3t@127.0.0.1:9/go"
    for how in ({"kubewin_go_proxy": mirror}, {"kubewin_go_env": {"GOPROXY": mirror}}):
        run = play(tmp_path / "out", check=True, **how)
        assert run.rc == 0, run.text
        assert "http://127.0.0.1:9/go" in run.text
        assert "s3cr3t" not in run.text
    refused = play(tmp_path / "out", kubewin_go_env={"GOPROXY": mirror, "GOARCH": "arm64"})
    assert refused.rc != 0
    assert "s3cr3t" not in refused.text


def test_signing_comes_before_the_hash(built: Path, compiled: str, tmp_path: Path) -> None:
    signer = tmp_path / "sign"
    signer.write_text('#!/bin/sh\ncp -- "$1" "$2" && printf signature >> "$2"\n', encoding="ascii")
    signer.chmod(0o755)
    output = tmp_path / "out"
    command = [str(signer), "{in}", "{out}"]
    run = play(output, kubewin_go=compiled, kubewin_csi_proxy_sign_command=command)
    assert run.rc == 0, run.text
    exe = executable(output)
    assert exe.read_bytes() == executable(built).read_bytes() + b"signature"
    written = record(output)
    assert written["signed"] is True
    assert written["sha256"] == sha256(exe) != written["unsigned_sha256"]
    assert written["unsigned_sha256"] == record(built)["sha256"]
    assert (output / f"{exe.name}.sha256").read_text(encoding="ascii").split()[0] == sha256(exe)

    again = play(output, kubewin_go=compiled, kubewin_csi_proxy_sign_command=command)
    assert again.rc == 0, again.text
    assert again.changed == 0


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo no such key >&2; exit 3", ["ended with 3", "wrote no {out} file", "no such key"]),
        ('cp -- "$1" "$2"', ["left the file as it was"]),
    ],
    ids=["fails", "signs-nothing"],
)
def test_signing_that_did_not_sign_is_refused(compiled: str, tmp_path: Path, script: str, expected: list[str]) -> None:
    command = ["sh", "-c", script, "sign", "{in}", "{out}"]
    run = play(tmp_path / "out", kubewin_go=compiled, kubewin_csi_proxy_sign_command=command)
    assert run.rc != 0
    for words in expected:
        assert words in run.text
    assert not (tmp_path / "out").exists()


def test_absent_and_old_go_are_refused(tmp_path: Path) -> None:
    absent = play(tmp_path / "out", kubewin_go=str(tmp_path / "no-go-here"))
    assert absent.rc != 0
    assert "Go was not found" in absent.text
    assert "Go 1.20 or later" in absent.text
    assert (
        "An execution environment usually has no Go: build on a machine that has it, then set csi_proxy_source"
        in absent.text
    )

    old = tmp_path / "go"
    facts = json.dumps({"GOVERSION": "go1.19.8", "GOEXPERIMENT": "", "GOPROXY": "direct"})
    old.write_text(f"#!/bin/sh\necho '{facts}'\n", encoding="ascii")
    old.chmod(0o755)
    refused = play(tmp_path / "out", kubewin_go=str(old))
    assert refused.rc != 0
    assert "is go1.19.8" in refused.text
    assert "Go 1.20 or later" in refused.text
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"kubewin_csi_proxy_release": "1.1.2"}, ["1.1.2", f"can build {', '.join(RECIPES)}.", "CVE-2023-3893"]),
        ({"kubewin_go_env": {"GOFLAGS": "-mod=mod -tags=extra"}}, ["GOFLAGS", "-tags=extra"]),
        ({"kubewin_go_env": {"GOARCH": "arm64"}}, ["GOARCH", "arm64"]),
        ({"kubewin_csi_proxy_sign_command": "sign {in} {out}"}, ["must be a list"]),
        ({"kubewin_csi_proxy_sign_command": ["sign", "{in}"]}, ["{out}"]),
    ],
    ids=["release", "goflags", "goarch", "sign-string", "sign-words"],
)
def test_bad_input_is_refused_before_anything_is_built(
    tmp_path: Path, variables: dict[str, Any], expected: list[str]
) -> None:
    run = play(tmp_path / "out", **variables)
    assert run.rc != 0
    for words in expected:
        assert words in run.text
    assert "Compile csi-proxy" not in run.text
    assert not (tmp_path / "out").exists()


def test_inventory_made_for_windows_hosts_does_not_reach_localhost(built: Path, tmp_path: Path) -> None:
    """all:vars of winrm and PowerShell must not decide how an explicit localhost is reached; our own variables count."""
    inventory = tmp_path / "hosts.ini"
    text = (
        "localhost\n[windows]\nwin-1\n[all:vars]\nansible_connection=winrm\nansible_shell_type=powershell\n"
        "ansible_become=true\nansible_python_interpreter=C:\\nowhere\\python.exe\n"
    )
    inventory.write_text(text, encoding="ascii")
    run = play(built, inventory=str(inventory))
    assert run.rc == 0, run.text
    assert run.changed == 0

    inventory.write_text(f"{text}kubewin_go={tmp_path}/no-go-here\n", encoding="ascii")
    assert f'Go was not found as "{tmp_path}/no-go-here"' in play(built, inventory=str(inventory)).text
