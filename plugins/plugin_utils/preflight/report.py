# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The readiness report, from its options to its files."""

from __future__ import annotations

import gc
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..base.decode import decode, load_yaml
from ..base.errors import TaskError
from ..base.files import write_whole
from ..base.screen import Screen
from ..base.text import escape_controls
from ..base.waiting import report_progress
from ..catalog.target import parse_target
from ..drivers.rollout.snapshot import ObservedHost
from ..kube.client import Client
from ..kube.connect import require_packages
from .evaluate import evaluate
from .facts.snapshot import SNAPSHOT_VERSION, Snapshot
from .observe import Reading, take
from .planned_run import PlannedRun, report_run, simulate
from .render.html import render_html
from .render.terminal import render_brief, render_refusal, render_terminal
from .render.text_format import format_number
from .suppress import Suppression, read_suppression, suppress
from .verdict import NO_TARGET, Report, Target

# Number of findings in the message without the whole report.
NAMED = 20


@dataclass(frozen=True, slots=True)
class ReadinessOptions:
    """Options of a report.

    before: report on the current versions, with a blocker that the target resolves as a warning. run: a planned run to evaluate. snapshot:
    evaluated instead of the cluster. fail_on: never, blocked, unknown or warning. output_dir: empty to write no file. cluster: its name.
    """

    target: Target = NO_TARGET
    before: bool = False
    run: PlannedRun | None = None
    suppressions: tuple[Suppression, ...] = ()
    hosts: tuple[ObservedHost, ...] = ()
    snapshot: Snapshot | None = None
    fail_on: str = "never"
    output_dir: str = ""
    cluster: str = ""

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ReadinessOptions:
        """The module's options. Raises TaskError for a wrong one, before the cluster is contacted."""
        try:
            return cls(
                target=Target(
                    **parse_target({key: value for key, value in (options["target"] or {}).items() if value})
                ),
                suppressions=tuple(map(read_suppression, options["suppressions"] or ())),
                hosts=tuple(ObservedHost.from_option(host) for host in options.get("hosts") or ()),
                snapshot=load_snapshot(options["snapshot_from"]) if options["snapshot_from"] else None,
                fail_on=options["fail_on"],
                output_dir=options["output_dir"] or "",
                cluster="" if options["snapshot_from"] else name_cluster(options),
            )
        except ValueError as error:
            raise TaskError(str(error), "configuration") from error


@dataclass(frozen=True, slots=True)
class Readiness:
    """The readiness report of a cluster. decisive_report: its part that decides whether it passes. lines: for a terminal. paths: of written files, by kind.

    failure: why it does not pass, empty if it does. reason: its stable key.
    """

    report: Report
    decisive_report: Report
    lines: tuple[str, ...]
    paths: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    reason: str = ""

    def as_dict(self, *, details: bool) -> dict[str, Any]:
        """The result of a task. details: with the whole report."""
        return {
            "verdict": self.decisive_report.verdict,
            "counts": self.decisive_report.counts(),
            "taken_at": self.report.taken_at,
            "blockers": list_blockers(self.decisive_report, brief=bool(self.failure)),
            "unread": [dict(unread_list) for unread_list in self.report.unread],
            "table": list(self.lines),
            "paths": dict(self.paths),
            **({"report": self.report.as_dict()} if details else {}),
        }

    def render(self, *, brief: bool) -> list[str]:
        """The text lines: the verdict alone if another report follows, else the table and the files with the report."""
        if brief:
            return ["", self.lines[0]]
        return ["", *self.lines, *(f"written to {path}" for path in self.paths.values())]


