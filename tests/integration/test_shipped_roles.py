# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""With each shipped role, bound as its file says, a real API server is asked for what must not be possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from integration.playbooks import ROOT
from lab.cluster import access
from lab.cluster.api import Object
from lab.handle import Lab
from unit.roles.test_rbac import IN_NAMESPACES

FILES = ROOT / "roles" / "csi_driver" / "files"
PREFLIGHT = FILES / "kubewin-preflight-rbac.yaml"
RBAC = "rbac.authorization.k8s.io"
HOME = "bound-here"

# What takes a cluster over, destroys it or reads its secrets: verb, group, resource, namespace, name.
FORBIDDEN = (
    ("get", "", "secrets", "kube-system", "any"),
    ("list", "", "secrets", "", ""),
    ("create", "", "pods", "kube-system", ""),
    ("create", "", "pods/exec", "kube-system", "any"),
    ("get", "", "pods/log", "kube-system", "any"),
    ("create", "", "serviceaccounts/token", "kube-system", "any"),
    ("create", "apps", "daemonsets", "kube-system", "csi-smb-node-win"),
    ("patch", "apps", "daemonsets", "kube-system", "kube-proxy"),
    ("patch", "apps", "deployments", "kube-system", "coredns"),
    ("patch", "", "configmaps", "kube-system", "coredns"),
    ("patch", "", "namespaces", "", "kube-system"),
    ("delete", "", "namespaces", "", "kube-system"),
    ("delete", "", "nodes", "", "win-1"),
    ("delete", "", "persistentvolumes", "", "any"),
    ("delete", "", "persistentvolumeclaims", "kube-system", "any"),
    ("delete", "apps", "daemonsets", "kube-system", "kube-proxy"),
    ("create", RBAC, "clusterrolebindings", "", "mine"),
    ("create", RBAC, "clusterroles", "", "mine"),
    ("patch", RBAC, "clusterroles", "", "cluster-admin"),
    ("bind", RBAC, "clusterroles", "", "cluster-admin"),
    ("escalate", RBAC, "clusterroles", "", "kubewin-smb-csi-node"),
    ("delete", RBAC, "clusterroles", "", "cluster-admin"),
    ("impersonate", "", "users", "", "admin"),
    ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", ""),
    ("update", "certificates.k8s.io", "certificatesigningrequests/approval", "", "any"),
)
# What the file itself says of a role, and nothing else.
ADMITTED: dict[str, set[tuple[str, str]]] = {
    "kubewin-csi-azure-disk": {("get", "secrets")},
    "kubewin-csi-azure-file": {("get", "secrets")},
    "kubewin-csi-smb": {("get", "secrets")},
    "kubewin-csi-proof-namespace": {("patch", "namespaces"), ("delete", "namespaces")},
    "kubewin-csi-convert": {("delete", "persistentvolumes")},
}


def roles() -> list[Object]:
    """Every ClusterRole that is shipped."""
    return [*access.cluster_roles(), yaml.safe_load(PREFLIGHT.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def bound(lab: Lab) -> Iterator[Lab]:
    """An account for each role, that holds it and nothing else."""
    api = lab.api
    for role in roles():
        name = role["metadata"]["name"]
        api.ensure(f"{access.RBAC}/clusterroles", role)
        access.bind(api, name, f"only-{name}", HOME if name in IN_NAMESPACES else "")
    yield lab
    for role in roles():
        name = role["metadata"]["name"]
        api.gone(f"{access.RBAC}/clusterrolebindings/only-{name}-{name}")
    api.gone(f"{access.RBAC}/clusterroles/kubewin-preflight")
    api.gone(f"/api/v1/namespaces/{HOME}")


def allowed(lab: Lab, role: str, asked: tuple[str, str, str, str, str]) -> bool:
    """What the API server's authorizer says about the account of a role."""
    verb, group, resource, namespace, name = asked
    plural, _slash, subresource = resource.partition("/")
    attributes = {
        "verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace, "name": name,
    }  # fmt: skip
    spec: dict[str, Any] = {
        "user": f"system:serviceaccount:{access.NAMESPACE}:only-{role}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{access.NAMESPACE}", "system:authenticated"],
        "resourceAttributes": attributes,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(lab.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)["status"]["allowed"])


def test_no_role_can_do_what_its_file_does_not_say(bound: Lab) -> None:
    for role in roles():
        name = role["metadata"]["name"]
        granted = {asked for asked in FORBIDDEN if allowed(bound, name, asked)}
        assert {(asked[0], asked[2]) for asked in granted} == ADMITTED.get(name, set()), name
        assert len(FORBIDDEN) - len(granted) >= 10


def test_rules_that_name_their_objects_let_an_apply_create_them_and_no_others(bound: Lab) -> None:
    deploy = "kubewin-csi-deploy"
    assert allowed(bound, deploy, ("create", "apps", "daemonsets", HOME, "csi-smb-node-win"))
    assert not allowed(bound, deploy, ("create", "apps", "daemonsets", HOME, "mine"))
    assert not allowed(bound, deploy, ("create", "", "pods", HOME, ""))
    assert not allowed(bound, deploy, ("create", "", "pods/exec", HOME, "any"))
    assert not allowed(bound, "kubewin-csi-vsphere", ("create", "", "namespaces", "", "mine"))
