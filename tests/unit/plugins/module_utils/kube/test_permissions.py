# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account without permissions gets an error with all missing rules, and the role that has them."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need, each, missing
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.permissions import require
from unit.plugins.module_utils.kube.fakes import Clock, Response, Script

WANTED = (Need("patch", "", "nodes"), Need("get", "", "pods/log", "shop"), Need("delete", "", "pods", "shop"))


def reviewed(*allowed: bool) -> tuple[Client, Script]:
    script, clock = Script(*(Response({"status": {"allowed": one}}) for one in allowed)), Clock()
    return Client(script, retry_for=1, clock=clock, sleep=clock.sleep), script


def test_an_account_with_every_permission_passes() -> None:
    client, script = reviewed(True, True, True)
    require(client, WANTED, "an upgrade", "kubewin-csi-upgrade")
    asked = [sent["body"]["spec"]["resourceAttributes"] for _method, _path, sent in script.asked]
    assert [(one["verb"], one["resource"], one["subresource"], one.get("namespace")) for one in asked] == [
        ("patch", "nodes", "", None),
        ("get", "pods", "log", "shop"),
        ("delete", "pods", "", "shop"),
    ]


def test_every_missing_rule_is_named() -> None:
    with pytest.raises(ClusterError) as refused:
        require(reviewed(False, True, False)[0], WANTED, "an upgrade", "kubewin-csi-upgrade")
    assert (refused.value.reason, refused.value.status) == ("forbidden", 403)
    text = str(refused.value)
    assert "lacks permissions for an upgrade; nothing was changed" in text
    assert "bind kubewin-csi-upgrade of" in text
    assert "kubectl create clusterrolebinding kubewin-csi-upgrade --clusterrole=kubewin-csi-upgrade" in text
    assert 'resources: ["nodes"], verbs: ["patch"]' in text
    assert 'resources: ["pods"], verbs: ["delete"]' in text
    assert "pods/log" not in text


def test_the_verbs_that_an_object_lacks_are_one_rule() -> None:
    needs = (*each("get list patch", "apps", "daemonsets", "shop"), *each("get", "", "pods"))
    assert missing(needs, lambda need: need.verb == "list") == (
        '{apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["get", "patch"]}',
        '{apiGroups: [""], resources: ["pods"], verbs: ["get"]}',
    )
