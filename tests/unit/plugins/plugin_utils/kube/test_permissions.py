# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account without permissions gets an error with all missing rules, and the roles that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import Need, list_role_needs, list_rules
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import (
    Binding,
    find_missing_rules,
    load_roles,
    require_roles,
)
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Response

UPGRADE: tuple[Binding, ...] = (("kubewin-csi-upgrade", None), ("kubewin-csi-records", "shop"))
WHO = "system:serviceaccount:ops:storage"


class Server:
    """An API server with namespaces that allows all but some things. user: as it names the account, None below Kubernetes 1.28.

    rules: what it answers when it is asked for all rules of a namespace, by namespace; it refuses that for others.
    """

    def __init__(
        self, *refused: str, namespaces: tuple[str, ...] = ("shop", "kubewin"), user: str | None = WHO, ending: str = "",
        rules: Mapping[str, Any] | None = None, scopes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.refused, self.namespaces, self.user, self.asked = refused, namespaces, user, list[dict[str, Any]]()
        self.ending, self.rules, self.scopes = ending, rules or {}, scopes
        self.users_asked = 0

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "GET":
            name = path.rpartition("/")[2]
            if name not in self.namespaces:
                raise ApiError(404)
            return Response({"metadata": {"deletionTimestamp": "2026-11-21T20:00:00Z"} if name == self.ending else {}})
        if path.endswith("selfsubjectreviews"):
            self.users_asked += 1
            if self.user is None:
                raise ApiError(404)
            extra = {"scopes.authorization.openshift.io": self.scopes} if self.scopes else {}
            return Response({"status": {"userInfo": {"username": self.user, "extra": extra}}})
        if path.endswith("selfsubjectrulesreviews"):
            if body["spec"]["namespace"] not in self.rules:
                raise ApiError(403)
            return Response({"status": self.rules[body["spec"]["namespace"]]})
        asked = body["spec"]["resourceAttributes"]
        self.asked.append(asked)
        resource = "/".join(filter(None, (asked["resource"], asked["subresource"])))
        return Response({"status": {"allowed": f"{asked['verb']} {resource}" not in self.refused}})


def client_of(server: Server) -> Client:
    clock = Clock()
    return Client(server, retry_for=1, clock=clock, sleep=clock.sleep)


def refused(server: Server, bindings: tuple[Binding, ...] = UPGRADE) -> ClusterError:
    with pytest.raises(ClusterError) as error:
        require_roles(client_of(server), bindings, "an upgrade")
    return error.value


def test_an_account_with_every_rule_passes_and_is_asked_each_once() -> None:
    server = Server()
    require_roles(client_of(server), (*UPGRADE, UPGRADE[0]), "an upgrade")
    asked = [tuple(sorted(attributes.items())) for attributes in server.asked]
    roles = load_roles()
    assert (
        len(asked)
        == len(set(asked))
        == len({need for name, place in UPGRADE for need in list_role_needs(roles[name], place)})
    )
    assert ("create", "pods", "eviction", None) in [
        (attributes["verb"], attributes["resource"], attributes["subresource"], attributes.get("namespace"))
        for attributes in server.asked
    ]


EVERYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}


def test_what_the_rules_of_a_namespace_allow_is_not_asked_for_singly() -> None:
    one = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
    others = {"incomplete": False, "resourceRules": [one]}
    server = Server(
        "get configmaps",
        "create configmaps",
        rules={"-": {"incomplete": False, "resourceRules": [EVERYTHING]}, "shop": others},
    )
    assert 'verbs: ["create"]} in namespace shop' in str(refused(server))
    assert {attributes.get("namespace") for attributes in server.asked} == {"shop"}
    assert "get" not in {attributes["verb"] for attributes in server.asked if attributes["resource"] == "configmaps"}


def test_incomplete_rules_allow_nothing_since_an_authorizer_that_tells_none_may_deny_it() -> None:
    rules = {"incomplete": True, "resourceRules": [EVERYTHING]}
    assert "lacks permissions" in str(refused(Server("patch nodes", rules={"-": rules, "shop": rules})))


