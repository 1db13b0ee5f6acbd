# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What real Windows hosts answered to real clients, held against what the lab's server answers to the same messages.

The conversations were recorded by the pypsrp project (its source distribution) and by pywinrm (fixtures inside its
package). They are read at test time from there and are not part of this repository.
"""

from __future__ import annotations

import ast
import base64
import importlib.metadata
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, cast

import pytest
import requests
import yaml
from lab.builds import cache
from lab.windows import soap
from requests.auth import HTTPBasicAuth

from lab_tests.conftest import PASSWORD, USER, Serve, Served
from lab_tests.stub_agent import Script, StubAgent

CONVERSATIONS = [
    "bad_cmd_id",
    "environment",
    "extra_opts",
    "fail_poll_process",
    "no_cmd_shell",
    "noprofile",
    "open_already_opened",
    "operation_timeout",
    "send",
    "standard",
    "stderr_rc",
    "unicode",
]
SILENCE = 1  # seconds
STREAM, STATE = f"{{{soap.SHELL}}}Stream", f"{{{soap.SHELL}}}CommandState"
# Texts that are the machine's or the moment's (one recording was edited, so that its RelatesTo points nowhere); newer
# hosts also add an ActivityId to every answer.
VOLATILE = ("MessageID", "RelatesTo", "Address", "Owner", "ClientIP", "ShellRunTime", "ShellInactivity")

Flat = list[tuple[str, dict[str, str], str]]


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of pypsrp's recorded responses."""
    version = importlib.metadata.version("pypsrp")
    folder = cache() / "sdist"
    archive = folder / f"pypsrp-{version}.tar.gz"
    if not archive.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*download, "--no-binary=pypsrp", "--dest", str(folder), f"pypsrp=={version}"], check=True)
    target = folder / f"pypsrp-{version}"
    if not target.is_dir():
        with tarfile.open(archive) as tar:
            # Pythons before 3.11.4 have no filters.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder)
    return target / "tests" / "tests_pypsrp" / "responses"


class Replay:
    """Sends recorded requests to the lab's server, with the identifiers that the lab gave instead of the recorded."""

    def __init__(self, host: Served) -> None:
        self._url = f"http://127.0.0.1:{host.ports['http']}/wsman"
        self._ids: dict[str, str] = {}

    def exchange(self, request: str, expected: str) -> tuple[int, Flat, Flat]:
        """HTTP status, the recorded answer and ours, both flattened and with the lab's identifiers."""
        for theirs, ours in self._ids.items():
            request, expected = request.replace(theirs, ours), expected.replace(theirs, ours)
        answer = requests.post(self._url, data=request.encode(), auth=HTTPBasicAuth(USER, PASSWORD), timeout=120)
        assert _text(answer.text, "RelatesTo") == _text(request, "MessageID")
        for tag in ("ShellId", "CommandId"):
            theirs, ours = _identifier(expected, tag), _identifier(answer.text, tag)
            if theirs and ours and theirs != ours:
                self._ids[theirs] = ours
                expected = expected.replace(theirs, ours)
        return answer.status_code, flatten(expected), flatten(answer.text)


def _identifier(text: str, tag: str) -> str:
    found = re.search(rf'(?:<rsp:{tag}>|Name="{tag}">)([0-9A-Fa-f-]{{36}})<', text)
    return found.group(1) if found else ""


def _text(envelope: str, tag: str) -> str:
    found = ET.fromstring(envelope).find(f"s:Header/a:{tag}", soap.NAMESPACES)
    return "" if found is None else found.text or ""


def flatten(text: str) -> Flat:
    """Elements in document order as (path, attributes, text); stream chunks of one kind are joined."""
    rows: Flat = []

    def walk(element: ET.Element, path: str) -> None:
        name = element.tag.rpartition("}")[2]
        here = f"{path}/{element.tag}"
        if name == "ActivityId":
            return
        value = "" if name in VOLATILE else (element.text or "").strip()
        attributes = {k: v for k, v in element.attrib.items() if k != "Machine"}
        if name == "Variable":
            # That host took the backslash out of a variable's name; no name in use has one.
            attributes["Name"] = attributes["Name"].replace("\\", "")
        if element.tag == STREAM and value:
            last = rows[-1]
            if last[0] == here and last[1] == attributes:
                joined = base64.b64decode(last[2]) + base64.b64decode(value)
                rows[-1] = (here, attributes, base64.b64encode(joined).decode())
                return
        rows.append((here, attributes, value))
        for child in element:
            walk(child, here)

    walk(ET.fromstring(text), "")
    return rows


