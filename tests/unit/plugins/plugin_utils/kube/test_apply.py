# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Only what differs is written, and nothing is written before everything was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.kinds import Kind
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.transport import Answer


class Cluster:
    """A cluster in memory in which a server-side apply replaces the fields it names at the top level."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = {self._key(item): item for item in objects}
        self.written: list[str] = []
        self.refuse: str | None = None

    @staticmethod
    def _key(item: Mapping[str, Any]) -> tuple[str, str | None, str]:
        return item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        return self.objects.get((kind.kind, namespace, name))

    def apply(self, definition: Mapping[str, Any], *, dry_run: bool, force: bool = False) -> Answer:
        key = self._key(definition)
        if self.refuse == definition["kind"]:
            raise ClusterError(f"refused {key}", "invalid", 422)
        if key[1] is not None and self.get(kinds.NAMESPACE, key[1]) is None:
            raise ClusterError(f'namespaces "{key[1]}" not found', "api_error", 404)
        live = self.objects.get(key, {"metadata": {"uid": f"uid-{key[2]}"}})
        # A dry run has the version of the object as it is.
        version = live["metadata"].get("resourceVersion") if dry_run else "9"
        metadata = {**live["metadata"], **definition["metadata"], "resourceVersion": version}
        merged = {**live, **definition, "metadata": metadata}
        if not dry_run:
            self.objects[key] = merged
            self.written.append(f"{key[0]}/{key[2]}")
        return Answer(body=merged, warnings=("careful",))


def thing(kind: str, name: str, namespace: str | None = "ns", **fields: Any) -> dict[str, Any]:
    rbac = "rbac.authorization.k8s.io/v1"
    versions = {"DaemonSet": "apps/v1", "ClusterRole": rbac, "ClusterRoleBinding": rbac}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata, **fields}


NAMESPACE = thing("Namespace", "ns", None)


def apply_to(cluster: Cluster) -> Applier:
    """An Applier on a cluster that has what it asks a Client for."""
    client: Any = cluster
    return Applier(client)


def test_the_second_run_writes_nothing() -> None:
    cluster = Cluster({**NAMESPACE, "metadata": {"name": "ns", "uid": "u"}})
    definitions = [thing("ServiceAccount", "sa"), thing("DaemonSet", "ds", spec={"a": 1})]
    first = apply_to(cluster).apply(definitions)
    assert cluster.written == ["ServiceAccount/sa", "DaemonSet/ds"]
    assert first.changed
    assert first.warnings == ("careful",)
    second = apply_to(cluster).apply(definitions)
    assert not second.changed
    assert len(cluster.written) == 2


def test_only_what_differs_is_written() -> None:
    cluster = Cluster({**NAMESPACE, "metadata": {"name": "ns", "uid": "u"}})
    apply_to(cluster).apply([thing("ServiceAccount", "sa"), thing("DaemonSet", "ds", spec={"a": 1})])
    cluster.written.clear()
    outcome = apply_to(cluster).apply([thing("ServiceAccount", "sa"), thing("DaemonSet", "ds", spec={"a": 2})])
    assert cluster.written == ["DaemonSet/ds"]
    assert [change.action for change in outcome.changes] == ["none", "update"]
    difference = outcome.changes[1].diff()
    assert (difference["before"]["spec"], difference["after"]["spec"]) == ({"a": 1}, {"a": 2})


def test_a_concurrent_write_of_the_kubelet_is_not_reported_as_a_change() -> None:
    labelled = {"name": "win-1", "uid": "u", "resourceVersion": "5", "labels": {"a": "b"}}
    cluster = Cluster(thing("Node", "win-1", None, spec={}) | {"metadata": labelled})
    read = cluster.get

    def then_annotated(kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        live = read(kind, name, namespace)
        assert live is not None
        if "annotations" not in live["metadata"]:
            metadata = {
                **live["metadata"],
                "resourceVersion": "6",
                "annotations": {"csi.volume.kubernetes.io/nodeid": "{}"},
            }
            cluster.objects["Node", None, "win-1"] = {**live, "metadata": metadata}
        return live

    cluster.get = then_annotated  # type: ignore[method-assign]  # the kubelet registers a driver right after the read
    node = thing("Node", "win-1", None)
    node["metadata"]["labels"] = {"a": "b"}
    assert not apply_to(cluster).apply([node]).changed
    assert cluster.written == []


def test_a_refusal_of_the_last_leaves_the_first_unwritten() -> None:
    cluster = Cluster({**NAMESPACE, "metadata": {"name": "ns", "uid": "u"}})
    cluster.refuse = "DaemonSet"
    with pytest.raises(ClusterError):
        apply_to(cluster).apply([thing("ServiceAccount", "sa"), thing("DaemonSet", "ds")])
    assert cluster.written == []


def test_a_plan_writes_nothing_and_marks_what_the_server_could_not_see() -> None:
    cluster = Cluster()
    outcome = apply_to(cluster).plan([NAMESPACE, thing("ServiceAccount", "sa")])
    assert cluster.written == []
    assert [(change.kind, change.action, change.validated) for change in outcome.changes] == [
        ("Namespace", "create", True),
        ("ServiceAccount", "create", False),
    ]
    assert "not validated by the server" in outcome.changes[1].diff()["after_header"]


def test_a_real_run_makes_the_namespace_first_and_has_everything_validated() -> None:
    cluster = Cluster()
    outcome = apply_to(cluster).apply([NAMESPACE, thing("ServiceAccount", "sa")])
    assert cluster.written == ["Namespace/ns", "ServiceAccount/sa"]
    assert all(change.validated for change in outcome.changes)


def test_a_role_of_the_same_call_may_be_bound_before_the_server_can_read_it() -> None:
    role, binding = thing("ClusterRole", "plugin", None), thing("ClusterRoleBinding", "plugin", None)
    binding["roleRef"] = {"kind": "ClusterRole", "name": "plugin"}
    cluster = Cluster()
    real = cluster.apply

    def as_servers_do(definition: Mapping[str, Any], *, dry_run: bool, force: bool = False) -> Answer:
        if definition["kind"] == "ClusterRoleBinding" and cluster.get(kinds.CLUSTER_ROLE, "plugin") is None:
            raise ClusterError("ClusterRole plugin not found", "not_found", 404)
        return real(definition, dry_run=dry_run, force=force)

    cluster.apply = as_servers_do  # type: ignore[method-assign]  # the answer to an account without bind
    with pytest.raises(ClusterError, match="not found"):
        apply_to(cluster).plan([binding])
    assert apply_to(cluster).apply([role, binding]).changed
    assert cluster.written == ["ClusterRole/plugin", "ClusterRoleBinding/plugin"]


def test_a_missing_namespace_is_an_error() -> None:
    with pytest.raises(ClusterError, match='namespaces "ns" not found'):
        apply_to(Cluster()).plan([thing("ServiceAccount", "sa")])
