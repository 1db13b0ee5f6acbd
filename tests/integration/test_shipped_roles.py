# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""With each shipped role, bound as its file documents, a real API server must refuse everything else."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from integration.kube import VSPHERE, connect, planned
from integration.playbooks import ROOT
from lab.cluster import access, vsphere
from lab.cluster.api import Object
from lab.handle import Lab, eventually
from unit.roles.test_rbac import BY_ROLE, IN_NAMESPACES, TAKEOVERS

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
# A role's documentation in the file, and nothing else.
ADMITTED: dict[str, set[tuple[str, str]]] = {
    "kubewin-csi-azure-disk": {("get", "secrets")},
    "kubewin-csi-azure-file": {("get", "secrets")},
    "kubewin-csi-smb": {("get", "secrets")},
    "kubewin-csi-verify-namespace": {("patch", "namespaces"), ("delete", "namespaces")},
    "kubewin-csi-convert": {("delete", "persistentvolumes")},
    "kubewin-csi-gather": {("get", "pods/log")},
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
    """The authorizer's answer about the account of a role."""
    return reviewed(lab, f"{access.NAMESPACE}:only-{role}", asked)


def reviewed(lab: Lab, account: str, asked: tuple[str, str, str, str, str]) -> bool:
    """Its answer about any account, as namespace:name."""
    verb, group, resource, namespace, name = asked
    plural, _slash, subresource = resource.partition("/")
    attributes = {
        "verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace, "name": name,
    }  # fmt: skip
    spec: dict[str, Any] = {
        "user": f"system:serviceaccount:{account}",
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{account.partition(':')[0]}",
            "system:authenticated",
        ],
        "resourceAttributes": attributes,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(lab.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)["status"]["allowed"])


def test_no_role_allows_more_than_its_file_documents(bound: Lab) -> None:
    for role in roles():
        name = role["metadata"]["name"]
        granted = {asked for asked in FORBIDDEN if allowed(bound, name, asked)}
        assert {(asked[0], asked[2]) for asked in granted} == ADMITTED.get(name, set()), name
        assert len(FORBIDDEN) - len(granted) >= 10


def test_a_role_takes_over_nodes_only_as_the_security_page_says(bound: Lab) -> None:
    for role in roles():
        name = role["metadata"]["name"]
        attacks = {
            (verb, resource, of)
            for verb, group, resource, of in TAKEOVERS
            if allowed(bound, name, (verb, group, resource, HOME, of))
        }
        assert attacks == BY_ROLE.get(name, set()), name


def test_rules_that_name_their_objects_let_an_apply_create_them_and_no_others(bound: Lab) -> None:
    deploy = "kubewin-csi-deploy"
    assert allowed(bound, deploy, ("create", "apps", "daemonsets", HOME, "csi-smb-node-win"))
    assert not allowed(bound, deploy, ("create", "apps", "daemonsets", HOME, "mine"))
    assert not allowed(bound, deploy, ("create", "", "pods", HOME, ""))
    assert not allowed(bound, deploy, ("create", "", "pods/exec", HOME, "any"))
    assert not allowed(bound, "kubewin-csi-vsphere", ("create", "", "namespaces", "", "mine"))


def steps(account: str) -> str:
    """The tutorial's commands that create an account and its kubeconfig, for another account than the lab's own."""
    tutorial = (ROOT / "docs" / "docsite" / "rst" / "tutorial.rst").read_text(encoding="utf-8")
    (section,) = re.findall(
        r"^Create an account\n-+\n(.*?)^Write the inventory\n-+\n", tutorial, re.DOTALL | re.MULTILINE
    )
    indented = re.findall(r"^\.\. code-block:: console\n\n((?:   .*\n|\n)+)", section, re.MULTILINE)
    text = re.sub(r"^\$ ", "", "".join(map(textwrap.dedent, indented)), flags=re.MULTILINE)
    # Its namespace and name, and what starts the names of its bindings; what is quoted is within the kubeconfig.
    text = re.sub(r"(?<=[ :=])kubewin(?=[ :;\n])", account, text)
    return re.sub(r"(binding )(?=kubewin-|\$role)", rf"\1{account}-", text)


@pytest.fixture
def made(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig that the tutorial's commands create, by kubectl if there is one."""
    installed = tmp_path / ".ansible" / "collections"
    installed.mkdir(parents=True)
    (installed / "ansible_collections").symlink_to(ROOT / ".collections" / "ansible_collections")
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": lab.state.kubeconfigs["admin"]}
    if shutil.which("kubectl") is None:
        (tmp_path / "kubectl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m integration.kubectl "$@"\n')
        (tmp_path / "kubectl").chmod(0o700)
        environment |= {
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / '.collections'}{os.pathsep}{ROOT / 'tests'}",
        }
    run = subprocess.run(
        ["bash", "-euc", steps("tutorial")], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    wanted = (
        ("list", "apps", "deployments", vsphere.NAMESPACE, ""),
        ("create", "apps", "daemonsets", vsphere.NAMESPACE, VSPHERE.daemonset),
    )
    eventually(lambda: all(reviewed(lab, "tutorial:tutorial", asked) for asked in wanted), "its roles are bound")
    yield tmp_path / "kubewin.kubeconfig"
    for path in ("clusterrolebindings", f"namespaces/{vsphere.NAMESPACE}/rolebindings"):
        for one in lab.api.items(f"{access.RBAC}/{path}"):
            if one["metadata"]["name"].startswith("tutorial-"):
                lab.api.gone(f"{access.RBAC}/{path}/{one['metadata']['name']}")
    lab.api.gone(f"{access.RBAC}/clusterroles/kubewin-preflight")
    lab.api.gone("/api/v1/namespaces/tutorial")
    lab.api.gone("/api/v1/namespaces/kubewin-verify")


def test_the_account_of_the_tutorial_has_the_rules_of_a_plan_and_no_more(made: Path) -> None:
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    client = connect(str(made))
    found = planned(client)
    assert found.deployable, found.refusal
    assert "CSI-D60" not in {one.id for one in found.findings}
    # Its role in a namespace is that of the driver's alone.
    assert "CSI-D60" in {one.id for one in planned(client, DriverRequest(namespace=HOME)).findings}
    # What only the role of preflight allows; refused, it raises.
    client.list(kinds.STORAGE_CLASS)
