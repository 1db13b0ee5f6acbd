# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which API server would be asked, and as whom, without asking it: what a cache of its answers must be kept apart by.

In the order of kubernetes.core: options, K8S_AUTH_*, in-cluster, kubeconfig.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_MAP

_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")

# What says as whom: a password belongs to its user and is left out.
_CREDENTIALS = ("username", "api_key", "client_cert", "impersonate_user", "impersonate_groups")


@dataclass(frozen=True, slots=True)
class Identity:
    """server: URL of the API server, without credentials. key: differs for another server or user, and reveals neither."""

    server: str
    key: str

    def derive_key(self, query: Any) -> str:
        """The key for what was asked (JSON's types) of that server."""
        return _hash([self.key, query])


def identify_cluster(options: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Identity | None:
    """The server and user of these options and the environment. None if they are unknown."""
    environment = os.environ if environment is None else environment
    access = {
        name: options.get(name) or _read_environment(environment, name)
        for name in (*AUTH_ARG_MAP.values(), *_CREDENTIALS)
    }
    server, credentials = access["host"], ""
    complete = (
        (access["username"] and access["password"])
        or access["api_key"]
        or (access["client_cert"] and access["client_key"])
    )
    if not (server and complete):
        explicit = access["kubeconfig"] or access["context"]
        source = None if explicit else _find_in_cluster(environment)
        source = source or _find_in_kubeconfig(access["kubeconfig"], access["context"], environment)
        if source is None:
            return None
        server, credentials = server or source[0], source[1]
    return Identity(
        _strip_credentials(str(server)), _hash([server, credentials, *(access[name] for name in _CREDENTIALS)])
    )


def _hash(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:24]


def _read_environment(environment: Mapping[str, str], name: str) -> str:
    """An option in the environment: under its own name or the one that the client has for it."""
    aliases = [alias for alias, option in AUTH_ARG_MAP.items() if option == name]
    return next(
        (text for spelling in (name, *aliases) if (text := environment.get(f"K8S_AUTH_{spelling.upper()}"))), ""
    )


def _find_in_cluster(environment: Mapping[str, str]) -> tuple[str, str] | None:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not _IN_CLUSTER.is_file():
        return None
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", _IN_CLUSTER.read_text("utf-8")


def _find_in_kubeconfig(kubeconfig: Any, context: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Server and user of the context in force."""
    config = (
        kubeconfig
        if isinstance(kubeconfig, Mapping)
        else _read(str(kubeconfig or environment.get("KUBECONFIG") or "~/.kube/config"))
    )
    try:
        named = {
            kind: {entry["name"]: entry for entry in config.get(kind) or []}
            for kind in ("contexts", "clusters", "users")
        }
        used = named["contexts"][context or config["current-context"]]["context"]
        user = named["users"].get(used.get("user"), {}).get("user") or {}
        credentials = {key: value for key, value in user.items() if key != "password"}
        return str(named["clusters"][used["cluster"]]["cluster"]["server"]), json.dumps(
            [used.get("user"), credentials], default=str
        )
    except (AttributeError, KeyError, TypeError):
        return None


def _read(paths: str) -> Any:
    """Kubeconfig files as the client merges them; None where it cannot."""
    try:
        from kubernetes.config import ConfigException
        from kubernetes.config.kube_config import KubeConfigMerger
        from yaml import YAMLError
    except ImportError:
        return None
    merger: Any = KubeConfigMerger
    try:
        merged = merger(paths).config.value
        lists = {kind: [entry.value for entry in merged[kind]] for kind in ("contexts", "clusters", "users")}
    except (AttributeError, ConfigException, KeyError, OSError, TypeError, ValueError, YAMLError):
        return None
    return {**merged, **lists}


def _strip_credentials(server: str) -> str:
    parts = urlsplit(server)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
