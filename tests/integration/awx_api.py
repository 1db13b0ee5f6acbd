# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the API of AWX, as far as the modules of awx.awx use it: it keeps what they send and associates it."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "secret-token"
Object = dict[str, Any]
# What is under an object: lists of other objects, and documents.
LISTS = (
    *("credentials", "labels", "instance_groups", "success_nodes", "failure_nodes", "always_nodes", "workflow_nodes"),
    *(f"notification_templates_{when}" for when in ("started", "success", "error", "approvals")),
)
KINDS = {"job_templates": "job_template", "workflow_job_templates": "workflow_job_template", "projects": "project"}
APPROVALS = "workflow_approval_templates"


class AwxApi:
    """Objects by endpoint."""

    def __init__(self) -> None:
        self.objects: dict[str, list[Object]] = {}
        self.documents: dict[str, Object] = {}
        self.associated: dict[str, list[int]] = {}
        self.writes: list[str] = []
        self._numbers = itertools.count(1)
        self.add("organizations", {"name": "Default"})
        for name in ("Machine", "OpenShift or Kubernetes API Bearer Token"):
            self.add("credential_types", {"name": name})

    def add(self, endpoint: str, content: Object) -> Object:
        """Create an object."""
        number = next(self._numbers)
        url = f"/api/v2/{endpoint}/{number}/"
        related = {name: f"{url}{name}/" for name in (*LISTS, "survey_spec", "create_approval_template")}
        made = {
            "id": number,
            "url": url,
            "type": KINDS.get(endpoint, endpoint.removesuffix("s")),
            "related": related,
            "summary_fields": {},
            **content,
        }
        if endpoint == "projects":
            made |= {"status": "successful", "scm_revision": "1"}
        if "unified_job_template" in made:
            related["unified_job_template"] = self._by_number(made["unified_job_template"])["url"]
        self.objects.setdefault(endpoint, []).append(made)
        return made

    def _by_number(self, number: int) -> Object:
        return next(one for found in self.objects.values() for one in found if one["id"] == number)

    def _listed(self, path: str) -> list[Object]:
        if path == "unified_job_templates":
            return [one for kind in (*KINDS, APPROVALS) for one in self.objects.get(kind, [])]
        if re.fullmatch(r"\w+", path):
            return self.objects.get(path, [])
        return [self._by_number(number) for number in self.associated.get(path, [])]

    def answer(self, method: str, path: str, query: Object, content: Object) -> tuple[int, Object]:
        """Status and body of a request. path: below /api/v2/, without slashes around it."""
        if method != "GET":
            self.writes.append(f"{method} {path}")
        *above, last = path.split("/")
        if path == "ping":
            return 200, {"version": "24.6.1"}
        if last.isdigit():
            found = self._by_number(int(last))
            if method == "PATCH":
                found.update(content)
            return 200, found
        if last == "survey_spec":
            if method == "POST":
                self.documents[path] = content
            return 200, self.documents.get(path, {})
        if last == "create_approval_template":
            node = self._by_number(int(above[-1]))
            made = self.add(APPROVALS, {**content, "type": "workflow_approval"})
            node["unified_job_template"] = made["id"]
            node["related"]["unified_job_template"] = made["url"]
            return 201, made
        if method == "POST" and above and "id" in content:
            self.associated.setdefault(path, []).append(int(content["id"]))
            return 204, {}
        if method == "POST":
            endpoint = "workflow_job_template_nodes" if last == "workflow_nodes" else path
            made = self.add(endpoint, content)
            if above:
                self.associated.setdefault(path, []).append(made["id"])
            return 201, made
        wanted = {name: value for name, value in query.items() if not name.startswith(("or__", "page", "not__"))}
        results = [
            one for one in self._listed(path) if all(str(one.get(key, value)) == value for key, value in wanted.items())
        ]
        either = [value for name, value in query.items() if name.startswith("or__")]
        if either:
            results = [one for one in results if {str(one["id"]), one.get("name")} & set(either)]
        return 200, {"count": len(results), "next": None, "previous": None, "results": results}


@contextmanager
def serve() -> Iterator[tuple[str, AwxApi]]:
    """The address of a server that runs for the length of a block, and what it keeps."""
    api = AwxApi()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            where = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = where.path.removeprefix("/api/v2").strip("/")
            assert self.headers["Authorization"] == f"Bearer {TOKEN}", self.path
            status, found = api.answer(self.command, path, dict(parse_qsl(where.query)), json.loads(body or b"{}"))
            sent = json.dumps(found).encode() if status != 204 else b""
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(sent)),
                "X-API-Product-Name": "AWX",
                "X-API-Product-Version": "24.6.1",
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PATCH = do_DELETE = _reply

        def log_message(self, *_words: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
