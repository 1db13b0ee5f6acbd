# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What support needs to read survives the redactor: lines of logs, output of Windows' tools, and the sentence that explains a trouble."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.names import list_texts as all_texts
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.redactor import Redactor
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.observe import Gathered
from unit.plugins.plugin_utils.base.redaction.reader import part_survives

HERE = Path(__file__).parent
# Lines of csi-proxy, kubelet, containerd, kube-apiserver, drivers and sidecars, from the issue threads that troubles.yml names, and of sc.exe, reg.exe, dir,
# tasklist, mountvol and wevtutil as tests/lab/go/winland/conformance has them.
KEPT = (HERE / "harmless.txt").read_text(encoding="utf-8").splitlines()
TROUBLES = yaml.safe_load((HERE / "troubles.yml").read_text(encoding="utf-8"))
HELD, FOREIGN = "Zx9-Held-Secret-7#q", "Kq4ForeignSecret8w"
KINDS = {kind.kind: kind for kind in vars(kinds).values() if isinstance(kind, Kind)}


def test_there_are_enough_lines() -> None:
    assert len(KEPT) >= 60


@pytest.mark.parametrize("line", KEPT)
def test_a_line_without_a_secret_stays(line: str) -> None:
    assert Redactor(["another-secret"]).redact_log(line) == line


def test_there_are_ten_troubles_and_each_has_its_source() -> None:
    assert len(TROUBLES) >= 10
    assert all(trouble["source"].startswith("https://") for trouble in TROUBLES)


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble["title"])
def test_the_archive_explains_a_trouble(trouble: dict[str, Any]) -> None:
    gathered = Gathered(Redactor([HELD]))
    for item in trouble.get("objects", []):
        # A secret beside it does not take the explanation away.
        metadata = {**item["metadata"], "annotations": {"example.com/token": FOREIGN}}
        gathered.add_objects(item["kind"], KINDS[item["kind"]], [{**item, "metadata": metadata}])
    if "log" in trouble:
        gathered.add_log("logs/a.log", f"{trouble['log']}\nlogin password={FOREIGN} {HELD}".encode())
    archive = "\n".join(part.text for part in gathered.parts)
    texts = [
        archive,
        *(text for part in gathered.parts if part.path.endswith(".json") for text in all_texts(json.loads(part.text))),
    ]
    assert not [words for words in trouble["explains"] if not any(words in text for text in texts)], archive
    assert not part_survives(FOREIGN, archive)
    assert not part_survives(HELD, archive)
