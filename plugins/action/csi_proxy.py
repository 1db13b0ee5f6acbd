# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action csi_proxy: csi-proxy as a Windows service, through the host's own connection. Documented in plugins/modules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model, observe, options, plan, prove
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.action import WindowsAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.control import Limits
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.desired import from_options
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.node import Node


class ActionModule(WindowsAction):
    argument_spec = options.CSI_PROXY

    def prepare(self, options: dict[str, Any]) -> model.Desired:
        desired = from_options(options)
        source = desired.source
        if source is None or source.is_url:
            return desired
        find: Any = self._find_needle  # ansible carries no types
        try:
            found = find("files", source.location)
        except AnsibleError as error:
            raise NodeError(
                "source_missing",
                f"source: {plan.shown(source.location)!r} is neither a URL nor a file on the controller.",
                remedy="Set it to a file there (relative paths are searched in files/), or an http or https URL.",
            ) from error
        return replace(desired, source=replace(source, location=str(Path(found))))

    def work(self, node: Node, desired: model.Desired, options: dict[str, Any]) -> dict[str, Any]:
        needed = bool(options["needed"])
        if not needed and desired.state == "present":
            state = prove.state(desired, observe.observe(node, desired, with_mounts=True))
            return {"changed": False, "csi_proxy": state, "plan": [], "needed": False, "diff": {}}
        outcome = prove.converge(
            node,
            desired,
            check=bool(self._task.check_mode),
            limits=Limits(lock=float(options["lock_timeout"])),
            report=self.note,
        )
        return {
            "changed": outcome.changed,
            "csi_proxy": prove.state(desired, outcome.snapshot),
            "plan": prove.plan_view(outcome.steps),
            "needed": needed,
            "diff": outcome.diff,
        }
