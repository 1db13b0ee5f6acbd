# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests are read as RBAC reads them."""

from __future__ import annotations

import pytest
from lab.faultproxy import Call, Fault, read_call


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/api/v1/nodes", Call("list", "nodes")),
        ("GET", "/api/v1/nodes?watch=1&resourceVersion=5", Call("watch", "nodes")),
        ("GET", "/api/v1/nodes/win-1", Call("get", "nodes", name="win-1")),
        ("GET", "/api/v1/namespaces", Call("list", "namespaces")),
        ("GET", "/api/v1/namespaces/x", Call("get", "namespaces", name="x")),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/x/daemonsets/d?dryRun=All&fieldManager=m",
            Call("patch", "daemonsets", "apps", "x", "d", dry_run=True),
        ),
        ("GET", "/api/v1/namespaces/x/pods/p/log?tailLines=1", Call("get", "pods/log", "", "x", "p")),
        ("POST", "/api/v1/namespaces/x/pods/p/eviction", Call("create", "pods/eviction", "", "x", "p")),
        ("DELETE", "/api/v1/namespaces/x/pods", Call("deletecollection", "pods", "", "x")),
        ("GET", "/readyz", Call("get", "/readyz")),
        ("GET", "/apis", Call("get", "/apis")),
    ],
)
def test_reads_calls(method: str, target: str, expected: Call) -> None:
    assert read_call(method, target) == expected


def test_empty_rule_matches_everything_and_each_word_narrows() -> None:
    call = Call("patch", "daemonsets", "apps", "x", "d", dry_run=True)
    assert Fault("error").matches(call)
    assert Fault("error", verbs=("patch",), resources=("daemonsets",), name="d", dry_run=True).matches(call)
    for narrower in (
        Fault("error", verbs=("get",)),
        Fault("error", resources=("pods",)),
        Fault("error", name="other"),
        Fault("error", dry_run=False),
        Fault("error", times=0),
    ):
        assert not narrower.matches(call)