@contextmanager
def pause_collector() -> Iterator[None]:
    """Without cyclic garbage collection: among facts there are no cycles, and looking for them again and again costs a third."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


@pause_collector()
def report_readiness(connect: Callable[[], Client], options: ReadinessOptions, screen: Screen) -> Readiness:
    """Read the cluster, or take the snapshot, evaluate it and write the report. Raises ClusterError."""
    require_packages()
    run, snapshot = options.run, options.snapshot or _read_cluster(connect, options, screen)
    report = evaluate(simulate(snapshot, run) if run else snapshot, options.target, before=options.before)
    report = replace(suppress(report, options.suppressions, read_date()), collection=read_release())
    decisive_report = (
        report_run(evaluate(snapshot, options.target, before=options.before), report, run, snapshot.controllers)
        if run
        else report
    )
    lines = render_brief(report) if run else render_terminal(report).splitlines()
    readiness = Readiness(report, decisive_report, tuple(lines))
    if options.output_dir and not run:
        try:
            readiness = replace(readiness, paths=write_report(report, snapshot, options.output_dir))
        except OSError as error:
            failure = (
                f"cannot write the report to {options.output_dir}: {error.strerror}. Set output_dir "
                "(kubewin_output_dir) to a writable directory, or leave it unset."
            )
            return replace(readiness, failure=failure, reason="configuration")
    if is_passed(decisive_report, options.fail_on):
        return readiness
    counts = ", ".join(format_number(count, severity) for severity, count in decisive_report.counts().items() if count)
    failure = f"the verdict is {report.verdict}: {counts}. The report lists what to do first."
    return replace(readiness, failure=render_refusal(decisive_report) if run else failure, reason="not_ready")


def _read_cluster(connect: Callable[[], Client], options: ReadinessOptions, screen: Screen) -> Snapshot:
    hosts_at = datetime.now(timezone.utc)
    client, reading = connect(), Reading()
    with report_progress(screen.show, reading.__str__):
        return take(client, name=options.cluster, hosts=options.hosts, hosts_at=hosts_at, reading=reading)


def load_snapshot(path: str) -> Snapshot:
    """A snapshot that an earlier run wrote. ValueError says what is wrong with the file."""
    require_packages()
    import msgspec

    try:
        data = decode(msgspec.json.decode, Path(path).read_bytes())
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        remedy = "Name a file that an earlier run wrote."
        raise ValueError(f"snapshot_from {path} cannot be read: {why}. {remedy}") from error
    if not isinstance(data, dict):
        raise ValueError(
            f"snapshot_from {path}: found {type(data).__name__}, expected a file that an earlier run wrote"
        )
    try:
        return Snapshot.from_dict(data)
    except ValueError as error:
        raise ValueError(f"snapshot_from {path}: {error}") from error


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """A snapshot for a file, without making a second one in memory."""
    import msgspec

    parts = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    return escape_controls(msgspec.json.encode({"snapshot_version": SNAPSHOT_VERSION, **parts}))


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


def list_blockers(report: Report, *, brief: bool) -> list[dict[str, str]]:
    """Findings of severity blocker. brief: for a failed task, whose message or report has the rest, and of which Ansible prints all."""
    worst = [finding for finding in report.findings if finding.severity == "blocker"]
    names = ("id", "object") if brief else ("id", "object", "message", "remedy")
    return [{name: getattr(finding, name) for name in names} for finding in worst[:NAMED]]


def write_report(report: Report, snapshot: Snapshot, folder: str) -> dict[str, str]:
    """Write everything that is kept; paths by kind."""
    return {
        "json": write_whole(folder, "readiness.json", json.dumps(report.as_dict(), indent=1).encode()),
        "html": write_whole(folder, "readiness.html", render_html(report).encode()),
        "snapshot": write_whole(folder, "snapshot.json", encode_snapshot(snapshot)),
    }


def read_release() -> str:
    """The release of this collection: of its manifest, or in a checkout of its galaxy.yml."""
    root = Path(__file__).parents[3]
    manifest = root / "MANIFEST.json"
    if manifest.is_file():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(load_yaml((root / "galaxy.yml").read_text(encoding="utf-8"))["version"])


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
    try:
        config: Any = importlib.import_module("kubernetes.config")
        dummy, active = config.list_kube_config_contexts(config_file=kubeconfig)
    except Exception:
        # The client reports what is wrong with the file, or that the package is missing.
        return ""
    return str(active["name"])


def read_date() -> date:
    """The day that decides about suppressions."""
    return datetime.now(timezone.utc).date()
