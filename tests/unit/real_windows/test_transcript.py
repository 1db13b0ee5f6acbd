# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transcript of real Windows, against the case table and the shapes. tests/lab_tests runs the play that makes one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import (
    builtin,
    program,
    quiet,
    render_all,
    render_chain,
    tolerate,
)
from lab.windows import conformance
from real_windows import __main__ as accept
from real_windows import transcript

STATUS = program("sc", "queryex", "csi-proxy")
HASH = program("certutil", "-hashfile", r"C:\csi-proxy\csi-proxy.exe", "SHA256")
MISSING = "[SC] EnumQueryServicesStatus:OpenService FAILED 1060:\r\n\r\nThe specified service does not exist as an installed service.\r\n\r\n"
DIGEST = f"SHA256 hash of C:\\csi-proxy\\csi-proxy.exe:\r\n{'0a' * 32}\r\nCertUtil: -hashfile command completed successfully.\r\n"


def record(line: str, stdout: str, **more: Any) -> dict[str, Any]:
    return {"line": line, "rc": 0, "stdout": stdout, "stderr": "", **more}


def asked(status: str, code: int = 1060, digest: str = DIGEST) -> dict[str, Any]:
    line = render_all([STATUS, HASH], "n0n")
    return record(line, f"#n0n.0=0\r\n{status}#n0n.1={code}\r\n{digest}#n0n.2=0\r\n")


def test_answers_as_the_sources_have_them_are_no_difference() -> None:
    assert transcript.differences([asked(MISSING)]) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (asked(MISSING.replace("[SC]", "SC")), r".\sc.exe queryex csi-proxy: 'SC EnumQuery"),
        (asked(MISSING, 36), r".\sc.exe queryex csi-proxy: exit code 36, expected 0 or 1060"),
        (
            asked(MISSING, digest=DIGEST.replace("0a", "0a ")),
            r".\certutil.exe -hashfile C:\csi-proxy\csi-proxy.exe SHA256: 'SHA256 hash of",
        ),
        (
            record(render_all([program("whoami")], "n"), "#n.0=0\r\nme\r\n#n.1=0\r\n"),
            r".\whoami.exe: no shape",
        ),
        (record("whoami", "me\r\n"), "whoami: no shape"),
        (record(render_all([STATUS], "n"), "#n.0=0\r\n"), r".\sc.exe queryex csi-proxy: exit code None"),
    ],
)
def test_a_difference_names_the_step_and_what_was_expected(answer: dict[str, Any], message: str) -> None:
    (line,) = transcript.differences([answer])
    assert line.startswith(message)


def test_of_a_chain_the_steps_count_that_ran() -> None:
    steps = [tolerate(builtin("md", r"C:\csi-proxy")), quiet(program("sc", "stop", "csi-proxy")), quiet(HASH), STATUS]
    texts = [step.text for step in steps]
    line = render_chain(steps, "n")
    whole = record(line, f"#n.0=0\r\n#n.1=0\r\n#n.3=0\r\n{MISSING}#n.4=0\r\n")
    assert [(text, result.code) for text, result in transcript.steps(whole)] == [(text, 0) for text in texts]
    stopped = record(line, "#n.0=0\r\n#n.1=0\r\n#n.1=0\r\n#n.f=1062\r\n")
    assert [(text, result.code) for text, result in transcript.steps(stopped)] == [(texts[0], 0), (texts[1], 1062)]


def test_an_answer_to_a_case_is_held_against_the_case_and_its_setup() -> None:
    case = next(case for case in conformance.load() if case.setup and case.stdout is not None)
    good = [record(line, "", case=case.name, setup=True) for line in case.setup]
    good.append({**record(case.line, case.stdout or "", case=case.name), "rc": case.rc})
    assert transcript.differences(good) == []
    bad = [{**one, "rc": 5} for one in good]
    assert transcript.differences(bad) == [
        *(f"{case.name}: {line!r}: exit code 5, expected 0" for line in case.setup),
        f"{case.name}: exit code 5, expected {case.rc}",
    ]


def test_a_transcript_is_read_as_it_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept.jsonl"
    monkeypatch.setenv(transcript.FILE, str(file))
    transcript.keep("echo Größe", -1, "Größe\r\n".encode(), b"\xff")
    expected = {"line": "echo Größe", "rc": 0xFFFFFFFF, "stdout": "Größe\r\n", "stderr": "\ufffd"}
    assert transcript.read(file) == [expected]


def test_every_shape_has_a_source_and_patterns_that_compile() -> None:
    for shape in json.loads(transcript.SHAPES.read_text(encoding="utf-8")):
        assert shape["source"]
        for pattern in (shape["step"], *shape["answers"].values()):
            re.compile(pattern)


def test_the_inventory_has_the_hosts_that_are_accepted_and_no_secret() -> None:
    groups = yaml.safe_load((accept.HERE / "inventory.yml").read_text(encoding="utf-8"))["all"]["children"]
    hosts = {name for group in groups["windows"]["children"].values() for name in group["hosts"]}
    assert hosts == {*accept.HOSTS, "ssh-powershell"}
    assert "lookup" in groups["over_winrm"]["vars"]["ansible_password"]
