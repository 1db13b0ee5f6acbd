# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cache is valid for the same server and user, however both are configured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.identity import Identity, identify_cluster
from kubernetes.config import kube_config

A, B = "https://a.example.com:6443", "https://b.example.com:6443"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.c2VjcmV0.c2ln"


def identity_of(environment: Mapping[str, str] | None = None, **options: Any) -> Identity:
    found = identify_cluster(options, environment or {"HOME": "/nowhere"})
    assert found is not None
    return found


def config(path: Path, server: str = A, user: str = "admin", current: str = "one", credentials: Any = None) -> Path:
    """A kubeconfig with that user at that server, and a second context for another user."""
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [
                    {"name": user, "user": credentials or {"token": TOKEN}},
                    {"name": "other", "user": {"token": "other"}},
                ],
                "contexts": [
                    {"name": "one", "context": {"cluster": "c", "user": user}},
                    {"name": "two", "context": {"cluster": "c", "user": "other"}},
                ],
                "current-context": current,
            }
        ),
        encoding="utf-8",
    )
    return path


def test_another_server_user_or_token_is_another_identity() -> None:
    keys = {
        identity_of(host=A, api_key=TOKEN).key,
        identity_of(host=B, api_key=TOKEN).key,
        identity_of(host=A, api_key="another").key,
        identity_of(host=A, api_key=TOKEN, impersonate_user="x").key,
        identity_of(host=A, api_key=TOKEN, impersonate_groups=["x"]).key,
        identity_of(host=A, username="x", password="y").key,
        identity_of(host=A, username="z", password="y").key,
        identity_of(host=A, client_cert="/a.crt", client_key="/a.key").key,
    }
    assert len(keys) == 8
    assert len({identity_of(host=A, api_key=TOKEN).derive_key(asked) for asked in ([1], [2])} | keys) == 10


def test_options_and_awx_credential_and_its_environment_are_the_same() -> None:
    # What AWX's credential "OpenShift or Kubernetes API Bearer Token" sets.
    awx = {"K8S_AUTH_HOST": A, "K8S_AUTH_API_KEY": TOKEN, "K8S_AUTH_VERIFY_SSL": "False"}
    assert identity_of(awx) == identity_of(host=A, api_key=TOKEN)


def test_a_key_and_a_server_contain_no_secret() -> None:
    found = identity_of(host="https://me:hunter2@a.example.com:6443/", api_key=TOKEN)
    assert found.server == A
    assert not any(secret in str(found) for secret in (TOKEN, "hunter2"))


def test_of_a_kubeconfig_the_context_in_force_decides(tmp_path: Path) -> None:
    path = str(config(tmp_path / "config"))
    mine, others = identity_of(kubeconfig=path), identity_of(kubeconfig=path, context="two")
    assert mine.server == others.server == A
    assert mine.key != others.key
    assert identity_of({"KUBECONFIG": path}) == identity_of({"K8S_AUTH_KUBECONFIG": path}) == mine
    assert identity_of({"KUBECONFIG": path, "K8S_AUTH_CONTEXT": "two"}) == others
    assert identity_of(kubeconfig=yaml.safe_load(Path(path).read_text(encoding="utf-8"))) == mine
    assert identity_of(kubeconfig=path, host=B).server == B


def test_the_same_file_for_a_cluster_made_anew_is_another_server(tmp_path: Path) -> None:
    before = identity_of(kubeconfig=str(config(tmp_path / "config")))
    assert identity_of(kubeconfig=str(config(tmp_path / "config", server=B))).key != before.key


def test_a_program_that_makes_a_new_token_each_time_is_the_same_user(tmp_path: Path) -> None:
    command = {"exec": {"command": "aws", "args": ["eks", "get-token"]}}
    first = identity_of(kubeconfig=str(config(tmp_path / "a", credentials=command)))
    assert identity_of(kubeconfig=str(config(tmp_path / "b", credentials=command))) == first
    other = {"exec": {"command": "aws", "args": ["eks", "get-token", "--role", "x"]}}
    assert identity_of(kubeconfig=str(config(tmp_path / "c", credentials=other))) != first


def test_a_password_is_not_part_of_an_identity(tmp_path: Path) -> None:
    keys = {
        identity_of(kubeconfig=str(config(tmp_path / word, credentials={"username": "me", "password": word}))).key
        for word in ("one", "two")
    }
    assert len(keys) == 1


def test_several_kubeconfigs_are_merged_as_the_client_merges_them(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(config(tmp_path / "a")), str(config(tmp_path / "b", server=B, current="two"))])
    merger: Any = kube_config.KubeConfigMerger
    merged = merger(paths).config.value
    servers = {one.value["name"]: one.value["cluster"]["server"] for one in merged["clusters"]}
    found = identity_of({"KUBECONFIG": paths})
    assert found.server == servers["c"] == A
    assert merged["current-context"] == "two"
    assert found == identity_of({"KUBECONFIG": paths, "K8S_AUTH_CONTEXT": "two"})


@pytest.mark.parametrize("text", ["", "- 1", "{", "current-context: none", "clusters: [{name: c}]\ncontexts: 5"])
def test_an_unreadable_kubeconfig_has_no_identity(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    assert identify_cluster({"kubeconfig": str(path)}, {}) is None
    assert identify_cluster({"kubeconfig": str(tmp_path / "absent")}, {}) is None
