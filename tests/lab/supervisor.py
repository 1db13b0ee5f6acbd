# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that a lab is: starts everything, answers calls, and takes everything along when it ends.

`python -m lab.supervisor SPEC` is started by `lab up` through unshare(1), as process 1 of a PID namespace. While it
starts it writes progress as JSON lines to file descriptor `--progress`; the last line is `{"ready": true}` or
`{"failed": "..."}`. Ending needs no order: the kernel kills the whole namespace with it, and no data outlives the
lab.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import urllib3
import yaml

from lab import control, inventory, state
from lab.children import Child, Children, PortTaken, init
from lab.cluster import nodes, pki, processes, stages, vsphere
from lab.cluster.access import access, service_account_kubeconfig
from lab.cluster.api import Api, ApiError, kubeconfig
from lab.cluster.nodes import Node
from lab.cluster.processes import Component
from lab.cluster.settings import Settings
from lab.hosts import HostsSide
from lab.ports import Ports
from lab.spec import Spec
from lab.state import LabError, LabState, Paths

START_TRIES = 4
# What has not come up by then never will, also where several labs start on a small machine at once.
START_SECONDS = 240.0
PORTS = ("etcd", "etcd-peer", "api", "controller-manager", "scheduler", "kwok")
CLIENTS = {
    "admin": "admin",
    "controller-manager": "controller-manager",
    "scheduler": "scheduler",
    "kwok": "kwok",
}


