"""Requirements of the machine, checked before anything is downloaded or built.

As root the missing Debian packages are installed; anybody else gets the one line to run. Wine is the exception: where
it cannot be installed, the lab has simulated Windows hosts instead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import paths
from .pythons import Python, discover
from .venvs import MAIN, LaneError, Notify, choose

COLD_GB = 10.0
WARM_GB = 2.0
MEMORY_GB = 3.0
WINE = ("/usr/lib/wine/wine64", "/usr/bin/wine64", "/usr/bin/wine")
# Debian package -> commands of which one shows that it is there.
NEEDED: dict[str, tuple[str, ...]] = {
    "git": ("git",),
    "openssh-client": ("ssh",),
    "util-linux": ("unshare",),
}
FOR_CHECKS: dict[str, tuple[str, ...]] = {"shellcheck": ("shellcheck",)}
# The report is opened in a browser. Debian's package without windows is the smallest; any Chromium does.
FOR_TESTS: dict[str, tuple[str, ...]] = {
    "chromium-headless-shell": ("chromium-headless-shell", "chromium", "google-chrome")
}
# A realm on loopback, and what pip compiles the Python packages of Kerberos with.
FOR_KERBEROS: dict[str, tuple[str, ...]] = {
    "krb5-kdc": ("/usr/sbin/krb5kdc",),
    "krb5-admin-server": ("/usr/sbin/kadmin.local",),
    "krb5-user": ("kinit",),
    "libkrb5-dev": ("krb5-config",),
}
# ansible-rulebook's engine.
FOR_RULEBOOK: dict[str, tuple[str, ...]] = {"openjdk-17-jre-headless": ("java",)}
FOR_WINE: dict[str, tuple[str, ...]] = {
    "wine64": WINE,
    "gcc-mingw-w64-x86-64-win32": ("x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-gcc-win32"),
}


@dataclass
class Findings:
    """What the probes saw: what stops the run, and which packages are to be installed."""

    problems: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


def go_needed() -> tuple[int, int]:
    """The newest `go` line of the repository's modules, as (major, minor)."""
    found = [(1, 0)]
    for module in paths.ROOT.glob("tests/lab/go/*/go.mod"):
        match = re.search(r"^go (\d+)\.(\d+)", module.read_text(encoding="utf-8"), re.MULTILINE)
        if match:
            found.append((int(match[1]), int(match[2])))
    return max(found)


def probe_go() -> str | None:
    """What is wrong with Go, or None."""
    needed = go_needed()
    wanted = (
        f"Go {needed[0]}.{needed[1]} or newer builds the lab; install it from https://go.dev/dl/ and put it on PATH"
    )
    try:
        # Without GOTOOLCHAIN=local an old Go would fetch a new one just to print its version.
        done = subprocess.run(
            ["go", "version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=10,
            cwd="/",
            env={**os.environ, **paths.go_settings(), "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.SubprocessError):
        return f"Go was not found. {wanted}"
    match = re.search(r"go(\d+)\.(\d+)", done.stdout)
    if not match or (int(match[1]), int(match[2])) < needed:
        return f"Go is {done.stdout.strip() or 'broken'}. {wanted}"
    return None


def probe_disk() -> str | None:
    """What is wrong with the free space, or None. A filled cache has its 10 GB behind it."""
    place = paths.cache()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 1e9
    needed = WARM_GB if any((paths.cache() / "bin").glob("controlplane-*")) else COLD_GB
    if free >= needed:
        return None
    return (
        f"{free:.1f} GB are free where {paths.short(paths.cache())} is, and {needed:.0f} are needed; set XDG_CACHE_HOME"
    )


def memory_gb() -> float:
    """Memory that can still be had, in GB: the kernel's estimate, capped by this process's control group."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    available = int(match[1]) / 1e6 if match else 1e9
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")) / 1e9
    except (OSError, ValueError):
        return available
    return min(available, limit)


def probe_memory() -> str | None:
    """What is wrong with the memory, or None."""
    found = memory_gb()
    if found >= MEMORY_GB:
        return None
    return f"{found:.1f} GB of memory are available and {MEMORY_GB:.0f} are needed to build and run the lab"


def present(commands: tuple[str, ...]) -> bool:
    """Whether one of the commands is on PATH or is a file."""
    return any(shutil.which(command) or os.path.exists(command) for command in commands)


def absent(packages: dict[str, tuple[str, ...]]) -> list[str]:
    """The packages of which no command is there."""
    return [name for name, commands in packages.items() if not present(commands)]


def probe(*, checks: bool, lab: bool, tests: bool = False, kerberos: bool = False, java: bool = False) -> Findings:
    """Checks everything that the requested work needs, in well under a second."""
    findings = Findings()
    findings.problems += filter(None, [probe_disk(), probe_go(), probe_memory()] if lab or checks else [probe_disk()])
    packages = {**NEEDED, **(FOR_CHECKS if checks else {})} if lab or checks else {}
    findings.packages += absent(
        {
            **packages,
            **(FOR_TESTS if tests else {}),
            **(FOR_KERBEROS if kerberos else {}),
            **(FOR_RULEBOOK if java else {}),
        }
    )
    return findings


def install(packages: list[str], notify: Notify) -> str | None:
    """Installs Debian packages as root; what went wrong, or None."""
    if not packages:
        return None
    line = f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    if os.geteuid() != 0:
        return f"packages are missing; run: sudo {line}"
    if not shutil.which("apt-get"):
        return f"these Debian packages, or what your system calls them, are missing: {' '.join(packages)}"
    notify(f"installing {', '.join(packages)}")
    log = paths.LOGS / "apt.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with open(log, "w", encoding="utf-8") as out:
        for command in (["apt-get", "update"], line.split()):
            code = subprocess.run(
                command, check=False, stdout=out, stderr=subprocess.STDOUT, env=environment
            ).returncode
    if code:
        return f"`{line}` failed; see {paths.short(log)}"
    return None


def usable_pythons(notify: Notify) -> dict[str, Python] | str:
    """The machine's Pythons if the main lane can be made with one of them, otherwise what is wrong."""
    pythons = discover()
    try:
        choose(MAIN, pythons)
        return pythons
    except LaneError as error:
        # Debian's python3 comes without venv and ensurepip.
        trouble = install(["python3-venv"], notify) if shutil.which("apt-get") else str(error)
    if trouble:
        return trouble
    pythons = discover()
    try:
        choose(MAIN, pythons)
        return pythons
    except LaneError as error:
        return str(error)


def require(
    notify: Notify,
    *,
    checks: bool = False,
    lab: bool = False,
    tests: bool = False,
    kerberos: bool = False,
    java: bool = False,
) -> dict[str, Python] | None:
    """Probes, installs what it may, and reports what stops the run. Returns the machine's Pythons if the run can continue."""
    findings = probe(checks=checks, lab=lab, tests=tests, kerberos=kerberos, java=java)
    wine = absent(FOR_WINE) if lab else []
    if os.geteuid() != 0:
        findings.packages += wine
    problems = findings.problems
    pythons = usable_pythons(notify)
    if isinstance(pythons, str):
        problems.append(pythons)
    if not problems:
        problems += filter(None, [install(findings.packages, notify)])
    if not problems and wine and os.geteuid() == 0:
        trouble = install(wine, notify)
        if trouble:
            notify(f"note: no Wine here ({trouble}): the lab's Windows hosts are simulated ones")
    for problem in problems:
        notify(f"cannot start: {problem}")
    return None if problems or isinstance(pythons, str) else pythons
