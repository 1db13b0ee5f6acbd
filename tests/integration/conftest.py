# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs for the tests: one for the whole session, on simulated Windows hosts; tests put back what they changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import handle
from lab.handle import Lab

# Their assertions show the compared values, as those of the tests do.
pytest.register_assert_rewrite(*(f"integration.convert_{part}" for part in ("kills", "parts", "stories", "trouble")))

# What each file took in a run that `make order` kept.
SECONDS = Path(__file__).with_name("seconds.json")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no worker is left alone with one of them at the end.

    The order within a file stays. A file that is not known yet may be long.
    """
    seconds: dict[str, int] = json.loads(SECONDS.read_text(encoding="utf-8"))
    unknown = max(seconds.values())
    items.sort(key=lambda item: -seconds.get(item.path.stem, unknown))


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab with three Windows nodes on simulated hosts, and the vSphere driver's own installation."""
    made = handle.start(f"test-{os.getpid()}")
    yield made
    made.stop()
