# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Baselines on this machine's disk."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.data.manifest import Manifest
from ansible_collections.kubewin.csi.plugins.modules.workload_data import Refused, known, load, store

KEPT = Manifest("shop", "data", "pv-1", "listing", "2026-11-21T10:00:00Z", (), ())


def test_a_baseline_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "shop_data.jsonl"
    store(str(file), KEPT)
    assert load(str(file)) == KEPT
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_a_baseline_that_cannot_be_written_is_refused_and_the_one_before_stays(tmp_path: Path) -> None:
    file = tmp_path / "shop_data.jsonl"
    store(str(file), KEPT)
    with room_for(10), pytest.raises(Refused, match=r"shop_data.jsonl cannot be written: .*File too large"):
        store(str(file), KEPT)
    assert load(str(file)) == KEPT
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_a_baseline_that_is_taken_anew_need_not_be_readable(tmp_path: Path) -> None:
    (tmp_path / "shop_data.jsonl").write_text("{", encoding="utf-8")
    params = {"namespace": "shop", "claims": ["data"], "directory": str(tmp_path), "compare": False}
    assert known({**params, "renew": True}) == {"data": None}
    with pytest.raises(Refused, match="cannot be read"):
        known({**params, "renew": False})


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process can become larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
