# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what decides whether volumes on Windows nodes will work after a change, and reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..doc_fragments import hosts
from ..modules.preflight_info import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.actions.host_results import list_csi_proxies, list_read_nodes, read_plans
from ..plugin_utils.base.documented import ArgumentSpec, read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.kube.definitions import parse_definitions
from ..plugin_utils.preflight.planned_run import PlannedRun
from ..plugin_utils.preflight.report import ReadinessOptions, report_readiness

# What goes to a job's statistics: short enough for any job.
_STATISTIC = ("verdict", "counts", "taken_at", "blockers", "unread")


class ActionModule(ClusterAction):
    argument_spec: ClassVar[ArgumentSpec] = {
        **read_argument_spec(hosts.ModuleDocFragment.DOCUMENTATION),
        **read_argument_spec(DOCUMENTATION),
    }
    remainder = "Nothing was changed"
    _planned_run: PlannedRun | None = None

    def read_run(self) -> dict[str, Any]:
        """The hosts of the play, and with the option planned what this playbook planned."""
        hosts = list_csi_proxies(self.task_vars)
        if self._task.args.get("planned"):
            plans = read_plans(self.task_vars)
            objects = tuple(item for plan in plans for item in parse_definitions(plan.definition))
            drivers = tuple(plan.driver for plan in plans)
            self._planned_run = PlannedRun(drivers, objects, frozenset(list_read_nodes(hosts)))
        return {"hosts": hosts}

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the verdict and the report; failed unless the verdict passes."""
        request = replace(ReadinessOptions.from_options(options), run=self._planned_run)
        if self.check_mode:
            request = replace(request, output_dir="")
        readiness = report_readiness(lambda: self.connect(options), request, self)
        self.result.update(readiness.as_dict(details=options["details"]))
        # A run reports its intermediate result at its end.
        if not request.run:
            self.display(*readiness.render(brief=False))
            # AWX shows it as an artifact, and hands it to a workflow's next jobs.
            self.set_statistic("kubewin_preflight", {key: self.result[key] for key in _STATISTIC})
        if readiness.failure:
            if not request.run:
                del self.result["table"]
            raise TaskError(readiness.failure, readiness.reason)
