# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an upgrade reads of OpenShift:  its version, its platform, and the Windows Machine Config Operator as OLM has it.

Objects only, reduced to what is read; the operator itself is `wmco.py`. Shapes: openshift/api config/v1 and
operator-framework/api operators/v1alpha1 and v2.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from lab.cluster import nodes
from lab.cluster.api import Api, Object
from lab.state import LabError

CONFIG, OPERATORS = "config.openshift.io", "operators.coreos.com"
NAMESPACE = "openshift-windows-machine-config-operator"
OPERATOR = "windows-machine-config-operator"
PREFIX = "windowsmachineconfig.openshift.io/"
VERSION, DESIRED = f"{PREFIX}version", f"{PREFIX}desired-version"
ALLOW, BLOCKED = f"{PREFIX}allow-upgrade", f"{PREFIX}upgrade-blocked"
UPGRADING, WITH_CSI = f"{PREFIX}upgrading", f"{PREFIX}configured-with-csi"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLUSTER_VERSIONS = f"/apis/{CONFIG}/v1/clusterversions"
INFRASTRUCTURE = f"/apis/{CONFIG}/v1/infrastructures/cluster"
VERSIONS = f"/apis/{OPERATORS}/v1alpha1/namespaces/{NAMESPACE}/clusterserviceversions"
PLANS = f"/apis/{OPERATORS}/v1alpha1/namespaces/{NAMESPACE}/installplans"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SERVICES = "windows-services-"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONDITIONS = f"/apis/{OPERATORS}/v2/namespaces/{NAMESPACE}/operatorconditions"
EXE = r"C:\k\csi-proxy.exe"
ARGUMENTS = r"-log_file=C:\var\log\csi-proxy\csi-proxy.log -logtostderr=false -windows-service --v=2"
# (group, version, kind, namespaced)
_KINDS = (
    (CONFIG, "v1", "ClusterVersion", False),
    (CONFIG, "v1", "Infrastructure", False),
    (OPERATORS, "v1alpha1", "ClusterServiceVersion", True),
    (OPERATORS, "v1alpha1", "InstallPlan", True),
    (OPERATORS, "v2", "OperatorCondition", True),
)
# The Kubernetes release of each operator's line, which the nodes it configures run.
_KUBELETS = {7: "v1.25.16", 8: "v1.26.9", 9: "v1.27.11", 10: "v1.28.15"}


def numbers(release: str) -> tuple[int, ...]:
    """(8, 1, 0) of 8.1.0."""
    return tuple(int(part) for part in release.split("."))


def kubelet(release: str) -> str:
    """What kubelet a release of the operator brings."""
    return _KUBELETS[numbers(release)[0]]


def brings_csi_proxy(release: str) -> bool:
    """From 7.2.0, 8.1.0 and 9.0.0 on."""
    found = numbers(release)
    return found >= {7: (7, 2), 8: (8, 1)}.get(found[0], (9,))


def csi_enabled(release: str, platform: str) -> bool:
    """Whether nodes are configured for CSI instead of in-tree storage (CSIStorageEnabled in its pkg/cluster/config.go)."""
    return numbers(release)[0] >= {"Azure": 8, "VSphere": 9}.get(platform, 0)


def guards(release: str, platform: str, labels: Mapping[str, str]) -> str:
    """What keeps the operator from upgrading a node to this release: "attached" volumes, pods with "claims", or nothing.

    upgradeBlocked in its controllers/controllers.go: release 9 reads the node's volumesAttached, 8 asks the kubelet.
    """
    lifted = "true" in (labels.get(ALLOW), labels.get(WITH_CSI))
    if platform not in ("VSphere", "Azure") or not csi_enabled(release, platform) or lifted:
        return ""
    return {8: "claims", 9: "attached"}.get(numbers(release)[0], "")


