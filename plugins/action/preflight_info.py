# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what decides whether volumes on Windows nodes will work after a change, and reports it."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import yaml
from ansible.module_utils.basic import missing_required_lib

from ..doc_fragments import hosts
from ..modules.preflight_info import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction, TaskError
from ..plugin_utils.actions.host_results import list_csi_proxies, list_read_nodes, read_plans
from ..plugin_utils.base.decode import decode
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.files import write_whole
from ..plugin_utils.base.text import encode_json_controls
from ..plugin_utils.base.waiting import report_progress
from ..plugin_utils.catalog.registry import DRIVERS, refuse_unknown_driver
from ..plugin_utils.catalog.target import parse_target
from ..plugin_utils.kube.definitions import parse_definitions
from ..plugin_utils.preflight.evaluate import Options, evaluate
from ..plugin_utils.preflight.facts.nodes import ObservedHost
from ..plugin_utils.preflight.facts.snapshot import SNAPSHOT_VERSION, Snapshot
from ..plugin_utils.preflight.observe import Reading, take
from ..plugin_utils.preflight.render.brief import render_brief, render_refusal
from ..plugin_utils.preflight.render.comparison import compare_reports
from ..plugin_utils.preflight.render.html import render_html
from ..plugin_utils.preflight.render.junit import render_junit
from ..plugin_utils.preflight.render.terminal import render_terminal
from ..plugin_utils.preflight.render.text_format import format_number
from ..plugin_utils.preflight.run import Run, report_run, simulate
from ..plugin_utils.preflight.suppress import read_suppressions, suppress
from ..plugin_utils.preflight.verdict import Report, Target

try:
    import msgspec
except ImportError:
    HAS_MSGSPEC = False
else:
    HAS_MSGSPEC = True

# Number of findings in the message without the whole report.
NAMED = 20
# What goes to a job's statistics: short enough for any job.
_STATISTIC = ("verdict", "counts", "taken_at", "blockers", "unread")


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = {
        **read_argument_spec(hosts.ModuleDocFragment.DOCUMENTATION),
        **read_argument_spec(DOCUMENTATION),
    }
    remainder = "Nothing was changed"

    def read_run(self) -> dict[str, Any]:
        """The hosts of the play, and with the option planned the drivers that this playbook planned."""
        hosts = list_csi_proxies(self.task_vars)
        if not self._task.args.get("planned"):
            return {"hosts": hosts}
        drivers = [{key: plan[key] for key in ("driver", "definition")} for plan in read_plans(self.task_vars)]
        return {"hosts": hosts, "run": {"drivers": drivers, "nodes": list_read_nodes(hosts)}}

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the verdict and the report; failed unless the verdict passes."""
        try:
            self._evaluate(options)
        except TaskError:
            if "verdict" in self.result:
                self._shorten(options)
            raise
        # A run reports its intermediate result at its end.
        if not options["run"]:
            self._show_report(brief=options["before"])
            self._set_verdict()

    def _set_verdict(self) -> None:
        """Set the statistic. AWX shows it as an artifact, and hands it to a workflow's next jobs."""
        summary = {key: self.result[key] for key in _STATISTIC if key in self.result}
        self.result["ansible_stats"] = {"data": {"kubewin_preflight": summary}, "per_host": False, "aggregate": False}

    def _evaluate(self, params: Mapping[str, Any]) -> None:
        if not HAS_MSGSPEC:
            raise TaskError(missing_required_lib("msgspec"), "configuration")
        try:
            # Before the cluster is contacted.
            target = Target(**parse_target({key: value for key, value in (params["target"] or {}).items() if value}))
            run = build_run(params, target)
            suppressions = read_suppressions(params["suppressions"] or ())
            earlier = read_file("compare", params["compare"]) if params["compare"] else None
            if params["snapshot_from"]:
                snapshot = load_snapshot(params["snapshot_from"])
            else:
                hosts = tuple(ObservedHost.from_option(host) for host in params["hosts"] or ())
                hosts_at = datetime.now(timezone.utc)
                client, reading = self.connect(params), Reading()
                with report_progress(self.show, reading.__str__):
                    snapshot = take(client, name=name_cluster(params), hosts=hosts, hosts_at=hosts_at, reading=reading)
        except ValueError as error:
            raise TaskError(str(error), "configuration") from error
        options = Options(target=target, before=params["before"])
        report = suppress(evaluate(simulate(snapshot, run) if run else snapshot, options), suppressions, read_date())
        report = replace(report, collection=read_release())
        if earlier is not None:
            try:
                report = compare_reports(report, earlier)
            except (KeyError, TypeError, ValueError) as error:
                raise TaskError(f"compare {params['compare']}: {error}.", "configuration") from error
        counted = report_run(evaluate(snapshot, options), report, run, snapshot.controllers) if run else report
        self.result.update(
            {
                "verdict": counted.verdict,
                "counts": counted.counts(),
                "taken_at": report.taken_at,
                "blockers": list_blockers(counted),
                "unread": [dict(unread_list) for unread_list in report.unread],
                "table": list(render_brief(report)) if run else render_terminal(report).splitlines(),
                "paths": {},
            }
        )
        if params["details"]:
            self.result["report"] = report.as_dict()
        if params["output_dir"] and not self.check_mode and not run:
            try:
                self.result["paths"] = write_report(report, snapshot, params["output_dir"])
            except OSError as error:
                raise TaskError(
                    f"cannot write the report to {params['output_dir']}: {error.strerror}. Set output_dir "
                    "(kubewin_output_dir) to a writable directory, or leave it unset.",
                    "configuration",
                ) from error
        if not is_passed(counted, params["fail_on"]):
            counts = ", ".join(format_number(count, severity) for severity, count in counted.counts().items() if count)
            raise TaskError(
                render_refusal(counted)
                if run
                else f"the verdict is {report.verdict}: {counts}. The report lists what to do first.",
                "not_ready",
            )

    def _shorten(self, options: Mapping[str, Any]) -> None:
        """Leave out of a failed task's result, which the callback shows whole, what is printed already: in the report or the message."""
        self.result["blockers"] = [
            {"id": blocker["id"], "object": blocker["object"]} for blocker in self.result["blockers"]
        ]
        if not options["run"]:
            self._show_report(brief=False)
            self._set_verdict()
            del self.result["table"]

    def _show_report(self, *, brief: bool) -> None:
        self.display(*render_lines(self.result, brief=brief))