class Progress:
    """Lines for the process that started the lab; silent once it stops reading."""

    def __init__(self, descriptor: int | None) -> None:
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8") if descriptor is not None else None

    def send(self, **message: Any) -> None:
        print(json.dumps(message), flush=True)
        if self._stream is not None:
            try:
                self._stream.write(json.dumps(message) + "\n")
                self._stream.flush()
            except BrokenPipeError:
                self._stream = None

    def notify(self, text: str) -> None:
        self.send(text=text)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class Supervisor:
    """One lab's life."""

    def __init__(self, spec: Spec, progress: Progress) -> None:
        self.spec = spec
        self.place = Paths(Path(spec.directory))
        self._progress = progress
        self.ports = Ports()
        self._lock = threading.RLock()
        self._done = threading.Event()
        self._stopped: set[str] = set()
        self._makers: dict[str, Callable[[], Component]] = {}
        # What components leave in a temporary folder goes with the lab, however they end.
        scratch = self.place.directory / "tmp"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(scratch)}
        scratch.mkdir(exist_ok=True)
        self.children = Children(self.place.logs, environment)
        self._http = urllib3.PoolManager(
            ca_certs=str(self.place.pki / "ca.crt"),
            cert_file=str(self.place.pki / "admin.crt"),
            key_file=str(self.place.pki / "admin.key"),
            retries=False,
        )
        self.state = LabState(
            name=spec.name,
            directory=spec.directory,
            server="",
            ca=str(self.place.pki / "ca.crt"),
            audit=str(self.place.audit),
            windows=spec.windows,
            requested_windows=spec.requested,
            started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        )
        self._hosts = HostsSide(self)

    # Start

    def bring_up(self) -> None:
        """Start the whole lab.

        Raises LabError.
        """
        self.place.logs.mkdir(exist_ok=True)
        self.place.kubeconfigs.mkdir(exist_ok=True)
        authority = pki.create(self.place.pki, nodes.kubelet_addresses())
        (self.place.directory / "audit-policy.yaml").write_text(processes.AUDIT_POLICY)
        (self.place.directory / "stages.yaml").write_text(stages.render())
        Settings(pipes_without_host=self.spec.windows == "none").write(self.place.kubelet_settings)
        for name in PORTS:
            self.ports.take(name)
        self.ports.take("kubelet", self._kubelet_addresses())
        works = (lambda: self._hosts.start(authority), self._start_cluster)
        threads = [threading.Thread(target=self._guard, args=(work,)) for work in works]
        self._failures: list[BaseException] = []
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]
        with self._lock:
            self.update(ready=True, inventories=inventory.write(self.state))

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # handed to the main thread, which reports it
            self._failures.append(error)

    def _kubelet_addresses(self) -> list[str]:
        own = [nodes.address(number) for number in range(1, min(self.spec.nodes, nodes.PER_NET) + 1)]
        return ["127.0.0.1", nodes.LINUX_ADDRESS, *own]

    def _start_cluster(self) -> None:
        spec, place, ports = self.spec, self.place, self.ports.taken
        self.run("etcd", lambda: processes.etcd(spec.binary("etcd"), place, ports))
        self.run("apiserver", lambda: processes.apiserver(spec.binary("kube-apiserver"), place, ports))
        server = f"https://127.0.0.1:{ports['api']}"
        self._write_kubeconfigs(server)
        api = self.api
        version = api.get("/version")["gitVersion"]
        self.notify(f"API server {version} answers at {server}")
        with self._lock:
            self.update(server=server, version=version)
        makers: dict[str, Callable[[], Component]] = {
            "controller-manager": lambda: processes.controller_manager(
                spec.binary("kube-controller-manager"), place, ports
            ),
            "scheduler": lambda: processes.scheduler(spec.binary("kube-scheduler"), place, ports),
            "kwok": lambda: processes.kwok(spec.binary("kwok"), place, ports),
        }
        started = {name: self._spawn(name, make) for name, make in makers.items()}
        wanted = [Node.linux_node(), *(Node.windows_node(number) for number in range(1, spec.nodes + 1))]
        for node in wanted:
            nodes.add(api, node, ports["kubelet"], spec.kubelets.get(node.name, nodes.KUBELET_VERSION))
        if spec.vsphere:
            vsphere.install(api)
        access(api)
        token_config = service_account_kubeconfig(api, server, place.pki / "ca.crt")
        self._write_kubeconfig("kubewin", token_config)
        with self._lock:
            self.update(
                ports=dict(ports),
                nodes=tuple(node.name for node in wanted),
                kubeconfigs={name: str(place.kubeconfigs / f"{name}.yaml") for name in ("admin", "kubewin")},
            )
        self.run("kubelet", lambda: processes.kubelet(place, ports))
        for name, child in started.items():
            self._wait(name, child)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.children.wait_ready(started["controller-manager"], lambda: api.ok(account), START_SECONDS)
        if spec.vsphere:
            self.children.wait_ready(started["kwok"], lambda: _controller_ready(api), START_SECONDS)
        self.notify(f"cluster is ready: {len(wanted)} nodes, {spec.nodes} of them Windows")

    def notify(self, text: str) -> None:
        self._progress.notify(text)

    @property
    def api(self) -> Api:
        """The API server, as its administrator."""
        return Api(
            f"https://127.0.0.1:{self.ports.taken['api']}", self.place.pki / "ca.crt", self.place.pki / "admin.crt"
        )

    def _write_kubeconfigs(self, server: str) -> None:
        for name, file in CLIENTS.items():
            credentials = {
                "client-certificate": str(self.place.pki / f"{file}.crt"),
                "client-key": str(self.place.pki / f"{file}.key"),
            }
            self._write_kubeconfig(name, kubeconfig(server, self.place.pki / "ca.crt", f"lab-{name}", credentials))

    def _write_kubeconfig(self, name: str, content: dict[str, Any]) -> None:
        state.write_atomic(self.place.kubeconfigs / f"{name}.yaml", yaml.safe_dump(content, sort_keys=False))

    # Components

    def start(self, name: str, words: tuple[str, ...], ports: tuple[str, ...] = ()) -> Child:
        """Start a part that is written in Python; `words` follow the interpreter."""
        return self._spawn(name, lambda: Component(name, (sys.executable, *words), "", ports))

    def run(self, name: str, make: Callable[[], Component], limit: float = START_SECONDS) -> None:
        """Start a component and wait until it is ready; with other ports if a stranger took one in between."""
        self._wait(name, self._spawn(name, make), limit)

    def _spawn(self, name: str, make: Callable[[], Component]) -> Child:
        self._makers[name] = make
        self._stopped.discard(name)
        return self.children.spawn(make())

    def _wait(self, name: str, child: Child, limit: float = START_SECONDS) -> None:
        for attempt in range(START_TRIES):
            try:
                self.children.wait_ready(child, partial(self.healthy, child), limit)
                return
            except PortTaken:
                if attempt + 1 == START_TRIES or name == "kubelet":
                    raise LabError(f"{name}: its ports were taken by others {START_TRIES} times running") from None
                for port in child.component.ports:
                    self.ports.renew(port)
                self.notify(f"{name}: a port was taken meanwhile, trying another")
                child = self.children.spawn(self._makers[name]())

    def healthy(self, child: Child) -> bool:
        if child.rc is not None:
            return False
        url = child.component.health
        if not url:
            return True
        try:
            return bool(self._http.request("GET", url, timeout=10).status == 200)
        except urllib3.exceptions.HTTPError:
            return False

    def update(self, **changes: Any) -> None:
        """Change the state and write it."""
        with self._lock:
            self.state = replace(self.state, **changes)
            if self.state.server:
                state.save(self.state)

    # Verbs

    def verbs(self) -> dict[str, control.Verb]:
        return {
            "status": self.status,
            "down": self.down,
            "stop": self.stop_component,
            "start": self.start_component,
            "node-add": self.node_add,
            "node-remove": self.node_remove,
            "reboot": self.reboot,
        }

    def status(self) -> dict[str, Any]:
        """Components with state, pid, ports, seconds of life and memory; `healthy` if every one works."""
        rows = []
        for name, child in list(self.children.table.items()):
            stopped = name in self._stopped
            healthy = self.healthy(child)
            word = (
                "running"
                if healthy
                else "stopped"
                if stopped
                else "unhealthy"
                if child.rc is None
                else f"exited {child.rc}"
            )
            rows.append(
                {
                    "name": name,
                    "state": word,
                    "healthy": healthy,
                    "pid": child.pid,
                    "ports": [self.ports.taken[port] for port in child.component.ports if port in self.ports.taken],
                    "seconds": round(time.monotonic() - child.started) if child.rc is None else 0,
                    "mib": _resident(child.pid) if child.rc is None else 0,
                    "log": str(child.log),
                }
            )
        hosts = self._hosts.alive()
        healthy = all(row["healthy"] for row in rows) and all(hosts.values()) and self.state.ready
        return {"components": rows, "hosts": hosts, "healthy": healthy}

    def down(self) -> None:
        # The caller waits for the lock to be free, not for this answer alone.
        threading.Timer(0.05, self._done.set).start()

    def stop_component(self, name: str) -> None:
        """Kill a component, as a crash would; `start` brings it back on the same port."""
        if name not in self.children.table:
            raise LabError(f"no component {name!r}; there are {', '.join(sorted(self.children.table))}")
        self._stopped.add(name)
        self.children.stop(name, signal.SIGKILL)

    def start_component(self, name: str) -> None:
        if name not in self._makers:
            raise LabError(f"no component {name!r}; there are {', '.join(sorted(self._makers))}")
        child = self.children.table.get(name)
        if child is None or child.rc is not None:
            self.run(name, self._makers[name])

    def node_add(self, number: int | None = None, host: bool = True, kubelet: str = nodes.KUBELET_VERSION) -> str:
        """Add a Windows node (the next free number unless given), with a host if the lab has them; answers its name."""
        with self._lock:
            taken = {int(name.removeprefix("win-")) for name in self.state.nodes if name.startswith("win-")}
            number = number or next(candidate for candidate in range(1, 100000) if candidate not in taken)
            node = Node.windows_node(number)
            if node.name in self.state.nodes:
                raise LabError(
                    f"lab {self.spec.name} has a node {node.name} already; leave the name out to get a free one"
                )
            if host and self.spec.windows != "none":
                self._hosts.add(node)
            nodes.add(self.api, node, self.ports.taken["kubelet"], kubelet)
            self.update(nodes=(*self.state.nodes, node.name))
            self.update(inventories=inventory.write(self.state))
            return node.name

    def node_remove(self, name: str) -> None:
        """Delete the Node and its host."""
        with self._lock:
            if name not in self.state.nodes:
                known = ", ".join(self.state.nodes)
                raise LabError(f"lab {self.spec.name} has no node {name!r}; its nodes are {known}")
            nodes.remove(self.api, name)
            self._hosts.remove(name)
            self.update(nodes=tuple(node for node in self.state.nodes if node != name))
            self.update(inventories=inventory.write(self.state))

    def reboot(self, name: str) -> str:
        """Restart the host behind a node, then report a new boot id; answers that id."""
        if any(host.node == name for host in self.state.hosts):
            self._hosts.reboot(self.state.host(name))
        return nodes.reboot(self.api, name)

    def listen(self) -> None:
        """Answer calls from now on."""
        self._server = control.Server(self.place.control, self.verbs())

    def wait(self) -> None:
        """Until `down` is requested."""
        self._done.wait()
        self.children.end()


