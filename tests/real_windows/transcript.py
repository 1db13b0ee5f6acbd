# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A transcript: each line that was sent to a host, with its answer, as one JSON object a line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import commands
from lab.windows import conformance

FILE = "KUBEWIN_TRANSCRIPT"
SHAPES = Path(__file__).with_name("shapes.json")
# What commands.render_chain and commands.render_all put before the first step, and behind each.
BEGIN = r"(?:cd /d \S+?&&set n=#\w+\.&&)?set k=0&& echo #(\w+)\.0=!k!(?:&\()?"
MARK = (
    r" && (?:echo #{nonce}\.\d+=0|\(set k=\d+\))(?: \|\| echo #{nonce}\.\d+=!errorlevel!)?"
    r"|&&?echo !n!\d+=(?:0|!errorlevel!)(?:\|\|echo !n!\d+=!errorlevel!)?(?:\)2>nul$)?"
)


def keep(line: str, rc: int, stdout: bytes, stderr: bytes, **more: Any) -> None:
    """Add an answer to the file that the environment names."""
    answer = {
        "rc": rc & 0xFFFFFFFF,
        "stdout": stdout.decode(errors="replace"),
        "stderr": stderr.decode(errors="replace"),
    }
    with open(os.environ[FILE], "a", encoding="utf-8") as file:
        file.write(json.dumps({"line": line, **answer, **more}, ensure_ascii=False) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def differences(records: Iterable[dict[str, Any]]) -> list[str]:
    """Differences between real Windows and the case table and shapes, a line each."""
    cases = {case.name: case for case in conformance.load()}
    shapes = [(re.compile(shape["step"]), shape) for shape in json.loads(SHAPES.read_text(encoding="utf-8"))]
    found: list[str] = []
    for record in records:
        if record.get("setup"):
            found += (
                [f"{record['case']}: {record['line']!r}: exit code {record['rc']}, expected 0"] if record["rc"] else []
            )
        elif "case" in record:
            answer = record["rc"], record["stdout"], record["stderr"]
            found += [f"{record['case']}: {text}" for text in cases[record["case"]].differences(*answer)]
        else:
            for text, result in steps(record):
                found += [f"{text}: {one}" for one in of_step(text, result, shapes)]
    return found


def steps(record: dict[str, Any]) -> Iterator[tuple[str, commands.StepResult]]:
    """The steps of a line that ran, each with its code and output. A step that never ended has the code None."""
    line, stdout = record["line"], record["stdout"].encode()
    begun = re.match(BEGIN, line)
    if begun is None:
        yield line, commands.StepResult(None, stdout)
        return
    nonce = begun[1]
    texts = re.split(MARK.format(nonce=nonce), line[begun.end() :])
    # What is behind the last mark: nothing, or what a chain does when a step fails.
    chained = bool(texts.pop())
    texts = [re.sub(r"^(?: && |&)", "", text) for text in texts]
    results = commands.split_steps(stdout, nonce, len(texts), chained=chained)
    ended = next((place for place, result in enumerate(results, 1) if chained and result.code), len(texts))
    yield from list(zip(texts, results, strict=True))[:ended]


def of_step(text: str, result: commands.StepResult, shapes: list[tuple[re.Pattern[str], dict[str, Any]]]) -> list[str]:
    """Differences between a step and its shape."""
    shape = next((shape for step, shape in shapes if step.search(text)), None)
    if shape is None:
        return ["no shape"]
    answers = shape["answers"]
    expected = answers.get("any", answers.get(str(result.code)))
    if expected is None:
        return [f"exit code {result.code}, expected {' or '.join(answers)}"]
    output = result.output.decode()
    return [] if re.fullmatch(expected, output, re.DOTALL) else [f"{output!r}, expected {expected!r}"]
