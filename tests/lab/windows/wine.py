# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows hosts on Wine: a prepared prefix in the cache, hard-link clones of it, boot, reboot, stop.

What is prepared once is Wine's own part; our Windows userland is linked into each host when it is made, so that a new
build of it is used at once. A host has its own prefix, its own wineserver, its own host name (UTS name space) and an
environment of a few variables, so that nothing of the Linux machine shows in it but its clock and its processors.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.state import LabError
from lab.windows.agent import Agent, AgentError
from lab.windows.wine_registry import GO_ON_WINE, SERVER_2022, Identity, machine_values, render, user_values

# Programs that winland is when started under their name. Wine has many of them too, so all are overridden.
TOOLS = (
    "cmd.exe",
    "sc.exe",
    "reg.exe",
    "certutil.exe",
    "icacls.exe",
    "cacls.exe",
    "curl.exe",
    "tar.exe",
    "tasklist.exe",
    "taskkill.exe",
    "find.exe",
    "findstr.exe",
    "fsutil.exe",
    "wevtutil.exe",
    "where.exe",
    "whoami.exe",
    "hostname.exe",
    "ping.exe",
    "mountvol.exe",
    "chcp.com",
)

COMPILER = "x86_64-w64-mingw32-gcc"
PACKAGES = "wine64 gcc-mingw-w64-x86-64-win32"
_PLACES = ("/usr/lib/wine", "/usr/lib/x86_64-linux-gnu/wine", "/opt/wine-stable/bin", "/usr/bin")
_SHIM = Path(__file__).with_name("bcryptprimitives.c")
_BOOT_COUNT = "kubewin-boots"

# What kubelet and containerd have made on a node before anybody thinks of storage.
NODE_FOLDERS = (
    "k",
    "var/log",
    "var/lib/kubelet/pods",
    "var/lib/kubelet/plugins_registry",
    "var/lib/kubelet/plugins/kubernetes.io/csi",
)

# Files below C:\windows that no program of a host writes: one inode serves the cache and all hosts.
_SHARED_SUFFIXES = frozenset(
    [
        ".dll",
        ".exe",
        ".sys",
        ".drv",
        ".nls",
        ".ocx",
        ".ax",
        ".cpl",
        ".acm",
        ".tlb",
        ".com",
        ".mui",
        ".msstyles",
        ".ttf",
        ".fon",
        ".ds",
        ".vxd",
        ".cur",
        ".inf",
        ".winmd",
    ]
)
_LISTEN = re.compile(r"^LISTEN (\S+)", re.MULTILINE)


class WineMissing(LabError):
    """Wine, or what is needed to prepare it, is not installed or cannot run here."""


@dataclass(frozen=True, slots=True)
class Wine:
    """An installed Wine: its two programs, its version, and how a host gets a host name of its own."""

    loader: Path
    server: Path
    version: str
    unshare: tuple[str, ...]


