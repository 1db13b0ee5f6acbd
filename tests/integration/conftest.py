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


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab with three Windows nodes on simulated hosts, and the vSphere driver's own installation."""
    made = handle.start(f"test-{os.getpid()}")
    yield made
    made.stop()
