# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an account is asked for, and that the shipped roles hold exactly that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.access import list_deploy_needs
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.model import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, find_missing_needs, list_rules
from unit.plugins.plugin_utils.drivers.worlds import HOME, VSPHERE

ROLES = Path(__file__).parents[5] / "roles" / "csi_driver" / "files" / "kubewin-rbac.yaml"
THEIRS = {"metadata": {"name": HOME, "labels": {}}}
DEPLOYING = ("kubewin-csi", "kubewin-csi-vsphere", "kubewin-csi-deploy")
OURS = {"metadata": {"name": HOME, "labels": {"app.kubernetes.io/managed-by": "kubewin.csi"}}}


def asked(
    desired: DriverRequest | None = None, live: dict[str, Any] | None = None
) -> set[tuple[str, str, str | None, str]]:
    found = list_deploy_needs(VSPHERE, desired or DriverRequest(), HOME, live)
    return {(need.verb, need.resource, need.namespace, need.name) for need in found}


class Account:
    """An account with rules as RBAC has them, bound cluster-wide."""

    def __init__(self, rules: Iterable[dict[str, list[str]]]) -> None:
        self.rules = list(rules)

    def may(self, need: Need) -> bool:
        return any(
            need.group in rule["apiGroups"]
            and need.resource in rule["resources"]
            and need.verb in rule["verbs"]
            and ("resourceNames" not in rule or need.name in rule["resourceNames"])
            for rule in self.rules
        )

    def lacks(self, desired: DriverRequest | None = None, live: dict[str, Any] | None = None) -> tuple[str, ...]:
        return list_rules(
            find_missing_needs(list_deploy_needs(VSPHERE, desired or DriverRequest(), HOME, live), self.may)
        )

    def without(self, verb: str, resource: str) -> Account:
        return Account(
            {**rule, "resources": [one for one in rule["resources"] if verb not in rule["verbs"] or one != resource]}
            for rule in self.rules
        )


def shipped(*names: str) -> Account:
    roles = yaml.safe_load(ROLES.read_text(encoding="utf-8"))["items"]
    return Account(rule for role in roles if role["metadata"]["name"] in names for rule in role["rules"])


@pytest.mark.parametrize(
    "need",
    [
        ("get", "nodes", None, ""),
        ("patch", "nodes", None, ""),
        ("list", "pods", None, ""),
        ("get", "persistentvolumeclaims", None, ""),
    ],
)
def test_rules_for_the_plays_work_around_csi_proxy_are_checked_when_it_does_that(
    need: tuple[str, str, str | None, str],
) -> None:
    assert need in asked()
    unmanaged = asked(DriverRequest(csi_proxy_managed=False))
    # A plugin's own role grants reading nodes, so that is always needed.
    assert (need in unmanaged) == (need[:2] == ("get", "nodes"))


def test_nothing_is_ever_deleted() -> None:
    assert not [need for need in asked(DriverRequest(create_cluster_objects=True)) if need[0].startswith("delete")]
    every = shipped(*DEPLOYING, "kubewin-csi-cluster-objects")
    assert not [rule for rule in every.rules if "delete" in rule["verbs"]]


@pytest.mark.parametrize(("live", "written"), [(None, True), (OURS, True), (THEIRS, False)])
def test_a_namespace_of_another_owner_is_not_written(live: dict[str, Any] | None, written: bool) -> None:
    verbs = {verb for verb, resource, where, name in asked(live=live) if resource == "namespaces"}
    assert verbs == ({"get", "create", "patch"} if written else set())


def test_binding_is_checked_by_the_name_of_the_role() -> None:
    assert ("bind", "clusterroles", None, "kubewin-vsphere-csi-node") in asked()
    assert ("bind", "roles", HOME, "kubewin-vsphere-csi-node") in asked()


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=lambda one: one.key)
def test_every_driver_has_a_role_of_its_own(driver: Driver) -> None:
    live = {"metadata": {"name": driver.namespace}} if driver.namespace == "kube-system" else None
    required = list_deploy_needs(driver, DriverRequest(), driver.namespace, live)
    name = f"kubewin-csi-{driver.key.replace('_', '-')}"
    assert find_missing_needs(required, shipped("kubewin-csi", "kubewin-csi-deploy", name).may) == ()
    # What is bound in one namespace is all that is needed there, and nothing of it is needed elsewhere.
    everywhere = [need for need in required if need.namespace is None]
    assert find_missing_needs(everywhere, shipped("kubewin-csi", name).may) == ()
    # Also where the account holds all that it grants: the API server does not see a role made a moment ago yet, and answers
    # 404 for an account that binds it without the verb `bind`.
    binds = [rule for rule in shipped(name).rules if "bind" in rule["verbs"]]
    assert [rule["resourceNames"] for rule in binds] == [[driver.service_account]]


def test_the_shipped_roles_are_enough_for_objects_of_the_cluster_too() -> None:
    desired = DriverRequest(create_cluster_objects=True)
    assert shipped(*DEPLOYING).lacks(desired) != ()
    assert shipped(*DEPLOYING, "kubewin-csi-cluster-objects").lacks(desired) == ()


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("patch", "nodes"), ("list", "pods"), ("get", "persistentvolumeclaims"), ("create", "daemonsets")],
)
def test_a_missing_rule_is_named(verb: str, resource: str) -> None:
    lacking = shipped(*DEPLOYING).without(verb, resource).lacks()
    assert [rule for rule in lacking if f'resources: ["{resource}"]' in rule and f'"{verb}"' in rule]


def test_an_account_with_the_rules_of_a_role_may_bind_it_without_the_verb() -> None:
    account = shipped(*DEPLOYING)
    account.rules = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "bind"]} for rule in account.rules]
    assert account.lacks() == ()
    lacking = account.without("watch", "csinodetopologies").lacks()
    bind = (
        '{apiGroups: ["rbac.authorization.k8s.io"], resources: ["clusterroles"], '
        'resourceNames: ["kubewin-vsphere-csi-node"], verbs: ["bind"]}'
    )
    assert bind in lacking
    assert any('resources: ["csinodetopologies"], verbs: [' in rule and '"watch"' in rule for rule in lacking)


def test_an_account_that_may_escalate_and_bind_needs_no_rules_of_the_roles() -> None:
    account = shipped(*DEPLOYING).without("watch", "csinodetopologies")
    assert account.lacks() != ()
    account.rules.append(
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["escalate"]}
    )
    assert account.lacks() == ()
