# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Saves a baseline of the data of workloads, or compares with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..modules.volume_data import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.data.run import DataRun, check_options


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)
    remainder = "Its pod was deleted; written baselines are kept"

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the result of each claim; failed if data differs."""
        claims = check_options(options)
        run = DataRun(self.connect(options), options, claims, self.show)
        self.result.update(run.as_dict())
        if options["forget"]:
            self.result["changed"] = run.forget(dry_run=self.check_mode)
            return
        run.refuse()
        if self.check_mode:
            self.result.update(changed=run.needs_write(), plan=list(run.plan()))
            return
        try:
            run.run()
        finally:
            self.result.update(run.as_dict())
        different = [volume["claim"] for volume in self.result["volumes"] if volume.get("verdict") == "different"]
        if different and not options["keep_going"]:
            raise TaskError(f"data differs on {', '.join(different)}:\n{self.result['report']}", "data_differs")
