# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applying a driver with progress: calls the module of the same name window by window while nodes are changed."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.waiting import spell
from ansible_collections.kubewin.csi.plugins.modules import driver_apply
from ansible_collections.kubewin.csi.plugins.plugin_utils.results import failed
from ansible_collections.kubewin.csi.plugins.plugin_utils.rolling import ended, failed_part, left_over, progress
from ansible_collections.kubewin.csi.plugins.plugin_utils.windowed import WindowedAction


class ActionModule(WindowedAction):
    """Goes on until the module says that it is over; what is done, and when, is the module's."""

    module = driver_apply

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return what was applied, with the last verdicts of the nodes."""
        result = self._window(task_vars, progress={})
        following: dict[str, Any] | None = result.pop("progress", None)
        if result.get("failed"):
            return result
        if following is not None:
            result.update(self._roll(result, following, task_vars))
        if result.get("failed"):
            # The callback prints all that a failed task returns.
            return failed_part(result)
        roll = result.get("roll")
        if roll:
            warning = left_over(roll, self._name(result))
            if warning:
                result.setdefault("warnings", []).append(warning)
        return result

    def _roll(
        self, begun: dict[str, Any], following: dict[str, Any], task_vars: dict[str, Any] | None
    ) -> dict[str, Any]:
        started = time.monotonic()
        known: dict[str, str] = {}
        changed, replaced = bool(begun["changed"]), []
        silent_since: float | None = None
        while True:
            observed = self._window(task_vars, progress=following)
            waited = time.monotonic() - started
            if observed.get("failed"):
                return {**observed, "changed": changed}
            following = observed["progress"]
            if "unreachable_api" in observed:
                silent_since = silent_since or time.monotonic()
                self._say(f"  {spell(waited)}: {observed['unreachable_api']}")
                if time.monotonic() - silent_since > self._patience():
                    return {"changed": changed, **failed("unreachable", observed["unreachable_api"])}
                continue
            silent_since = None
            roll = observed["roll"]
            changed = changed or observed["changed"]
            replaced += roll["replaced"]
            self._say(*progress(roll, known, waited, self._patience()))
            known = {one["node"]: one["state"] for one in roll["states"]}
            if roll["step"] == "back":
                self._say(f"    {roll['nodes'][0]}: {roll['message']}; restoring the former plugin")
            elif roll["step"] != "wait":
                roll["replaced"] = replaced
                return {
                    "changed": changed,
                    "roll": roll,
                    **ended(roll, self._name(begun), str(self._task.args["driver"])),
                }

    def _patience(self) -> float:
        """How long an API server that does not answer is waited for: as long as for a node."""
        return float(self._task.args.get("node_timeout", 600))

    @staticmethod
    def _name(result: dict[str, Any]) -> str:
        found = next((one for one in result["objects"] if one["kind"] == "DaemonSet"), None)
        return f"{found['namespace']}/{found['name']}" if found else ""
