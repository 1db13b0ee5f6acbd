# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A world behind an API: the paths under which its objects are served, and a server that serves them."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from benchmark.apipeer import ApiPeer, Asked, Shelf, Trouble

from situations.world import World

KINDS: dict[str, Kind] = {one.kind: one for one in vars(kinds).values() if isinstance(one, Kind)}
# Read one by one and by name; OpenShift's are not there elsewhere.
OPENSHIFT = ("openshift-cluster-version", "openshift-config", "openshift-config-managed")
SINGLE = ("ConfigMap", "ClusterVersion", "Service")


def server(world: World) -> ApiPeer:
    """A server with the objects of a world; what is unread in the world is forbidden there."""
    lists: dict[str, list[Any]] = {
        kind.path(): []
        for kind in KINDS.values()
        if "openshift.io" not in kind.group and "coreos.com" not in kind.group
    }
    single: dict[str, Any] = {}
    if any(world.of("ClusterVersion")):
        lists[kinds.NAMESPACE.path()] += [{"metadata": {"name": name}} for name in OPENSHIFT]
    for item in world.objects:
        kind, metadata = KINDS[item["kind"]], item["metadata"]
        if item["kind"] in SINGLE:
            single[kind.path(metadata.get("namespace"), metadata["name"])] = item
        else:
            lists.setdefault(kind.path(), []).append(item)
            if kind is kinds.CONTROLLER_REVISION:
                lists.setdefault(kind.path(metadata["namespace"]), []).append(item)
    forbidden = {one.resource for one in world.unread}

    def trouble(asked: Asked) -> Trouble | None:
        return Trouble(403) if forbidden.intersection(asked.path.split("/")) else None

    shelves = {path: Shelf.of(items) for path, items in lists.items()}
    return ApiPeer(shelves, objects=single, trouble=trouble, version=world.kubernetes)
