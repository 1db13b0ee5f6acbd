# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m real_windows.captures [TRANSCRIPT ...]`: count the answers of the lab that no capture of real Windows proves, and list them.

Transcripts are those of the Windows workflow: an answer that one of them repeats is captured.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.windows.conformance import Case, load

from real_windows import transcript

CAPTURED, DESCRIBED, UNNAMED = "captured", "described", "unnamed"
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
    "chengr28/Pcap_DNSProxy#365",
    "continuedev/continue#6535",
    "curl/curl#7384",
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
# Kinds of sources, without a name by which a reader finds one.
KINDS = (
    "general knowledge",
    "issue threads",
)
# The lab's own refusals, which are no answers of Windows.
OWN = ("the lab's own", "the userland refuses")


def classify(case: Case, repeated: frozenset[str] = frozenset()) -> str:
    """What proves a case. repeated: names of the cases that a transcript repeats."""
    if case.name in repeated or case.source.startswith(CAPTURES):
        return CAPTURED
    return UNNAMED if case.source.startswith(KINDS) else DESCRIBED


def find_repeated(records: Iterable[dict[str, object]]) -> frozenset[str]:
    """Names of the cases whose answers on real Windows are as the lab's."""
    answers = [record for record in records if "case" in record and not record.get("setup")]
    return frozenset(str(answer["case"]) for answer in answers if not transcript.differences([answer]))


def report(repeated: frozenset[str] = frozenset()) -> list[str]:
    """The counts, then each answer without a capture."""
    cases = [case for case in load() if not case.source.startswith(OWN)]
    kinds = {case.name: classify(case, repeated) for case in cases}
    counts = Counter(kinds.values())
    unproven = [case for case in cases if kinds[case.name] != CAPTURED]
    return [
        f"{len(cases)} answers of Windows: {counts[CAPTURED]} captured; {len(unproven)} without a capture, of which "
        f"{counts[DESCRIBED]} have a named source and {counts[UNNAMED]} have none",
        *(f"{case.name}: {case.line} ({case.source})" for case in unproven),
    ]


def main(arguments: Sequence[str] = sys.argv[1:]) -> int:
    records = [record for name in arguments for record in transcript.read(Path(name))]
    print("\n".join(report(find_repeated(records))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
