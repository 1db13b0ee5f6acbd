# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A command in a container ends with its exit code, is known not to have started, or is known to be interrupted; and we
are the same user as everywhere else."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import streams
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError, StreamError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.streams import (
    Output,
    build_headers,
    parse_exit_code,
    read_messages,
)
from websocket import WebSocket


def test_the_exit_code_is_the_commands() -> None:
    assert parse_exit_code('{"status": "Success"}') == 0
    causes = [{"reason": "ExitCode", "message": "3"}]
    ended = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    assert parse_exit_code(json.dumps(ended)) == 3


@pytest.mark.parametrize("channel", [1, 2], ids=["stdout", "stderr"])
def test_of_an_output_without_end_the_beginning_is_kept(channel: int) -> None:
    def read_messages() -> Generator[tuple[int, bytes], None, None]:
        for _message in range(4):
            yield channel, b"x" * (1 << 19)
        yield 3, b'{"status": "Success"}'

    executed = Output(read_messages()).read_all()
    assert (executed.code, len(executed.stdout) + len(executed.stderr)) == (0, 1 << 20)


def read_from(monkeypatch: pytest.MonkeyPatch, serve: Callable[[socket.socket], None], timeout: float) -> StreamError:
    """The error that ends a command whose connection a server writes to until it is closed."""
    ours, theirs = socket.socketpair()

    def write() -> None:
        with theirs:
            serve(theirs)

    def connect(*_arguments: Any) -> Any:
        connection: Any = WebSocket()
        connection.sock, connection.connected = ours, True
        return connection

    monkeypatch.setattr(streams, "_open_socket", connect)
    server = threading.Thread(target=write)
    server.start()
    with pytest.raises(StreamError) as raised, ours:
        for _message in read_messages(None, "shop", "helper", "main", ["cat"], timeout):
            pass
    server.join()
    return raised.value


def test_a_message_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    def serve(connection: socket.socket) -> None:
        nonlocal sent
        try:
            # A binary frame that announces a terabyte.
            connection.sendall(b"\x82\x7f" + (1 << 40).to_bytes(8, "big"))
            while sent < 16 << 20:
                connection.sendall(bytes(1 << 16))
                sent += 1 << 16
        except OSError:
            return

    error = read_from(monkeypatch, serve, 60.0)
    assert "sent a message of more than 1 MiB" in str(error)
    assert error.reason == "cut"
    assert sent < 4 << 20


def test_a_message_that_never_ends_is_awaited_until_the_timeout_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()

    def serve(connection: socket.socket) -> None:
        try:
            connection.sendall(b"\x82\x7e" + (60000).to_bytes(2, "big"))
            for _part in range(60000):
                connection.sendall(b"x")
                if closed.wait(0.01):
                    return
        except OSError:
            return

    error = read_from(monkeypatch, serve, 0.3)
    closed.set()
    assert "did not end within 0 s" in str(error)
    assert error.reason == "timeout"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ('{"status": "Failure", "reason": "InternalError", "message": "container not found"}', "container not found"),
        ("no JSON", "no JSON"),
        ("{}", "{}"),
    ],
)
def test_a_command_that_did_not_start_has_no_exit_code(status: str, expected: str) -> None:
    with pytest.raises(ClusterError, match="could not be started") as raised:
        parse_exit_code(status)
    assert expected in str(raised.value)
    assert raised.value.reason == "exec_failed"


def client(keys: dict[str, str], **headers: str) -> Any:
    configuration = SimpleNamespace(get_api_key_with_prefix=keys.get, username=None)
    return SimpleNamespace(configuration=configuration, default_headers={"User-Agent": "x", **headers})


@pytest.mark.parametrize("kept_under", ["authorization", "BearerToken"])
def test_the_token_is_sent_under_whatever_name_the_client_keeps_it(kept_under: str) -> None:
    assert build_headers(client({kept_under: "Bearer t"})) == {"Authorization": "Bearer t"}


def test_impersonation_is_used_here_too() -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "ops"}
    assert build_headers(client({}, **headers)) == headers
