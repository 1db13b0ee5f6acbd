# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting components: when a port was taken in between, when one ends at once, when one is never ready."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.cluster.processes import Component
from lab.handle import eventually
from lab.spec import Spec
from lab.state import LabError
from lab.supervisor import Progress, Supervisor

SERVER = """
import http.server, sys
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(Spec("one", str(tmp_path), windows="none"), Progress(None))
    made.place.logs.mkdir()
    made.place.pki.mkdir()
    for name in ("ca.crt", "admin.crt", "admin.key"):
        (made.place.pki / name).touch()
    yield made
    for name in list(made.children.table):
        made.children.stop(name)
    made.ports.close()


def python(supervisor: Supervisor, script: str) -> Component:
    port = supervisor.ports.take("web")
    return Component("web", (sys.executable, "-c", script, str(port)), f"http://127.0.0.1:{port}/", ("web",))


def test_a_port_that_was_taken_meanwhile_is_replaced(supervisor: Supervisor, capfd: pytest.CaptureFixture[str]) -> None:
    first = supervisor.ports.take("web")
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", first))
        stranger.listen()
        supervisor.run("web", lambda: python(supervisor, SERVER))
    assert supervisor.ports.taken["web"] != first
    assert supervisor.healthy(supervisor.children.table["web"])
    assert "a port was taken meanwhile" in capfd.readouterr().out


def test_a_component_that_ends_is_reported_with_its_last_words(supervisor: Supervisor) -> None:
    with pytest.raises(LabError, match=r"web ended with 7 before it was ready; .*web\.log ends with:\nlast words"):
        supervisor.run("web", lambda: python(supervisor, "print('last words'); raise SystemExit(7)"))


def test_a_component_that_is_never_ready_is_reported(supervisor: Supervisor) -> None:
    script = "print('waiting', flush=True); import time; time.sleep(60)"
    child = supervisor.start("web", ("-c", script))
    eventually(child.tail, "its words, which belong into the report")
    with pytest.raises(LabError, match=r"web was not ready within 0\.1 s; .* ends with:\nwaiting"):
        supervisor.children.wait_ready(child, lambda: False, limit=0.1)


def test_unknown_component_lists_the_known(supervisor: Supervisor) -> None:
    supervisor.run("web", lambda: python(supervisor, SERVER))
    with pytest.raises(LabError, match="no component 'nothing'; there are web"):
        supervisor.stop_component("nothing")


def test_stop_and_start_keep_the_port(supervisor: Supervisor) -> None:
    supervisor.run("web", lambda: python(supervisor, SERVER))
    port = supervisor.ports.taken["web"]
    supervisor.stop_component("web")
    assert [row["state"] for row in supervisor.status()["components"]] == ["stopped"]
    supervisor.start_component("web")
    assert [row["state"] for row in supervisor.status()["components"]] == ["running"]
    assert supervisor.ports.taken["web"] == port
