# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Windows side of a lab: the hosts behind the nodes, the servers in front of them, and the files they download."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import tarfile
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from lab import builds
from lab.children import Child
from lab.cluster import nodes, pki
from lab.cluster.nodes import Node
from lab.cluster.processes import Component
from lab.ports import Ports
from lab.state import Artifact, Host, LabError, Paths
from lab.windows.agent import Agent, AgentError
from lab.windows.artifacts import ArtifactsConfig
from lab.windows.config import FrontConfig, HostConfig, to_json
from lab.windows.control import FrontControl
from lab.windows.wine import WineHost, base_prefix, boot_all, find_wine, wait_for_agent
from lab.windows.wsman import EndpointConfig

if TYPE_CHECKING:
    from lab.supervisor import Supervisor

USER = "Administrator"
LOOPBACK = "127.0.0.1"
# Proves a csi-proxy through its pipes; hosts can download it beside the releases.
CLIENT = "csiclient.exe"
CA_FILE = "kubewin-lab-ca.crt"
SERVERS = ("http", "https", "ssh")


class Machines(Protocol):
    """A way to have Windows hosts."""

    @abstractmethod
    def create(self, wanted: Sequence[Node]) -> dict[str, str]:
        """Make hosts and boot them; answers their agents' addresses by name."""

    def delete(self, name: str) -> None:
        """Switch a host off and forget it."""

    def reboot(self, name: str) -> None:
        """Off and on again; the agent's address stays."""


class WineMachines:
    """Each host a Wine prefix of its own under `hosts/` in the lab's folder."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._place, self._spec = supervisor.place, supervisor.spec
        self._hosts: dict[str, WineHost] = {}

    def create(self, wanted: Sequence[Node]) -> dict[str, str]:
        wine = find_wine()
        base = base_prefix(wine, builds.cache())
        made = [WineHost(wine, node.name, node.address, self._place.directory / "hosts" / node.name) for node in wanted]
        for host in made:
            host.create(base, self._spec.binary("winland.exe"))
        boot_all(made)
        self._hosts.update({host.name: host for host in made})
        return {host.name: host.agent_address for host in made}

    def delete(self, name: str) -> None:
        self._hosts.pop(name).remove()

    def reboot(self, name: str) -> None:
        self._hosts[name].reboot()


class SimulatedMachines:
    """One process that is every host."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._address = ""

    def create(self, wanted: Sequence[Node]) -> dict[str, str]:
        if not self._address:
            port = self._supervisor.ports.take("hosts")
            self._address = f"{LOOPBACK}:{port}"
            program = str(self._supervisor.spec.binary("winland"))
            component = Component("hosts", (program, "serve", "--listen", self._address), "", ("hosts",))
            self._supervisor.run("hosts", lambda: component)
            wait_for_agent(Agent(self._address))
        for node in wanted:
            Agent(self._address, node.name).control("create_host", name=node.name, addresses=[node.address])
        return {node.name: self._address for node in wanted}

    def delete(self, name: str) -> None:
        Agent(self._address, name).control("delete_host")

    def reboot(self, name: str) -> None:
        Agent(self._address, name).control("reboot")


