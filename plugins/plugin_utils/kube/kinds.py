# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds this collection reads and writes, and where the API serves them.

Written down instead of discovered: discovery costs requests in every task, and its cache on disk can be stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind.

    api_version: "v1", "apps/v1". plural: its name in paths and RBAC. namespaced: whether its objects are in namespaces.
    """

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        """API group, "" for the core one."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """URL path of one object, or of the collection; without a namespace that of all namespaces."""
        parts = ["apis", self.api_version] if self.group else ["api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/" + "/".join(parts)


NODE = Kind("v1", "Node", "nodes", False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", False)
POD = Kind("v1", "Pod", "pods", True)
EVENT = Kind("v1", "Event", "events", True)
PERSISTENT_VOLUME_CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", True)
PERSISTENT_VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", False)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts", True)
DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets", True)
CONTROLLER_REVISION = Kind("apps/v1", "ControllerRevision", "controllerrevisions", True)
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments", True)
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets", True)
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets", True)
REPLICATION_CONTROLLER = Kind("v1", "ReplicationController", "replicationcontrollers", True)
JOB = Kind("batch/v1", "Job", "jobs", True)
CRON_JOB = Kind("batch/v1", "CronJob", "cronjobs", True)
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True)
# What makes pods from a template.
TEMPLATES = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER, JOB, CRON_JOB)
RESOURCE_QUOTA = Kind("v1", "ResourceQuota", "resourcequotas", True)
LIMIT_RANGE = Kind("v1", "LimitRange", "limitranges", True)
SERVICE = Kind("v1", "Service", "services", True)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
PRIORITY_CLASS = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", False)
RUNTIME_CLASS = Kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", False)
CSI_NODE = Kind("storage.k8s.io/v1", "CSINode", "csinodes", False)
CSI_DRIVER = Kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", False)
VOLUME_ATTACHMENT = Kind("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", False)
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", False)
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False)
CLUSTER_ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", False)
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles", True)
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", True)
CLUSTER_VERSION = Kind("config.openshift.io/v1", "ClusterVersion", "clusterversions", False)
CLUSTER_SERVICE_VERSION = Kind("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "clusterserviceversions", True)
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases", True)
VOLUME_SNAPSHOT = Kind("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "volumesnapshots", True)
VSPHERE_MIGRATION = Kind("cns.vmware.com/v1alpha1", "CnsVSphereVolumeMigration", "cnsvspherevolumemigrations", False)
ACCESS_REVIEW = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
RULES_REVIEW = Kind("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False)
SUBJECT_REVIEW = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", False)
# From Kubernetes 1.28 on.
USER_REVIEW = Kind("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", False)

# What makes pods and can be scaled, by kind.
SCALABLE: Mapping[str, Kind] = {"Deployment": DEPLOYMENT, "StatefulSet": STATEFUL_SET}

# The label by which Nodes of Windows are found.
WINDOWS = "kubernetes.io/os=windows"

_KINDS = {
    (kind.api_version, kind.kind): kind
    for kind in (
        NODE, NAMESPACE, POD, EVENT, CONFIG_MAP, SERVICE_ACCOUNT, DAEMON_SET, DEPLOYMENT, CSI_NODE, CSI_DRIVER,
        STORAGE_CLASS, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, PERSISTENT_VOLUME_CLAIM, LEASE,
    )
}  # fmt: skip


def find_kind(definition: Mapping[str, Any]) -> Kind:
    """The kind of an object; ValueError when it has none or one this collection does not write."""
    key = (str(definition.get("apiVersion")), str(definition.get("kind")))
    try:
        return _KINDS[key]
    except KeyError:
        choices = ", ".join(sorted(f"{kind.kind} ({kind.api_version})" for kind in _KINDS.values()))
        raise ValueError(f"cannot apply kind {key[1]} of apiVersion {key[0]}, expected one of {choices}") from None
