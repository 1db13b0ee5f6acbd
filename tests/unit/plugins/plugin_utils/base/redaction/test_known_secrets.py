# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A secret whose value the run holds is found in every form; one with a name beside it is found by its name."""

from __future__ import annotations

import base64
import html
import json
import quopri
import random
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.known_secrets import HIDDEN
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.names import (
    is_secret,
    list_kubeconfig_secrets,
    list_texts,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.redactor import Redactor, decode
from unit.plugins.plugin_utils.base.redaction.reader import part_survives, survives

PLAIN = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
# Further characters of passwords, outside of any syntax.
SPECIAL = PLAIN + "!#$%*+-./:=?@_~"
ANY = SPECIAL + " \"'\\&<>|^;,()[]{}äß€"


def secret(seed: int, letters: str, size: int = 0) -> str:
    draw = random.Random(seed)
    inner = "".join(draw.choice(letters) for _one in range((size or draw.randint(8, 40)) - 2))
    return f"{draw.choice(PLAIN)}{inner}{draw.choice(PLAIN)}"


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
    "JSON of JavaScript": lambda s: json.dumps({"a": s}).replace("/", "\\/"),
    "JSON of Go": lambda s: json.dumps({"a": s}).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
    "JSON, every character escaped": lambda s: "".join(f"\\u{ord(one):04x}" for one in s),
    "Go": lambda s: 'err="' + s.replace("\\", "\\\\").replace('"', '\\"') + '"',
    "Python repr": lambda s: repr({"a": s}),
    "Python repr of bytes": lambda s: repr(s.encode()),
    "Python, hexadecimal": lambda s: "".join(f"\\x{byte:02x}" for byte in s.encode()),
    "octal": lambda s: "".join(f"\\{byte:03o}" for byte in s.encode()),
    "partial URL quoting": lambda s: quote(s, safe="!#$&'()*+,:;=?@[]~"),
    "URL, small letters": lambda s: re.sub("%..", lambda found: found[0].lower(), quote(s, safe="")),
    "URL, every character": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "HTML, numbers": lambda s: "".join(f"&#{ord(one)};" for one in s),
    "HTML, hexadecimal": lambda s: "".join(f"&#x{ord(one):x};" for one in s),
    "XML in JSON": lambda s: json.dumps({"a": f"<x>{html.escape(s)}</x>"}),
    "quoted-printable": lambda s: quopri.encodestring(s.encode()).decode(),
    "backticks of PowerShell": lambda s: re.sub(r"([\"'$`])", r"`\1", s),
    "in backticks": lambda s: f"with `{s}`",
    "quotes doubled": lambda s: s.replace("'", "''").replace('"', '""'),
    "mojibake of Windows": lambda s: s.encode().decode("cp1252", "replace"),
    "mojibake of the console": lambda s: s.encode().decode("cp850", "replace"),
    "mojibake, other way": lambda s: s.encode("cp1252", "replace").decode("utf-8", "replace"),
    "wrapped lines": lambda s: "\n".join(re.findall(".{1,7}", s)),
    "wrapped lines, indented": lambda s: "\r\n    ".join(re.findall(".{1,9}", s)),
    "wrapped by a caret": lambda s: "^\n".join(re.findall(".{1,9}", s)),
    "wrapped in JSON": lambda s: json.dumps("\n".join(re.findall(".{1,9}", s))),
    "decomposed": lambda s: unicodedata.normalize("NFD", s),
    "wide letters": lambda s: "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in s),
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
        redactor = Redactor([planted])
        # A message to the user, and a file that was redacted before: nothing else is hidden there.
        for found in (redactor.hide_known_secrets(text), redactor.redact_message(text), redactor.redact_log(text)):
            assert not survives(planted, found), (planted, text, found)
        assert HIDDEN in redactor.hide_known_secrets(text)


@pytest.mark.parametrize("how", NAMED)
def test_a_secret_with_a_name_never_survives(how: str) -> None:
    for seed in range(60):
        planted = secret(seed, PLAIN if how in ("net use", "url", "registry", "bearer", "web token") else SPECIAL, 24)
        text = NAMED[how](planted)
        found = Redactor().redact_log(text)
        # Nor a part of it that is long enough to be worth something.
        assert not part_survives(planted, found), (planted, text, found)


@pytest.mark.parametrize("how", [*WRAPPED, *NAMED])
def test_a_second_time_changes_nothing(how: str) -> None:
    planted = secret(7, SPECIAL, 24)
    redactor = Redactor([planted])
    once = redactor.redact_log({**WRAPPED, **NAMED}[how](planted))
    assert redactor.redact_log(once) == once


def test_secrets_of_the_run_are_found_by_their_names() -> None:
    variables = {
        "ansible_password": "one",
        "ansible_winrm_cert_key_pem": "/etc/key.pem",
        "my_api_token": ["two", {"x": "three"}],
        "ansible_ssh_private_key_file": "/root/.ssh/id",
        "kubewin_hosts": "windows",
    }
    found = {text for name, value in variables.items() if is_secret(name) for text in list_texts(value)}
    assert {"one", "two", "three"} <= found
    assert not {"/root/.ssh/id", "windows"} & found
    config = {"users": [{"name": "a", "user": {"token": "abc", "client-key": "/etc/key", "client-key-data": "ZGVm"}}]}
    assert set(list_kubeconfig_secrets(config)) == {"abc", "ZGVm"}
    assert not is_secret("nodeStageSecretRef")


def test_logs_of_windows_are_read_in_the_encoding_that_they_have() -> None:
    for encoding in ("utf-16", "utf-8-sig", "utf-8"):
        assert decode("password=x".encode(encoding)) == "password=x"
    assert "\x1b" not in Redactor().redact_log(b"\x1b[31mred")


def test_a_short_value_is_hidden_beside_its_name_alone() -> None:
    assert Redactor(["abc"]).redact_message("abc password=abc") == "abc password=<str, 3>"