def _controller_ready(api: Api) -> bool:
    path = f"/apis/apps/v1/namespaces/{vsphere.NAMESPACE}/deployments/vsphere-csi-controller"
    try:
        return bool(api.get(path)["status"].get("readyReplicas") == 1)
    except (ApiError, urllib3.exceptions.HTTPError):
        return False


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
            return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)
    except OSError:
        return 0


def _end_with(lifeline: int) -> None:
    """End at once when the other end of the pipe is closed, as it is when its holder dies."""
    while os.read(lifeline, 1):
        continue
    os._exit(0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.supervisor")
    parser.add_argument("spec", type=Path)
    parser.add_argument("--progress", type=int, help="file descriptor for progress lines")
    parser.add_argument("--lifeline", type=int, help="file descriptor: the lab ends when its other end is closed")
    options = parser.parse_args(arguments)
    spec = Spec.read(options.spec)
    init()
    progress = Progress(options.progress)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if options.lifeline is not None:
        threading.Thread(target=_end_with, args=(options.lifeline,), daemon=True).start()
    supervisor = Supervisor(spec, progress)
    try:
        supervisor.bring_up()
    except (LabError, ApiError, OSError, ValueError, KeyError) as error:
        progress.send(failed=str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}")
        return 1
    supervisor.listen()
    progress.send(ready=True)
    progress.close()
    supervisor.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
