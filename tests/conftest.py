# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every test has: its CPU seconds in the report, since tests side by side lengthen one another's time; and its turn."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from day import DAY

_BEGIN = pytest.StashKey[float]()


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Begin to count."""
    item.stash[_BEGIN] = _cpu()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Note what was spent, fixtures included."""
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu", f"{_cpu() - item.stash[_BEGIN]:.1f}"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make torture` what has its turn on another day."""
    for item in items:
        for mark in item.iter_markers("turn"):
            number, of = mark.args
            if DAY % of != number:
                item.add_marker(pytest.mark.torture)


def pytest_collection_finish() -> None:
    """Leave what was loaded out of the collections of garbage: ten thousand tests and their modules stay until the end."""
    gc.collect()
    gc.freeze()
