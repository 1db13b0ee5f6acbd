# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication of one connection to a WS-Man endpoint: Basic, client certificates, NTLM and Kerberos with message encryption.

NTLM is pyspnego's acceptor, so the cryptography is the real protocol; the users come from the file that the variable
NTLM_USER_FILE names (one ``:user:password`` a line), because that is where the acceptor looks. With the package gssapi the
acceptor of Kerberos is the system's library, for the service HTTP of the host that KERBEROS_HOST names, with the keytab of
KRB5_KTNAME.
"""

from __future__ import annotations

import base64
import binascii
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import spnego

BOUNDARY = b"--Encrypted Boundary"
MUTUAL = "http://schemas.dmtf.org/wbem/wsman/1/wsman/secprofile/https/mutual"
PROTOCOL = "application/HTTP-SPNEGO-session-encrypted"
ENCRYPTED_TYPE = f'multipart/encrypted;protocol="{PROTOCOL}";boundary="Encrypted Boundary"'
_SIGNATURE = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Challenge:
    """Answer 401 with these headers; ``handshake`` marks a step of NTLM, not a refusal."""

    headers: tuple[tuple[str, str], ...]
    handshake: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The request may continue; ``headers`` belong into its answer."""

    user: str
    headers: tuple[tuple[str, str], ...] = ()


class NotDecryptable(Exception):
    """The body does not belong to this connection's security context."""


def publish_users(users: Mapping[str, str], path: Path) -> None:
    """Write the file that the NTLM acceptor reads and name it in this process' environment."""
    path.touch(mode=0o600)
    path.write_text("".join(f":{user}:{password}\n" for user, password in users.items()), encoding="utf-8")
    os.environ["NTLM_USER_FILE"] = str(path)


class ConnectionAuth:
    """State of one TCP connection. ``basic``: whether Basic is offered here."""

    def __init__(self, users: Mapping[str, str], *, basic: bool) -> None:
        self._users = users
        self._basic = basic
        self._context: spnego.ContextProxy | None = None
        self._user = ""

    def check(self, authorization: str, certificate: str = "", *, locked_out: bool = False) -> Accepted | Challenge:
        """Evaluate a request by its Authorization header. ``locked_out`` refuses everybody, as a locked account does.

        ``certificate``: whom the client's certificate names; Windows maps it to an account, and here it is the account's name.
        """
        scheme, _blank, token = authorization.partition(" ")
        if scheme == MUTUAL and certificate in self._users and not locked_out:
            return Accepted(certificate)
        if scheme == "Basic" and self._basic:
            return self._check_basic(token, locked_out)
        if scheme in ("Negotiate", "NTLM") and token:
            return self._step(scheme, token, locked_out)
        if self._user and not locked_out:
            return Accepted(self._user)
        return self._refuse()

    def decrypt(self, body: bytes) -> bytes:
        """The SOAP message inside an encrypted body."""
        try:
            payload = body.split(BOUNDARY)[2]
            start = payload.index(b"octet-stream\r\n") + len(b"octet-stream\r\n")
            (length,) = _SIGNATURE.unpack_from(payload, start)
            start += _SIGNATURE.size
            if self._context is None:
                raise NotDecryptable("no security context was established on this connection")
            return self._context.unwrap_winrm(payload[start : start + length], payload[start + length :])
        except (IndexError, ValueError, struct.error, spnego.exceptions.SpnegoError) as error:
            raise NotDecryptable(str(error)) from error

    def encrypt(self, message: bytes) -> bytes:
        if self._context is None:
            raise NotDecryptable("no security context was established on this connection")
        sealed = self._context.wrap_winrm(message)
        return (
            BOUNDARY
            + f"\r\n\tContent-Type: {PROTOCOL}\r\n\tOriginalContent: type=application/soap+xml;charset=UTF-8;".encode()
            + f"Length={len(message) + sealed.padding_length}\r\n".encode()
            + BOUNDARY
            + b"\r\n\tContent-Type: application/octet-stream\r\n"
            + _SIGNATURE.pack(len(sealed.header))
            + sealed.header
            + sealed.data
            + BOUNDARY
            + b"--\r\n"
        )

    def _check_basic(self, token: str, locked_out: bool) -> Accepted | Challenge:
        try:
            raw = base64.b64decode(token)
        except binascii.Error:
            return self._refuse()
        # The header's charset was never settled: clients send UTF-8 or Latin-1.
        for encoding in ("utf-8", "latin-1"):
            user, _colon, password = raw.decode(encoding, "replace").partition(":")
            if not locked_out and self._users.get(user) == password:
                return Accepted(user)
        return self._refuse()

    def _step(self, scheme: str, token: str, locked_out: bool) -> Accepted | Challenge:
        try:
            raw = base64.b64decode(token)
            if self._context is None or self._context.complete:
                # Clients send bare NTLM or wrap it in SPNEGO, under either scheme's name.
                bare = raw.startswith(b"NTLMSSP")
                options = spnego.NegotiateOptions.use_ntlm if bare else spnego.NegotiateOptions.use_negotiate
                host = os.environ.get("KERBEROS_HOST", "unspecified")
                self._context = spnego.server(host, "http", protocol="ntlm" if bare else "negotiate", options=options)
                self._user = ""
            out = self._context.step(raw)
        except (binascii.Error, ValueError, spnego.exceptions.SpnegoError):
            return self._refuse()
        headers = (("WWW-Authenticate", f"{scheme} {base64.b64encode(out).decode()}"),) if out else ()
        if not self._context.complete:
            return Challenge(headers, handshake=True)
        if locked_out:
            return self._refuse()
        self._user = self._context.client_principal or "unknown"
        return Accepted(self._user, headers)

    def _refuse(self) -> Challenge:
        self._context = None
        self._user = ""
        basic = (("WWW-Authenticate", 'Basic realm="WSMAN"'),) if self._basic else ()
        return Challenge((("WWW-Authenticate", "Negotiate"), *basic))
