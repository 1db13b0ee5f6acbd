#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: readiness_info
short_description: Report the readiness of every volume on Windows nodes
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads a cluster once. Reports for each Windows node whether the drivers of its volumes work there, for each volume what serves it, and for each
    workload whether it will start again after a restart. Every verdict has its evidence.
  - What could not be read is named and is unknown. Nothing that depends on it is ready.
  - Only reads. Lists are read in pages of one resourceVersion and reduced while they arrive, so memory depends on what runs on Windows. The
    required rules are in C(roles/csi_driver/files/kubewin-preflight-rbac.yaml). If a rule is missing, the others are used.
  - Fails without a report if the cluster as a whole cannot be read.
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
attributes:
  check_mode:
    description: Can run in check mode.
    support: full
    details: In check mode no file is written to O(output_dir).
options:
  cluster_name:
    description: Name of the cluster in the report.
    type: str
    default: ""
  hosts:
    description: Facts of the hosts, for example from RV(kubewin.csi.csi_proxy_info#module:csi_proxy).
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: Name of the Node.
        type: str
        required: true
      observed_at:
        description: Time of the observation, RFC 3339.
        type: str
      serving:
        description: Whether csi-proxy serves. Omit it if the host could not be read.
        type: bool
      release:
        description: Release of csi-proxy.
        type: str
      state:
        description: State of the service.
        type: str
      reason:
        description: Why csi-proxy does not serve, or why the host could not be read.
        type: str
      missing_pipes:
        description: Bare names of missing required pipes.
        type: list
        elements: str
      pipes:
        description: Existing pipes. If set, every pipe that a pod mounts is checked.
        type: list
        elements: str
      boot_time:
        description: Time of the host's last boot, RFC 3339.
        type: str
      managed_by:
        description: Owner of csi-proxy on the host, see RV(kubewin.csi.csi_proxy_info#module:csi_proxy.managed_by).
        type: str
      findings:
        description: Findings of M(kubewin.csi.csi_proxy_info) for the host. The report includes them.
        type: list
        elements: dict
  target:
    description:
      - Report for these versions instead of the current ones.
      - Versions are text. YAML reads C(4.10) without quotes as the number 4.1. The text C(openshift=4.14, wmco=9.0.0) is accepted
        too.
    type: dict
    default: {}
    suboptions:
      kubernetes:
        description: Release of Kubernetes.
        type: str
        aliases: [kubelet]
      openshift:
        description: Release of OpenShift. It implies the releases of Kubernetes and the Windows Machine Config Operator.
        type: str
      wmco:
        description: Release of the Windows Machine Config Operator.
        type: str
      driver:
        description: Driver of O(target.driver_version) and O(target.mode), such as V(vsphere). Defaults to every driver that volumes need.
        type: str
      driver_version:
        description: Release of the driver's node plugin.
        type: str
      mode:
        description: Mode of the driver's node plugin.
        type: str
        choices: [csi_proxy, host_process]
  run:
    description:
      - What a run is about to deploy. The report compares the current cluster with the cluster after that run, from one read, and describes
        the latter.
      - RV(verdict), RV(counts), RV(blockers) and O(fail_on) then count what the run would break, and problems of the controllers and
        CSIDrivers of its drivers. They do not count problems that the run solves or does not change. M(kubewin.csi.driver_info) reports
        whether a driver can be deployed.
      - Mutually exclusive with O(target) and O(pseudonyms). Nothing is written to O(output_dir).
    type: dict
    suboptions:
      drivers:
        description: Drivers that the run deploys.
        type: list
        elements: dict
        required: true
        suboptions:
          driver:
            description: The driver, such as V(vsphere).
            type: str
            required: true
          definition:
            description: Objects of the driver, as O(kubewin.csi.driver_apply#module:definition).
            type: raw
            required: true
      nodes:
        description: Nodes on which csi-proxy serves after the run.
        type: list
        elements: str
        default: []
  suppressions:
    description:
      - Accepted findings. The report lists them with their reason and does not count them.
      - An expired one counts again. One that matches nothing is a finding of its own.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: A finding's id, such as C(CSI-V11).
        type: str
        required: true
      object:
        description: The object as in the report. Wildcards are allowed.
        type: str
        required: true
      reason:
        description: Why it is accepted.
        type: str
        required: true
      expires:
        description: Last day of the acceptance, such as C(2027-01-31).
        type: str
        required: true
  fail_on:
    description:
      - When to fail, with RV(reason=not_ready). The report is printed and written before.
      - V(blocked) fails on a blocker, V(unknown) also if something is unknown, V(warning) also on a warning, V(never) not at all.
    type: str
    choices: [never, blocked, unknown, warning]
    default: never
  output_dir:
    description:
      - Directory on the controller for C(readiness.json), C(readiness.md), C(readiness.html) and C(snapshot.json). It is created if it does
        not exist.
    type: path
  snapshot_from:
    description:
      - Report on this snapshot of an earlier run. No cluster is contacted. O(hosts) and O(cluster_name) are those of the snapshot.
    type: path
  host_facts_max_age:
    description: Seconds after which facts from a host are too old to count.
    type: int
    default: 3600
  pseudonyms:
    description:
      - Replace names of objects, hosts and addresses by pseudonyms, in the snapshot and the report, so that you can share them. A name has
        one pseudonym in a run, which cannot be reversed.
    type: bool
    default: false
  before:
    description:
      - Report on the current versions before an upgrade to O(target). A blocker that O(target) resolves is a warning.
      - Unless the task fails, only the verdict is shown. Run the module again without O(before) to report on O(target).
    type: bool
    default: false
  details:
    description: Return the whole report. That of a large cluster has some megabytes, which logs and job events then hold too.
    type: bool
    default: true
  progress_file:
    description: Internal. Progress messages are appended to this file.
    type: path
requirements:
  - msgspec (Python library) >= 0.18.6
seealso:
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.node_rollout
"""

EXAMPLES = r"""
- name: Report on the cluster
  kubewin.csi.readiness_info:
  register: readiness

- name: Fail if a workload will not start again after the upgrade, and keep the report
  kubewin.csi.readiness_info:
    target: {openshift: "4.14", wmco: "9.0.0"}
    fail_on: blocked
    output_dir: /srv/reports/production

- name: Check what a deployment would do to volumes
  kubewin.csi.readiness_info:
    run:
      drivers:
        - driver: vsphere
          definition: "{{ lookup('ansible.builtin.file', 'vsphere.yaml') }}"
      nodes: [win-1, win-2]
    fail_on: blocked

- name: Report on a saved snapshot
  kubewin.csi.readiness_info:
    snapshot_from: /srv/reports/production/snapshot.json
"""

RETURN = r"""
verdict:
  description: V(ready), V(blocked) with a blocker, or V(unknown) if something is unknown.
  returned: when the cluster could be read
  type: str
  sample: blocked
counts:
  description: Number of findings by severity, without accepted ones.
  returned: when the cluster could be read
  type: dict
  sample: {blocker: 1, warning: 4, note: 2}
taken_at:
  description: Time of the read, by the cluster's clock.
  returned: when the cluster could be read
  type: str
  sample: "2026-11-02T09:30:00+00:00"
blockers:
  description:
    - The first 20 blockers, each with C(id), C(object), C(message) and C(remedy). A failed task, whose output has these in words,
      returns C(id) and C(object).
  returned: when the cluster could be read
  type: list
  elements: dict
unread:
  description: Resources that the account could not read, each with C(resource), C(why) and the C(rule) to add to its role.
  returned: if the cluster could be read, unless the task failed after it printed the report
  type: list
  elements: dict
table:
  description: Lines of the report for a terminal; with O(run) only a few.
  returned: if the cluster could be read, unless the task failed after it printed the report
  type: list
  elements: str
paths:
  description: Written files, by kind.
  returned: when the cluster could be read
  type: dict
  sample: {json: /srv/reports/production/readiness.json}
report:
  description: The whole report. Its schema is C(docs/schemas/readiness-report-1.json).
  returned: when the cluster could be read and O(details=true)
  type: dict
reason:
  description: Stable key of the failure, V(not_ready), V(configuration) or a word of M(kubewin.csi.cluster_apply).
  returned: failure
  type: str
  sample: not_ready
"""

import json
import secrets
from dataclasses import fields
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import missing_required_lib
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS, unknown
from ansible_collections.kubewin.csi.plugins.module_utils.decode import decode
from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.files import write_whole
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.definitions import documents
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.nodes import ObservedHost
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.snapshot import SNAPSHOT_VERSION, Snapshot
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.observe import Reading, take
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.pseudonyms import Pseudonyms
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.brief import render_brief, render_refusal
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.html import render_html
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.markdown import render_markdown
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.terminal import render_terminal
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.words import number
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.run import Run, of_run, simulate
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.suppress import read_suppressions, suppress
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.target import check
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.verdict import Report, Target
from ansible_collections.kubewin.csi.plugins.module_utils.text import harmless_json
from ansible_collections.kubewin.csi.plugins.module_utils.waiting import reporting

try:
    import msgspec
except ImportError:
    HAS_MSGSPEC = False
else:
    HAS_MSGSPEC = True

# Number of findings in the message without the whole report.
NAMED = 20

ARGUMENT_SPEC = documented(DOCUMENTATION)


def loaded(path: str) -> Snapshot:
    """A snapshot that an earlier run wrote. ValueError says what is wrong with it."""
    try:
        data = decode(msgspec.json.decode, harmless_json(Path(path).read_bytes()))
    except (OSError, ValueError) as error:
        raise ValueError(f"snapshot_from {path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"snapshot_from {path}: this is not a snapshot")
    try:
        return Snapshot.from_dict(data)
    except ValueError as error:
        raise ValueError(f"snapshot_from {path}: {error}") from error


def saved(snapshot: Snapshot) -> bytes:
    """A snapshot for a file, without making a second one in memory."""
    parts = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    return msgspec.json.encode({"snapshot_version": SNAPSHOT_VERSION, **parts})


def passes(report: Report, fail_on: str) -> bool:
    """Whether a report passes."""
    bad = {
        "never": False,
        "blocked": report.verdict == "blocked",
        "unknown": report.verdict != "ready",
        "warning": report.verdict != "ready" or report.counts()["warning"] > 0,
    }
    return not bad[fail_on]


def run_of(params: dict[str, Any], target: Target) -> Run | None:
    """The planned run to evaluate. ValueError or ClusterError if it is invalid."""
    given = params["run"]
    if not given:
        return None
    if target or params["pseudonyms"]:
        raise ValueError("run is mutually exclusive with target and pseudonyms")
    keys = tuple(one["driver"] for one in given["drivers"])
    if wrong := next((unknown(key) for key in keys if key not in DRIVERS), ""):
        raise ValueError(f"run: {wrong}")
    objects = tuple(item for one in given["drivers"] for item in documents(one["definition"]))
    return Run(keys, objects, frozenset(given["nodes"] or ()))


def named(report: Report) -> list[dict[str, str]]:
    """The worst findings, in few words."""
    worst = [one for one in report.findings if one.severity == "blocker"]
    return [{"id": one.id, "object": one.object, "message": one.message, "remedy": one.remedy} for one in worst[:NAMED]]


def write(report: Report, snapshot: Snapshot, folder: str) -> dict[str, str]:
    """Write everything that is kept; paths by kind."""
    return {
        "json": write_whole(folder, "readiness.json", json.dumps(report.as_dict(), indent=1).encode()),
        "markdown": write_whole(folder, "readiness.md", render_markdown(report).encode()),
        "html": write_whole(folder, "readiness.html", render_html(report).encode()),
        "snapshot": write_whole(folder, "snapshot.json", saved(snapshot)),
    }


def main() -> None:
    """Read, evaluate, report."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    if not HAS_MSGSPEC:
        ansible.fail_json(msg=missing_required_lib("msgspec"), reason="configuration")
    given = params["target"] or {}
    target = Target(**{one.name: str(given[one.name]) for one in fields(Target) if given.get(one.name)})
    try:
        # Before the cluster is contacted.
        check(target)
        run = run_of(params, target)
        suppressions = read_suppressions(params["suppressions"] or ())
        if params["snapshot_from"]:
            snapshot = loaded(params["snapshot_from"])
        else:
            hosts = tuple(ObservedHost.from_option(host) for host in params["hosts"] or ())
            now = datetime.now(timezone.utc)
            client, reading = connect(ansible.params), Reading()
            with reporting(reporter(params["progress_file"]), reading.__str__):
                snapshot = take(client, name=params["cluster_name"], hosts=hosts, hosts_at=now, reading=reading)
    except ClusterError as error:
        ansible.fail_json(msg=str(error), reason=error.reason)
    except ValueError as error:
        ansible.fail_json(msg=str(error), reason="configuration")
    if params["pseudonyms"]:
        names = Pseudonyms(secrets.token_bytes(32))
        snapshot = names.snapshot(snapshot)
        suppressions = tuple(names.suppression(one) for one in suppressions)
    options = Options(target=target, before=params["before"], host_facts_max_age=params["host_facts_max_age"])
    report = suppress(evaluate(simulate(snapshot, run) if run else snapshot, options), suppressions, today())
    counted = of_run(evaluate(snapshot, options), report, run, snapshot.controllers) if run else report
    result: dict[str, Any] = {
        "changed": False,
        "verdict": counted.verdict,
        "counts": counted.counts(),
        "taken_at": report.taken_at,
        "blockers": named(counted),
        "unread": [dict(one) for one in report.unread],
        "table": list(render_brief(report)) if run else render_terminal(report).splitlines(),
        "paths": {},
    }
    if params["details"]:
        result["report"] = report.as_dict()
    if params["output_dir"] and not ansible.check_mode and not run:
        try:
            result["paths"] = write(report, snapshot, params["output_dir"])
        except OSError as error:
            ansible.fail_json(
                msg=f"cannot write the report to {params['output_dir']}: {error.strerror}. Set output_dir to a "
                "writable directory, or leave it unset.",
                reason="configuration",
                **result,
            )
    if not passes(counted, params["fail_on"]):
        counts = ", ".join(number(count, severity) for severity, count in counted.counts().items() if count)
        ansible.fail_json(
            msg=render_refusal(counted)
            if run
            else f"the verdict is {report.verdict}: {counts}. The report lists what to do first.",
            reason="not_ready",
            **result,
        )
    ansible.exit_json(**result)


def today() -> date:
    """The day that decides about suppressions."""
    return datetime.now(timezone.utc).date()


if __name__ == "__main__":
    main()
