# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook upgrade as a process that is killed at instants of a seed, and given again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.kube import writes
from integration.playbooks import PATIENCE, ROOT, Run, family, play, start
from integration.upgrading import (
    closed,
    step,
)
from lab.handle import Lab, eventually

PLAYBOOK = "playbooks/upgrade.yml"


def given(lab: Lab, name: str, target: dict[str, str], output: Path | None, **more: Any) -> dict[str, Any]:
    return {
        "kubewin_kubeconfig": lab.state.kubeconfigs["kubewin"],
        "kubewin_drivers": ["vsphere"],
        "kubewin_upgrade_name": name,
        "kubewin_upgrade_target": target,
        "kubewin_verify_namespace": "kubewin",
        "kubewin_verify_storage_classes": {"vsphere": "fast"},
        "kubewin_verify_timeout": 300,
        "kubewin_upgrade_append_only": "times.txt",
        **({"kubewin_output_dir": os.path.relpath(output, ROOT)} if output else {}),
        **more,
    }


def inventory(lab: Lab) -> str:
    """The inventory with the Windows hosts."""
    return lab.state.inventories["ntlm-http"]


@dataclass(frozen=True, slots=True)
class Instant:
    """When a run is killed: so many seconds after `due` is true of the run's events."""

    name: str
    due: Callable[[Path], bool]
    offset: float = 0.0


def at_random(lab: Lab, kills: int, seed: int) -> list[Instant]:
    """Instants of a seed: how many writes a run has sent, and seconds after that."""
    chance = random.Random(seed)
    instants = []
    for number in range(kills):
        count, offset = chance.randrange(3, 40), chance.uniform(0, 1)
        name = f"seed {seed}, kill {number + 1} at write {count} + {offset:.3f} s"
        instants.append(Instant(name, _AfterWrites(lab, count), offset))
    return instants


class _AfterWrites:
    """Whether the run that it is first asked about has sent so many writes."""

    def __init__(self, lab: Lab, count: int) -> None:
        self._lab, self._count = lab, count
        self._begin: int | None = None

    def __call__(self, _record: Path) -> bool:
        if self._begin is None:
            self._begin = self._lab.audit_size()
        return len(writes(self._lab, self._begin)) >= self._count


def under_way(lab: Lab, name: str, node: str, steps: Sequence[str]) -> Instant:
    """When a node stands at one of these steps of an upgrade."""
    return Instant(f"{node} under way", lambda _record: step(lab, name, node) in steps)


def killed(lab: Lab, wanted: dict[str, Any], instant: Instant, record: Path) -> bool:
    """A run that is killed, with all that came of it; False when it ended before."""
    process = start(PLAYBOOK, inventory(lab), record=record, variables=wanted)
    eventually(lambda: instant.due(record) or process.poll() is not None, instant.name, PATIENCE, longest_pause=0.1)
    # The instant itself, from the seed, as the test prints it.
    time.sleep(instant.offset)
    ended = process.poll() is not None
    for member in family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    screen, _nothing = process.communicate()
    assert not ended or process.returncode == 0, screen
    return not ended


def nothing_is_closed_unsaid(lab: Lab, name: str) -> None:
    """After every killed run, the journal has each node that we cordoned as under way."""
    for node, why in closed(lab).items():
        if {f"upgrade {name}", "kubewin.io/upgrade"} & set(why):
            assert step(lab, name, node) not in ("waiting", "done")


def killed_and_resumed(lab: Lab, name: str, wanted: dict[str, Any], folder: Path, instants: Sequence[Instant]) -> Run:
    """An upgrade whose runs are killed at these instants, and the run that ends it."""
    hit = 0
    for number, instant in enumerate(instants):
        was = killed(lab, wanted, instant, folder / f"{number}.jsonl")
        nothing_is_closed_unsaid(lab, name)
        print(f"{instant.name}: {'killed' if was else 'it had ended'}")
        hit += was
    # Only a run that still works can be killed.
    assert hit > len(instants) // 2
    done = play(PLAYBOOK, inventory(lab), variables=wanted)
    assert done.code == 0, done.screen
    return done
