# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A world behind an API: the paths under which its objects are served, and what a client of kubernetes returns for them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from kubernetes.client.exceptions import ApiException

from situations.world import World

KINDS: dict[str, Kind] = {one.kind: one for one in vars(kinds).values() if isinstance(one, Kind)}
# Read one by one and by name; OpenShift's are not there elsewhere.
OPENSHIFT = ("openshift-cluster-version", "openshift-config", "openshift-config-managed")
SINGLE = ("ConfigMap", "ClusterVersion", "Service")


class Served:
    """The raw layer of kubernetes' dynamic client, with the objects of a world in pages; what is unread in the world is forbidden."""

    def __init__(self, world: World) -> None:
        lists: dict[str, list[Any]] = {
            kind.path(): []
            for kind in KINDS.values()
            if "openshift.io" not in kind.group and "coreos.com" not in kind.group
        }
        self._objects: dict[str, Any] = {"/version": {"gitVersion": world.kubernetes}, "/readyz": {}}
        if any(world.of("ClusterVersion")):
            lists[kinds.NAMESPACE.path()] += [{"metadata": {"name": name}} for name in OPENSHIFT]
        for item in world.objects:
            kind, metadata = KINDS[item["kind"]], item["metadata"]
            if item["kind"] in SINGLE:
                self._objects[kind.path(metadata.get("namespace"), metadata["name"])] = item
            else:
                lists.setdefault(kind.path(), []).append(item)
                if kind is kinds.CONTROLLER_REVISION:
                    lists.setdefault(kind.path(metadata["namespace"]), []).append(item)
        self._lists = lists
        self._forbidden = {one.resource for one in world.unread}

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        """The response to a read."""
        assert (method, body) == ("GET", None)
        if self._forbidden.intersection(path.split("/")):
            raise ApiException(status=403, reason="Forbidden")
        if path in self._objects:
            content = self._objects[path]
        elif path in self._lists:
            content = self._page(self._lists[path], int(params.get("_continue", 0)), params["limit"])
        else:
            raise ApiException(status=404, reason="Not Found")
        return SimpleNamespace(data=json.dumps(content).encode(), headers={})

    def _page(self, items: list[Any], start: int, limit: int) -> dict[str, Any]:
        end = start + limit
        metadata = {"resourceVersion": "1000", **({"continue": str(end)} if end < len(items) else {})}
        return {"metadata": metadata, "items": items[start:end]}
