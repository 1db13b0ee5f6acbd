# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action csi_proxy_info: look at csi-proxy on a Windows node, and change nothing. Documented in plugins/modules."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import desired, model, observe, options, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.action import WindowsAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Node


class ActionModule(WindowsAction):
    argument_spec = options.INFO

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        return desired.for_info(options)

    def work(self, node: Node, wanted: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        directory = options["reference_counters"]
        checked = desired.checked_path(directory, "reference_counters") if directory else ""
        snapshot = observe.observe(node, wanted, look_at_mounts=True)
        counted = {"references": list(observe.references(node, checked))} if checked else {}
        return {"changed": False, "csi_proxy": {**prove.state(wanted, snapshot), **counted}}
