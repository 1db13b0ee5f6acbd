# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs read of a run: a stdout that only the callback writes to, and statistics, however the run ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.modules.readiness_info import saved
from ansible_collections.kubewin.csi.plugins.plugin_utils.screen import for_people
from integration.playbooks import ROOT, lane
from situations.named import SITUATIONS


def read(folder: Path, core: str | None = None, **given: Any) -> tuple[int, dict[str, Any], str]:
    """Exit code, statistics and stderr of preflight.yml under a callback that prints JSON."""
    command, environment = lane(core)
    environment |= {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_STDOUT_CALLBACK": "whole",
        "KUBEWIN_RECORD": str(folder / "record.jsonl"),
    }
    done = subprocess.run(
        [command, "-i", "localhost,", "playbooks/preflight.yml", "-e", json.dumps(given)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["custom"]["_run"]
    return done.returncode, found["kubewin_preflight"], done.stderr


@pytest.mark.parametrize("core", ["2.16", "2.21"])
def test_a_blocked_cluster_leaves_its_verdict_and_a_stdout_that_can_be_read(core: str, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_bytes(saved(SITUATIONS["a_raw_block_volume"].world().snapshot()))
    folder = tmp_path / "out"
    code, statistic, told = read(tmp_path, core, kubewin_snapshot_from=str(snapshot), kubewin_output_dir=str(folder))
    assert code != 0
    assert statistic["verdict"] == "blocked"
    assert statistic["reason"] == "not_ready"
    assert statistic["blockers"]
    assert (folder / "readiness.json").exists()
    # What people read is not lost.
    assert "NOT READY: " in told
    assert f"written to {folder}" in told


def test_a_run_that_could_not_judge_says_so(tmp_path: Path) -> None:
    code, statistic, _told = read(tmp_path, kubewin_snapshot_from=str(tmp_path / "nosuch.json"))
    assert code != 0
    assert (statistic["verdict"], statistic["reason"]) == ("unknown", "configuration")
    assert "nosuch.json" in statistic["msg"]


def test_callbacks_that_print_for_people_are_told_from_the_others() -> None:
    assert all(for_people(name) for name in ("default", "ansible.builtin.default", "minimal", "oneline"))


def test_nothing_is_printed_but_through_one_place() -> None:
    """Whatever else wrote to stdout would break what a JSON callback prints."""
    plugins = ROOT / "plugins"
    found = [
        str(path.relative_to(plugins))
        for path in plugins.rglob("*.py")
        if "display.display" in path.read_text(encoding="utf-8")
    ]
    assert found == ["plugin_utils/screen.py"]
