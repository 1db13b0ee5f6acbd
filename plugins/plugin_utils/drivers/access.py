# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an account must be allowed to deploy a driver and to go through with enable_csi.yml. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..catalog.base import Driver, Rule
from ..kube.access import Need, list_needs
from ..kube.labels import is_absent_or_ours
from .model import DriverRequest

_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"


def list_deploy_needs(
    driver: Driver, desired: DriverRequest, namespace: str, live: Mapping[str, Any] | None
) -> tuple[Need, ...]:
    """What applying, the gate and the play need beyond the reads that planning itself makes.

    live: the Namespace as it is, None when it does not exist.
    """
    return (
        *_list_needs_of_apply(driver, desired, namespace, live),
        *_list_needs_of_grants(driver, desired, namespace),
        *_list_needs_of_gate(namespace),
        *(_list_needs_of_playbook() if desired.csi_proxy_managed else ()),
    )


def list_roles(driver: Driver) -> str:
    """The shipped ClusterRoles that have these needs."""
    return f"kubewin-csi kubewin-csi-{driver.key.replace('_', '-')} kubewin-csi-deploy kubewin-csi-cluster-objects"


def _list_needs_of_apply(
    driver: Driver, desired: DriverRequest, namespace: str, live: Mapping[str, Any] | None
) -> Iterator[Need]:
    """A server-side apply reads, and also needs create when it creates; each is authorized by name.

    https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go
    """
    account = driver.service_account
    kinds: list[tuple[str, str, str | None, str]] = [
        ("", "serviceaccounts", namespace, account),
        (_RBAC, "clusterroles", None, account),
        (_RBAC, "clusterrolebindings", None, account),
        ("apps", "daemonsets", namespace, driver.daemonset),
    ]
    if driver.namespace_rules:
        kinds += [(_RBAC, "roles", namespace, account), (_RBAC, "rolebindings", namespace, account)]
    if is_absent_or_ours(live):
        kinds.append(("", "namespaces", None, namespace))
    if desired.storage_class.get("create", True):
        kinds.append(
            (_STORAGE, "storageclasses", None, str(desired.storage_class.get("name") or driver.storage_class.name))
        )
    if desired.create_cluster_objects:
        kinds.append((_STORAGE, "csidrivers", None, driver.name))
        if driver.feature_states is not None:
            kinds.append(("", "configmaps", namespace, driver.feature_states.name))
    for group, resource, where, name in kinds:
        yield from list_needs("get create patch", group, resource, where, name)


def _list_needs_of_grants(driver: Driver, desired: DriverRequest, namespace: str) -> Iterator[Need]:
    """An account may write or bind only rules that it has, unless it may bind and escalate.

    https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
    """
    name = driver.service_account
    grants: tuple[tuple[str, tuple[Rule, ...], str | None], ...] = (
        ("clusterroles", driver.cluster_rules, None),
        ("roles", driver.namespace_rules, namespace),
    )
    for roles, rules, where in grants:
        escalate = (Need("escalate", _RBAC, roles, where),)
        held = [
            Need(verb, group, resource, where)
            for rule in rules
            for group in rule.groups
            for resource in rule.resources
            for verb in rule.verbs
        ]
        for need in held:
            yield Need(need.verb, need.group, need.resource, where, instead=escalate)
        if held:
            yield Need("bind", _RBAC, roles, where, name, instead=tuple(held))


def _list_needs_of_gate(namespace: str) -> Iterator[Need]:
    """The gate."""
    yield from list_needs("list watch", "", "nodes")
    yield from list_needs("list watch", _STORAGE, "csinodes")
    yield from list_needs("list watch", "", "pods", namespace)
    yield from list_needs("list watch", "apps", "daemonsets controllerrevisions", namespace)
    yield from list_needs("list", "", "events", namespace)
    yield from list_needs("get", "", "pods/log", namespace)


def _list_needs_of_playbook() -> Iterator[Need]:
    """What enable_csi.yml does around a change of csi-proxy: label and cordon the Node, and wait for its volumes."""
    yield from list_needs("get patch", "", "nodes")
    yield from list_needs("list", "", "pods")
    yield from list_needs("get", "", "persistentvolumeclaims")
