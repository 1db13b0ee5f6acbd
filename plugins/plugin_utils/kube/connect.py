# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From options to a Client: authentication is kubernetes.core's."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from ansible.module_utils.basic import missing_required_lib
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException

from ..base.background import begin
from ..catalog.base import Driver
from ..catalog.registry import DRIVERS, refuse_unknown_driver
from .client import Client
from .errors import ClusterError, UnreachableError, read_status
from .faults import find_cause, is_connection, read_body, read_status_code

# Seconds in which an API server that fails is asked again; a wrong URL is reported soon.
CONNECT_FOR = 5.0

# Seconds at least for a try: kubernetes.core's discovery has no timeout.
_LEAST_TRY = 5.0

# Seconds between two tries: nothing tells when an API server answers again.
_PAUSE = 0.5

CLUSTER_ARG_SPEC: dict[str, Any] = {**AUTH_ARG_SPEC, "api_timeout": {"type": "int", "default": 60}}


def find_driver(name: str) -> Driver:
    """The driver of an option, which has no choices: documentation would have to repeat them for every new driver."""
    if name not in DRIVERS:
        raise ClusterError(refuse_unknown_driver(name), "configuration")
    return DRIVERS[name]


def require_packages() -> None:
    """ClusterError for a Python package that is missing."""
    for package in ("kubernetes", "msgspec"):
        if importlib.util.find_spec(package) is None:
            raise ClusterError(missing_required_lib(package), "configuration")


def connect(options: Mapping[str, Any], retry_for: float | None = None, connect_for: float = CONNECT_FOR) -> Client:
    """A Client for the options of CLUSTER_ARG_SPEC.

    connect_for: seconds in which an API server that fails is asked again. Raises ClusterError: reason unreachable, unauthorized, or
    configuration (kubeconfig, context or certificates are wrong, or a Python package is missing).
    """
    require_packages()
    timeout = float(options["api_timeout"]) if retry_for is None else retry_for
    access = {name: options[name] for name in AUTH_ARG_SPEC if options.get(name) is not None}
    return create_client(lambda: get_api_client(**access), timeout, _describe_source(options), connect_for)


def create_client(
    make: Callable[[], Any], retry_for: float, source: str = "", connect_for: float = CONNECT_FOR
) -> Client:
    """A Client of what kubernetes.core's get_api_client makes; errors as of connect. source: of its configuration, as text."""
    started = time.monotonic()
    while True:
        try:
            dynamic = _make_within(make, max(_LEAST_TRY, started + retry_for - time.monotonic())).client
            break
        except Exception as error:
            ends = started + min(retry_for, connect_for)
            if time.monotonic() + _PAUSE > ends or not _is_temporary(error):
                raise _describe_error(error, source) from error
            time.sleep(_PAUSE)
    _disable_retries(dynamic)
    client = Client(dynamic, retry_for=retry_for)
    url = urlsplit(dynamic.configuration.host)
    client.server = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl().rstrip("/")
    return client


def _make_within(make: Callable[[], Any], seconds: float) -> Any:
    wait_for_result = begin(make)
    try:
        return wait_for_result(seconds)
    except concurrent.futures.TimeoutError:
        raise TimeoutError("the connection is not refused, and nothing answers") from None


def _is_temporary(error: Exception) -> bool:
    """Whether API discovery may succeed later."""
    status = read_status_code(error)
    if status is None:
        return is_connection(error) and not isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError))
    return status == 429 or status >= 500


def _describe_error(error: Exception, source: str) -> ClusterError:
    """The error that ends the tries."""
    if isinstance(error, CoreException):
        return ClusterError(
            f"no access to Kubernetes is configured{source}: {str(error).rstrip('.')}. "
            "Set kubeconfig and context (kubewin_kubeconfig, kubewin_context in the playbooks), K8S_AUTH_KUBECONFIG and "
            "K8S_AUTH_CONTEXT, or host and api_key.",
            "configuration",
        )
    status = read_status_code(error)
    message = read_status(read_body(error))[0]
    if status is None and not _is_temporary(error):
        name = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        return ClusterError(f"cannot create a Kubernetes client{source}: {name}{error}", "configuration")
    if status in (401, 403):
        return ClusterError(
            f"the API server rejects these credentials ({status} {message}). Check token or certificate, its "
            "expiry and the context of the kubeconfig.",
            "unauthorized",
            status,
        )
    if status is not None and not _is_temporary(error):
        return ClusterError(
            f"the server answers API discovery with {status} {message}".rstrip() + ", expected the API of Kubernetes. "
            "Check the server's URL in the kubeconfig, and its path behind a proxy such as Rancher or kubectl proxy.",
            "not_kubernetes",
            status,
        )
    return UnreachableError(
        f"no response from the API server: {find_cause(error)}. Check that it runs and that host, proxy and CA certificate are correct.",
        "unreachable",
    )


def _describe_source(options: Mapping[str, Any]) -> str:
    """The kubeconfig that was given, with what is the usual cause: a mistyped path, or a context that is not in it."""
    kubeconfig = options.get("kubeconfig")
    if not kubeconfig:
        return ""
    if not isinstance(kubeconfig, str):
        return f" by the kubeconfig dictionary{_describe_contexts(kubeconfig)}"
    source = f" by kubeconfig {kubeconfig}"
    try:
        config = yaml.safe_load(Path(kubeconfig).expanduser().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"{source}, which does not exist"
    except (OSError, UnicodeDecodeError) as error:
        return f"{source}, which cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})"
    except yaml.YAMLError:
        return f"{source}, which is not YAML"
    return f"{source}{_describe_contexts(config)}"


def _describe_contexts(config: Any) -> str:
    contexts = (config.get("contexts") if isinstance(config, Mapping) else None) or []
    names = [str(context["name"]) for context in contexts if isinstance(context, Mapping) and "name" in context]
    return f", which has {'the contexts ' + ', '.join(names) if names else 'no context'}"


def _disable_retries(dynamic: Any) -> None:
    """Keep urllib3 from sleeping through Retry-After itself; it knows nothing of our timeouts and would wait for hours."""
    pools = dynamic.client.rest_client.pool_manager
    pools.connection_pool_kw["retries"] = False
    # Discovery has opened a pool already; pools made from now on take the setting.
    pools.clear()
