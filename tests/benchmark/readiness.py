# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What it costs to read a large cluster and evaluate it, from a peer that serves it over HTTP.

Against json.loads over the same pages, called as a module would call it: one page at a time, with the Kubernetes client loaded
and garbage collection on, which makes it more than twice as dear; the figure without it is reported too. And, at a size that it can
manage, against the same lists asked through kubernetes.core.k8s_info.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import CONFIG_MAP, Kind
from lab import handle
from lab.state import REPOSITORY

from benchmark import stored
from benchmark.apipeer import KINDS
from benchmark.fleet import OBJECTS, Fleet
from benchmark.report import Row
from benchmark.rig import PLAYBOOKS, BenchmarkError, environment

# The limits of Kubernetes, with one node in five on Windows.
LARGE = Fleet(nodes=5000, windows=1000, pods=150_000, volumes=50_000)
# What a real API server of the lab is loaded with.
REAL = Fleet(nodes=2000, windows=400, pods=20_000, volumes=5_000)
# What k8s_info holds in memory without pages; it takes minutes and gigabytes for more.
SMALL = Fleet(nodes=100, windows=20, pods=3_000, volumes=1_000)


# Served by the peer, held by a real API server, and asked for by k8s_info.
SIZES = (LARGE, REAL, SMALL)
TINY = (Fleet(nodes=10, windows=2, pods=300, volumes=100),) * 3


@dataclass(frozen=True, slots=True)
class Cost:
    """One run. cpu, seconds; mib: most memory of a process of it."""

    cpu: float
    seconds: float
    mib: float


@contextlib.contextmanager
def served(fleet: Fleet) -> Iterator[str]:
    """A process that serves a cluster; its address."""
    sizes = {"nodes": fleet.nodes, "windows": fleet.windows, "pods": fleet.pods, "volumes": fleet.volumes}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark.fleet", *(f"--{name}={size}" for name, size in sizes.items())],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        answer = process.stdout.readline() if process.stdout else ""
        if not answer.startswith("LISTEN "):
            raise BenchmarkError(f"the peer did not start: {answer!r}")
        yield answer.split()[1]
    finally:
        process.communicate(timeout=30)


@contextlib.contextmanager
def loaded(fleet: Fleet) -> Iterator[str]:
    """A lab whose API server holds a cluster, and no controller that would change it; its kubeconfig."""
    lab = handle.start(f"bench-{os.getpid()}", nodes=1, windows="none", vsphere=False)
    try:
        stored.alone(lab)
        # One after the other: all of them together would be a gigabyte.
        kinds = {kind.path(): kind for kind in KINDS}
        for path, shelf in fleet.shelves().items():
            kind = kinds[path]
            stored.store(lab, (_whole(kind, shelf.item(number)) for number in range(shelf.count)))
        stored.store(lab, (_whole(CONFIG_MAP, json.dumps(one).encode()) for one in OBJECTS.values()))
        yield lab.state.kubeconfigs["admin"]
    finally:
        lab.stop()


def _whole(kind: Kind, item: bytes) -> tuple[str, bytes]:
    """An object of a list as etcd keeps it."""
    metadata = json.loads(item)["metadata"]
    head = json.dumps({"kind": kind.kind, "apiVersion": kind.api_version})[:-1].encode()
    return stored.key(kind, metadata["name"], metadata.get("namespace", "")), head + b"," + item[1:]


def _size(fleet: Fleet) -> str:
    return f"{fleet.nodes:,} nodes, {fleet.windows:,} of them Windows, {fleet.pods:,} pods, {fleet.volumes:,} volumes"


def read(server: str, fleet: Fleet) -> dict[str, Any]:
    """Measurements that a reading and evaluating process reports."""
    found = _run([server], json.dumps(fleet.hosts()))
    expected = fleet.volumes * fleet.windows // fleet.nodes
    if found["verdict"] != "ready" or found["volumes"] != expected:
        raise BenchmarkError(f"a healthy cluster with {expected} volumes on Windows was evaluated {found}")
    return found


