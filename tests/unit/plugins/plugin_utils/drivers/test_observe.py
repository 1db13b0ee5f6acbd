# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The observation of a cluster before a deployment: what it reads, and which permissions it checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.handover.decide import make_record
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.observe import (
    find_missing_deploy_rules,
    read_snapshot,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_role_needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import load_roles
from unit.plugins.plugin_utils.drivers.worlds import HOME, VSPHERE
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Response


class Server:
    """An API server with the namespace HOME, and an account that may do everything but one thing."""

    def __init__(self, refused: dict[str, str], objects: dict[str, Any] | None = None) -> None:
        self.refused = refused
        self.objects = objects or {}
        self.paths: list[str] = []
        self.privileged: bool | None = None
        self.reviews: list[dict[str, str]] = []

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if path.endswith("/selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]
            self.reviews.append(asked)
            allowed = any(asked.get(key, "") != value for key, value in self.refused.items())
            return Response({"status": {"allowed": allowed}})
        if path.endswith("/subjectaccessreviews"):
            if self.privileged is None:
                raise ApiError(403, {"message": 'User "a" cannot create resource "subjectaccessreviews"'})
            return Response({"status": {"allowed": self.privileged}})
        self.paths.append(path)
        if path in self.objects:
            return Response(self.objects[path])
        if path == "/version":
            return Response({"gitVersion": "v1.36.3"})
        if path == f"/api/v1/namespaces/{HOME}":
            return Response({"metadata": {"name": HOME}})
        if path.endswith(("/nodes", "/daemonsets", "/deployments")):
            return Response({"items": [], "metadata": {"resourceVersion": "1"}})
        raise ApiError(404)


def missing_access(server: Server, namespace: str | None = None) -> tuple[str, ...]:
    clock = Clock()
    client = Client(server, retry_for=5, clock=clock, sleep=clock.sleep)
    return read_snapshot(client, VSPHERE, DriverRequest(namespace=namespace)).missing_access


def test_a_subresource_and_a_name_are_checked_as_such() -> None:
    server = Server({"resource": "pods", "subresource": "log"})
    assert missing_access(server) == (
        f'{{apiGroups: [""], resources: ["pods/log"], verbs: ["get"]}} in namespace {HOME}',
    )
    assert {
        "group": "apps",
        "resource": "daemonsets",
        "subresource": "",
        "verb": "patch",
        "name": VSPHERE.daemonset,
        "namespace": HOME,
    } in server.reviews


def test_a_namespace_of_another_name_has_to_be_created() -> None:
    server = Server({"resource": "namespaces", "verb": "create", "name": "fresh"})
    assert missing_access(server, "fresh") == (
        '{apiGroups: [""], resources: ["namespaces"], resourceNames: ["fresh"], verbs: ["create"]}',
    )
    assert missing_access(server) == ()


def test_pods_are_checked_in_the_whole_cluster() -> None:
    server = Server({"resource": "pods", "verb": "list", "namespace": ""})
    assert missing_access(server) == ('{apiGroups: [""], resources: ["pods"], verbs: ["list"]}',)


CLUSTER_VERSION = "/apis/config.openshift.io/v1/clusterversions/version"


DEPLOYMENTS = f"/apis/apps/v1/namespaces/{HOME}/deployments"


def controller(image: str, name: str = "vsphere-csi-controller", *sidecars: str) -> dict[str, Any]:
    containers = [{"name": "vsphere-csi-controller", "image": image}]
    containers += [{"name": one.rpartition("/")[2], "image": one} for one in sidecars]
    return {
        "metadata": {"name": name, "namespace": HOME},
        "spec": {"template": {"spec": {"containers": containers}}},
        "status": {"availableReplicas": 1},
    }


def listed(*deployments: dict[str, Any]) -> dict[str, Any]:
    return {DEPLOYMENTS: {"items": list(deployments), "metadata": {"resourceVersion": "1"}}}


def openshift(image: str, status: dict[str, Any] | None) -> tuple[str, list[str]]:
    objects = listed(controller(image))
    if status is not None:
        objects[CLUSTER_VERSION] = {"status": status}
    server, clock = Server({}, objects), Clock()
    client = Client(server, retry_for=5, clock=clock, sleep=clock.sleep)
    return read_snapshot(client, VSPHERE, DriverRequest()).openshift, server.paths


def test_a_digest_reads_the_last_completed_update_of_openshift() -> None:
    history = [
        {"state": "Partial", "version": "4.20.1"},
        {"state": "Completed", "version": "4.19.7"},
        {"state": "Completed", "version": "4.18.22"},
    ]
    status = {"desired": {"version": "4.20.1"}, "history": history}
    assert openshift("quay.io/x@sha256:aa", status)[0] == "4.19.7"
    assert openshift("quay.io/x@sha256:aa", {"desired": {"version": "4.20.1"}})[0] == "4.20.1"


def test_a_cluster_that_is_no_openshift_has_no_version_of_it() -> None:
    assert openshift("quay.io/x@sha256:aa", None)[0] == ""


def test_a_tag_needs_no_openshift_and_no_request() -> None:
    found, paths = openshift("x/driver:v3.4.0", {"desired": {"version": "4.20.1"}})
    assert found == ""
    assert CLUSTER_VERSION not in paths


@pytest.mark.parametrize("privileged", [True, False, None])
def test_the_plugins_account_is_checked_on_openshift_if_that_is_allowed(privileged: bool | None) -> None:
    digest = listed(controller("quay.io/x@sha256:aa"))
    server, clock = Server({}, {**digest, CLUSTER_VERSION: {"status": {"desired": {"version": "4.20.1"}}}}), Clock()
    server.privileged = privileged
    client = Client(server, retry_for=5, clock=clock, sleep=clock.sleep)
    assert read_snapshot(client, VSPHERE, DriverRequest()).privileged is privileged
    elsewhere = Client(Server({}, digest), retry_for=5, clock=clock, sleep=clock.sleep)
    assert read_snapshot(elsewhere, VSPHERE, DriverRequest()).privileged is None


def client_with(record: dict[str, Any]) -> Client:
    path = f"/api/v1/namespaces/{HOME}/configmaps/{record['metadata']['name']}"
    server, clock = Server({}, {path: record}), Clock()
    return Client(server, retry_for=5, clock=clock, sleep=clock.sleep)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize(("state", "expected"), [("begun", "a/b"), ("finished", "")])
def test_a_hand_over_counts_until_it_is_finished(state: str, expected: str, versioned: bool) -> None:
    record = make_record(VSPHERE, HOME, {"replaced": "a/b", "state": state})
    if not versioned:
        # As it was first written.
        del record["data"]["schema"]
    assert read_snapshot(client_with(record), VSPHERE, DriverRequest()).replacing == expected


@pytest.mark.parametrize(
    ("version", "why"),
    [("2", "expected 1: a later release wrote it; run that release"), ("0", "expected 1"), ("x", "expected 1")],
)
@pytest.mark.parametrize("state", ["begun", "finished"])
def test_the_record_of_a_hand_over_in_another_format_is_refused(state: str, version: str, why: str) -> None:
    """Its state may mean something else, and a hand-over would replace the copy in it."""
    record = make_record(VSPHERE, HOME, {"replaced": "a/b", "state": state})
    record["data"]["schema"] = version
    with pytest.raises(ClusterError) as error:
        read_snapshot(client_with(record), VSPHERE, DriverRequest())
    assert str(error.value) == (
        f"ConfigMap {HOME}/kubewin-replaced-vsphere: the record of a hand-over cannot be read: its schema version is "
        f"{version}, {why}. If it was edited by hand, restore it."
    )


def test_a_controller_with_a_name_of_its_own_is_found_by_its_image_as_in_preflight() -> None:
    """A Helm release may call it anything; one of the name that upstream gives it comes first."""
    driver, provisioner = VSPHERE.releases[-1].images["driver"], "registry.k8s.io/sig-storage/csi-provisioner:v5.0.1"
    helm = controller(f"mirror.example.com/{driver}:v3.3.1", "storage", provisioner)
    clock = Clock()
    for others in ([], [controller("x/driver:v3.4.0")]):
        # A Deployment without a provisioner may run the driver's image for anything.
        server = Server({}, listed(helm, controller(f"{driver}:v3.5.0", "tool"), *others))
        client = Client(server, retry_for=5, clock=clock, sleep=clock.sleep)
        found = read_snapshot(client, VSPHERE, DriverRequest()).controllers
        assert [one.name for one in found] == [*(one["metadata"]["name"] for one in others), "storage"]
        assert found[-1].image == f"mirror.example.com/{driver}:v3.3.1"


class Account:
    """An account with these needs. asked: about what it was asked."""

    def __init__(self, *allowed: Need) -> None:
        self.allowed, self.asked = set(allowed), list[Need]()

    def list_granted_rules(self, namespaces: Iterable[str | None]) -> dict[str | None, Any]:
        return {}

    def is_allowed(self, need: Need) -> bool:
        self.asked.append(need)
        return need in self.allowed


def missing(account: Account, driver: Driver, **options: Any) -> set[str]:
    found = find_missing_deploy_rules(cast(Any, account), driver, HOME, **options)
    return {role for role, _namespace in found}


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=lambda driver: driver.key)
def test_every_driver_has_a_role_of_its_own(driver: Driver) -> None:
    own = f"kubewin-csi-{driver.key.replace('_', '-')}"
    assert missing(Account(), driver) == {"kubewin-csi", "kubewin-csi-deploy", own}
    # The API server does not see a role made a moment ago yet, and answers 404 for an account that binds it without the verb `bind`.
    binds = [rule for rule in load_roles()[own]["rules"] if "bind" in rule["verbs"]]
    assert [rule["resourceNames"] for rule in binds] == [[driver.service_account]]


def test_objects_of_the_cluster_need_a_role_when_they_are_created() -> None:
    assert "kubewin-csi-cluster-objects" in missing(Account(), VSPHERE, cluster_objects=True)


def test_what_is_of_another_driver_is_not_asked_for() -> None:
    account = Account()
    missing(account, VSPHERE, cluster_objects=True)
    names = {need.name for need in account.asked}
    assert {VSPHERE.daemonset, VSPHERE.service_account, VSPHERE.name} <= names
    assert not names & {DRIVERS["smb"].daemonset, DRIVERS["smb"].service_account, DRIVERS["smb"].name}


def test_the_roles_bound_as_documented_suffice() -> None:
    roles = load_roles()
    needs = [need for name in ("kubewin-csi", "kubewin-csi-vsphere") for need in list_role_needs(roles[name])]
    assert missing(Account(*needs, *list_role_needs(roles["kubewin-csi-deploy"], HOME)), VSPHERE) == set()
