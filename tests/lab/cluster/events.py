# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events as kubelets and storage controllers write them: one object a message, counted up when it comes again."""

from __future__ import annotations

from lab.cluster import plugin
from lab.cluster.api import MERGE, Object
from lab.cluster.watch import Cluster


class Recorder:
    """Events about one object. `host` is the node of a kubelet's events, empty for a controller's."""

    def __init__(self, cluster: Cluster, involved: Object, component: str = "kubelet", host: str = "") -> None:
        self._cluster, self._involved, self._component, self._host = cluster, involved, component, host
        self._known: dict[str, Object] = {}

    async def __call__(self, kind: str, reason: str, message: str) -> None:
        now = plugin.stamp()
        collection = f"/api/v1/namespaces/{self._involved['namespace']}/events"
        known = self._known.get(reason + message)
        if known is not None:
            known["count"] += 1
            known["lastTimestamp"] = now
            body = {"count": known["count"], "lastTimestamp": now}
            await self._cluster.call("PATCH", f"{collection}/{known['metadata']['name']}", body, MERGE)
            return
        source = {"component": self._component, **({"host": self._host} if self._host else {})}
        self._known[reason + message] = await self._cluster.call(
            "POST",
            collection,
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "generateName": f"{self._involved['name']}.",
                    "namespace": self._involved["namespace"],
                },
                "involvedObject": self._involved,
                "type": kind,
                "reason": reason,
                "message": message,
                "count": 1,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "source": source,
                "reportingComponent": self._component,
                "reportingInstance": self._host or self._component,
            },
        )


def about(thing: Object, kind: str) -> Object:
    """The involvedObject for a namespaced object of the core group."""
    metadata = thing["metadata"]
    return {
        "apiVersion": "v1",
        "kind": kind,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
