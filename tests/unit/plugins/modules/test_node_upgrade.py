# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run leaves behind while others do what it handed out."""

from __future__ import annotations

import os
import threading
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.upgrade_book import Pages
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.journal import Entry, Journal, Target
from ansible_collections.kubewin.csi.plugins.module_utils.upgrade.picture import Picture
from ansible_collections.kubewin.csi.plugins.modules.node_upgrade import ARGUMENT_SPEC, Upgrade
from unit.plugins.module_utils.cluster.fakes import ObjectStore, Response, client_of

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kubewin/leases/kubewin-upgrade"


class Nodes(ObjectStore):
    """A cluster with these Windows nodes, which are closed by upgrade "first"."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if (method, path) != ("GET", "/api/v1/nodes"):
            return super().request(method, path, body, **params)
        mark = {"kubewin.io/cordoned": "upgrade first"}
        items = [
            {"metadata": {"name": name, "annotations": mark}, "spec": {"unschedulable": True}} for name in self.names
        ]
        return Response({"items": items, "metadata": {"resourceVersion": "1"}})


def test_a_run_is_believed_alive_for_as_long_as_every_node_of_the_batch_may_take() -> None:
    """They are handed out together and changed one after the other; one alone may take all of its time."""
    store = Nodes("win-1", "win-2")
    entries = tuple(Entry(name, 0, "gate", began="2026-11-21T20:00:00Z") for name in store.names)
    journal = Journal("first", "none", Target(), "2026-11-21T20:00:00Z", entries, before=Picture({}, {}).pack())
    Pages(client_of(store), "kubewin", "first", None).keep(journal)
    defaults = {key: option.get("default") for key, option in ARGUMENT_SPEC.items()}
    asked = {"name": "first", "term": journal.term, "hand_timeout": 1000, "holder": holder_of(os.getpid())}
    result, _journal = Upgrade(client_of(store), {**defaults, **asked}, threading.Event()).go_on()
    assert result["next"] == {"kind": "gate", "nodes": ["win-1", "win-2"]}
    assert store.things[LEASE]["spec"]["leaseDurationSeconds"] >= 2000
