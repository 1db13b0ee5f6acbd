# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole upgrade whose tasks and checks succeed at once, as a process: python -m integration.upgrade_run <options as JSON>."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from ansible_collections.kubewin.csi.plugins.action.upgrade import ActionModule
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.decide import Decision
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.run import Check, Upgrade
from integration.kube import connect
from integration.playbooks import ROOT

ARGUMENT_SPEC = ActionModule.argument_spec


def upgrade_call(
    kubeconfig: str,
    notify: Callable[[str], None] = lambda _line: None,
    check: Check = lambda _kind, nodes: dict.fromkeys(nodes, ""),
    *,
    holder: str = "",
    **options: Any,
) -> Upgrade:
    """The steps of a run in this process."""
    defaults = {key: option.get("default") for key, option in ARGUMENT_SPEC.items()}
    return Upgrade(connect(kubeconfig), {**defaults, **options}, holder or identify_process(os.getpid()), notify, check)


def follow(upgrade: Upgrade) -> Decision:
    """Upgrade every node that is left; the Lease is given back."""
    upgrade.take_lease()
    try:
        return upgrade.follow()
    finally:
        upgrade.lease.end()


def upgrade_nodes(kubeconfig: str, **options: Any) -> None:
    """Upgrade nodes from the first step to the last."""
    upgrade = upgrade_call(kubeconfig, **options)
    upgrade.take_lease()
    try:
        if options.get("hook") == "tasks":
            upgrade.begin(options["nodes"])
            decision = upgrade.finish(dict.fromkeys(options["nodes"], ""))
        else:
            decision = upgrade.follow()
        assert decision.journal.state == "finished", decision
        upgrade.record_end(decision.journal, ())
    finally:
        upgrade.lease.end()


def begin_upgrade(kubeconfig: str, **options: Any) -> subprocess.Popen[str]:
    """The same in a process of its own session."""
    words = [sys.executable, "-m", "integration.upgrade_run", json.dumps({"kubeconfig": kubeconfig, **options})]
    return subprocess.Popen(
        words, cwd=ROOT / "tests", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


if __name__ == "__main__":
    upgrade_nodes(**json.loads(sys.argv[1]))
