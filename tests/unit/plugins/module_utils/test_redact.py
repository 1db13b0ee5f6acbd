# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No planted secret survives the redactor, whatever it is wrapped in, and what support needs to read does."""

from __future__ import annotations

import base64
import html
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.redact import (
    HIDDEN,
    Redactor,
    decoded,
    is_secret,
    kubeconfig_secrets,
    texts,
)

PLAIN = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
# Further characters of passwords, outside of any syntax.
SPECIAL = PLAIN + "!#$%*+-./:=?@_~"
ANY = SPECIAL + " \"'\\&<>|^;,()[]{}äß€"


def secret(seed: int, letters: str, size: int = 0) -> str:
    draw = random.Random(seed)
    inner = "".join(draw.choice(letters) for _one in range((size or draw.randint(8, 40)) - 2))
    return f"{draw.choice(PLAIN)}{inner}{draw.choice(PLAIN)}"


def readings(text: str, depth: int = 2) -> Iterator[str]:
    """Everything that a reader with tools gets out of a text."""
    yield text
    yield text.replace("\x00", "")
    yield unquote_plus(text)
    yield html.unescape(text)
    yield re.sub(r"\\(.)", r"\1", text)
    yield re.sub(r"\^(.)", r"\1", text)
    for token in re.findall(r"(?:[A-Za-z0-9+/_-]{4,}(?:\s|\\n)*)+={0,2}", text) if depth else ():
        bare = re.sub(r"\s|\\n", "", token).rstrip("=").replace("-", "+").replace("_", "/")
        for begin in range(4):
            piece = bare[begin:]
            piece = piece[: len(piece) - (len(piece) % 4 == 1)]
            raw = base64.b64decode(piece + "=" * (-len(piece) % 4))
            yield raw.replace(b"\0", b"").decode("latin-1")
            yield from readings(raw.decode("utf-8", "ignore"), depth - 1)
            yield raw[: len(raw) // 2 * 2].decode("utf-16-le", "ignore")
    for token in re.findall(r"(?:[0-9a-fA-F]{2}){4,}", text):
        yield bytes.fromhex(token).replace(b"\0", b"").decode("utf-8", "ignore")


def survives(planted: str, text: str) -> bool:
    return any(planted in one for one in readings(text))


def b64(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


# A secret that the run holds is found without anything beside it.
WRAPPED: dict[str, Callable[[str], str]] = {
    "clear": lambda s: f"E1122 it failed with {s} and ended",
    "at an end": lambda s: f"it failed with {s}",
    "json": lambda s: json.dumps({"a": {"b": f"x{s}y"}}),
    "json in json": lambda s: json.dumps({"a": json.dumps({"b": s})}),
    "url": lambda s: f"GET http://host/path?x={quote(s, safe='')}&y=1",
    "form": lambda s: f"x={quote_plus(s)}&y=1",
    "url in a url": lambda s: f"to=http%3A%2F%2Fhost%3Fx%3D{quote(quote(s, safe=''), safe='')}",
    "html": lambda s: f"<Data>{html.escape(s)}</Data>",
    "base64": lambda s: f"data: {b64(s)}",
    "base64, between": lambda s: f"data: {b64('user:' + s + '@host')}",
    "base64, wrapped": lambda s: "\n".join(re.findall(".{1,16}", b64("a secret is " + s + " and more of it"))),
    "base64 of base64": lambda s: b64(b64(f"x{s}y")),
    "base64 for urls": lambda s: base64.urlsafe_b64encode(f"??{s}??".encode()).decode().rstrip("="),
    "utf-16": lambda s: f"log {s} end".encode("utf-16-le").decode("latin-1") if s.isascii() else s,
    "utf-16 in base64": lambda s: f"powershell -e {b64('echo ' + s, 'utf-16-le')}",
    "hex": lambda s: f"0x{s.encode().hex()}",
    "hex of utf-16": lambda s: f"    Data    REG_BINARY    {s.encode('utf-16-le').hex().upper()}",
    "cmd": lambda s: "echo " + re.sub(r"([&|<>^%!()])", r"^\1", s),
    "shell": lambda s: "echo " + re.sub(r"(\W)", r"\\\1", s),
    "yaml": lambda s: yaml.safe_dump({"a": [s]}, width=10_000, allow_unicode=True),
}  # fmt: skip

# An unknown secret is found by its context.
NAMED: dict[str, Callable[[str], str]] = {
    "pair": lambda s: f"connecting with password={s} to host",
    "colon": lambda s: f"password: {s}",
    "indented": lambda s: f"auth:\n  password: {s}\n  user: admin",
    "quoted": lambda s: f"admin_password = '{s}'",
    "json": lambda s: json.dumps({"user": "admin", "clientSecret": s, "port": 443}),
    "json in json": lambda s: json.dumps({"msg": json.dumps({"token": s, "port": 1})}),
    "flag": lambda s: f"csi.exe --account-key {s} --v 5",
    "flag with a sign": lambda s: f"csi.exe --token={s} --v=5",
    "flag in a list": lambda s: json.dumps({"args": ["--password", s, "--v", "5"]}),
    "environment": lambda s: json.dumps([{"name": "AZURE_CLIENT_SECRET", "value": s}]),
    "environment, pretty": lambda s: json.dumps([{"name": "DB_PASSWORD", "value": s}], indent=2),
    "environment in yaml": lambda s: f"- name: DB_PASSWORD\n  value: {s}\n- name: PORT\n  value: '1'",
    "export": lambda s: f"set AWS_SECRET_ACCESS_KEY={s}",
    "registry": lambda s: f"    DefaultPassword    REG_SZ    {s}",
    "bearer": lambda s: f"Authorization: Bearer {s}",
    "basic": lambda s: f"'Authorization': 'Basic {b64('admin:' + s)}'",
    "header": lambda s: f'"headers": {{"X-Auth-Token": "{s}"}}',
    "url": lambda s: f"cloning https://user:{quote(s, safe='')}@host.example.com/repo.git",
    "signed url": lambda s: f"GET https://a.blob.core.windows.net/c/f?sv=2024&sig={quote(s, safe='')}&se=1",
    "connection string": lambda s: f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={s};EndpointSuffix=b",
    "net use": lambda s: f"net use X: \\\\nas\\share {s} /user:lab\\joe",
    "powershell": lambda s: f"ConvertTo-SecureString -String '{s}' -AsPlainText -Force",
    "encoded command": lambda s: f"powershell.exe -EncodedCommand {b64(f'$password = {s!r}', 'utf-16-le')}",
    "kubeconfig": lambda s: yaml.safe_dump({"users": [{"name": "a", "user": {"token": s, "password": s}}]}),
    "kubeconfig in base64": lambda s: f"config: {b64(yaml.safe_dump({'users': [{'user': {'token': s}}]}))}",
    "secret object": lambda s: json.dumps({"kind": "Secret", "data": {"password": b64(s)}}),
    "block": lambda s: f"stringData:\n  password: |\n    {s}\n    {s}\n  user: admin\n",
    "next line": lambda s: f"password:\n  {s}\nuser: admin\n",
    "private key": lambda s: f"x\n-----BEGIN RSA PRIVATE KEY-----\n{s}\n-----END RSA PRIVATE KEY-----\ny",
    "private key, escaped": lambda s: json.dumps({"k": f"-----BEGIN PRIVATE KEY-----\n{s}\n-----END PRIVATE KEY-----"}),
    "private key, truncated": lambda s: f"x\n-----BEGIN EC PRIVATE KEY-----\n{s}\n",
    "rest of a private key": lambda s: f"{s}\n-----END PRIVATE KEY-----\ny",
    "web token": lambda s: f"got eyJhbGciOiJSUzI1NiJ9.{base64.urlsafe_b64encode(s.encode()).decode().rstrip('=')}.c2ln end",
    "utf-16": lambda s: f"password={s} end".encode("utf-16-le").decode("latin-1"),
}  # fmt: skip


@pytest.mark.parametrize("letters", [PLAIN, SPECIAL, ANY], ids=["plain", "special", "any"])
@pytest.mark.parametrize("how", WRAPPED)
def test_a_secret_that_the_run_holds_never_survives(how: str, letters: str) -> None:
    for seed in range(40):
        planted = secret(seed, letters)
        text = WRAPPED[how](planted)
        found = Redactor([planted]).text(text)
        assert not survives(planted, found), (planted, text, found)
        assert HIDDEN in found


@pytest.mark.parametrize("how", NAMED)
def test_a_secret_with_a_name_never_survives(how: str) -> None:
    for seed in range(60):
        planted = secret(seed, PLAIN if how in ("net use", "url", "registry", "bearer", "web token") else SPECIAL, 24)
        text = NAMED[how](planted)
        found = Redactor().text(text)
        assert not survives(planted, found), (planted, text, found)
        # Nor a part of it that is long enough to be worth something.
        assert not any(planted[at : at + 10] in found for at in range(14)), (planted, text, found)


@pytest.mark.parametrize("how", [*WRAPPED, *NAMED])
def test_a_second_time_changes_nothing(how: str) -> None:
    planted = secret(7, SPECIAL, 24)
    redactor = Redactor([planted])
    once = redactor.text({**WRAPPED, **NAMED}[how](planted))
    assert redactor.text(once) == once


# Lines that support reads; a redactor that takes them away is none that anybody uses.
KEPT = (
    r"I1122 19:00:01.000001    1234 main.go:88] Version: v1.3.0, listening on \\.\pipe\csi-proxy-disk-v1",
    "E1122 19:00:02 server.go:113] error: MountVolume.MountDevice failed for volume pvc-0b7e : rpc error: code = Internal desc = 0x800704c3",
    r'"C:\csi-proxy\1.3.0-0123456789ab\csi-proxy.exe" -windows-service -log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false',
    "image: registry.k8s.io/sig-storage/csi-node-driver-registrar@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "secretName: smbcreds",
    "nodeStageSecretRef: {name: smbcreds, namespace: shop}",
    "automountServiceAccountToken: true",
    "tokenExpirationSeconds: 3600",
    "uid: 6b9c2b6e-6a42-4d2c-9a6e-0d3a6d7f4c11",
    "kubernetes.io/csi/csi.vsphere.vmware.com^0e2d0b3c-8d2f-4c1a-9d1e-8d5f7f6b2a10",
    "The connection was refused: dial tcp 10.0.0.5:5986",
    "https://github.com/kubernetes-csi/csi-proxy/issues/218",
    "key: node.kubernetes.io/os, operator: Exists",
    "        STATE              : 4  RUNNING",
    "    ImagePath    REG_EXPAND_SZ    C:\\csi-proxy\\csi-proxy.exe",
    "mount failed: /var/run/secrets/kubernetes.io/serviceaccount was not found",
    "authentication failed: Basic authentication is disabled",
)


@pytest.mark.parametrize("line", KEPT)
def test_text_that_is_no_secret_stays(line: str) -> None:
    assert Redactor(["another-secret"]).text(line) == line


def test_an_object_is_redacted_by_its_keys() -> None:
    planted = secret(3, ANY)
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"x": planted}), "token": planted},
            "managedFields": [{"x": planted}],
        },
        "spec": {
            "volumes": [{"name": "creds", "secret": {"secretName": "smbcreds"}}],
            "containers": [
                {
                    "name": "app",
                    "args": ["--password", planted, "--v=5", f"--token={planted}"],
                    "env": [{"name": "DB_PASSWORD", "value": planted}, {"name": "PORT", "value": "443"}],
                }
            ],
        },
    }  # fmt: skip
    found = Redactor().data(pod)
    assert not survives(planted, json.dumps(found, ensure_ascii=False))
    container = found["spec"]["containers"][0]
    assert found["spec"]["volumes"] == pod["spec"]["volumes"]
    assert (container["name"], container["args"][2], container["env"][1]["value"]) == ("app", "--v=5", "443")
    of_secret = {"kind": "Secret", "data": {"ca.crt": b64(planted)}, "stringData": {"x": planted}, "type": "Opaque"}
    assert Redactor().data(of_secret) == {"kind": "Secret", "data": HIDDEN, "stringData": HIDDEN, "type": "Opaque"}


