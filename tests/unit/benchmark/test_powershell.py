# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PowerShell stand-in of the benchmarks: what it reads back, and that it is loud about what it does not know."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from benchmark.powershell.host import Host, Node, key
from benchmark.powershell.modules import LIST_PIPES
from benchmark.powershell.protocol import ModuleCall, NotUnderstood, RawCall, ScriptCall, decode
from benchmark.powershell.server import answer
from benchmark.report import Row, table

LINE = "PowerShell -NoProfile -NonInteractive -ExecutionPolicy Unrestricted -EncodedCommand "
BOOTSTRAP = {"name": "exec_wrapper", "script": "...", "params": {}}


def encoded(script: str) -> str:
    return LINE + base64.b64encode(script.encode("utf-16-le")).decode()


def stdin(action: str, params: dict[str, Any], data: bytes = b"") -> bytes:
    """Standard input in the form of ansible-core 2.19 (executor/powershell/module_manifest.py)."""
    content = {"scripts": {}, "actions": [{"name": action, "params": params}], "signed_hashlist": []}
    parts = [json.dumps(BOOTSTRAP).encode(), json.dumps(content).encode(), *([data] if data else [])]
    return b"\n\0\0\0\0\n".join(parts)


def module(which: str, /, **arguments: Any) -> ModuleCall:
    return ModuleCall(f"ansible_collections.ansible.windows.plugins.modules.{which}", arguments, check_mode=False)


def test_module_is_read_back() -> None:
    params = {
        "Script": "ansible_collections.ansible.windows.plugins.modules.win_stat.ps1",
        "Variables": [{"Name": "complex_args", "Value": {"path": "C:\\a", "_ansible_check_mode": True}}],
    }
    call = decode(encoded("bootstrap"), stdin("module_wrapper.ps1", params))
    assert call == ModuleCall(
        "ansible_collections.ansible.windows.plugins.modules.win_stat", {"path": "C:\\a"}, check_mode=True
    )


def test_script_with_data_and_raw_script_are_read_back() -> None:
    call = decode(encoded("bootstrap"), stdin("winrm_put_file.ps1", {"Path": "C:\\t\\f"}, b"QUJD\r\nREVG\r\n"))
    assert call == ScriptCall("winrm_put_file.ps1", {"Path": "C:\\t\\f"}, b"QUJD\r\nREVG\r\n")
    assert decode(encoded("Get-Date"), b"") == RawCall("Get-Date")


def test_put_file_decodes_its_chunks_and_answers_their_sha1() -> None:
    host = Host()
    host.nodes[key("C:\\t")] = Node()
    reply = answer(host, ScriptCall("winrm_put_file.ps1", {"Path": "C:\\t\\f"}, b"QUJD\r\nREVG\r\n"))
    assert host.nodes[key("c:/T/F")].content == b"ABCDEF"
    assert json.loads(reply) == {"sha1": hashlib.sha1(b"ABCDEF").hexdigest()}


@pytest.mark.parametrize(
    ("line", "data", "expected"),
    [
        ("sc.exe query csi-proxy", b"", "does not start PowerShell"),
        (encoded("bootstrap"), b"garbage", "standard input does not begin with two JSON objects"),
        (encoded("bootstrap"), b"{}\n\0\0\0\0\n{}", "exec_wrapper"),
        (encoded("bootstrap"), stdin("module_wrapper.ps1", {"Script": "x.ps1"}), "not a module"),
    ],
)
def test_what_cannot_be_read_is_refused(line: str, data: bytes, expected: str) -> None:
    with pytest.raises(NotUnderstood, match=expected):
        decode(line, data)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (module("win_reboot"), "win_reboot is not modelled"),
        (module("win_stat", path="C:\\a", follow=True), "with follow"),
        (module("win_powershell", script="Get-Service"), "Get-Service"),
        (ScriptCall("winrm_fetch_file.ps1", {}, b""), "winrm_fetch_file"),
        (RawCall("Restart-Computer"), "Restart-Computer"),
    ],
)
def test_what_is_not_modelled_is_refused(call: Any, expected: str) -> None:
    with pytest.raises(NotUnderstood, match=expected):
        answer(Host(), call)


def test_service_changes_once_and_then_serves_its_pipes() -> None:
    host = Host()
    host.nodes[key("C:\\p\\csi-proxy.exe")] = Node(b"MZ")
    line = '"C:\\p\\csi-proxy.exe" -v=2'
    call = module("win_service", name="csi-proxy", path=line, start_mode="auto", state="started")
    pipes = module("win_powershell", script=f"{LIST_PIPES}\n...")
    assert json.loads(answer(host, pipes))["output"] == []
    assert [json.loads(answer(host, call))["changed"] for _run in range(2)] == [True, False]
    assert "csi-proxy-disk-v1" in json.loads(answer(host, pipes))["output"]
    missing = module("win_service", name="other", path="C:\\gone.exe", state="started")
    assert json.loads(answer(host, missing))["failed"] is True


def test_report_shows_by_how_much_a_budget_is_missed() -> None:
    rows = [
        Row("requests", 9, 63, at_most=6, why="two more than planned"),
        Row("wall time", 2, 10, "s", 1, at_least=8),
        Row("starts", 0, 10, at_most=0),
        Row("bytes", 10, 100),
    ]
    assert [row.verdict for row in rows] == ["MISSED by 50%: two more than planned", "MISSED by 38%", "met", ""]
    text = table("Title", rows)
    assert text.splitlines()[0] == "Title"
    assert "<= 6" in text
    assert ">= 8 times" in text
    assert "7.0" in text
