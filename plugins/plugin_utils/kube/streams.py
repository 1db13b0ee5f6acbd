# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a command in a container: the web socket that the API server opens to a kubelet.

The kubernetes client has this (kubernetes.stream), and sends nothing of the client's headers but the token: an account
that acts as another one would act as itself here. So the socket is opened with the same certificates, proxy and headers
as every other request, and its end is read as it is meant: exit code, trouble before the command started, or a cut.

Protocol v4.channel.k8s.io (kubernetes/kubernetes, staging/src/k8s.io/apimachinery/pkg/util/remotecommand): the first byte
of a message is its channel, 1 output, 2 errors, 3 the command's end as a Status object.
"""

from __future__ import annotations

import ssl
import time
import urllib.parse
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.decode import DecodeError, read_number, read_object
from ..base.text import join_lines, mask_controls
from . import kinds
from .errors import ApiCall, ClusterError, StreamError, describe_failure, list_causes
from .faults import find_cause

PROTOCOL = "v4.channel.k8s.io"
_OUTPUT, _ERRORS, _END = 1, 2, 3
# Nothing that is run here says more; a runaway command must not fill our memory.
_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that ended: its exit code and its output, as text."""

    code: int
    stdout: str
    stderr: str


class Output:
    """Output of a command as a stream, with the interface of a file.

    The errors named at `read_messages` come out of read. code, stderr: once the output is over.
    """

    def __init__(self, messages: Generator[tuple[int, bytes], None, None]) -> None:
        self._messages = messages
        self._unread = b""
        self._errors = b""
        self.code = -1

    @property
    def stderr(self) -> str:
        """Its stderr, as one line."""
        return join_lines(self._errors.decode("utf-8", "replace"))

    def read(self, size: int) -> bytes:
        """That many bytes, fewer only at the end."""
        parts, length = [self._unread], len(self._unread)
        while length < size and self.code < 0:
            channel, data = next(self._messages)
            if channel == _OUTPUT:
                parts.append(data)
                length += len(data)
            elif channel == _ERRORS:
                self._errors = (self._errors + data)[:_LIMIT]
            else:
                self.code = parse_exit_code(data.decode("utf-8", "replace"))
        output = b"".join(parts)
        self._unread = output[size:]
        return output[:size]

    def read_all(self) -> CommandResult:
        """Wait for the end of the command, and keep the begin of what it wrote."""
        output = self.read(_LIMIT)
        while self.code < 0:
            self.read(_LIMIT)
        return CommandResult(
            self.code, *(mask_controls(text.decode("utf-8", "replace")) for text in (output, self._errors))
        )

    def close(self) -> None:
        """Need no more of it."""
        self._messages.close()


def read_messages(
    dynamic: Any, namespace: str, pod: str, container: str, command: Sequence[str], timeout: float
) -> Generator[tuple[int, bytes], None, None]:
    """Run a command without input in a container: (channel, data) as they come; the last is the command's end.

    Raises ClusterError, and StreamError if its end did not arrive.
    """
    deadline = time.monotonic() + timeout
    query = [
        ("container", container),
        ("stdout", "true"),
        ("stderr", "true"),
        *(("command", word) for word in command),
    ]
    path = f"{kinds.POD.path(namespace, pod)}/exec?{urllib.parse.urlencode(query)}"
    socket = _open_socket(dynamic, path, namespace, pod, timeout)
    receive, received = socket.frame_buffer.recv, 0

    def receive_within_bounds(size: int) -> bytes:
        """Receive a part of a message. The library reads a message of any size, and waits anew for each of its parts."""
        nonlocal received
        time_left = deadline - time.monotonic()
        if time_left <= 0:
            raise TimeoutError
        socket.settimeout(time_left)
        part: bytes = receive(size)
        received += len(part)
        if received > _LIMIT:
            raise StreamError(
                f"the connection to pod {namespace}/{pod} sent a message of more than {_LIMIT >> 20} MiB, expected output in "
                "smaller messages. Check the kubelet of its node and what is between here and the API server",
                "cut",
            )
        return part

    socket.frame_buffer.recv = receive_within_bounds
    try:
        while True:
            received = 0
            data = socket.recv()
            data = data.encode() if isinstance(data, str) else data
            if not data:
                # Kubelets open the channels with messages of one byte; an empty one is the end of the connection.
                raise StreamError(f"the connection to pod {namespace}/{pod} ended before its command did", "cut")
            if data[1:]:
                yield data[0], data[1:]
            if data[0] == _END and data[1:]:
                return
    except ClusterError:
        raise
    except Exception as error:
        # The library has its own classes for a timeout and a broken connection; in each case the end did not arrive.
        if time.monotonic() >= deadline:
            text = f"{join_lines(' '.join(command))} in pod {namespace}/{pod} did not end within {timeout:.0f} s"
            raise StreamError(text, "timeout") from error
        raise StreamError(f"the connection to pod {namespace}/{pod} broke: {find_cause(error)}", "cut") from error
    finally:
        socket.close(timeout=1)


