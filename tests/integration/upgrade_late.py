# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrades of one node whose writes arrive after another run has finished it."""

from __future__ import annotations

import itertools
import os
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.holder import identify_process
from ansible_collections.kubewin.csi.plugins.plugin_utils.upgrade.run import Upgrade
from integration.late_writes import Choice, LateWrite, late_writes
from integration.upgrade_run import begin_upgrade, upgrade_call, upgrade_nodes
from integration.upgrading import (
    LEASE,
    closed,
    journal,
    running,
)
from lab.cluster import openshift
from lab.handle import Lab


def upgrade_of(lab: Lab, **options: Any) -> Upgrade:
    """The steps of a run in this process, as the lab's account."""
    return upgrade_call(options.pop("kubeconfig", lab.state.kubeconfigs["kubewin"]), **options)


def late_upgrade(lab: Lab, name: str, choice: Choice, *, stop: bool = False) -> list[LateWrite] | None:
    """The late writes of an upgrade of one node after another run finished it; that node is as the other run left it."""
    options = {"name": name, "hook": "tasks", "nodes": ["win-3"], "node_timeout": 1800}

    def follow() -> None:
        upgrade_nodes(lab.state.kubeconfigs["kubewin"], **options)

    late = late_writes(lab, choice, lambda kubeconfig: begin_upgrade(kubeconfig, **options), follow, stop=stop)
    assert closed(lab) == {}
    found = journal(lab, name)
    assert (found["state"], bool(found["ended"])) == ("finished", True)
    assert not lab.api.ok(LEASE)
    running(lab, "db-c")
    # A run that another one overtook has nothing to finish.
    overtaken = upgrade_of(lab, holder=identify_process(os.getppid()), **options)
    overtaken.finish()
    assert overtaken.result.outcome == "finished"
    return late


def wmco_release(lab: Lab) -> tuple[int, ...]:
    return openshift.numbers(lab.api.get("/api/v1/nodes/win-3")["metadata"]["annotations"][openshift.VERSION])


def second_of_node() -> Choice:
    numbers = itertools.count(1)
    return lambda _count, call: (call.verb, call.resource) == ("patch", "nodes") and next(numbers) == 2


def late_upgrade_by_wmco(lab: Lab, choice: Choice, *, stop: bool) -> list[LateWrite] | None:
    """The late writes of an upgrade of one node to the next release of WMCO 9, after another run finished it."""
    major, _minor, patch = wmco_release(lab)
    release = f"9.0.{patch + 1}" if major == 9 else "9.0.0"
    options = {
        "name": f"wmco-{release}", "hook": "wmco", "target": {"openshift": "4.14", "wmco": release}, "nodes": ["win-3"],
        "node_timeout": 1800, "wait_timeout": 1800,
    }  # fmt: skip
    openshift.offer(lab.api, release, approved=True)
    late = late_writes(
        lab,
        choice,
        lambda kubeconfig: begin_upgrade(kubeconfig, **options),
        lambda: upgrade_nodes(lab.state.kubeconfigs["kubewin"], **options),
        stop=stop,
    )
    assert ".".join(map(str, wmco_release(lab))) == release
    assert openshift.ALLOW not in lab.api.get("/api/v1/nodes/win-3")["metadata"]["labels"]
    assert closed(lab) == {}
    found = journal(lab, str(options["name"]))
    assert (found["state"], bool(found["ended"])) == ("finished", True)
    assert not lab.api.ok(LEASE)
    return late
