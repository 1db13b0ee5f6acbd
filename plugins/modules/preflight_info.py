# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_info
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
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.hosts
  - kubewin.csi.attributes.info
attributes:
  check_mode:
    details: In check mode no file is written to O(output_dir).
options:
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
  planned:
    description:
      - Report on the cluster after the run of a playbook of this collection, as its earlier tasks planned it with
        M(kubewin.csi.driver_info). The report compares it with the current cluster, from one read.
      - RV(verdict), RV(counts), RV(blockers) and O(fail_on) then count what the run would break, and problems of the controllers and
        CSIDrivers of its drivers. They do not count problems that the run solves or does not change. M(kubewin.csi.driver_info) reports
        whether a driver can be deployed.
      - Has no effect in other playbooks. Nothing is written to O(output_dir).
    type: bool
    default: false
  suppressions:
    description:
      - Accepted findings. The report lists them with their reason and does not count them.
      - An expired one counts again.
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
      - V(blocked) fails if a workload will not start again, or on a blocker. V(unknown) also fails if this is unknown, V(warning) also on a
        warning, V(never) not at all.
    type: str
    choices: [never, blocked, unknown, warning]
    default: never
  output_dir:
    description:
      - Directory on the controller for C(readiness.json), C(readiness.html) and C(snapshot.json). It is created if it does not exist.
    type: path
  snapshot_from:
    description:
      - Report on this snapshot of an earlier run. No cluster is contacted. O(hosts) and the name of the cluster are those of the snapshot.
    type: path
  details:
    description: Return the whole report. That of a large cluster has some megabytes, which logs and job events then hold too.
    type: bool
    default: true
seealso:
  - module: kubewin.csi.csi_proxy_info
  - module: kubewin.csi.gate
"""

EXAMPLES = r"""
- name: Report on the cluster
  kubewin.csi.preflight_info:
  register: readiness

- name: Fail if a workload will not start again after the upgrade, and keep the report
  kubewin.csi.preflight_info:
    target: {openshift: "4.14", wmco: "9.0.0"}
    fail_on: blocked
    output_dir: /srv/reports/production

- name: Report on a saved snapshot
  kubewin.csi.preflight_info:
    snapshot_from: /srv/reports/production/snapshot.json
"""

RETURN = r"""
verdict:
  description:
    - V(ready) if there is a workload with volumes on Windows and each will start again, V(blocked) if one will not, V(unknown) if that is unknown for
      one, V(no_workloads) if there is none.
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
  returned: when the cluster could be read
  type: list
  elements: dict
table:
  description: Lines of the report for a terminal; with O(planned) only a few.
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
  description: Stable key of the failure, V(not_ready), V(configuration) or a key of M(kubewin.csi.driver_apply).
  returned: failure
  type: str
  sample: not_ready
"""
