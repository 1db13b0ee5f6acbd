# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is applied is what was rendered: a definition that Ansible hid a part of is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.definitions import parse_definitions
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError

MASK = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
PLUGIN = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "plugin"},
    "spec": {"image": "csi:v1.20.3"},
}


@pytest.mark.parametrize(
    "given",
    [
        "apiVersion: v1\nkind: Node\nmetadata: {name: win-1, labels: {a: '********.20.3'}}",
        {**PLUGIN, "spec": {"image": MASK}},
        [PLUGIN, {**PLUGIN, "spec": {"image": "csi:********.20.3"}}],
    ],
)
def test_a_part_that_ansible_hid_is_refused(given: Any) -> None:
    with pytest.raises(ClusterError, match="no_log") as caught:
        parse_definitions(given)
    assert caught.value.reason == "invalid"


def test_objects_round_trip() -> None:
    assert parse_definitions([PLUGIN]) == parse_definitions(PLUGIN) == [PLUGIN]


class _ResultText(str):
    """As AnsibleUnsafeText, which results of other tasks have before 2.19."""


def test_a_definition_from_another_tasks_result_is_read() -> None:
    assert parse_definitions(_ResultText("apiVersion: v1\nkind: Node\nmetadata: {name: win-1}")) == [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "win-1"}}
    ]
