# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closing summary is the job's statistic on every path: a task that fails would set none."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.kubewin.csi.plugins.action import summary

ROWS = [{"name": "win-1", "node": "win-1", "csi_proxy": None, "left_out": ""}]


def run(monkeypatch: pytest.MonkeyPatch, check: bool = False, **options: Any) -> dict[str, Any]:
    monkeypatch.setattr(
        "ansible.context.CLIARGS", {"args": ["playbooks/remove.yml"], "inventory": ["hosts.yml"], "check": check}
    )
    task = Mock(check_mode=check, async_val=0, args=options, action="kubewin.csi.summary")
    made: Any = summary.ActionModule
    result: dict[str, Any] = made(task, Mock(), Mock(), Mock(), Mock(), None).run(task_vars={})
    return result


@pytest.mark.parametrize("options", [{"lines": []}, {"hosts": ROWS}], ids=["lines", "nodes"])
def test_a_failed_run_keeps_the_reason_and_the_next_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    result = run(monkeypatch, failure="win-1 has no room", next=["remove"], **options)
    assert not result.get("failed")
    kept = result["ansible_stats"]["data"]["kubewin_summary"]
    assert kept["failure"] == "win-1 has no room"
    assert kept["next"] == ["ansible-playbook -i hosts.yml playbooks/remove.yml"]
    shown = capsys.readouterr().out
    assert shown.endswith(f"The run failed:\n  win-1 has no room\n\nNext:\n  {kept['next'][0]}\n")


@pytest.mark.parametrize(("failure", "option"), [("no room", " --check"), ("", "")])
def test_only_a_failed_dry_run_is_followed_by_a_dry_run(
    monkeypatch: pytest.MonkeyPatch, failure: str, option: str
) -> None:
    result = run(monkeypatch, check=True, lines=[], failure=failure, next=["remove"])
    assert result["summary"]["next"] == [f"ansible-playbook -i hosts.yml playbooks/remove.yml{option}"]


def test_a_summary_that_cannot_be_written_is_still_a_statistic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    try:
        result = run(monkeypatch, hosts=ROWS, output_dir=str(in_the_way))
    except AnsibleActionFail as error:  # as it was
        pytest.fail(f"the statistic is lost: {error}")
    assert result["ansible_stats"]["data"]["kubewin_summary"]["nodes"][0]["host"] == "win-1"
    (warning,) = result["warnings"]
    assert "enable-csi.json cannot be written" in warning
    assert result["path"] is None


def test_a_written_summary_is_also_the_jobs_statistic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = run(monkeypatch, hosts=ROWS, output_dir=str(tmp_path))
    assert Path(result["path"]).exists()
    assert result["ansible_stats"]["data"]["kubewin_summary"] == result["summary"]


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({}, "done"),
        ({"outcome": "paused"}, "paused"),
        ({"failure": "no room"}, "failed"),
        ({"failure": "no room", "outcome": "refused"}, "refused"),
        # A dry run changes nothing.
        ({"failure": "no room", "outcome": "failed", "check": True}, "refused"),
    ],
)
def test_the_statistic_has_the_outcome_of_the_run(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], outcome: str
) -> None:
    forms: tuple[dict[str, Any], ...] = ({"lines": []}, {"hosts": ROWS})
    for form in forms:
        kept = run(monkeypatch, **form, **options)["ansible_stats"]["data"]["kubewin_summary"]
        assert kept["outcome"] == outcome
