# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From options to a Client: authentication is kubernetes.core's."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import missing_required_lib
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS, refuse_unknown_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import (
    ClusterError,
    UnreachableError,
    status_message,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.faults import (
    body_of,
    brief,
    is_connection,
    is_refused,
    status_of,
)

try:
    import yaml

    HAS_YAML = True
except ImportError:
    # kubernetes.core's module class says so in its words.
    HAS_YAML = False

# Seconds to wait for an API server that refuses connections: it restarts, or the URL is wrong.
_REFUSED_FOR = 10.0

CLUSTER_ARG_SPEC: dict[str, Any] = {**AUTH_ARG_SPEC, "api_timeout": {"type": "int", "default": 60}}


def find_driver(name: str) -> Driver:
    """The driver of an option, which has no choices: documentation would have to repeat them for every new driver."""
    if name not in DRIVERS:
        raise ClusterError(refuse_unknown_driver(name), "configuration")
    return DRIVERS[name]


def connect(options: Mapping[str, Any], retry_for: float | None = None, refused_for: float = _REFUSED_FOR) -> Client:
    """A Client for the options of CLUSTER_ARG_SPEC. An API server that restarts just now is waited for.

    refused_for: maximum seconds to wait while it refuses connections. Raises ClusterError: reason unreachable, unauthorized, or
    configuration (kubeconfig, context or certificates are wrong, or the Python package kubernetes is missing).
    """
    if importlib.util.find_spec("kubernetes") is None:
        raise ClusterError(missing_required_lib("kubernetes"), "configuration")
    patience = float(options["api_timeout"]) if retry_for is None else retry_for
    access = {name: options[name] for name in AUTH_ARG_SPEC if options.get(name) is not None}
    return create_client(lambda: get_api_client(**access), patience, _named(options), refused_for)


def create_client(
    make: Callable[[], Any], patience: float, named: str = "", refused_for: float = _REFUSED_FOR
) -> Client:
    """A Client of what kubernetes.core's get_api_client makes; errors as of connect, which may contain what was `named`."""
    started = time.monotonic()
    while True:
        try:
            dynamic = make().client
            _no_hidden_retries(dynamic)
            return Client(dynamic, retry_for=patience)
        except CoreException as error:
            raise ClusterError(
                f"no access to Kubernetes is configured{named}: {str(error).rstrip('.')}. "
                "Set kubeconfig and context (kubewin_kubeconfig, kubewin_context in the playbooks), K8S_AUTH_KUBECONFIG and "
                "K8S_AUTH_CONTEXT, or host and api_key.",
                "configuration",
            ) from error
        except Exception as error:
            status = status_of(error)
            left = started + patience - time.monotonic()
            if status is None and not is_connection(error):
                raise ClusterError(
                    f"cannot create a Kubernetes client{named}: {type(error).__name__}: {error}", "configuration"
                ) from error
            if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError)):
                raise ClusterError(f"cannot create a Kubernetes client{named}: {error}", "configuration") from error
            message = status_message(body_of(error))[0]
            if status is not None and status not in (401, 403, 429) and status < 500:
                raise ClusterError(
                    f"the server answers API discovery with {status} {message}".rstrip()
                    + ", expected the API of Kubernetes. "
                    "Check the server's URL in the kubeconfig, and its path behind a proxy such as Rancher or kubectl proxy.",
                    "not_kubernetes",
                    status,
                ) from error
            if status in (401, 403):
                raise ClusterError(
                    f"the API server rejects these credentials ({status} {message}). Check token or certificate, its "
                    "expiry and the context of the kubeconfig.",
                    "unauthorized",
                    status,
                ) from error
            if is_refused(error):
                # Nothing listens there; a proxy in between or a slow start shows otherwise.
                patience = min(patience, refused_for)
                left = started + patience - time.monotonic()
            if left <= 0:
                found = "the API server refuses connections" if is_refused(error) else "no response from the API server"
                duration = f" for {patience:.0f} s" if patience else ""
                raise UnreachableError(
                    f"{found}{duration}: {brief(error)}. Check that it runs and "
                    "that host, proxy and CA certificate are correct.",
                    "unreachable",
                ) from error
            time.sleep(min(0.5, left))


def _named(options: Mapping[str, Any]) -> str:
    """The kubeconfig that was given, with what is the usual cause: a mistyped path, or a context that is not in it."""
    given = options.get("kubeconfig")
    if not given:
        return ""
    if not isinstance(given, str):
        return f" by the kubeconfig dictionary{_contexts(given)}"
    try:
        text = Path(given).expanduser().read_text(encoding="utf-8")
    except FileNotFoundError:
        return f" by kubeconfig {given}, which does not exist"
    except (OSError, UnicodeDecodeError) as error:
        return f" by kubeconfig {given}, which cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})"
    try:
        return f" by kubeconfig {given}{_contexts(yaml.safe_load(text))}"
    except yaml.YAMLError:
        return f" by kubeconfig {given}, which is not YAML"


def _contexts(config: Any) -> str:
    listed = (config.get("contexts") if isinstance(config, Mapping) else None) or []
    found = [str(one["name"]) for one in listed if isinstance(one, Mapping) and "name" in one]
    return f", which has {'the contexts ' + ', '.join(found) if found else 'no context'}"


def _no_hidden_retries(dynamic: Any) -> None:
    """Keep urllib3 from sleeping through Retry-After itself.

    It knows nothing of our timeouts and would wait for hours.
    """
    pools = dynamic.client.rest_client.pool_manager
    pools.connection_pool_kw["retries"] = False
    # Discovery has opened a pool already; pools made from now on take the setting.
    pools.clear()
