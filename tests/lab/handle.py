# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running lab for tests: read it, disturb it, and restore it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lab import control, launch, state
from lab.cluster import nodes, vsphere, workload
from lab.cluster.api import Api, ApiError, Object
from lab.cluster.settings import Settings
from lab.spec import Spec
from lab.state import LabState
from lab.windows.agent import Agent
from lab.windows.control import FrontControl

T = TypeVar("T")
PID = re.compile(rb"^\s*PID\s*:\s*(\d+)", re.MULTILINE)
PODS = f"/api/v1/namespaces/{vsphere.NAMESPACE}/pods"
# Seconds after which what has not come never will: also on a machine that is slow and busy, where controllers of Kubernetes
# poll again only once their own timeout, of up to a minute, is over.
PATIENCE = 240.0


def eventually(probe: Callable[[], T | None], what: str, timeout: float = PATIENCE, longest_pause: float = 0.3) -> T:
    """The first true value that `probe` gives; AssertionError with the last one when none comes in time.

    longest_pause: at most so many seconds between two probes; fewer for what passes quickly.
    """
    began = time.monotonic()
    deadline = began + timeout
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout:g} s, last value {found!r}")
        # A probe costs the lab's API server as much as a request of the product's, so what takes long is asked less often. The loop
        # ends with the probe's value or at the deadline above.
        time.sleep(min(max(0.1, (time.monotonic() - began) / 30), longest_pause))


def longer(first: float) -> Iterator[float]:
    """Seconds for what is to run out of time at a certain point: more and more, for machines that need longer to get there."""
    return (first * factor for factor in (1, 4, 16))


def start(name: str, nodes: int = 3, windows: str = "simulated", **options: Any) -> Lab:
    """Bring up a lab for tests; programs are built if the cache does not hold them.

    The lab ends with this process at the latest, however that ends.
    """
    directory = str(state.paths(name).directory)
    spec = Spec(name, directory, nodes, windows, windows, binaries=launch.binaries(windows), **options)
    reading, writing = os.pipe()
    try:
        made = Lab(launch.up(spec, lambda text: None, lifeline=reading))
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    _lifelines[name] = writing
    return made


# Writing ends of the pipes on which the labs of this process hang, by lab.
_lifelines: dict[str, int] = {}


class Lab:
    """A running lab."""

    def __init__(self, found: LabState) -> None:
        self.name = found.name
        self._settings = Settings.from_json(found.paths.kubelet_settings.read_text(encoding="utf-8"))
        admin = found.paths.pki / "admin.crt"
        self.api = Api(found.server, Path(found.ca), admin)

    @property
    def state(self) -> LabState:
        """The present content of `lab.json`."""
        return state.load(self.name)

    def call(self, verb: str, **arguments: Any) -> Any:
        return control.call(self.name, verb, **arguments)

    def stop(self) -> None:
        launch.down(self.name)
        if (lifeline := _lifelines.pop(self.name, None)) is not None:
            os.close(lifeline)

    # Windows side

    def agent(self, host: str) -> Agent:
        found = self.state.host(host)
        return Agent(found.agent, found.name)

    @property
    def front(self) -> FrontControl:
        return FrontControl(self.state.front)

    def set_service(self, host: str, running: bool, service: str = "csi-proxy") -> None:
        """Start a service on a host, or stop it and end its process: csi-proxy lingers with its pipes after a stop."""
        agent = self.agent(host)

        def reaches(state: bytes) -> None:
            eventually(
                lambda: state in agent.run(f"sc.exe query {service}").stdout, f"{service} on {host} is {state!r}"
            )

        if running:
            agent.run(f"sc.exe start {service}")
            # One that is still starting cannot be stopped.
            reaches(b": 4  RUNNING")
            return
        found = PID.search(agent.run(f"sc.exe queryex {service}").stdout)
        agent.run(f"sc.exe stop {service}")
        # A process that ends before it has reported STOPPED is a crash, and the service's recovery would start it again.
        reaches(b": 1  STOPPED")
        if found is not None and int(found[1]):
            agent.run(f"taskkill.exe /f /pid {int(found[1])}")

    # Cluster side

    @contextmanager
    def settings(self, **changes: Any) -> Iterator[None]:
        """The kubelet stand-in's settings, other ones for the length of a block."""
        path = self.state.paths.kubelet_settings
        dataclasses.replace(self._settings, **changes).write(path)
        try:
            yield
        finally:
            self._settings.write(path)

    def pods(self, label: str, namespace: str = vsphere.NAMESPACE) -> list[Object]:
        """Pods with a label ("app=x"), those that are being deleted left out."""
        found = self.api.items(f"/api/v1/namespaces/{namespace}/pods?labelSelector={label}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def registered(self, node: str, driver: str = vsphere.DRIVER) -> Object | None:
        """The driver's entry in a node's CSINode."""
        drivers = self.api.get(f"{nodes.CSI_NODES}/{node}")["spec"].get("drivers") or []
        return next((entry for entry in drivers if entry["name"] == driver), None)

    def delete_pod(self, pod: Object) -> None:
        metadata = pod["metadata"]
        self.api.gone(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}")

    @contextmanager
    def held(self, pod: Object) -> Iterator[None]:
        """A pod that is deleted stays, terminating, for the length of a block."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self.api.patch(path, {"metadata": {"annotations": {workload.HOLD_DELETE: "true"}}})
        try:
            yield
        finally:
            self.api.patch(path, {"metadata": {"annotations": {workload.HOLD_DELETE: None}}})

    def log(self, pod: Object, container: str, query: str = "") -> str:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/log?container={container}{query}"
        return self.api.request("GET", path).decode()

    @contextmanager
    def without(self, kind: str, name: str) -> Iterator[None]:
        """The vSphere installation lacks one object for the length of a block."""
        vsphere.remove(self.api, kind, name)
        try:
            yield
        finally:
            self.restore_vsphere()

    def restore_vsphere(self) -> None:
        """Make again what is missing of the vSphere installation."""
        for path, thing in vsphere.objects():
            eventually(partial(self._made, path, thing), f"{thing['kind']} again")

    def _made(self, path: str, thing: Object) -> bool:
        try:
            found = self.api.ensure(path, thing)
        except ApiError:
            # Its namespace may still be going away.
            return False
        return "deletionTimestamp" not in found["metadata"]

    def audit(self, user: str = "", since: int = 0) -> list[Object]:
        """Requests in the API server's audit log from an offset (`audit_size`) on, of users whose name ends so."""
        with open(self.state.audit, "rb") as log:
            log.seek(since)
            entries = [json.loads(line) for line in log if line.endswith(b"\n")]
        return [entry for entry in entries if entry["user"]["username"].endswith(user)]

    def audit_size(self) -> int:
        """Where the audit log's last whole line ends: the API server may be writing the next."""
        return Path(self.state.audit).read_bytes().rfind(b"\n") + 1


def ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def waiting_reason(pod: Object, container: str) -> str:
    statuses = pod["status"].get("containerStatuses") or []
    found: Object = next((item for item in statuses if item["name"] == container), {})
    return str(found.get("state", {}).get("waiting", {}).get("reason", ""))
