# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs for the tests: one for the whole session, on simulated Windows hosts; tests put back what they changed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from lab import handle
from lab.handle import Lab

# Files whose tests run whole playbooks come first, so that no worker is left alone with one of them at the end.
LONGEST = (
    "enable_csi", "upgrade_nodes", "upgrade", "canary", "connections", "enable_judged", "enable_drivers", "rebind", "changes",
    "build_csi_proxy", "cuts_on_wine", "verify", "handover", "csi_proxy_leaves", "cuts_in_playbooks",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order by file, the longest first; the order within a file stays."""
    rank = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab with three Windows nodes on simulated hosts, and the vSphere driver's own installation."""
    made = handle.start(f"test-{os.getpid()}")
    yield made
    made.stop()
