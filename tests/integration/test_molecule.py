# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the guide to molecule, by a user who installed the collection, on an inventory of other hosts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration import shipped
from integration.kube import also_holds
from integration.playbooks import PATIENCE, ROOT
from lab import handle
from lab.handle import Lab
from unit.plugins.shown import RST, blocks, lines


@pytest.fixture
def hosts() -> Iterator[Lab]:
    """Three hosts that are not those of the scenarios' own lab."""
    lab = handle.start(f"guide-{os.getpid()}")
    with also_holds(lab, "cluster-admin", "the-guide"):
        yield lab
    lab.stop()


@pytest.mark.torture
def test_the_commands_of_the_guide_run_in_an_installed_collection(hosts: Lab, tmp_path: Path) -> None:
    index = json.loads((ROOT / ".work" / "lanes.json").read_text(encoding="utf-8"))
    if "molecule" not in index["lanes"]:
        pytest.fail(f"molecule is not there: {index['missing'].get('molecule', 'run make torture')}")
    user = shipped.install(tmp_path)
    assert not (user.collection / "galaxy.yml").exists()
    inventory = user.home / "clusters" / "staging" / "inventory.yml"
    inventory.parent.mkdir(parents=True)
    shutil.copy(hosts.state.inventories["ntlm-http"], inventory)
    console = [block for block in blocks(RST / "guide_molecule.rst") if block.kind == "console"]
    commands = [line.split(" ", 1)[1] for block in console for line in lines(block)]
    # The last block needs a checkout, and the lane has what the first command installs.
    own = commands[1 : commands.index("git clone https://github.com/kubewin/csi && cd csi")]
    assert commands[0] == "pip install molecule"
    assert [command.partition("test -s ")[2] for command in own if "molecule -c" in command] == [
        "preflight",
        "limit",
        "enable",
    ]
    environment = {**user.environment(), "PATH": f"{index['lanes']['molecule']['bin']}:/usr/bin:/bin", "NO_COLOR": "1"}
    done = subprocess.run(
        ["sh", "-exc", "\n".join(own)],
        cwd=user.home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout
    assert not (user.collection / ".lab").exists()
