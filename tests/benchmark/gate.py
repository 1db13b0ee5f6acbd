# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon a gate notices that the last node is there: by watch, and by polling every 5 s.

In a lab of its own a node is added whose plugin pod does not start yet. Once both gates report that they wait for it the pod is let
start; what counts is how long each of them needs from the write that makes the pod Ready and registered, as the API server's audit
log has it, until it reports its task done.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lab import handle
from lab.cluster.vsphere import DRIVER, NAMESPACE

from benchmark.report import Row
from benchmark.rig import PLAYBOOKS, BenchmarkError, environment

# Seconds after both gates wait, one trial each: with them the polling gate is met at different moments of its wait.
PHASES = (0.5, 2.2, 3.8)
_HELD = 3600.0
PIPES = ("csi-proxy-disk-v1", "csi-proxy-filesystem-v1", "csi-proxy-system-v1alpha1", "csi-proxy-volume-v1")
_LONGEST = 600.0
# Our gate's progress, and the line that Ansible prints for a task with `until`.
_WAITING = re.compile(r"^\s+\d[\w ]* of \d[\w ]*: |^FAILED - RETRYING: ")


def measure(folder: Path, notify: Callable[[str], None], phases: Sequence[float] = PHASES) -> dict[str, Sequence[Row]]:
    """Run all trials in a lab of their own and answer the table."""
    notify("a cluster for the gate")
    lab = handle.start(f"bench-{os.getpid()}", windows="none")
    try:
        _Play(folder, lab, "gate_setup.yml", {}).wait()
        names = _windows(lab)
        for name in names:
            _mark(lab, name)
        _until("the first plugin pods to be Ready", lambda: names <= _ready(lab))
        observed: list[tuple[float, float]] = []
        for phase in phases:
            notify(f"gate, the last pod may start {phase:g} s after both gates wait for it")
            observed.append(_trial(folder, lab, phase))
    finally:
        lab.stop()
    ours, peer = zip(*observed, strict=True)
    return {
        "Gate: from the last pod Ready and registered to the task being done; the peer polls every 5 s": [
            Row("median", statistics.median(ours), statistics.median(peer), "s", 2, at_most=1),
            Row("worst", max(ours), max(peer), "s", 2),
        ]
    }


def _trial(folder: Path, lab: handle.Lab, phase: float) -> tuple[float, float]:
    """Seconds after the event at which our gate and the polling one were done. The event is made to come after both wait."""
    added = lab.call("node-add")
    names = sorted(_windows(lab))
    try:
        size = lab.audit_size()
        with lab.settings(start_delay=_HELD):
            _mark(lab, added)
            hosts = {"gate_hosts": [_host(name) for name in names]}
            nodes = {"gate_nodes": names, "gate_driver": DRIVER, "gate_namespace": NAMESPACE}
            ours, peer = _Play(folder, lab, "gate_ours.yml", hosts), _Play(folder, lab, "gate_peer.yml", nodes)
            _until("both gates to wait for the added node", lambda: ours.waits and peer.waits)
            time.sleep(phase)
        _until("the added node to be ready", lambda: set(names) <= _ready(lab))
        happened = _written(lab, size, added, time.time())
        return ours.wait() - happened, peer.wait() - happened
    finally:
        lab.call("node-remove", name=added)


class _Play:
    """A playbook that runs."""

    def __init__(self, folder: Path, lab: handle.Lab, playbook: str, variables: Mapping[str, Any]) -> None:
        self.playbook = playbook
        self._text = ""
        self._done = 0.0
        self._waiting = False
        pinned = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self._process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("ansible-playbook")),
                *("-i", "localhost,", "-e", json.dumps({**pinned, **variables})),
                str(PLAYBOOKS / playbook),
            ],
            cwd=folder,
            env={
                **environment(),
                "ANSIBLE_DISPLAY_OK_HOSTS": "1",
                "PYTHONUNBUFFERED": "1",
                "K8S_AUTH_KUBECONFIG": lab.state.kubeconfigs["admin"],
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            now = time.time()
            if line.startswith(("ok: [localhost]", "changed: [localhost]")):
                self._done = now
            elif _WAITING.search(line):
                self._waiting = True
            self._text += line

    @property
    def waits(self) -> bool:
        """Whether it has reported that it waits. BenchmarkError if it ended before."""
        if self._process.poll() is not None and not self._waiting:
            raise BenchmarkError(f"{self.playbook} ended before it waited:\n{self._text[-4000:]}")
        return self._waiting

    def wait(self) -> float:
        """Wait for its end; answers when its last task was reported done, in seconds since 1970."""
        try:
            self._process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.returncode != 0:
            raise BenchmarkError(f"{self.playbook} ended with {self._process.returncode}:\n{self._text[-4000:]}")
        return self._done


def _windows(lab: handle.Lab) -> set[str]:
    return {name for name in lab.state.nodes if name.startswith("win-")}


def _mark(lab: handle.Lab, name: str) -> None:
    """What the play does once a host's pipes were proven."""
    lab.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"kubewin.io/csi-proxy": "serving"}}})


def _ready(lab: handle.Lab) -> set[str]:
    """Nodes whose plugin pod is Ready and whose CSINode names the driver."""
    pods = {
        pod["spec"].get("nodeName", "")
        for pod in lab.api.items(handle.PODS)
        if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    }
    return {name for name in pods if name in _windows(lab) and lab.registered(name)}


def _written(lab: handle.Lab, size: int, node: str, seen: float) -> float:
    """When the last write to a node's pods or its CSINode before it was seen ready was done; seconds since 1970."""
    pods = {pod["metadata"]["name"] for pod in lab.api.items(handle.PODS) if pod["spec"].get("nodeName") == node}
    moments = [
        datetime.fromisoformat(entry["stageTimestamp"].replace("Z", "+00:00")).timestamp()
        for entry in lab.audit("", size)
        if entry["verb"] in ("create", "update", "patch")
        and (entry.get("objectRef") or {}).get("resource") in ("pods", "csinodes")
        and (entry.get("objectRef") or {}).get("name") in {node, *pods}
    ]
    return max(moment for moment in moments if moment <= seen)


def _host(name: str) -> dict[str, Any]:
    """The result of csi_proxy_info for a host that serves."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"node": name, "observed_at": now, "serving": True, "release": "1.3.0", "pipes": list(PIPES)}


def _until(what: str, condition: Callable[[], bool]) -> float:
    """Wait for a condition; answers when it was first seen. BenchmarkError when it never is."""
    deadline = time.monotonic() + _LONGEST
    while time.monotonic() < deadline:
        if condition():
            return time.monotonic()
        time.sleep(0.02)
    raise BenchmarkError(f"waited {_LONGEST:g} s in vain for {what}")
