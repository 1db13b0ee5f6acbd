# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m real_windows.captures [CONFORMANCE ...]`: count the answers of the lab that no capture of real Windows proves, and list them.

With files conformance.json of the Windows workflow's artifacts, first write what Windows answered to the case table. Where that is
not what the table said, `git diff` shows it, and tests/lab_tests/test_conformance.py then fails until the lab's model follows.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.windows.conformance import TABLE, Case, load

# Begins the source of an answer that the workflow captured; the image's name and release follow.
WORKFLOW = "actions/runner-images "
# Records that show what Windows printed; Wine's tests also run on Windows, and their .exp files have its answers. Another source
# describes Windows: a document, the source code of a program.
CAPTURES = (
    "0xrawsec/whids#132",
    "Orange-Cyberdefense/GOAD#436",
    "SecretLUL/WinMedic",
    "ShaneKent/PyEventLogViewer tests",
    "Stack Overflow question 23091906",
    "Stack Overflow question 31173772",
    "ValdikSS/GoodbyeDPI#440",
    "Velocidex/velociraptor#4206",
    "chengr28/Pcap_DNSProxy#365",
    "continuedev/continue#6535",
    "curl/curl#7384",
    "dotnet/docs docs/core/extensions/windows-service.md",
    "drittich/DnsTube#53",
    "dtgm/chocolatey-packages#233",
    "eth-brownie/brownie#1305",
    "git mailing list",
    "gogs/docs#254",
    "google/android-emulator-hypervisor-driver#22",
    "jborean93/pypsrp tests_pypsrp/responses",
    "kopia/kopia site/content/docs/Mounting/_index.md",
    "openvpn-build PR#674",
    "oshi/oshi#877",
    "rabbitmq/rabbitmq-server",
    "strontic/strontic.github.io",
    "tcpkiller#3",
    "tuckn/WshFileSystem",
    "wazuh/wazuh-qa#3021",
    "wine-mirror/wine programs/cmd/tests",
)
# The lab's own refusals, which are no answers of Windows.
OWN = ("the lab's own", "the userland refuses")


def is_captured(case: Case) -> bool:
    return case.source.startswith((WORKFLOW, *CAPTURES))


def adopt(conformance: dict[str, Any], folder: Path = TABLE) -> None:
    """Write the answers of one image of Windows to the case table."""
    answers = {answer["case"]: answer for answer in conformance["answers"] if not answer.get("setup")}
    for path in folder.glob("*.json"):
        cases = [
            take_answer(raw, answers[raw["name"]], conformance["image"]) if raw["name"] in answers else raw
            for raw in json.loads(path.read_text(encoding="utf-8"))
        ]
        rows = ",\n".join(f"  {json.dumps(raw, ensure_ascii=False)}" for raw in cases)
        path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def take_answer(raw: dict[str, Any], answer: dict[str, Any], image: str) -> dict[str, Any]:
    """A case as the table has it, from now on with Windows as its source. Its answer stays where Windows repeated it."""
    case = Case.read(raw, TABLE)
    source = WORKFLOW + image
    if not case.differences(answer["rc"], answer["stdout"], answer["stderr"]):
        return {**raw, "source": source}
    kept = {key: value for key, value in raw.items() if key not in ("rc", "stdout", "stdout_regex", "stderr_regex")}
    printed = {"stderr_regex": f"^{re.escape(answer['stderr'])}$"} if answer["stderr"] else {}
    return {**kept, "source": source, "rc": answer["rc"], "stdout": answer["stdout"], **printed}


def report() -> list[str]:
    """The counts, then each answer without a capture."""
    cases = [case for case in load() if not case.source.startswith(OWN)]
    unproven = [case for case in cases if not is_captured(case)]
    return [
        f"{len(cases)} answers of Windows: {len(cases) - len(unproven)} captured; {len(unproven)} without a capture",
        *(f"{case.name}: {case.line} ({case.source})" for case in unproven),
    ]


def main(arguments: Sequence[str] = sys.argv[1:]) -> int:
    for name in arguments:
        adopt(json.loads(Path(name).read_text(encoding="utf-8")))
    print("\n".join(report()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
