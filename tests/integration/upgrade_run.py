# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole upgrade whose external steps succeed at once, as a process: python -m integration.upgrade_run <options as JSON>."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import holder_of
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.run import Upgrade
from ansible_collections.kubewin.csi.plugins.modules.node_upgrade import ARGUMENT_SPEC
from integration.kube import connect
from integration.playbooks import ROOT


def upgrade_call(kubeconfig: str, **options: Any) -> Upgrade:
    """One call of the module in this process."""
    defaults = {key: option.get("default") for key, option in ARGUMENT_SPEC.items()}
    return Upgrade(connect(kubeconfig), {**defaults, "holder": holder_of(os.getpid()), **options}, threading.Event())


def upgrade_nodes(kubeconfig: str, **options: Any) -> None:
    """Upgrade nodes from the first step to the last."""
    result, _journal = upgrade_call(kubeconfig, **options).go_on()
    while result["outcome"] == "delegated":
        kind, nodes = result["next"]["kind"], result["next"]["nodes"]
        external = {"generation": result["generation"], "finished": kind, "results": dict.fromkeys(nodes, "")}
        result, _journal = upgrade_call(kubeconfig, **options, **external).go_on()
    assert result["outcome"] == "finished", result
    upgrade_call(kubeconfig, **options).hold()
    upgrade_call(kubeconfig, **options, ended=True).go_on()


def begin_upgrade(kubeconfig: str, **options: Any) -> subprocess.Popen[str]:
    """The same in a process of its own session."""
    words = [sys.executable, "-m", "integration.upgrade_run", json.dumps({"kubeconfig": kubeconfig, **options})]
    return subprocess.Popen(
        words, cwd=ROOT / "tests", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


if __name__ == "__main__":
    upgrade_nodes(**json.loads(sys.argv[1]))
