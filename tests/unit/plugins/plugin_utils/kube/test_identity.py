# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache is valid for the same server and user alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import identity
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.identity import derive_cache_key

A, B = "https://a.example.com:6443", "https://b.example.com:6443"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.c2VjcmV0.c2ln"


def test_another_server_user_token_or_query_is_another_key() -> None:
    nowhere = {"HOME": "/nowhere"}
    accesses: list[dict[str, Any]] = [
        {"host": A, "api_key": TOKEN},
        {"host": B, "api_key": TOKEN},
        {"host": A, "api_key": "another"},
        {"host": A, "api_key": TOKEN, "impersonate_user": "x"},
        {"host": A, "api_key": TOKEN, "impersonate_groups": ["x"]},
        {"host": A, "username": "x", "password": "y"},
        {"host": A, "username": "z", "password": "y"},
        {"kubeconfig": {"current-context": "one"}},
        {"kubeconfig": {"current-context": "two"}},
    ]
    keys = [derive_cache_key(access, query, nowhere) for access in accesses for query in ([1], [2])]
    # What AWX's credential "OpenShift or Kubernetes API Bearer Token" sets.
    keys += [derive_cache_key({}, [1], {"K8S_AUTH_HOST": A, "K8S_AUTH_API_KEY": token}) for token in ("one", "two")]
    assert len(set(keys)) == len(keys)
    assert not any(TOKEN in key for key in keys)


def test_a_kubeconfig_that_changes_is_another_key(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    both = os.pathsep.join(map(str, files))
    ways = [({"kubeconfig": both}, {}), ({}, {"KUBECONFIG": both}), ({}, {"K8S_AUTH_KUBECONFIG": both})]
    keys = set()
    for content in ("", "contexts: []", "contexts: [{name: c}]"):
        files[1].write_text(content, encoding="utf-8")
        keys |= {derive_cache_key(access, [], environment) for access, environment in ways}
    assert len(keys) == 9


def test_a_password_is_not_part_of_a_key() -> None:
    keys = {derive_cache_key({"host": A, "username": "me", "password": word}, [], {}) for word in ("one", "two")}
    keys |= {derive_cache_key({"host": A, "username": "me"}, [], {"K8S_AUTH_PASSWORD": word}) for word in ("1", "2")}
    assert len(keys) == 1


def test_a_password_in_a_kubeconfig_is_not_part_of_a_key_and_what_follows_is(tmp_path: Path) -> None:
    file = tmp_path / "config"
    keys = []
    for word, cluster in (("one", "a"), ("two", "a"), ("two", "b")):
        text = f'{{"users": [{{"user": {{"password": "{word}"}}}}], "current-context": "{cluster}"}}'
        file.write_text(text, encoding="utf-8")
        keys.append(derive_cache_key({"kubeconfig": str(file)}, [], {}))
    assert keys[0] == keys[1] != keys[2]


def test_two_accounts_of_pods_have_two_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    monkeypatch.setattr(identity, "_TOKEN_OF_POD", str(token))
    keys = set()
    for account in ("one", "two"):
        token.write_text(account, encoding="utf-8")
        keys.add(derive_cache_key({}, [], {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": "/nowhere"}))
    assert len(keys) == 2
