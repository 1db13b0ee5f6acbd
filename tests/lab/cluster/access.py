# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The least-privilege service account that plays use in the lab."""

from __future__ import annotations

from pathlib import Path

import yaml

from lab.cluster.api import Api, Object, kubeconfig
from lab.state import REPOSITORY

NAMESPACE = "kubewin"
ACCOUNT = "kubewin"
# What deploying vSphere's node plugin needs. The namespace is made by some tests, so the rights in it are bound everywhere.
ROLES = ("kubewin-csi", "kubewin-csi-vsphere", "kubewin-csi-deploy")
TOKEN_SECONDS = 7 * 86400
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# What the collection ships comes first, so that its own documentation is what the lab proves.
RULES = (REPOSITORY / "roles" / "csi_driver" / "files" / "kubewin-rbac.yaml", Path(__file__).with_name("rbac.yaml"))


def cluster_roles() -> list[Object]:
    """The ClusterRoles of the first rules file that exists."""
    source = next(path for path in RULES if path.is_file())
    documents = [found for found in yaml.safe_load_all(source.read_text(encoding="utf-8")) if found]
    listed = [item for found in documents for item in (found["items"] if found["kind"] == "List" else [found])]
    return [item for item in listed if item["kind"] == "ClusterRole"]


def access(api: Api) -> None:
    """Create the account and bind the collection's roles for a deployment to it; a role for more than that stays unbound."""
    api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}
    api.ensure(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
    for role in cluster_roles():
        api.ensure(f"{RBAC}/clusterroles", role)
    for name in ROLES:
        bind(api, name, ACCOUNT)


def bind(api: Api, role: str, account: str, namespace: str = "") -> None:
    """Bind one of the shipped roles to an account, in a namespace or everywhere."""
    group = "rbac.authorization.k8s.io"
    made = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": role if account == ACCOUNT else f"{account}-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }
    if namespace:
        api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    api.ensure(f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings", made)


def demo(api: Api) -> None:
    """Bind the roles for preflight and verify to the account as well. Verify creates its own namespace."""
    role = yaml.safe_load(RULES[0].with_name("kubewin-preflight-rbac.yaml").read_text(encoding="utf-8"))
    api.ensure(f"{RBAC}/clusterroles", role)
    for name in (
        role["metadata"]["name"],
        "kubewin-csi-verify",
        "kubewin-csi-verify-pods",
        "kubewin-csi-verify-namespace",
    ):
        bind(api, name, ACCOUNT)


def service_account_kubeconfig(api: Api, server: str, ca: Path) -> Object:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    made = api.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token", request)
    return kubeconfig(server, ca, ACCOUNT, {"token": made["status"]["token"]})
