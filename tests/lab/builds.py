# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the lab's programs from Go modules and keeps them in the user's cache.

Results live in `${XDG_CACHE_HOME:-~/.cache}/kubewin-csi/bin/<name>-<key>/`; the key covers every file of the module,
the flags and the Go version, so a result is never stale and never rebuilt. Two processes may build at once: a file
lock lets one do it while the other waits, and a result appears by one rename.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from lab.state import REPOSITORY, LabError

GO_MODULES = Path(__file__).resolve().parent / "go"
KUBERNETES = "v1.36.3"
# Tests upgrade from the older one; the playbook builds the newer one.
CSI_PROXY_BUILDS = {
    "1.1.3": GO_MODULES / "csi-proxy-1.1.3",
    "1.3.0": REPOSITORY / "playbooks" / "files" / "csi_proxy_build" / "1.3.0",
}
CSI_PROXY_RELEASES = tuple(CSI_PROXY_BUILDS)
KEEP_UNUSED_DAYS = 30
_NOT_SOURCES = ("testdata",)


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubewin-csi"


def _version_flags(version: str) -> str:
    """Linker flags that make the control plane report `version`, as upstream's own build does."""
    major, minor, _patch = version.removeprefix("v").split(".")
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one module becomes programs: `programs` maps a file name to the package that makes it."""

    name: str
    module: Path
    programs: Mapping[str, str]
    ldflags: str = "-s -w"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def flags(self) -> list[str]:
        return ["-trimpath", "-buildvcs=false", "-ldflags", self.ldflags]


WINDOWS = {"GOOS": "windows", "GOARCH": "amd64", "GOAMD64": "v1", "GOFIPS140": "off", "GOTOOLCHAIN": "local"}


def recipes() -> dict[str, Recipe]:
    """Every recipe of the lab by name."""
    found = [
        Recipe(
            "controlplane",
            GO_MODULES / "controlplane",
            {
                name: f"k8s.io/kubernetes/cmd/{name}"
                for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
            },
            ldflags=f"-s -w {_version_flags(KUBERNETES)}",
        ),
        Recipe("etcd", GO_MODULES / "etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
        Recipe("kwok", GO_MODULES / "kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
        Recipe("translation", GO_MODULES / "translation", {"translation": "."}),
        Recipe("actionlint", GO_MODULES / "actionlint", {"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"}),
        Recipe("receptor", GO_MODULES / "receptor", {"receptor": "github.com/ansible/receptor/cmd/receptor-cl"}),
        Recipe("winland-linux", GO_MODULES / "winland", {"winland": "."}),
        Recipe("winland-windows", GO_MODULES / "winland", {"winland.exe": "."}, environment=WINDOWS),
        Recipe("csiclient", GO_MODULES / "csiclient", {"csiclient.exe": "."}, "-s -w -buildid=", WINDOWS),
        Recipe("mute", GO_MODULES / "mute", {"mute.exe": "."}, "-s -w -buildid=", WINDOWS),
    ]
    for release, module in CSI_PROXY_BUILDS.items():
        found.append(
            Recipe(
                f"csi-proxy-{release}",
                module,
                {f"csi-proxy-{release}.exe": "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy"},
                # As playbooks/build_csi_proxy.yml builds it, so that both give the same bytes.
                ldflags=f"-s -w -buildid= -X main.version=v{release}",
                environment=WINDOWS,
            )
        )
    return {recipe.name: recipe for recipe in found}


def _go(arguments: Iterable[str], cwd: Path) -> str:
    if shutil.which("go") is None:
        raise LabError("Go is not installed or not in PATH: install it (https://go.dev/dl/, 1.26 or later)")
    done = subprocess.run(
        ["go", *arguments], cwd=cwd, env=_environment({}), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(f"go {' '.join(arguments)} in {cwd} failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout.strip()


@functools.cache
def _shared_with_user() -> dict[str, str]:
    """Go's caches inside ours: nothing else is written to the home folder, and what the user's cache holds is read."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    settings = {
        "GOFLAGS": "-modcacherw",
        # The go command counts its calls there; the user's own settings for it stay in force.
        "XDG_CONFIG_HOME": str(cache() / "config"),
        "GOENV": os.environ.get("GOENV") or str(Path(home) / "go" / "env"),
    }
    if "GOMODCACHE" not in os.environ and "GOPATH" not in os.environ:
        asked = ["go", "env", "GOMODCACHE", "GOPROXY"]
        known = subprocess.run(asked, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        if known.returncode == 0:
            modules, proxy = known.stdout.splitlines()
            downloads = Path(modules) / "cache" / "download"
            settings["GOPROXY"] = f"file://{downloads},{proxy}" if downloads.is_dir() else proxy
        settings["GOPATH"] = str(cache() / "go")
    if "GOCACHE" not in os.environ:
        settings["GOCACHE"] = str(cache() / "go-build")
    return settings


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    # What the user has in GOFLAGS or GOOS must not change a result that is cached under a key without it.
    kept = {name: value for name, value in os.environ.items() if name not in ("GOFLAGS", "GOOS", "GOARCH", "GOWORK")}
    return {**kept, **_shared_with_user(), "CGO_ENABLED": "0", "GOWORK": "off", **extra}


def _sources(module: Path) -> Iterator[Path]:
    for path in sorted(module.rglob("*")):
        relative = path.relative_to(module)
        if path.is_file() and not path.name.endswith("_test.go") and not set(relative.parts) & set(_NOT_SOURCES):
            yield path


def key(recipe: Recipe, go_version: str) -> str:
    """Twelve hex digits over all that decides the result."""
    if not (recipe.module / "go.mod").is_file():
        raise LabError(f"{recipe.name}: {recipe.module / 'go.mod'} does not exist, so it cannot be built")
    digest = hashlib.sha256()
    facts = [go_version, dict(recipe.programs), recipe.flags, dict(recipe.environment)]
    digest.update(json.dumps(facts, sort_keys=True).encode())
    for path in _sources(recipe.module):
        content = path.read_bytes()
        digest.update(f"\0{path.relative_to(recipe.module)}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


class Reporter:
    """Reports on a stream what is being built; on a terminal with a moving line."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._notified = 0.0

    def line(self, text: str) -> None:
        self._stream.write(("\r\033[K" if self._live else "") + text + "\n")
        self._stream.flush()

    def tick(self, text: str) -> None:
        if self._live:
            self._stream.write("\r\033[K" + text[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()
        elif time.monotonic() - self._notified >= 15:
            self._notified = time.monotonic()
            self.line(text)

    def begin(self) -> None:
        self._notified = time.monotonic()


@contextmanager
def _locked(path: Path, report: Reporter, what: str) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report.line(f"{what}: another process is building it, waiting for that")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _compile(recipe: Recipe, file: str, package: str, target: Path, report: Reporter) -> None:
    started = time.monotonic()
    command = ["go", "build", "-v", *recipe.flags, "-o", str(target / file), package]
    process = subprocess.Popen(
        command,
        cwd=recipe.module,
        env=_environment(recipe.environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    last: deque[str] = deque(maxlen=60)
    fetched = compiled = 0
    reader_done = threading.Event()

    def read(stream: IO[str]) -> None:
        nonlocal fetched, compiled
        for text in stream:
            last.append(text.rstrip())
            fetched += text.startswith("go: downloading")
            compiled += not text.startswith("go: ")
        reader_done.set()

    report.line(f"{file}: building from {_shown(recipe.module)}")
    report.begin()
    reader = threading.Thread(target=read, args=(process.stderr,), daemon=True)
    reader.start()
    try:
        while not reader_done.wait(0.25):
            now = f"{compiled} packages compiled, at {last[-1]}" if compiled else "reading modules or linking"
            if fetched and not compiled:
                now = f"{fetched} modules fetched"
            report.tick(f"{file}: {time.monotonic() - started:4.0f} s, {now}")
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.wait() != 0:
        raise LabError(f"{' '.join(command)}\nin {recipe.module} failed ({process.returncode}):\n" + "\n".join(last))
    size = (target / file).stat().st_size / 1e6
    report.line(f"{file}: built in {time.monotonic() - started:.0f} s ({size:.0f} MB)")


def _shown(path: Path) -> Path:
    return path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path


def build(name: str, report: Reporter | None = None) -> dict[str, Path]:
    """Programs of a recipe by file name, built if the cache does not hold them.

    Raises LabError with the compiler's last lines.
    """
    report = report or Reporter()
    recipe = recipes()[name]
    go_version = _go(["env", "GOVERSION"], recipe.module if recipe.module.is_dir() else REPOSITORY)
    home = cache() / "bin"
    result = home / f"{name}-{key(recipe, go_version)}"
    if not result.is_dir():
        with _locked(home / f".{result.name}.lock", report, name):
            if not result.is_dir():
                scratch = home / f".{result.name}.{os.getpid()}"
                shutil.rmtree(scratch, ignore_errors=True)
                scratch.mkdir(parents=True)
                try:
                    for file, package in recipe.programs.items():
                        _compile(recipe, file, package, scratch, report)
                    scratch.rename(result)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
        _prune(home, name, result)
    os.utime(result)
    return {file: result / file for file in recipe.programs}


def _prune(home: Path, name: str, current: Path) -> None:
    """Drop results of a recipe that were unused for a month."""
    known = set(recipes())
    for entry in home.iterdir():
        if entry == current or entry.name.rpartition("-")[0] not in known or not entry.name.startswith(f"{name}-"):
            continue
        if time.time() - entry.stat().st_mtime > KEEP_UNUSED_DAYS * 86400:
            shutil.rmtree(entry, ignore_errors=True)


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
