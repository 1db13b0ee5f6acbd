# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the lab's own tests: certificates, an agent that obeys, servers on free ports."""

from __future__ import annotations

import datetime
import ipaddress
import itertools
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from lab import builds
from lab.windows.agent import Agent
from lab.windows.artifacts import ArtifactsConfig
from lab.windows.config import FrontConfig, HostConfig
from lab.windows.control import FrontControl, FrontProcess
from lab.windows.shells import Limits
from lab.windows.simulated import SimulatedServer
from lab.windows.wine import WineHost, base_prefix, boot_all, find_wine, scratch, stop_all
from lab.windows.wsman import EndpointConfig
from winrm.protocol import Protocol

from lab_tests.stub_agent import StubAgent

USER = "Administrator"
PASSWORD = "Pässw0rd!"
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Pki:
    """Files: a certificate for loopback with its key and the CA that signed it, a self-signed one, a user's, SSH keys."""

    ca: Path
    cert: Path
    key: Path
    untrusted_cert: Path
    untrusted_key: Path
    client_cert: Path
    client_key: Path
    ssh_host_key: Path
    ssh_client_key: Path
    authorized_keys: Path


def _certificate(folder: Path, name: str, issuer: tuple[x509.Certificate, Any] | None, *, ca: bool) -> tuple[Any, Any]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if not ca:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = builder.sign(key if issuer is None else issuer[1], hashes.SHA256())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, key


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    folder = tmp_path_factory.mktemp("pki")
    authority = _certificate(folder, "ca", None, ca=True)
    _certificate(folder, "host", authority, ca=False)
    _certificate(folder, "untrusted", None, ca=False)
    _certificate(folder, USER, authority, ca=False)
    for name in ("ssh_host", "ssh_client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return Pki(
        ca=folder / "ca.crt",
        cert=folder / "host.crt",
        key=folder / "host.key",
        untrusted_cert=folder / "untrusted.crt",
        untrusted_key=folder / "untrusted.key",
        client_cert=folder / f"{USER}.crt",
        client_key=folder / f"{USER}.key",
        ssh_host_key=folder / "ssh_host",
        ssh_client_key=folder / "ssh_client",
        authorized_keys=folder / "ssh_client.pub",
    )


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with StubAgent() as agent:
        yield agent


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the front serves."""
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="session")
def front(pki: Pki, artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontProcess]:
    """One front without hosts; tests add theirs with ``serve``."""
    folder = tmp_path_factory.mktemp("front")
    config = FrontConfig(
        ready_file=str(folder / "ready.json"),
        users={USER: PASSWORD},
        tls_cert=str(pki.cert),
        tls_key=str(pki.key),
        tls_client_ca=str(pki.ca),
        ssh_host_key=str(pki.ssh_host_key),
        ssh_authorized_keys=str(pki.authorized_keys),
        artifacts=ArtifactsConfig(
            root=str(artifacts),
            http=0,
            https=0,
            https_untrusted=0,
            untrusted_cert=str(pki.untrusted_cert),
            untrusted_key=str(pki.untrusted_key),
        ),
    )
    with FrontProcess(config, folder) as process:
        yield process
    log = process.log.read_text(encoding="utf-8", errors="replace")
    assert "Traceback" not in log, f"the front had a defect:\n{log}"


@dataclass(frozen=True, slots=True)
class Served:
    """A host behind the front: its name there and its ports."""

    name: str
    ports: dict[str, int]
    control: FrontControl


Serve = Callable[..., Served]


@pytest.fixture
def serve(front: FrontProcess) -> Iterator[Serve]:
    """Serve a host for one test: ``serve(agent_address, ssh=0, basic_over_http=True, ...)``."""
    names: list[str] = []

    def make(agent: str, *, ssh: int | None = None, ssh_shell: Any = "cmd", name: str = "", **endpoint: Any) -> Served:
        name = name or f"host-{next(_NUMBERS)}"
        if "limits" in endpoint:
            endpoint["limits"] = Limits(**endpoint["limits"])
        config = HostConfig(EndpointConfig(name, agent, **endpoint), ssh=ssh, ssh_shell=ssh_shell)
        ports = front.control.add_host(config)["ports"]
        names.append(name)
        return Served(name, ports, front.control)

    yield make
    for name in names:
        front.control.remove_host(name)


@pytest.fixture
def host(serve: Serve, stub: StubAgent) -> Served:
    """The stub agent as a host that allows everything."""
    return serve(stub.address, basic_over_http=True)


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    """One process of simulated hosts, built from this checkout."""
    program = builds.build("winland-linux")["winland"]
    with SimulatedServer(program, tmp_path_factory.mktemp("simulated")) as server:
        yield server


MakeHost = Callable[..., Agent]


@pytest.fixture
def make_host(simulated: SimulatedServer) -> Iterator[MakeHost]:
    """Make simulated hosts for one test: ``make_host(lang="de", ...)``."""
    names: list[str] = []

    def make(**settings: Any) -> Agent:
        number = next(_NUMBERS)
        names.append(f"sim-{number}")
        return simulated.create_host(names[-1], f"127.0.12.{number % 250 + 1}", **settings)

    yield make
    for name in names:
        simulated.delete_host(name)


MakeWineHost = Callable[[str, str], WineHost]


@pytest.fixture(scope="session")
def make_wine_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeWineHost]:
    """Make (not boot) hosts on Wine: ``make_wine_host(name, address)``; they go at the end of the session."""
    wine = find_wine()
    base = base_prefix(wine, builds.cache())
    winland = builds.build("winland-windows")["winland.exe"]
    hosts: list[WineHost] = []
    with scratch(wine, builds.cache()) as folder:

        def make(name: str, address: str) -> WineHost:
            host = WineHost(wine, name, address, folder / name)
            hosts.append(host)
            host.create(base, winland)
            return host

        yield make
        stop_all(hosts)


@pytest.fixture(scope="session")
def wine_hosts(make_wine_host: MakeWineHost) -> list[WineHost]:
    """Two hosts that are up, shared by all tests of the session."""
    hosts = [make_wine_host("wine-1", "127.0.11.101"), make_wine_host("wine-2", "127.0.11.102")]
    boot_all(hosts)
    return hosts


Connect = Callable[..., Protocol]


@pytest.fixture
def connect(host: Served, pki: Pki) -> Connect:
    """pywinrm's protocol to ``host``: ``connect("ntlm", "https", password=...)``."""

    def make(transport: Any = "basic", scheme: str = "http", **more: Any) -> Protocol:
        options = {"username": USER, "password": PASSWORD, "ca_trust_path": str(pki.ca), **more}
        return Protocol(f"{scheme}://127.0.0.1:{host.ports[scheme]}/wsman", transport=transport, **options)

    return make
