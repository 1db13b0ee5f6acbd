# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fails if something in a cluster still needs csi-proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pipes import refusal
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import csi_proxy_users
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import driver_named
from ansible_collections.kubewin.csi.plugins.modules.csi_proxy_users import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.cluster_action import ClusterAction, TaskError


class ActionModule(ClusterAction):
    """Reads the users of csi-proxy."""

    argument_spec = documented(DOCUMENTATION)

    def work(self, options: Mapping[str, Any]) -> None:
        """Fail with every user of csi-proxy, if there is one."""
        going = {driver_named(name).name for name in options["drivers_going"]}
        if refused := refusal(*csi_proxy_users(self.connect(options), DRIVERS.values(), going)):
            raise TaskError(refused, "in_use")