def find_wine() -> Wine:
    """Check all requirements; WineMissing names what is missing and how to install it."""
    place = next((Path(p) for p in _PLACES if Path(p, "wine64").exists() and Path(p, "wineserver64").exists()), None)
    if place is None:
        raise WineMissing(
            f"Wine was not found (wine64 and wineserver64 in {', '.join(_PLACES)}): apt install {PACKAGES}"
        )
    if shutil.which(COMPILER) is None:
        raise WineMissing(
            f"{COMPILER} is not installed, Wine's missing library cannot be built: apt install {PACKAGES}"
        )
    unshare: tuple[str, ...] = ("unshare", "--uts")
    if os.geteuid() != 0:
        unshare = ("unshare", "--user", "--map-root-user", "--uts")
    probe = subprocess.run([*unshare, "hostname", "probe"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise WineMissing(f"{' '.join(unshare)} does not work here ({probe.stderr.strip()}), so hosts get no own names")
    done = subprocess.run([place / "wine64", "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WineMissing(f"{place / 'wine64'} --version failed ({done.returncode}): {done.stderr.strip()}")
    return Wine(place / "wine64", place / "wineserver64", done.stdout.strip(), unshare)


def _environment(prefix: Path) -> dict[str, str]:
    return {
        # Wine links the user's folders to this one; it must not be anybody's real home.
        "HOME": str(prefix.parent),
        "USER": "Administrator",
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "WINEARCH": "win64",
        **GO_ON_WINE,
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe=",
        "WINEPREFIX": str(prefix),
        # Where wineserver puts its socket; beside the prefix, it goes away with the host even after a crash.
        "TMPDIR": str(prefix.parent),
    }


def base_prefix(wine: Wine, cache: Path, report: Callable[[str], None] = lambda text: None) -> Path:
    """The prepared prefix, made on first use (some seconds, 700 MB). ``cache`` is the lab's cache folder.

    LabError when Wine or the compiler fails, with its output.
    """
    digest = hashlib.sha256(f"{wine.version}\0{COMPILER}\0".encode() + _SHIM.read_bytes()).hexdigest()[:12]
    result = cache / "wine" / digest / "prefix"
    if result.is_dir():
        return result
    with _locked(cache / "wine" / f".{digest}.lock"):
        if not result.is_dir():
            report(f"preparing Windows hosts on {wine.version} (once)")
            scratch = cache / "wine" / f".{digest}.{os.getpid()}"
            shutil.rmtree(scratch, ignore_errors=True)
            try:
                _prepare(wine, scratch / "prefix")
                result.parent.mkdir(parents=True, exist_ok=True)
                (scratch / "prefix").rename(result)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return result


def _prepare(wine: Wine, prefix: Path) -> None:
    prefix.parent.mkdir(parents=True)
    environment = _environment(prefix)
    _run([wine.loader, "wineboot", "-i"], environment)
    _run([wine.server, "-w"], environment)
    system32 = prefix / "drive_c" / "windows" / "system32"
    if not (system32 / "kernel32.dll").is_file():
        raise LabError(f"Wine made a prefix without {system32 / 'kernel32.dll'}: {wine.version} may be incomplete")
    shim = system32 / "bcryptprimitives.dll"
    shim.unlink(missing_ok=True)
    _run([COMPILER, "-shared", "-O2", "-s", "-o", shim, _SHIM, "-ladvapi32"], {"PATH": os.environ.get("PATH", "")})
    # The rest of the machine is none of the host's business; a recursive delete must not find it either.
    for link in prefix.rglob("*"):
        if link.is_symlink() and link.name != "c:":
            link.unlink()
            if "users" in link.parts:
                link.mkdir()
    # A copied prefix would otherwise be "updated" for seconds at its first boot.
    (prefix / ".update-timestamp").write_text("disable\n", encoding="ascii")


def _run(command: Sequence[str | Path], environment: dict[str, str]) -> None:
    done = subprocess.run(
        [str(part) for part in command], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode != 0:
        output = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise LabError(f"{' '.join(str(part) for part in command)} failed ({done.returncode}): {output}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def scratch(wine: Wine, cache: Path) -> Iterator[Path]:
    """A folder for hosts of this process, beside the prepared prefix so that they can be hard links of it.

    What a process that was killed left there, running hosts included, is cleared away first.
    """
    home = cache / "wine"
    home.mkdir(parents=True, exist_ok=True)
    for left in home.glob("run-*"):
        if not Path("/proc", left.name.split("-")[1]).exists():
            for prefix in left.glob("*/prefix"):
                subprocess.run([str(wine.server), "-k"], env=_environment(prefix), capture_output=True, check=False)
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clone(source: Path, target: Path) -> None:
    """Copy a prefix that is down: shared files by hard link, every file that may be written with an inode of its own.

    Across file systems everything is copied, which takes seconds and 700 MB.
    """
    same_device = os.stat(source).st_dev == os.stat(target.parent).st_dev
    windows = source / "drive_c" / "windows"
    for folder, folders, files in os.walk(source):
        here = target / Path(folder).relative_to(source)
        here.mkdir()
        shared = same_device and Path(folder).is_relative_to(windows)
        for name in [n for n in folders if Path(folder, n).is_symlink()]:
            (here / name).symlink_to(os.readlink(Path(folder, name)))
        for name in files:
            file = Path(folder, name)
            if file == source / "wineserver":
                # Names the server that ran there.
                continue
            if file.is_symlink():
                (here / name).symlink_to(os.readlink(file))
            elif shared and file.suffix.lower() in _SHARED_SUFFIXES:
                os.link(file, here / name)
            else:
                shutil.copy2(file, here / name)


def find_hanging(prefix: Path) -> set[int]:
    """The processes of a prefix of which nothing is left but a thread that waits for a mutex of Wine's own.

    Wine 8.0 kills its threads by signals, also a thread that holds such a mutex. The last thread then waits for it for ever, and so
    does the program that waits for the process. On Windows no thread of a killed process stays.
    """
    hanging = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after_name = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            state, threads = after_name[0], int(after_name[17])
            if (state, threads) not in (("S", 1), ("Z", 2)):
                continue
            last = max(status.parent.glob("task/*"), key=lambda task: int(task.name), default=status.parent)
            waits = (last / "wchan").read_text(encoding="ascii").startswith("futex")
            if waits and f"WINEPREFIX={prefix}".encode() in (last / "environ").read_bytes().split(b"\0"):
                hanging.add(int(status.parent.name))
    return hanging


@dataclass(slots=True)
class WineHost:
    """One host. ``folder`` holds its prefix and log; ``address`` is the node's, not where its agent listens."""

    wine: Wine
    name: str
    address: str
    folder: Path
    build: str = SERVER_2022
    agent_address: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def prefix(self) -> Path:
        return self.folder / "prefix"

    @property
    def log(self) -> Path:
        return self.folder / "agent.log"

    @property
    def agent(self) -> Agent:
        return Agent(self.agent_address, self.name)

    def create(self, base: Path, winland: Path) -> None:
        """Make the host's prefix from the prepared one, or from that of a host that is down (which is then copied with
        all that was done on it). ``winland`` is the userland built for Windows."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.prefix.exists():
            raise LabError(f"host {self.name}: {self.prefix} exists already, remove it or choose another folder")
        clone(base, self.prefix)
        system32 = self.prefix / "drive_c" / "windows" / "system32"
        program = system32 / "winland.exe"
        # Everything is unlinked before it is written: the inode is shared with the cache and every other host.
        program.unlink(missing_ok=True)
        shutil.copyfile(winland, program)
        for tool in TOOLS:
            (system32 / tool).unlink(missing_ok=True)
            os.link(program, system32 / tool)
        for folder in NODE_FOLDERS:
            (self.prefix / "drive_c" / folder).mkdir(parents=True, exist_ok=True)
        _append(self.prefix / "user.reg", render(user_values(TOOLS)))

    def boot(self, timeout: float = 120.0) -> None:
        """Start the host and wait for its agent. LabError with the log's end when it does not come up."""
        if self._process is not None and self._process.poll() is None:
            raise LabError(f"host {self.name} is up already")
        _append(self.prefix / "system.reg", render(machine_values(self._identity())))
        listen = self.agent_address or "127.0.0.1:0"
        # One shell sets the name and becomes the agent, so that server and agent share the name space.
        script = 'hostname "$1" && "$2" -p && exec "$3" "C:\\\\windows\\\\system32\\\\winland.exe" agent "$4"'
        arguments = [self.name, str(self.wine.server), str(self.wine.loader), listen]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self.wine.unshare, "sh", "-c", script, "sh", *arguments],
                env=_environment(self.prefix),
                cwd=self.prefix,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            output = self.log.read_text(encoding="utf-8", errors="replace")
            listening = _LISTEN.search(output)
            if listening is not None:
                self.agent_address = listening.group(1)
                threading.Thread(target=self._end_hanging, args=(self._process,), daemon=True).start()
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        self.stop()
        raise LabError(f"host {self.name} did not boot within {timeout:g} s; {self.log} says:\n{_tail(self.log)}")

    def _end_hanging(self, process: subprocess.Popen[bytes]) -> None:
        """While the host is up: end what hangs in two looks in a row."""
        before: set[int] = set()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
                return
            hanging = find_hanging(self.prefix)
            for pid in hanging & before:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            before = hanging

    def stop(self, timeout: float = 60.0) -> None:
        """Switch the host off: every process in it ends at once."""
        if (self.prefix / "system.reg").exists():
            killer = subprocess.Popen([str(self.wine.server), "-k"], env=_environment(self.prefix), cwd=self.prefix)
            try:
                killer.wait(timeout)
            except subprocess.TimeoutExpired:
                killer.kill()
                killer.wait()
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                # The session was started by boot() and holds this host's agent alone.
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None
        for sockets in self.folder.glob("wine-*"):
            shutil.rmtree(sockets, ignore_errors=True)

    def reboot(self) -> None:
        """Off and on again on the same agent address; services with automatic start come up by themselves."""
        self.stop()
        self.boot()

    def remove(self) -> None:
        """Stop the host and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def set_language(self, language: str) -> None:
        """``en`` or ``de``: of every text from now on."""
        self.agent.control("set", lang=language)

    def path(self, windows: str) -> Path:
        """Where a file of the host is on this machine: ``C:\\x\\y`` (case as on disk)."""
        drive, _colon, rest = windows.partition(":")
        if drive.lower() != "c":
            raise ValueError(f"{windows}: hosts have drive C: alone")
        return self.prefix / "drive_c" / rest.replace("\\", "/").lstrip("/")

    def _identity(self) -> Identity:
        counter = self.folder / _BOOT_COUNT
        boot_id = int(counter.read_text(encoding="ascii")) + 1 if counter.exists() else 1
        counter.write_text(str(boot_id), encoding="ascii")
        return Identity(self.name, self.address, boot_id, self.build)


def boot_all(hosts: Iterable[WineHost]) -> None:
    """Boot hosts in parallel; when one fails the others are stopped and its error is raised."""
    waiting = list(hosts)
    with ThreadPoolExecutor(max_workers=max(1, len(waiting))) as pool:
        futures = [pool.submit(host.boot) for host in waiting]
    try:
        for future in futures:
            future.result()
    except LabError:
        for host in waiting:
            host.stop()
        raise


def stop_all(hosts: Iterable[WineHost]) -> None:
    """Switch hosts off, all at once."""
    waiting = list(hosts)
    with ThreadPoolExecutor(max_workers=max(1, len(waiting))) as pool:
        list(pool.map(WineHost.stop, waiting))


def wait_for_agent(agent: Agent, timeout: float = 120.0) -> None:
    """Until the agent answers ``ping``; LabError when it does not."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        try:
            agent.control("ping")
            return
        except (AgentError, OSError) as error:
            if time.monotonic() > deadline:
                raise LabError(f"agent of host {agent.host} does not answer within {timeout:g} s: {error}") from error
            pause.wait(0.02)


def _append(file: Path, text: str) -> None:
    with file.open("a", encoding="ascii") as handle:
        handle.write(text)


def _tail(file: Path, size: int = 2000) -> str:
    """A log's beginning, where a crash names its cause, and its end."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if len(text) <= 2 * size:
        return text or "(nothing)"
    return f"{text[:size]}\n...\n{text[-size:]}"