def install(api: Api, release: str, platform: str = "VSphere", version: str = "4.14.30") -> None:
    """A cluster of this version whose Windows nodes the operator of this release has configured.

    Which kubelets they run was decided when the lab was started.
    """
    for kind in _KINDS:
        api.ensure(CRDS, _crd(*kind))
    for path in (CLUSTER_VERSIONS, INFRASTRUCTURE.rpartition("/")[0], VERSIONS, PLANS, CONDITIONS):
        _served(api, path)
    api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    history = [{"state": "Completed", "version": version}]
    status = {"desired": {"version": version}, "history": history}
    api.ensure(CLUSTER_VERSIONS, _thing(CONFIG, "v1", "ClusterVersion", "version", status=status))
    status = {"platform": platform, "platformStatus": {"type": platform}}
    path = INFRASTRUCTURE.rpartition("/")[0]
    api.ensure(path, _thing(CONFIG, "v1", "Infrastructure", "cluster", status=status))
    api.ensure(VERSIONS, service_version(release))
    api.ensure(MAPS, services(release))
    api.ensure(CONDITIONS, _thing(OPERATORS, "v2", "OperatorCondition", f"{OPERATOR}.v{release}"))
    labels = {WITH_CSI: "true"} if csi_enabled(release, platform) else {}
    body = {"metadata": {"labels": labels, "annotations": {VERSION: release, DESIRED: release}}}
    for node in api.items(f"{nodes.NODES}?labelSelector=kubernetes.io/os=windows"):
        api.patch(f"{nodes.NODES}/{node['metadata']['name']}", body)


def offer(api: Api, release: str, *, approved: bool = False) -> str:
    """OLM has found a newer release; with manual approval its plan waits for an administrator. Answers the plan's name."""
    name = f"install-{release.replace('.', '-')}"
    spec = {"approval": "Manual", "approved": approved, "clusterServiceVersionNames": [f"{OPERATOR}.v{release}"]}
    status = {"phase": "Installing" if approved else "RequiresApproval"}
    api.post(PLANS, _thing(OPERATORS, "v1alpha1", "InstallPlan", name, spec=spec, status=status))
    return name


def approve(api: Api, plan: str) -> None:
    api.patch(f"{PLANS}/{plan}", {"spec": {"approved": True}})


def service_version(release: str) -> Object:
    """The operator's ClusterServiceVersion, installed."""
    name = f"{OPERATOR}.v{release}"
    spec, status = {"version": release}, {"phase": "Succeeded"}
    return _thing(OPERATORS, "v1alpha1", "ClusterServiceVersion", name, spec=spec, status=status)


def services(release: str) -> Object:
    """The operator's list of services for nodes of a release, cut to csi-proxy (pkg/servicescm/servicescm.go, services.go)."""
    proxy = {"name": "csi-proxy", "path": f"{EXE} {ARGUMENTS}", "bootstrap": False, "priority": 2}
    listed = [proxy] if brings_csi_proxy(release) else []
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{SERVICES}{release}", "namespace": NAMESPACE},
        "immutable": True,
        "data": {"services": json.dumps(listed), "files": "[]"},
    }


def admit(api: Api, namespace: str, account: str) -> None:
    """What `oc adm policy add-scc-to-user privileged -z` makes."""
    name = "system:openshift:scc:privileged"
    rule = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": ["privileged"],
        "verbs": ["use"],
    }
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    api.ensure(f"{RBAC}/clusterroles", role)
    bound = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
    api.ensure(f"{RBAC}/namespaces/{namespace}/rolebindings", bound)


def _thing(group: str, version: str, kind: str, name: str, **parts: Object) -> Object:
    metadata = {"name": name, **({"namespace": NAMESPACE} if group == OPERATORS else {})}
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": {}, **parts}


def _crd(group: str, version: str, kind: str, namespaced: bool) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    # Without the status subresource, so that one POST plants an object with its status.
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names['plural']}.{group}",
            # config.openshift.io is a group that the API server protects.
            "annotations": {"api-approved.kubernetes.io": "unapproved, the lab's own"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": names,
            "versions": [served],
        },
    }


def _served(api: Api, path: str) -> None:
    """Wait until a kind that was just defined is served."""
    ends = time.monotonic() + 120
    while not api.ok(path):
        if time.monotonic() > ends:
            raise LabError(f"{path} is not served 120 s after its definition was made")
        time.sleep(0.05)
