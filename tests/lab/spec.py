# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `up` asks of the supervisor: a file in the lab's folder, written before the supervisor starts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

WINDOWS_KINDS = ("wine", "simulated", "none")


@dataclass(frozen=True, slots=True)
class Spec:
    """One lab: how many Windows nodes, what is behind them, and the programs to run.

    `windows` is what was decided (`wine`, `simulated`, or `none`: nodes without hosts), `requested` what was asked for.
    `binaries` maps program names to files. `hosts` is how many of the nodes get a host, all of them by default. `kubelets`
    are the releases of nodes whose kubelet is not the cluster's, by node ("win-1": "v1.26.9").
    """

    name: str
    directory: str
    nodes: int = 3
    windows: str = "simulated"
    requested: str = "auto"
    hosts: int | None = None
    vsphere: bool = True
    kubelets: Mapping[str, str] = field(default_factory=dict)
    binaries: Mapping[str, str] = field(default_factory=dict)

    @property
    def host_count(self) -> int:
        if self.windows == "none":
            return 0
        return self.nodes if self.hosts is None else min(self.hosts, self.nodes)

    def binary(self, name: str) -> Path:
        return Path(self.binaries[name])

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self), indent=2), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Spec:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
