# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys and certificates of one lab: a CA of its own, servers and clients signed by it."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
API_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
API_ADDRESSES = ("127.0.0.1", "10.0.0.1")

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def _private_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that writes `<name>.crt` and `<name>.key` into one folder."""

    folder: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, folder: Path) -> Authority:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubewin-lab-ca")])
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write(folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM))
        _write(folder / "ca.key", _private_pem(key))
        return cls(folder, certificate, key)

    def issue(
        self,
        file: str,
        common_name: str,
        organizations: Sequence[str] = (),
        names: Sequence[str] = (),
        server: bool = False,
    ) -> None:
        """Sign a leaf; `names` are DNS names or addresses, for servers."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.timezone.utc)
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
            )
        certificate = builder.sign(self.key, hashes.SHA256())
        _write(self.folder / f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM))
        _write(self.folder / f"{file}.key", _private_pem(key))


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def create(folder: Path, kubelet_addresses: Sequence[str]) -> Authority:
    """Everything that the control plane needs, in `folder`."""
    authority = Authority.create(folder)
    authority.issue("apiserver", "kube-apiserver", names=(*API_NAMES, *API_ADDRESSES), server=True)
    authority.issue(
        "kubelet",
        "system:node:lab",
        ("system:nodes",),
        names=("localhost", "127.0.0.1", *kubelet_addresses),
        server=True,
    )
    authority.issue("components", "lab-components", names=("localhost", "127.0.0.1"), server=True)
    authority.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client")
    authority.issue("admin", "lab-admin", ("system:masters",))
    authority.issue("kwok", "lab-kwok", ("system:masters",))
    authority.issue("kubelet-client", "lab-kubelet", ("system:masters",))
    authority.issue("controller-manager", "system:kube-controller-manager")
    authority.issue("scheduler", "system:kube-scheduler")
    key = rsa.generate_private_key(65537, 2048)
    _write(folder / "sa.key", _private_pem(key))
    _write(
        folder / "sa.pub",
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
    return authority