@pytest.mark.parametrize(
    ("scopes", "user", "believed"),
    [((), WHO, True), (("user:full",), WHO, True), (("user:info", "role:edit:shop"), WHO, False), ((), None, False)],
    ids=["a service account", "a token for everything", "a limited token", "a server before 1.28"],
)
def test_rules_are_believed_of_a_token_that_no_scope_limits(
    scopes: tuple[str, ...], user: str | None, believed: bool
) -> None:
    rules = {"incomplete": False, "resourceRules": [EVERYTHING]}
    server = Server("patch nodes", user=user, rules={"-": rules, "shop": rules}, scopes=scopes)
    missing = find_missing_rules(client_of(server), UPGRADE)
    assert bool(missing) is not believed
    assert (server.asked == []) is believed
    assert server.users_asked == 1


@pytest.mark.parametrize(
    ("rule", "granted"),
    [
        (("create", "", "pods/eviction"), True),
        (("*", "*", "*"), True),
        (("create", "", "*/eviction"), True),
        (("create", "", "pods"), False),
        (("get", "", "pods/eviction"), False),
        (("create", "policy", "pods/eviction"), False),
        (("create", "", "pods/eviction", "web-0"), False),
    ],
)
def test_a_rule_is_read_as_by_the_authorizer(rule: tuple[str, ...], granted: bool) -> None:
    verb, group, resource, *names = rule
    fields = {"verbs": [verb], "apiGroups": [group], "resources": [resource], "resourceNames": names}
    assert Need("create", "", "pods/eviction", "shop").is_granted(fields) is granted
    assert Need("create", "", "pods/eviction", "shop", "web-0").is_granted(fields) is (granted or bool(names))


def test_every_missing_rule_is_named() -> None:
    error = refused(Server("create pods/eviction", "delete configmaps"))
    assert (error.reason, error.status) == ("forbidden", 403)
    text = str(error)
    assert f"{WHO} lacks permissions for an upgrade; nothing was changed" in text
    assert 'resources: ["pods/eviction"], verbs: ["create"]}' in text
    assert 'resources: ["configmaps"], verbs: ["delete"]} in namespace shop' in text
    assert '"nodes"' not in text


@pytest.mark.parametrize(
    ("user", "account"),
    [
        (WHO, "--serviceaccount=ops:storage"),
        ("Jane Doe", "--user='Jane Doe'"),
        (None, "--serviceaccount=kubewin:kubewin"),
    ],
    ids=["service account", "user", "not told"],
)
def test_each_binding_is_of_this_account_where_the_role_is_needed(user: str | None, account: str) -> None:
    text = str(refused(Server("patch nodes", "create configmaps", user=user)))
    commands = (
        f"kubectl create clusterrolebinding kubewin-csi-upgrade --clusterrole=kubewin-csi-upgrade {account}",
        f"kubectl -n shop create rolebinding kubewin-csi-records --clusterrole=kubewin-csi-records {account}",
    )
    assert "; ".join(commands) in text
    assert ("is an example: name your account" in text) == (user is None)
    # With the rules of one, only the other binding is of use.
    text = str(refused(Server("create configmaps", user=user)))
    assert commands[1] in text
    assert "clusterrolebinding" not in text


def test_a_mistyped_namespace_is_no_list_of_missing_rules() -> None:
    for server in (Server(), Server("patch nodes")):
        error = refused(server, (UPGRADE[0], ("kubewin-csi-records", "shpo")))
        assert error.reason == "refused"
        assert str(error).startswith("Namespace shpo: it does not exist")
        assert server.asked == []


def test_a_namespace_that_is_being_deleted_is_refused() -> None:
    error = refused(Server("patch nodes", ending="shop"))
    assert error.reason == "refused"
    assert str(error) == (
        "Namespace shop: it is being deleted, expected the namespace for an upgrade; nothing was changed. Wait until it is deleted and "
        "create it again, or set another one."
    )


def test_objects_that_a_run_does_not_need_are_not_asked_for() -> None:
    server = Server("get daemonsets")
    missing = find_missing_rules(client_of(server), [("kubewin-csi-deploy", "shop")], {"ebs-csi-node-windows"})
    (needs,) = missing.values()
    names = {need.name for need in needs}
    assert "vsphere-csi-node-windows" in names
    assert "ebs-csi-node-windows" not in names | {attributes["name"] for attributes in server.asked}


def test_the_verbs_that_an_object_lacks_are_one_rule() -> None:
    needs = [Need(verb, "apps", "daemonsets", "shop") for verb in ("get", "patch")]
    assert list_rules([*needs, Need("get", "", "pods")]) == (
        '{apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["get", "patch"]} in namespace shop',
        '{apiGroups: [""], resources: ["pods"], verbs: ["get"]}',
    )