class HostsSide:
    """What the supervisor does about hosts."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._machines: Machines = (
            WineMachines(supervisor) if supervisor.spec.windows == "wine" else SimulatedMachines(supervisor)
        )
        self._front: FrontControl | None = None

    @property
    def _place(self) -> Paths:
        return self._supervisor.place

    @property
    def _ports(self) -> Ports:
        return self._supervisor.ports

    def start(self, authority: pki.Authority) -> None:
        """Boot the hosts, then serve them."""
        spec, place = self._supervisor.spec, self._place
        if spec.windows == "none":
            return
        wanted = [Node.windows_node(number) for number in range(1, spec.host_count + 1)]
        names = [LOOPBACK, "localhost", *(node.name for node in wanted), *nodes.kubelet_addresses()]
        authority.issue("winrm", "kubewin lab hosts", names=names, server=True)
        stranger = pki.Authority.create(place.pki / "untrusted")
        stranger.issue("server", "nobody trusts this", names=[LOOPBACK, "localhost"], server=True)
        password = _password(place.directory / "password")
        _ssh_keys(place.pki)
        self._publish_artifacts()
        agents = self._machines.create(wanted)
        for name, agent in agents.items():
            self._trust_lab(Agent(agent, name))
        self._supervisor.notify(f"{len(agents)} Windows hosts are up ({spec.windows})")
        hosts = tuple(self._host(node, agents[node.name]) for node in wanted)
        served = self._start_front(hosts, password)
        self._front = FrontControl(served["control"])
        known_hosts = place.pki / "known_hosts"
        self._supervisor.update(
            hosts=hosts,
            front=served["control"],
            user=USER,
            password_file=str(place.directory / "password"),
            ssh_key=str(place.pki / "ssh_client"),
            ssh_known_hosts=str(known_hosts),
            artifacts=tuple(self._served(artifact, served["artifacts"]) for artifact in self._artifacts),
        )
        self._write_known_hosts(hosts)
        self._supervisor.notify("WinRM, SSH and the file server answer")

    # Servers

    def _host(self, node: Node, agent: str) -> Host:
        ports = {server: self._ports.take(f"{node.name}-{server}", [node.address]) for server in SERVERS}
        return Host(node.name, node.name, node.address, self._supervisor.spec.windows, agent, **ports)

    def _front_host(self, host: Host) -> HostConfig:
        endpoint = EndpointConfig(
            host.name, host.agent, address=host.address, http=host.http, https=host.https, basic_over_http=True
        )
        return HostConfig(endpoint, ssh=host.ssh)

    def _start_front(self, hosts: Sequence[Host], password: str) -> dict[str, Any]:
        place = self._place
        ready = place.directory / "front.json"
        for name in ("artifacts-http", "artifacts-https", "artifacts-untrusted", "front"):
            self._ports.take(name)
        taken = self._ports.taken
        config = FrontConfig(
            ready_file=str(ready),
            users={USER: password},
            hosts=[self._front_host(host) for host in hosts],
            control_port=taken["front"],
            tls_cert=str(place.pki / "winrm.crt"),
            tls_key=str(place.pki / "winrm.key"),
            ssh_host_key=str(place.pki / "ssh_host"),
            ssh_authorized_keys=str(place.pki / "ssh_client.pub"),
            artifacts=ArtifactsConfig(
                root=str(place.artifacts),
                http=taken["artifacts-http"],
                https=taken["artifacts-https"],
                https_untrusted=taken["artifacts-untrusted"],
                untrusted_cert=str(place.pki / "untrusted" / "server.crt"),
                untrusted_key=str(place.pki / "untrusted" / "server.key"),
            ),
        )
        file = place.directory / "front-config.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(to_json(config)), encoding="utf-8")
        child = self._supervisor.start("front", ("-m", "lab.windows.front", "--config", str(file)), ports=("front",))
        self._await_file(child, ready)
        served: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
        return served

    def _await_file(self, child: Child, file: Path) -> None:
        self._supervisor.children.wait_ready(child, file.exists, 240)

    def _write_known_hosts(self, hosts: Sequence[Host]) -> None:
        key = (self._place.pki / "ssh_host.pub").read_text(encoding="ascii").strip()
        lines = "".join(f"[{host.address}]:{host.ssh} {key}\n" for host in hosts)
        (self._place.pki / "known_hosts").write_text(lines, encoding="ascii")

    # Files that hosts download

    def _publish_artifacts(self) -> None:
        place, spec = self._place, self._supervisor.spec
        place.artifacts.mkdir(exist_ok=True)
        self._artifacts: list[Artifact] = []
        for release in builds.CSI_PROXY_RELEASES:
            file = place.artifacts / f"csi-proxy-{release}.exe"
            if spec.windows == "wine":
                source = spec.binary(file.name)
                try:
                    os.link(source, file)
                except OSError:
                    shutil.copyfile(source, file)
            else:
                file.write_bytes(simulated_program(release))
            digest = builds.sha256(file)
            file.with_name(f"{file.name}.sha256").write_text(f"{digest}  {file.name}\n", encoding="ascii")
            self._artifacts.append(Artifact(release, str(file), digest))

        if spec.windows == "wine":
            shutil.copyfile(spec.binary(CLIENT), place.artifacts / CLIENT)

    def _served(self, artifact: Artifact, ports: dict[str, int]) -> Artifact:
        name = Path(artifact.path).name
        return replace(
            artifact,
            http_url=f"http://{LOOPBACK}:{ports['http']}/{name}",
            https_url=f"https://{LOOPBACK}:{ports['https']}/{name}",
        )

    def _trust_lab(self, agent: Agent) -> None:
        """Put the lab's CA into the host's root store, as a domain does, so that downloads by HTTPS are verified."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(self._place.pki / "ca.crt", CA_FILE)
        line = rf"tar.exe -xf - -C C:\ && certutil.exe -addstore root C:\{CA_FILE} && del C:\{CA_FILE}"
        done = agent.run(line, stdin=packed.getvalue())
        if done.rc != 0:
            output = (done.stdout + done.stderr).decode(errors="replace")
            raise LabError(f"host {agent.host}: the lab's CA was not accepted ({done.rc}): {output}")

    # Changes while the lab runs

    def alive(self) -> dict[str, bool]:
        """Whether each host's agent answers, by host name."""
        hosts = self._supervisor.state.hosts
        with ThreadPoolExecutor(max_workers=8) as pool:
            return dict(zip((host.name for host in hosts), pool.map(_answers, hosts), strict=True))

    def add(self, node: Node) -> None:
        if self._front is None:
            raise LabError(f"lab {self._supervisor.spec.name} has no Windows hosts, so {node.name} gets none")
        agent = self._machines.create([node])[node.name]
        self._trust_lab(Agent(agent, node.name))
        host = self._host(node, agent)
        self._front.add_host(self._front_host(host))
        hosts = (*self._supervisor.state.hosts, host)
        self._supervisor.update(hosts=hosts)
        self._write_known_hosts(hosts)

    def remove(self, name: str) -> None:
        """Take away the host of a node, if it has one."""
        hosts = self._supervisor.state.hosts
        if self._front is None or not any(host.node == name for host in hosts):
            return
        self._front.remove_host(name)
        self._machines.delete(name)
        self._supervisor.update(hosts=tuple(host for host in hosts if host.node != name))

    def reboot(self, host: Host) -> None:
        if self._front is not None:
            self._front.drop_shells(host.name)
        self._machines.reboot(host.name)


def _answers(host: Host) -> bool:
    try:
        Agent(host.agent, host.name, connect_timeout=10.0).control("ping")
    except (AgentError, OSError):
        return False
    return True


def simulated_program(release: str, size: int = 1 << 20, **options: str) -> bytes:
    """A file that simulated hosts run as csi-proxy of that release; see the agent protocol for `options`."""
    head = b"WINLAND-EXE " + json.dumps({"kind": "csi-proxy", "release": release, **options}).encode() + b"\n"
    return head + release.encode() * ((size - len(head)) // len(release))


def _password(path: Path) -> str:
    password = secrets.token_urlsafe(18)
    path.touch(mode=0o600)
    path.write_text(password + "\n", encoding="ascii")
    return password


def _ssh_keys(folder: Path) -> None:
    for name in ("ssh_host", "ssh_client"):
        key = ed25519.Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        file = folder / name
        file.touch(mode=0o600)
        file.write_bytes(private)
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        (folder / f"{name}.pub").write_bytes(public + b"\n")
