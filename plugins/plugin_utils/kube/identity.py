# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cache of an API server's answers is kept apart by, without a request to it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Variables of kubernetes.core and of the client that decide on server and user.
_PREFIXES = ("K8S_AUTH_", "KUBERNETES_SERVICE_")
# Options and variables that do not: a password belongs to its user, and a hash of it could be guessed.
_IGNORED = ("password", "ca_cert", "verify_ssl")
_PASSWORD = re.compile(r"""password["']?\s*:\s*("[^"]*"|'[^']*'|[^\s,}]+)""")
# The account of a pod, which the client takes where no kubeconfig names another.
_TOKEN_OF_POD = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def derive_cache_key(access: Mapping[str, Any], query: Any, environment: Mapping[str, str] | None = None) -> str:
    """The key for a query (JSON's types) with these options of kubernetes.core. It reveals none of them.

    Options, environment and the content of the kubeconfig count as they are written: another spelling is another key.
    """
    environment = os.environ if environment is None else environment
    settings = {name: text for name, text in environment.items() if name.startswith(_PREFIXES)} | dict(access)
    kubeconfig = access.get("kubeconfig") or environment.get("K8S_AUTH_KUBECONFIG") or environment.get("KUBECONFIG")
    paths = [] if isinstance(kubeconfig, Mapping) else str(kubeconfig or "~/.kube/config").split(os.pathsep)
    paths += [_TOKEN_OF_POD] if "KUBERNETES_SERVICE_HOST" in environment else []
    relevant_settings = {name: value for name, value in settings.items() if not name.lower().endswith(_IGNORED)}
    values = [relevant_settings, [_read(Path(path).expanduser()) for path in paths], query]
    return hashlib.sha256(json.dumps(values, default=str, sort_keys=True).encode()).hexdigest()[:24]


def _read(path: Path) -> str:
    """The text of a kubeconfig file; empty where the client will not find one either."""
    try:
        return _PASSWORD.sub("", path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
