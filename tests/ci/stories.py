"""The dearest tests of a run, from its JUnit reports: how long each took, its own CPU time, and what it is for."""

from __future__ import annotations

import ast
import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import paths

SHOWN = 10
# What the files of the lab's tests took in a run, by which tests/integration/conftest.py begins with the longest.
SECONDS = paths.ROOT / "tests" / "integration" / "seconds.json"


@dataclass(frozen=True)
class Story:
    """One test. `seconds`, of which `cpu` were worked, include the fixtures that it was the first to need, such as a lab."""

    seconds: float
    cpu: float
    file: str
    name: str
    purpose: str


def dearest(reports: Iterable[Path], root: Path = paths.ROOT, shown: int = SHOWN) -> list[Story]:
    """The tests of these reports that took longest, the longest first. A report that is not there holds no tests."""
    found = []
    for report in reports:
        if report.exists():
            for case in ET.parse(report).getroot().iter("testcase"):
                found.append(case)
    found.sort(key=seconds_of, reverse=True)
    return [story(root, case) for case in found[:shown]]


def seconds_of(case: ET.Element) -> float:
    """How long a test case took."""
    return float(case.get("time") or 0)


def story(root: Path, case: ET.Element) -> Story:
    """A test case of a JUnit report with its file and its purpose."""
    module, name = case.get("classname") or "", case.get("name") or ""
    # tests/conftest.py notes it.
    cpu = next((float(one.get("value") or 0) for one in case.iter("property") if one.get("name") == "cpu"), 0.0)
    words = module.split(".")
    # Behind the module comes the class of a test that is in one.
    last = next((place for place, word in enumerate(words) if word.startswith("test_")), len(words) - 1)
    file = Path(*words[: last + 1]).with_suffix(".py")
    full = ".".join([*words[last + 1 :], name])
    return Story(seconds_of(case), cpu, str(file), full, purpose(root / file, name.partition("[")[0]))


def purpose(file: Path, function: str) -> str:
    """The first line of a test's docstring; without one, that of its file."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return ""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    texts = [*(ast.get_docstring(test) for test in tests), ast.get_docstring(tree)]
    return next((text.splitlines()[0] for text in texts if text), "")


def table(stories: Iterable[Story]) -> list[str]:
    """Two lines for each test: its seconds, those of CPU and its name, and below it what it is for."""
    lines = []
    for one in stories:
        lines.append(f"  {one.seconds:6.1f} s, {one.cpu:5.1f} s of CPU  {one.file}::{one.name}")
        if one.purpose:
            lines.append(f"  {one.purpose}")
    return lines


def keep_seconds(report: Path, target: Path = SECONDS) -> None:
    """Write the seconds of each file of a JUnit report, the longest first."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ET.parse(report).getroot().iter("testcase"):
        found = story(paths.ROOT, case)
        seconds[Path(found.file).stem] += found.seconds
    ordered = {name: round(seconds[name]) for name in sorted(seconds, key=lambda name: -seconds[name])}
    target.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")