def scripts_of(messages: list[dict[str, Any]]) -> dict[str, Script]:
    """For each recorded command line the output and exit code that were recorded for it."""
    scripts: dict[str, Script] = {}
    line, pause, reads = "", 0.0, False
    pieces: list[tuple[float, int, bytes]] = []
    for message in messages:
        request, response = soap.parse(message["request"].encode()), ET.fromstring(message["response"])
        if request.operation == "Command":
            words = [w.text or "" for w in request.body.iter() if w.tag.endswith(("}Command", "}Arguments"))]
            line, pieces, pause, reads = " ".join(words), [], 0.0, False
            if message.get("transport_error"):
                scripts[line] = Script(rc=soap.PROGRAM_NOT_FOUND)
        reads = reads or request.operation == "Send"
        if request.operation == "Receive":
            if message.get("transport_error"):
                # The time of an operation that ends without output (see below), and as much again for a machine that is busy.
                pause += 2 * SILENCE
            for stream in response.iter(STREAM):
                if stream.text:
                    number = 1 if stream.get("Name") == "stdout" else 2
                    pieces.append((pause, number, base64.b64decode(stream.text)))
                    pause = 0.0
            code = response.find(f".//{STATE}/{{{soap.SHELL}}}ExitCode")
            if code is not None:
                scripts[line] = Script(tuple(pieces), int(code.text or 0), reads_input=reads)
    return scripts


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_server_answers_as_windows_did(name: str, recorded: Path, stub: StubAgent, serve: Serve) -> None:
    messages = yaml.safe_load((recorded / f"test_winrs_{name}.yml").read_text(encoding="utf-8"))["messages"]
    stub.scripts = scripts_of(messages)
    replay = Replay(serve(stub.address, basic_over_http=True, skip_cmd_shell=name == "no_cmd_shell"))
    for message in messages:
        # Only what was silent on that host has to be silent here; all else is waited for.
        seconds = SILENCE if message.get("transport_error") else 60
        request = re.sub(r"(OperationTimeout>)PT\d+S", rf"\1PT{seconds}S", message["request"])
        status, expected, answered = replay.exchange(request, message["response"])
        assert status == message.get("transport_error", {}).get("code", 200)
        assert answered == expected


@pytest.fixture
def pywinrm_fixtures() -> dict[str, str]:
    """String constants of pywinrm's test fixtures, by name."""
    files = importlib.metadata.files("pywinrm") or []
    source = next(Path(str(file.locate())) for file in files if str(file) == "winrm/tests/conftest.py")
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return {
        cast("ast.Name", node.targets[0]).id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def test_pywinrms_fixtures(pywinrm_fixtures: dict[str, str], stub: StubAgent, serve: Serve) -> None:
    stub.scripts = {"ipconfig /all": Script(((0.0, 1, b"x"),))}
    replay = Replay(serve(stub.address, basic_over_http=True))
    command = pywinrm_fixtures["cleanup_cmd_request"]
    assert "%s" in command
    exchanges = [
        ("open_shell_request", "open_shell_response"),
        ("run_cmd_with_args_request", "run_cmd_ps_response"),
        ("get_cmd_ps_output_request", "get_cmd_output_response"),
        ("cleanup_cmd_request", "cleanup_cmd_response"),
        ("close_shell_request", "close_shell_response"),
    ]
    for request, response in exchanges:
        _status, expected, answered = replay.exchange(
            pywinrm_fixtures[request].replace("%s", "1"), pywinrm_fixtures[response].replace("%s", "1")
        )
        # These fixtures are abridged and hold another host's output: what they have must be in ours, in that order.
        ours = iter([path for path, _attributes, _text in answered])
        wanted = [path for path, _attributes, text in expected if path.split("}")[-1] not in ("Stream",)]
        missing = [path for path in wanted if path not in ours]
        assert not missing, f"{request}: the answer has no {missing}"
