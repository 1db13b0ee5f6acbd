# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The artifact server: what downloads meet, decided by the path."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import requests
from lab.windows.control import FrontProcess

from lab_tests.conftest import Pki

CONTENT = bytes(range(256)) * 400


@pytest.fixture
def url(front: FrontProcess, artifacts: Path) -> str:
    (artifacts / "tool.exe").write_bytes(CONTENT)
    front.control.artifact_log(clear=True)
    return f"http://127.0.0.1:{front.state['artifacts']['http']}"


def get(url: str, **options: object) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, timeout=60, **options)  # type: ignore[arg-type]  # the options differ in type


def test_a_file(url: str, front: FrontProcess) -> None:
    answer = get(f"{url}/tool.exe")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    entry = front.control.artifact_log()[-1]
    assert (entry["target"], entry["status"], entry["listener"]) == ("/tool.exe", 200, "http")


def test_ranges(url: str) -> None:
    answer = get(f"{url}/tool.exe", headers={"Range": "bytes=100-199"})
    assert (answer.status_code, answer.content) == (206, CONTENT[100:200])
    assert answer.headers["Content-Range"] == f"bytes 100-199/{len(CONTENT)}"
    assert get(f"{url}/tool.exe", headers={"Range": "bytes=100-"}).content == CONTENT[100:]
    assert get(f"{url}/tool.exe", headers={"Range": f"bytes={len(CONTENT)}-"}).status_code == 416


def test_head_has_no_body(url: str) -> None:
    answer = requests.head(f"{url}/tool.exe", timeout=60)
    assert (answer.headers["Content-Length"], answer.content) == (str(len(CONTENT)), b"")


@pytest.mark.parametrize("path", ["nothing.exe", "../conftest.py", "%2e%2e/%2e%2e/etc/passwd", ""])
def test_what_is_not_there(url: str, path: str) -> None:
    assert get(f"{url}/{path}").status_code == 404


def test_flaky(url: str) -> None:
    codes = [get(f"{url}/flaky/2/tool.exe").status_code for _time in range(4)]
    assert codes == [500, 500, 200, 200]


def test_truncated(url: str) -> None:
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        get(f"{url}/truncated/1000/tool.exe")


def test_slow(url: str) -> None:
    started = time.monotonic()
    assert get(f"{url}/slow/256000/tool.exe").content == CONTENT
    assert time.monotonic() - started >= 0.25


def test_status(url: str) -> None:
    assert get(f"{url}/status/403/tool.exe").status_code == 403


def test_hang(url: str) -> None:
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.get(f"{url}/hang/tool.exe", timeout=0.2)


def test_as_a_proxy(url: str, front: FrontProcess) -> None:
    # The client asks for an absolute URL of a host that does not exist; only a proxy can answer that.
    answer = get("http://files.example.test/tool.exe", proxies={"http": url})
    assert answer.content == CONTENT
    assert front.control.artifact_log()[-1]["proxied"] is True


def test_https_with_and_without_trust(url: str, front: FrontProcess, pki: Pki) -> None:
    ports = front.state["artifacts"]
    answer = get(f"https://localhost:{ports['https']}/tool.exe", verify=str(pki.ca))
    assert answer.content == CONTENT
    with pytest.raises(requests.exceptions.SSLError):
        get(f"https://localhost:{ports['https_untrusted']}/tool.exe", verify=str(pki.ca))
