# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the API of AWX 24.6.1, as far as the modules of awx.awx use it.

It keeps what they send and associates it. Where AWX decides, it decides as AWX: https://github.com/ansible/awx/tree/24.6.1/awx,
main/models/projects.py (synchronizations), main/models/mixins.py (environments, surveys), api/serializers.py (playbooks).
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "secret-token"
ENCRYPTED = "$encrypted$"
SECRETS = {"password", "bearer_token", "ssl_ca_cert"}
# The environment of jobs for which nothing names another one.
DEFAULT_ENVIRONMENT = "AWX EE (latest)"
Object = dict[str, Any]
# What is under an object: lists of other objects, and documents.
LISTS = (
    *("credentials", "labels", "instance_groups", "success_nodes", "failure_nodes", "always_nodes", "workflow_nodes"),
    *(f"notification_templates_{when}" for when in ("started", "success", "error", "approvals")),
)
KINDS = {
    "job_templates": "job_template",
    "workflow_job_templates": "workflow_job_template",
    "projects": "project",
    "inventories": "inventory",
}
ROLES = ("execute", "approval", "read")
APPROVALS = "workflow_approval_templates"


def validate_answers(survey: Object, answers: Mapping[str, Any]) -> list[str]:
    """The errors for which AWX refuses a launch: _survey_element_validation."""
    errors = []
    for question in survey["spec"]:
        name, kind = question["variable"], question["type"]
        if name not in answers:
            errors += [f"'{name}' value missing"] * question["required"]
            continue
        value = answers[name]
        if kind == "multiselect":
            valid = isinstance(value, list) and set(value) <= set(question["choices"])
        elif kind == "multiplechoice":
            valid = value in question["choices"]
        elif kind == "integer":
            valid = type(value) is int and question["min"] <= value <= question["max"]
        else:
            valid = isinstance(value, str) and question["min"] <= len(value) <= question["max"]
        errors += [] if valid else [f"Value {value} for '{name}' is refused"]
    return errors


def launch_variables(survey: Object, answers: Mapping[str, Any]) -> Object:
    """The extra variables of a job: _update_unified_job_kwargs. A default is one as well, if it were a valid answer."""
    defaults = {
        question["variable"]: question["default"]
        for question in survey["spec"]
        if question.get("default") is not None
        and not validate_answers({"spec": [question]}, {question["variable"]: question["default"]})
    }
    return {**defaults, **answers}


