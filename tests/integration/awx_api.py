# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the API of AWX 24.6.1, as far as the modules of awx.awx use it.

It keeps what they send and associates it. Where AWX decides, it decides and answers as AWX:
https://github.com/ansible/awx/tree/24.6.1/awx, main/models/projects.py (synchronizations), main/models/mixins.py (environments,
answers of surveys), main/models/jobs.py and workflow.py (prompts, roles), api/serializers.py (playbooks, saved launches, rules of
schedules), api/views/__init__.py (questions of surveys).
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
ROLES = {"job_template": ("execute", "read"), "workflow_job_template": ("execute", "approval", "read")}
# What a saved launch may set only if its template asks for it.
PROMPTS = {
    name: f"ask_{name}_on_launch" for name in ("job_type", "limit", "verbosity", "job_slice_count", "forks", "timeout")
}
QUESTION_TYPES = ("text", "textarea", "password", "multiplechoice", "multiselect", "integer", "float")
APPROVALS = "workflow_approval_templates"


def validate_answers(survey: Object, answers: Mapping[str, Any], *, required: bool = True) -> list[str]:
    """The errors for which AWX refuses a launch: _survey_element_validation. required: whether an answer may not be missing."""
    return [
        error
        for question in survey["spec"]
        for error in (
            _answer_errors(question, answers[question["variable"]])
            if question["variable"] in answers
            else [f"'{question['variable']}' value missing"] * (question["required"] and required)
        )
    ]


def _answer_errors(question: Object, value: Any) -> list[str]:
    name, kind, subject = question["variable"], question["type"], f"Value {value} for '{question['variable']}'"
    if kind in ("multiselect", "multiplechoice"):
        if kind == "multiselect" and not isinstance(value, list):
            return [f"'{name}' value is expected to be a list."]
        choices = question["choices"]
        wrong = [choice for choice in (value if kind == "multiselect" else [value]) if choice not in choices]
        return [f"Value {choice} for '{name}' expected to be one of {choices}." for choice in wrong]
    if kind == "integer":
        if type(value) is not int:
            return [f"{subject} expected to be an integer."]
        size, least = value, f"must be at least {question['min']}"
    else:
        if not isinstance(value, str):
            return [f"{subject} expected to be a string."]
        size, least = len(value), f"length is {len(value)} must be at least {question['min']}"
    too_small = [f"'{name}' value {value} is too small ({least})."] * (size < question["min"])
    return too_small + [f"'{name}' value {value} is too large (must be no more than {question['max']})."] * (
        size > question["max"]
    )


def survey_error(survey: Object) -> str:
    """Why AWX refuses a survey, empty if it does not: _validate_spec_data."""
    if not survey["spec"]:
        return "'spec' doesn't contain any items."
    for number, question in enumerate(survey["spec"]):
        for name, kind, label in (
            ("type", str, "string"),
            ("question_name", str, "string"),
            ("variable", str, "string"),
            ("required", bool, "boolean"),
        ):
            if name not in question:
                return f"'{name}' missing from survey question {number}"
            if not isinstance(question[name], kind):
                return f"'{name}' in survey question {number} expected to be {label}."
        if question["variable"] in {earlier["variable"] for earlier in survey["spec"][:number]}:
            return f"'variable' '{question['variable']}' duplicated in survey question {number}."
        if question["type"] not in QUESTION_TYPES:
            return f"'{question['type']}' in survey question {number} is not one of '{', '.join(QUESTION_TYPES)}' allowed question types."
        if question["type"].startswith("multi") and "choices" not in question:
            return f"Survey question {number} of type {question['type']} must specify choices."
    return ""


def launch_errors(template: Object, survey: Object, saved: Object, *, required: bool) -> Object:
    """Why AWX refuses a node of a workflow or a schedule: LaunchConfigurationBaseSerializer.validate. required: as of validate_answers."""
    errors: Object = {
        name: "Field is not configured to prompt on launch."
        for name, ask in PROMPTS.items()
        if saved.get(name) not in (None, "", template.get(name)) and not template.get(ask)
    }
    answers, asked = saved.get("extra_data") or {}, {question["variable"] for question in survey["spec"]}
    if wrong := validate_answers(survey, answers, required=required):
        errors["variables_needed_to_start"] = wrong
    if not template.get("ask_variables_on_launch") and (others := sorted(set(answers) - asked)):
        text = "are not allowed on launch. Check the Prompt on Launch setting on the Job Template to include Extra Variables."
        errors["extra_data"] = [f"Variables {', '.join(others)} {text}"]
    return errors


def rule_errors(rule: str) -> list[str]:
    """Why AWX refuses the rule of a schedule: ScheduleSerializer.validate_rrule, as far as settings.yml could be wrong."""
    errors = []
    if not re.search(r"DTSTART(;[^:]+)?:[0-9]+T[0-9]+Z?", rule):
        errors.append("Valid DTSTART required in rrule. Value should start with: DTSTART:YYYYMMDDTHHMMSSZ")
    if re.search(r"DTSTART:[0-9]+T[0-9]+ ", rule):
        errors.append("DTSTART cannot be a naive datetime.  Specify ;TZINFO= or YYYYMMDDTHHMMSSZZ.")
    if "rrule:" not in rule.lower():
        errors.append("One or more rule required in rrule.")
    rules = re.findall(r"RULE:\S*", rule)
    return errors + [f"INTERVAL required in rrule: {one}" for one in rules if "interval" not in one.lower()]


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
        if endpoint == "inventories":
            # Sent as null, it is stored as no text.
            content = {**content, "kind": content.get("kind") or ""}
        url = f"/api/v2/{endpoint}/{number}/"
        related = {name: f"{url}{name}/" for name in (*LISTS, "survey_spec", "create_approval_template", "update")}
        created = {
            "id": number,
            "url": url,
            "type": KINDS.get(endpoint, endpoint.removesuffix("s")),
            "related": related,
            "summary_fields": {
                "object_roles": {
                    f"{role}_role": {"id": next(self._numbers)} for role in ROLES.get(KINDS.get(endpoint, ""), ())
                }
            },
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

    def _refusal(self, path: str, content: Object) -> Object:
        """Why AWX refuses to create an object."""
        if path == "job_templates":
            return self._playbook_errors(content)
        if path not in ("schedules", "workflow_job_template_nodes") or "unified_job_template" not in content:
            return {}
        template = self._by_number(content["unified_job_template"])
        survey = self.documents.get(f"job_templates/{template['id']}/survey_spec", {"spec": []})
        errors = launch_errors(template, survey, content, required=path == "schedules")
        rule = rule_errors(content["rrule"]) if path == "schedules" else []
        return {**errors, **({"rrule": rule} if rule else {})}

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
            if method == "POST" and (error := survey_error(content)):
                return 400, {"error": error}
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
        endpoint = "workflow_job_template_nodes" if last == "workflow_nodes" else path
        if errors := self._refusal(endpoint, content):
            return 400, errors
        created = self.add(endpoint, content)
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
