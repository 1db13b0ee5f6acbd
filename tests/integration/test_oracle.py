# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that compares batches, without a lab."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from integration import oracle
from integration.oracle_shared import GROUPS


def test_a_batch_with_an_exception_counts_as_failed_and_the_next_one_follows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compared: list[str] = []

    def compare_rolls(_run: oracle.OracleRun, seed: str, count: int) -> tuple[list[Any], Any]:
        compared.append(seed)
        if seed == "7-0":
            raise TimeoutError("roll 7-0-1: its pods do not rest")
        return [], iter(())

    lab = MagicMock()
    monkeypatch.setattr("integration.oracle.handle.start", lambda *_name, **_options: lab)
    monkeypatch.setattr(oracle, "SharedObjects", MagicMock())
    monkeypatch.setattr(oracle.OracleRun, "_compare_rolls", compare_rolls)
    assert oracle.main(["--seed", "7", "--rolls", str(2 * GROUPS)]) == 1
    assert compared == [f"7-{batch}" for batch in range(GROUPS)]
    assert lab.stop.called
    shown = capsys.readouterr().out
    assert "roll 7-0: failed\nTraceback" in shown
    assert "TimeoutError: roll 7-0-1: its pods do not rest" in shown
    [row] = [line for line in shown.split("seed all")[-1].splitlines() if line.startswith("rolls")]
    assert row.split()[-1] == "2"
    compared.clear()
    assert oracle.main(["--seed", "8", "--rolls", str(2 * GROUPS)]) == 0
