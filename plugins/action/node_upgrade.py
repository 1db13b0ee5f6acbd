# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The upgrade's face: runs the module of the same name, shows what it does meanwhile, and says which run it is a part of."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster.holder import holder_of
from ansible_collections.kubewin.csi.plugins.modules import node_upgrade
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    """The work is the module's. It ends between two requests when the file that it tells its progress to goes."""

    module = node_upgrade

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        # Tasks run in children of the run itself.
        self._task.args["holder"] = holder_of(os.getppid())
        result: dict[str, Any] = super().run(tmp, task_vars)
        return result