class AwxApi:
    """Objects by endpoint.

    sync_results: how the next synchronizations of projects end; when the list is empty, they succeed.
    """

    def __init__(self) -> None:
        self.objects: dict[str, list[Object]] = {}
        self.documents: dict[str, Object] = {}
        self.associated: dict[str, list[int]] = {}
        self.writes: list[str] = []
        self.sync_results: list[str] = []
        self._numbers = itertools.count(1)
        self.add("organizations", {"name": "Default"})
        for name in ("Machine", "OpenShift or Kubernetes API Bearer Token"):
            self.add("credential_types", {"name": name})

    def add(self, endpoint: str, content: Object) -> Object:
        """Create an object."""
        number = next(self._numbers)
        url = f"/api/v2/{endpoint}/{number}/"
        related = {name: f"{url}{name}/" for name in (*LISTS, "survey_spec", "create_approval_template", "update")}
        created = {
            "id": number,
            "url": url,
            "type": KINDS.get(endpoint, endpoint.removesuffix("s")),
            "related": related,
            "summary_fields": {"object_roles": {f"{role}_role": {"id": next(self._numbers)} for role in ROLES}},
            **content,
        }
        if "unified_job_template" in created:
            related["unified_job_template"] = self._by_number(created["unified_job_template"])["url"]
        self.objects.setdefault(endpoint, []).append(created)
        return created

    def environment_of_sync(self, source: Object) -> str:
        """The environment of an inventory source's synchronization. It does not inherit the project's."""
        number = source.get("execution_environment")
        return str(self._by_number(number)["name"]) if number else DEFAULT_ENVIRONMENT

    def _sync(self, project: Object) -> Object:
        """Synchronize a project. The result is there at once, where AWX needs some seconds."""
        result = self.sync_results.pop(0) if self.sync_results else "successful"
        project |= {
            "status": result,
            "scm_revision": "1" if result == "successful" else project.get("scm_revision", ""),
        }
        state = {"status": result, "failed": result != "successful", "finished": "2026-01-01T00:00:00Z"}
        return self.add("project_updates", {**state, "scm_revision": project["scm_revision"]})

    def _playbook_errors(self, template: Object) -> Object:
        """Why AWX refuses a job template."""
        synchronized = self._by_number(template["project"])["scm_revision"]
        return {} if synchronized else {"playbook": ["Playbook not found for project."]}

    def _by_number(self, number: int) -> Object:
        return next(item for items in self.objects.values() for item in items if item["id"] == number)

    def _listed(self, path: str) -> list[Object]:
        if path == "unified_job_templates":
            return [item for kind in (*KINDS, APPROVALS) for item in self.objects.get(kind, [])]
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
            return self._answer_detail(method, self._by_number(int(last)), content)
        if last == "survey_spec":
            if method == "POST":
                self.documents[path] = content
            return 200, self.documents.get(path, {})
        if method == "POST":
            return self._create(above, last, path, content)
        filters = {name: value for name, value in query.items() if not name.startswith(("or__", "page", "not__"))}
        results = [
            shown(item)
            for item in self._listed(path)
            if all(str(item.get(key, value)) == value for key, value in filters.items())
        ]
        either = [value for name, value in query.items() if name.startswith("or__")]
        if either:
            results = [item for item in results if {str(item["id"]), item.get("name")} & set(either)]
        return 200, {"count": len(results), "next": None, "previous": None, "results": results}

    def _answer_detail(self, method: str, item: Object, content: Object) -> tuple[int, Object]:
        if method == "DELETE":
            self.objects = {
                kind: [other for other in items if other is not item] for kind, items in self.objects.items()
            }
            # As PostgreSQL cascades: schedules with their template, sources with their inventory.
            for kind, parent in (("schedules", "unified_job_template"), ("inventory_sources", "inventory")):
                self.objects[kind] = [other for other in self.objects.get(kind, []) if other[parent] != item["id"]]
            return (202 if item["type"] == "inventory" else 204), {}
        if method == "PATCH":
            if item["type"] == "job_template" and (errors := self._playbook_errors({**item, **content})):
                return 400, errors
            if "inputs" in content:
                stored = {name: item["inputs"][name] for name, value in content["inputs"].items() if value == ENCRYPTED}
                content = {**content, "inputs": {**content["inputs"], **stored}}
            item.update(content)
        return 200, shown(item)

    def _create(self, above: list[str], last: str, path: str, content: Object) -> tuple[int, Object]:
        if last == "create_approval_template":
            node = self._by_number(int(above[-1]))
            approval = self.add(APPROVALS, {**content, "type": "workflow_approval"})
            node["unified_job_template"] = approval["id"]
            node["related"]["unified_job_template"] = approval["url"]
            return 201, approval
        if last == "update":
            return 202, self._sync(self._by_number(int(above[-1])))
        if above and "id" in content:
            numbers = self.associated.setdefault(path, [])
            if content.get("disassociate"):
                numbers.remove(int(content["id"]))
            else:
                numbers.append(int(content["id"]))
            return 204, {}
        if path == "job_templates" and (errors := self._playbook_errors(content)):
            return 400, errors
        created = self.add("workflow_job_template_nodes" if last == "workflow_nodes" else path, content)
        if path == "projects":
            update = self._sync(created)
            return 201, {
                **created,
                "summary_fields": {**created["summary_fields"], "current_update": {"id": update["id"]}},
            }
        if above:
            self.associated.setdefault(path, []).append(created["id"])
        return 201, shown(created)


def shown(item: Object) -> Object:
    """An object as AWX returns it: without secrets."""
    if "inputs" not in item:
        return item
    inputs = {name: ENCRYPTED if name in SECRETS else value for name, value in item["inputs"].items()}
    return {**item, "inputs": inputs}


@contextmanager
def serve() -> Iterator[tuple[str, AwxApi]]:
    """The address of a server that runs for the length of a block, and what it keeps."""
    api = AwxApi()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            url = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = url.path.removeprefix("/api/v2").strip("/")
            assert self.headers["Authorization"] == f"Bearer {TOKEN}", self.path
            status, content = api.answer(self.command, path, dict(parse_qsl(url.query)), json.loads(body or b"{}"))
            sent = json.dumps(content).encode() if status != 204 else b""
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
