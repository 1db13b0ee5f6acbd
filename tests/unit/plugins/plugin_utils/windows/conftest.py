# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.windows.simulated import SimulatedServer
from unit.plugins.plugin_utils.windows.simulated import Artifacts, Host, simulated_host, winland

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    with SimulatedServer(winland(), tmp_path_factory.mktemp("winland")) as running:
        yield running


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Artifacts]:
    folder: Path = tmp_path_factory.mktemp("artifacts")
    served = Artifacts(folder)
    yield served
    served.close()


@pytest.fixture
def host(server: SimulatedServer) -> Iterator[Host]:
    with simulated_host(server.address, f"win-{next(_numbers)}") as made:
        yield made


@pytest.fixture
def german_host(server: SimulatedServer) -> Iterator[Host]:
    with simulated_host(server.address, f"win-{next(_numbers)}", lang="de") as made:
        yield made
