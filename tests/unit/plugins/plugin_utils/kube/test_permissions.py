# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account without permissions gets an error with all missing rules, and the role that has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.access import (
    Need,
    find_missing_needs,
    list_needs,
    list_rules,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.permissions import require
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Response

WANTED = (Need("patch", "", "nodes"), Need("get", "", "pods/log", "shop"), Need("delete", "", "pods", "shop"))
WHO = "system:serviceaccount:ops:storage"


class Server:
    """An API server with namespaces that allows some things. user: as it names the account, None below Kubernetes 1.28."""

    def __init__(
        self, *allowed: str, namespaces: tuple[str, ...] = ("shop", "kubewin"), user: str | None = WHO
    ) -> None:
        self.allowed, self.namespaces, self.user, self.asked = allowed, namespaces, user, list[dict[str, Any]]()

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "GET":
            if path.rpartition("/")[2] not in self.namespaces:
                raise ApiError(404)
            return Response({"metadata": {}})
        if path.endswith("selfsubjectreviews"):
            if self.user is None:
                raise ApiError(404)
            return Response({"status": {"userInfo": {"username": self.user}}})
        asked = body["spec"]["resourceAttributes"]
        self.asked.append(asked)
        return Response({"status": {"allowed": f"{asked['verb']} {asked['resource']}" in self.allowed}})


def refused(server: Server, wanted: Iterable[Need], roles: str) -> ClusterError:
    clock = Clock()
    with pytest.raises(ClusterError) as error:
        require(Client(server, retry_for=1, clock=clock, sleep=clock.sleep), wanted, "an upgrade", roles)
    return error.value


def test_an_account_with_every_permission_passes() -> None:
    server, clock = Server("patch nodes", "get pods", "delete pods"), Clock()
    require(Client(server, retry_for=1, clock=clock, sleep=clock.sleep), WANTED, "an upgrade", "kubewin-csi-upgrade")
    assert [(one["verb"], one["resource"], one["subresource"], one.get("namespace")) for one in server.asked] == [
        ("patch", "nodes", "", None),
        ("get", "pods", "log", "shop"),
        ("delete", "pods", "", "shop"),
    ]


def test_every_missing_rule_is_named() -> None:
    error = refused(Server("get pods"), WANTED, "kubewin-csi-upgrade")
    assert (error.reason, error.status) == ("forbidden", 403)
    text = str(error)
    assert f"{WHO} lacks permissions for an upgrade; nothing was changed" in text
    assert 'resources: ["nodes"], verbs: ["patch"]}' in text
    assert 'resources: ["pods"], verbs: ["delete"]} in namespace shop' in text
    assert "pods/log" not in text


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
    wanted = [Need("patch", "", "nodes"), *list_needs("get list create patch delete", "", "configmaps", "kubewin")]
    names = "kubewin-csi-upgrade and kubewin-csi-records"
    text = str(refused(Server(user=user), wanted, names))
    commands = (
        f"kubectl create clusterrolebinding kubewin-csi-upgrade --clusterrole=kubewin-csi-upgrade {account}",
        f"kubectl -n kubewin create rolebinding kubewin-csi-records --clusterrole=kubewin-csi-records {account}",
    )
    assert "; ".join(commands) in text
    assert ("is an example: name your account" in text) == (user is None)
    # With the right to nodes, only the other binding is of use.
    text = str(refused(Server("patch nodes", user=user), wanted, names))
    assert commands[1] in text
    assert "clusterrolebinding" not in text


def test_what_no_shipped_role_has_is_a_rule_to_add() -> None:
    wanted = list_needs("delete", "apps", "daemonsets", "shop", "chart-node-win")
    text = str(refused(Server(), wanted, "kubewin-csi-handover"))
    assert (
        'no shipped role has it: {apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: ["chart-node-win"]'
        in text
    )
    assert "kubectl" not in text


def test_a_mistyped_namespace_is_no_list_of_missing_rules() -> None:
    for server in (Server(), Server("patch nodes", "get pods", "delete pods")):
        error = refused(server, [Need("delete", "", "pods", "shpo"), *WANTED], "kubewin-csi-upgrade")
        assert error.reason == "refused"
        assert str(error).startswith("Namespace shpo: it does not exist")
        assert server.asked == []


def test_the_verbs_that_an_object_lacks_are_one_rule() -> None:
    needs = (*list_needs("get list patch", "apps", "daemonsets", "shop"), *list_needs("get", "", "pods"))
    assert list_rules(find_missing_needs(needs, lambda need: need.verb == "list")) == (
        '{apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["get", "patch"]} in namespace shop',
        '{apiGroups: [""], resources: ["pods"], verbs: ["get"]}',
    )