def decoded(server: str) -> dict[str, Any]:
    """What json.loads over the same pages takes."""
    return _run([server, "--json"])


def measure(
    folder: Path, notify: Callable[[str], None], sizes: tuple[Fleet, Fleet, Fleet] = SIZES
) -> dict[str, Sequence[Row]]:
    """All comparisons."""
    large_fleet, real_fleet, small_fleet = sizes
    notify(f"a cluster of {large_fleet.nodes:,} nodes")
    with served(large_fleet) as url:
        ours = read(url, large_fleet)
        notify("its pages through json.loads")
        bare = decoded(url)
    notify(f"a real API server with {real_fleet.nodes:,} nodes")
    with loaded(real_fleet) as config:
        real = read(config, real_fleet)
        plain = decoded(config)
    notify(f"a cluster of {small_fleet.nodes} nodes, through kubernetes.core.k8s_info")
    with served(small_fleet) as url:
        mine = _play(folder, "readiness_ours.yml", url, small_fleet)
        theirs = _play(folder, "readiness_peer.yml", url, small_fleet)
    large, real_size, small = map(_size, sizes)
    return {
        f"Reading and evaluating {large} ({bare['bytes'] / 1e6:,.0f} MB), beside json.loads alone over the same pages": [
            Row("share of its CPU", ours["cpu"] / bare["cpu"], digits=2, at_most=0.3),
            Row("the same, with its garbage collection off", ours["cpu"] / bare["without_gc"], digits=2),
            Row("CPU", ours["cpu"], bare["cpu"], "s", 1),
            Row("of it evaluating", ours["cpu"] - ours["reading"], unit="s", digits=1),
            Row("memory, at most", ours["mib"], unit="MiB", at_most=200),
            Row("time", ours["seconds"], unit="s", digits=1, at_most=10),
        ],
        f"{real_size} ({plain['bytes'] / 1e6:,.0f} MB) on a real API server": [
            Row("share of the CPU of json.loads", real["cpu"] / plain["cpu"], digits=2, at_most=0.3),
            Row("CPU", real["cpu"], plain["cpu"], "s", 1),
            Row("memory, at most", real["mib"], unit="MiB", at_most=200),
            Row("time, most of it the server's", real["seconds"], unit="s"),
        ],
        f"{small}: a play with preflight_info, and one that asks the same lists with k8s_info and evaluates nothing": [
            Row("CPU", mine.cpu, theirs.cpu, "s", 1),
            Row("memory, at most", mine.mib, theirs.mib, "MiB"),
            Row("time", mine.seconds, theirs.seconds, "s", 1),
        ],
    }


def _environment() -> dict[str, str]:
    paths = [str(REPOSITORY / "tests"), str(REPOSITORY / ".collections")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NO_PROXY": "127.0.0.1"}


def _run(arguments: Sequence[str], given: str = "") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmark.reading", *arguments],
        env=_environment(), input=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise BenchmarkError(f"benchmark.reading ended with {done.returncode}:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _play(folder: Path, playbook: str, url: str, fleet: Fleet) -> Cost:
    variables = folder / "readiness.json"
    variables.write_text(json.dumps({"readiness_hosts": fleet.hosts()}), encoding="utf-8")
    pinned = json.dumps({"ansible_connection": "local", "ansible_python_interpreter": sys.executable})
    log = folder / f"{playbook}.log"
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-e", pinned,
                "-e", f"@{variables}", str(PLAYBOOKS / playbook),
            ],
            cwd=folder,
            env={**environment(), "K8S_AUTH_HOST": url, "K8S_AUTH_API_KEY": "peer"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )  # fmt: skip
        _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BenchmarkError(f"{playbook} ended with {process.returncode}:\n{log.read_text(errors='replace')[-4000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024)
