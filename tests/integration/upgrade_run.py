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
from types import SimpleNamespace
from typing import Any

from ansible_collections.kubewin.csi.plugins.action.upgrade import ActionModule
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.journal import Journal
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.run import Upgrade
from integration.kube import connect
from integration.playbooks import ROOT

ARGUMENT_SPEC = ActionModule.argument_spec


def upgrade_call(
    kubeconfig: str,
    notify: Callable[[str], None] = lambda _line: None,
    check: Callable[[str], None] = lambda _kind: None,
    *,
    holder: str = "",
    **options: Any,
) -> Upgrade:
    """The steps of a run in this process. check: called with "gate" and "verify" in place of these."""
    options = {**{key: option.get("default") for key, option in ARGUMENT_SPEC.items()}, "data": False, **options}
    features: Any = SimpleNamespace(
        show=notify,
        wait_for_drivers=lambda _nodes: check("gate"),
        verify=lambda _nodes, move=False: None if move else check("verify"),
    )
    return Upgrade(connect(kubeconfig), options, holder or identify_process(os.getpid()), features)


def follow(upgrade: Upgrade) -> Journal:
    """Upgrade every node that is left; the journal then. The Lease is given back."""
    upgrade.take_lease()
    try:
        upgrade.follow()
    except TaskError as error:
        if error.reason != "stopped":
            raise
    finally:
        upgrade.lease.end()
    journal = upgrade.journal_store.read()
    assert journal is not None
    return journal


def upgrade_nodes(kubeconfig: str, **options: Any) -> None:
    """Upgrade nodes from the first step to the last."""
    nodes = options["nodes"]
    upgrade = upgrade_call(kubeconfig, **options, batch=nodes, results=dict.fromkeys(nodes, ""))
    upgrade.take_lease()
    try:
        if options.get("hook") == "tasks":
            upgrade.begin()
            upgrade.finish()
        else:
            upgrade.follow()
        assert upgrade.result.outcome == "finished", upgrade.result
        upgrade.end()
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
