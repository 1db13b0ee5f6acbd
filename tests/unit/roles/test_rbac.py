# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The shipped ClusterRoles: what each task asks for is in its roles, and what is dangerous is named or bound in a namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

FILES = Path(__file__).parents[3] / "roles" / "csi_driver" / "files"
ROLES: dict[str, dict[str, Any]] = {
    role["metadata"]["name"]: role
    for role in yaml.safe_load((FILES / "kubewin-rbac.yaml").read_text(encoding="utf-8"))["items"]
}
# Bound in namespaces, as in the file.
IN_NAMESPACES = {
    f"kubewin-csi-{name}"
    for name in (
        "deploy",
        "roll",
        "handover",
        "hold",
        "records",
        "verify-pods",
        "data-pods",
        "convert-workloads",
    )
}
# The rest that may write without resource names; the file documents each.
UNNAMED = {
    "kubewin-csi": {("patch", "nodes")},
    "kubewin-csi-vsphere": {("create", "csinodetopologies"), ("patch", "csinodetopologies")},
    "kubewin-csi-openshift": {("create", "subjectaccessreviews")},
    "kubewin-csi-upgrade": {("patch", "nodes"), ("create", "pods/eviction")},
    "kubewin-csi-verify-namespace": {(verb, "namespaces") for verb in ("create", "patch", "delete")},
    "kubewin-csi-convert": {(verb, "persistentvolumes") for verb in ("create", "patch", "delete")},
}
READS = {"get", "list", "watch"}


@pytest.mark.parametrize("name", sorted(set(ROLES) - IN_NAMESPACES))
def test_a_cluster_wide_role_writes_only_named_objects(name: str) -> None:
    unnamed = {
        (verb, resource)
        for rule in ROLES[name]["rules"]
        if not rule.get("resourceNames")
        for resource in rule["resources"]
        for verb in set(rule["verbs"]) - READS
    }
    assert unnamed == UNNAMED.get(name, set())


@pytest.mark.parametrize("name", sorted(ROLES))
def test_no_role_has_wildcards_or_grants_beyond_itself(name: str) -> None:
    assert "*" not in str(ROLES[name]["rules"])
    for rule in ROLES[name]["rules"]:
        assert not {"escalate", "impersonate", "deletecollection", "update"} & set(rule["verbs"])
        assert "bind" not in rule["verbs"] or rule["resourceNames"]


def test_every_role_documents_its_binding_and_what_an_attacker_can_do() -> None:
    text = (FILES / "kubewin-rbac.yaml").read_text(encoding="utf-8")
    before: list[str] = []
    for line in text.splitlines():
        if line.startswith("  #"):
            before.append(line.strip("# "))
        elif line.startswith("      name: "):
            reported = " ".join(before)
            name = line.split()[-1]
            # The drivers' roles have one introduction, before the first of them.
            if not name.startswith(("kubewin-csi-aws", "kubewin-csi-gce")):
                assert "An attacker" in reported, name
                assert "Bind it" in reported or "reads every Secret" in reported, name
            before = []
    assert "An attacker" in (FILES / "kubewin-preflight-rbac.yaml").read_text(encoding="utf-8")


def test_a_role_that_a_run_asks_for_is_shipped() -> None:
    """As kube.permissions.require_roles names it."""
    texts = [path.read_text(encoding="utf-8") for path in (FILES.parents[2] / "plugins").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'\("(kubewin-csi[\w-]*)", ', text)}
    assert named >= {"kubewin-csi-records", "kubewin-csi-upgrade", "kubewin-csi-verify-pods", "kubewin-csi-data-pods"}
    assert named <= ROLES.keys()


SECURITY = Path(__file__).parents[3] / "SECURITY.md"
# By each of these in a namespace where a privileged node plugin runs, an account runs its own image as SYSTEM or root on a node.
# A volume with a node's directory does the same from outside of it.
TAKEOVERS = (
    ("create", "", "pods", "any"),
    ("patch", "", "pods", "any"),
    ("create", "", "pods/exec", "any"),
    ("create", "apps", "daemonsets", "any"),
    ("patch", "apps", "daemonsets", "any"),
    ("patch", "apps", "daemonsets", "csi-smb-node-win"),
    ("patch", "apps", "deployments", "any"),
    ("patch", "apps", "statefulsets", "any"),
    ("create", "", "persistentvolumes", "any"),
    ("create", "", "namespaces", "any"),
    ("create", "", "serviceaccounts/token", "any"),
    ("create", "", "nodes/proxy", "any"),
)
# What takes nodes over, by role, and nothing else does.
BY_ROLE = {
    "kubewin-csi-deploy": {("patch", "daemonsets", "csi-smb-node-win")},
    "kubewin-csi-roll": {("patch", "pods", "any")},
    "kubewin-csi-handover": {("patch", "pods", "any"), ("patch", "daemonsets", "csi-smb-node-win")},
    "kubewin-csi-verify-pods": {("create", "pods", "any"), ("patch", "pods", "any"), ("create", "pods/exec", "any")},
    "kubewin-csi-verify-namespace": {("create", "namespaces", "any")},
    "kubewin-csi-data-pods": {("create", "pods", "any"), ("create", "pods/exec", "any")},
    "kubewin-csi-convert": {("create", "persistentvolumes", "any")},
    "kubewin-csi-convert-workloads": {
        ("create", "pods", "any"), ("create", "pods/exec", "any"), ("patch", "deployments", "any"), ("patch", "statefulsets", "any"),
    },
}  # fmt: skip


def grants(role: dict[str, Any], verb: str, group: str, resource: str, name: str) -> bool:
    """Whether a role's rules allow that, as the API server's authorizer decides."""
    return any(
        verb in rule["verbs"]
        and group in rule["apiGroups"]
        and resource in rule["resources"]
        and name in rule.get("resourceNames", [name])
        for rule in role["rules"]
    )


@pytest.mark.parametrize("name", sorted(ROLES))
def test_who_can_take_over_nodes_is_what_the_documents_say(name: str) -> None:
    attacks = {(verb, one, of) for verb, group, one, of in TAKEOVERS if grants(ROLES[name], verb, group, one, of)}
    assert attacks == BY_ROLE.get(name, set())
    (row,) = [line for line in SECURITY.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` |")]
    assert ("takes over nodes" in row) == bool(attacks)


def test_every_role_stands_in_the_security_page_once() -> None:
    rows = [line.split("`")[1] for line in SECURITY.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted([*ROLES, "kubewin-preflight"])
