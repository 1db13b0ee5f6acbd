# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secrets that a run itself holds: values of its variables, of its connection and of its environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleError

from ..base.redaction.known_secrets import LEAST
from ..base.redaction.names import is_secret_variable, list_kubeconfig_secrets, list_texts

# Options of connection plugins that hold one.
_OPTIONS = ("remote_password", "password", "become_pass", "private_key_passphrase", "private_key")


def collect_secrets(variables: Mapping[str, Any], templar: Any, connection: Any = None) -> tuple[str, ...]:
    """Every one, each once. variables: those of a host, not yet templated."""
    environment = (value for name, value in os.environ.items() if is_secret_variable(name))
    values = (*_collect_from_variables(variables, templar), *_collect_from_connection(connection), *environment)
    return tuple(dict.fromkeys(value for value in values if _is_worth_hiding(value)))


def _is_worth_hiding(value: str) -> bool:
    """Whether a value is worth hiding: a switch, or a place that is printed on purpose, would be hidden everywhere else too."""
    if len(value) < LEAST or value.lower() in ("true", "false", "none", "null"):
        return False
    try:
        return not (os.path.isabs(value) and os.path.exists(value))
    except ValueError:
        return True


def _collect_from_variables(variables: Mapping[str, Any], templar: Any) -> Iterator[str]:
    for name in list(variables):
        if not is_secret_variable(str(name)):
            continue
        try:
            yield from list_texts(templar.template(variables[name]))
        except (AnsibleError, KeyError):
            # One that cannot be created is never used.
            continue
    kubeconfig = variables.get("kubewin_kubeconfig")
    try:
        yield from list_kubeconfig_secrets(_read_kubeconfig(templar.template(kubeconfig) if kubeconfig else kubeconfig))
    except (AnsibleError, OSError, ValueError, yaml.YAMLError):
        # The cluster part says what is wrong with it.
        return


def _read_kubeconfig(kubeconfig: Any) -> Any:
    """What a kubeconfig holds that is given as a file or as a dictionary, or by the environment."""
    if isinstance(kubeconfig, Mapping):
        return kubeconfig
    path = kubeconfig or os.environ.get("K8S_AUTH_KUBECONFIG") or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    file = Path(str(path or "~/.kube/config")).expanduser()
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None


def _collect_from_connection(connection: Any) -> Iterator[str]:
    for option in _OPTIONS if connection is not None else ():
        try:
            yield from list_texts(connection.get_option(option))
        except (KeyError, AnsibleError, AttributeError):
            continue