def parse_exit_code(status: str) -> int:
    """The exit code in a Status object that ended a command.

    Raises ClusterError when the command could not be started.
    """
    try:
        result = read_object(status)
    except DecodeError:
        result = {}
    if result.get("status") == "Success":
        return 0
    for cause in list_causes(result):
        code = read_number(cause.get("message"))
        if result.get("reason") == "NonZeroExitCode" and cause.get("reason") == "ExitCode" and code is not None:
            return code
    message = join_lines(str(result.get("message") or status))[:500]
    raise ClusterError(f"the command could not be started: {message}", "exec_failed")


def _open_socket(dynamic: Any, path: str, namespace: str, pod: str, timeout: float) -> Any:
    """The web socket, connected."""
    # Both come with the kubernetes client, which may be absent where this is only checked.
    from kubernetes.stream import ws_client
    from websocket import WebSocket, WebSocketBadStatusException

    client: Any = ws_client
    configuration = dynamic.client.configuration
    headers = build_headers(dynamic.client)
    options: dict[str, Any] = {"header": [f"{name}: {value}" for name, value in headers.items()]}
    if configuration.proxy or configuration.proxy_headers:
        options = client.websocket_proxycare(options, configuration, configuration.host, None)
    url = configuration.host.rstrip("/") + path
    url = url.replace("https://", "wss://", 1).replace("http://", "ws://", 1)
    socket: Any = WebSocket(sslopt=_build_tls_options(configuration))
    socket.settimeout(min(timeout, 30.0))
    try:
        socket.connect(url, subprotocols=[PROTOCOL], **options)
    except WebSocketBadStatusException as error:
        body = getattr(error, "resp_body", b"") or b""
        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
        if not text.strip():
            # An API server always says why.
            text = "a command in a pod needs a WebSocket, which something between here and the API server blocks"
        raise describe_failure(ApiCall("create", _EXEC, namespace, pod), int(error.status_code), text) from error
    except Exception as error:
        raise StreamError(
            f"pod {namespace}/{pod} could not be reached for a command: {find_cause(error)}", "cut"
        ) from error
    return socket


_EXEC = kinds.Kind("v1", "Pod", "pods/exec", True)


def build_headers(client: Any) -> Mapping[str, str]:
    """Who we are, as every other request of this client says it: token, and whom we act as."""
    configuration = client.configuration
    headers = {name: str(value) for name, value in dict(client.default_headers).items() if name.lower() != "user-agent"}
    # Clients before 37 keep the token under the header's name, later ones under that of the scheme.
    names = ("authorization", "BearerToken")
    token = next((key for name in names if (key := configuration.get_api_key_with_prefix(name))), None)
    if token is None and getattr(configuration, "username", None):
        token = configuration.get_basic_auth_token()
    if token:
        headers["Authorization"] = token
    return headers


def _build_tls_options(configuration: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"cert_reqs": ssl.CERT_NONE, "check_hostname": False}
    if configuration.verify_ssl:
        options = {"cert_reqs": ssl.CERT_REQUIRED}
        if configuration.ssl_ca_cert:
            options["ca_certs"] = configuration.ssl_ca_cert
        if configuration.assert_hostname is not None:
            options["check_hostname"] = bool(configuration.assert_hostname)
    for option, name in (("certfile", "cert_file"), ("keyfile", "key_file"), ("server_hostname", "tls_server_name")):
        if getattr(configuration, name, None):
            options[option] = getattr(configuration, name)
    return options