def test_secrets_of_the_run_are_found_by_their_names() -> None:
    variables = {
        "ansible_password": "one",
        "ansible_winrm_cert_key_pem": "/etc/key.pem",
        "my_api_token": ["two", {"x": "three"}],
        "ansible_ssh_private_key_file": "/root/.ssh/id",
        "kubewin_hosts": "windows",
    }
    found = {text for name, value in variables.items() if is_secret(name) for text in texts(value)}
    assert {"one", "two", "three"} <= found
    assert not {"/root/.ssh/id", "windows"} & found
    config = {"users": [{"name": "a", "user": {"token": "abc", "client-key": "/etc/key", "client-key-data": "ZGVm"}}]}
    assert set(kubeconfig_secrets(config)) == {"abc", "ZGVm"}
    assert not is_secret("nodeStageSecretRef")


def test_logs_of_windows_are_read_in_the_encoding_that_they_have() -> None:
    for encoding in ("utf-16", "utf-8-sig", "utf-8"):
        assert decoded("password=x".encode(encoding)) == "password=x"
    assert "\x1b" not in Redactor().raw(b"\x1b[31mred")


def test_a_short_value_is_hidden_beside_its_name_alone() -> None:
    assert Redactor(["abc"]).text("abc password=abc") == f"abc password={HIDDEN}"