class QuietReport(ActionModule):
    """The report for an action that shows its own result."""

    def _show_report(self, *, brief: bool) -> None:
        pass


def read_file(option: str, path: str) -> dict[str, Any]:
    """A JSON object of an earlier run. ValueError names the option and what is wrong with the file."""
    try:
        data = decode(msgspec.json.decode, encode_json_controls(Path(path).read_bytes()))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{option} {path} cannot be read: {why}. Name a file that an earlier run wrote.") from error
    if not isinstance(data, dict):
        raise ValueError(f"{option} {path}: found {type(data).__name__}, expected a file that an earlier run wrote")
    return data


def load_snapshot(path: str) -> Snapshot:
    """A snapshot that an earlier run wrote. ValueError says what is wrong with it."""
    data = read_file("snapshot_from", path)
    try:
        return Snapshot.from_dict(data)
    except ValueError as error:
        raise ValueError(f"snapshot_from {path}: {error}") from error


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """A snapshot for a file, without making a second one in memory."""
    parts = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    return msgspec.json.encode({"snapshot_version": SNAPSHOT_VERSION, **parts})


def is_passed(report: Report, fail_on: str) -> bool:
    """Whether a report passes. A blocker stops a workload at least on some of its nodes."""
    refused = report.verdict == "blocked" or report.counts()["blocker"] > 0
    bad = {
        "never": False,
        "blocked": refused,
        "unknown": refused or report.verdict == "unknown",
        "warning": refused or report.verdict == "unknown" or report.counts()["warning"] > 0,
    }
    return not bad[fail_on]


def build_run(params: Mapping[str, Any], target: Target) -> Run | None:
    """The planned run to evaluate. ValueError or ClusterError if it is invalid."""
    run_option = params["run"]
    if not run_option:
        return None
    if target:
        raise ValueError("run is mutually exclusive with target")
    keys = tuple(entry["driver"] for entry in run_option["drivers"])
    if wrong := next((refuse_unknown_driver(key) for key in keys if key not in DRIVERS), ""):
        raise ValueError(f"run: {wrong}")
    objects = tuple(item for entry in run_option["drivers"] for item in parse_definitions(entry["definition"]))
    return Run(keys, objects, frozenset(run_option["nodes"] or ()))


def list_blockers(report: Report) -> list[dict[str, str]]:
    """Findings of severity blocker, without their details."""
    worst = [finding for finding in report.findings if finding.severity == "blocker"]
    return [
        {"id": finding.id, "object": finding.object, "message": finding.message, "remedy": finding.remedy}
        for finding in worst[:NAMED]
    ]


def write_report(report: Report, snapshot: Snapshot, folder: str) -> dict[str, str]:
    """Write everything that is kept; paths by kind."""
    return {
        "json": write_whole(folder, "readiness.json", json.dumps(report.as_dict(), indent=1).encode()),
        "html": write_whole(folder, "readiness.html", render_html(report).encode()),
        "junit": write_whole(folder, "readiness.xml", render_junit(report)),
        "snapshot": write_whole(folder, "snapshot.json", encode_snapshot(snapshot)),
    }


def read_release() -> str:
    """The release of this collection: of its manifest, or in a checkout of its galaxy.yml."""
    root = Path(__file__).parents[2]
    manifest = root / "MANIFEST.json"
    if manifest.is_file():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(yaml.safe_load((root / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def name_cluster(options: Mapping[str, Any]) -> str:
    """The name of the cluster in the report: the context or the host of the API server that the task uses."""
    name = options.get("context") or os.environ.get("K8S_AUTH_CONTEXT")
    host = options.get("host") or os.environ.get("K8S_AUTH_HOST")
    if name or host:
        return str(name or urlsplit(host).hostname or "")
    kubeconfig = options.get("kubeconfig") or os.environ.get("K8S_AUTH_KUBECONFIG")
    if isinstance(kubeconfig, Mapping):
        return str(kubeconfig.get("current-context") or "")
    if not kubeconfig and "KUBERNETES_SERVICE_HOST" in os.environ:
        # In a pod the service account is used, which has no context.
        return ""
    config: Any = importlib.import_module("kubernetes.config")
    try:
        dummy, active = config.list_kube_config_contexts(config_file=kubeconfig)
    except config.ConfigException:
        return ""
    return str(active["name"])


def read_date() -> date:
    """The day that decides about suppressions."""
    return datetime.now(timezone.utc).date()


def render_lines(result: Mapping[str, Any], *, brief: bool) -> list[str]:
    """The text lines: the verdict alone if another report follows, else the table and the files with the report."""
    if brief:
        return ["", result["table"][0]]
    return ["", *result["table"], *(f"written to {path}" for path in result["paths"].values())]
