# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate's waiting: calls the module of the same name window by window and says what changed meanwhile."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.waiting import so_far
from ansible_collections.kubewin.csi.plugins.modules import node_rollout
from ansible_collections.kubewin.csi.plugins.plugin_utils.inputs import switched
from ansible_collections.kubewin.csi.plugins.plugin_utils.rollout import ended, progress, unread
from ansible_collections.kubewin.csi.plugins.plugin_utils.windowed import WINDOW, WindowedAction


class ActionModule(WindowedAction):
    """Waits with progress; the evaluation is the module's."""

    module = node_rollout

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return the last window's evaluation; failed with a reason unless the gate passed."""
        arguments = dict(self._task.args)
        timeout = self._number(arguments.get("timeout", 600))
        started = time.monotonic()
        accepts = switched(arguments.get("accept_unproven"))
        known: dict[str, str] = {}
        last: dict[str, Any] | None = None
        while True:
            left = timeout - (time.monotonic() - started)
            observed = self._window(task_vars, min(WINDOW, max(1, int(left))), known=known)
            waited = time.monotonic() - started
            if observed.get("failed"):
                return {**observed, "rollout": unread(str(observed.get("msg")))}
            if "rollout" in observed:
                last = observed["rollout"]
                self._say(*progress(last, known, int(waited), int(timeout), accepts=accepts))
                known = {node["node"]: node["fingerprint"] for node in last["nodes"]}
            else:
                self._say(f"  {so_far(waited, timeout)}: {observed['unreachable_api']}")
            settled = last is not None and "rollout" in observed and last["settled"]
            if settled or waited >= timeout or self._task.check_mode:
                break
        unreachable = observed.get("unreachable_api", "")
        result = ended(last, arguments, int(timeout), unreachable, check_mode=bool(self._task.check_mode))
        if "table" in result:
            self._say(f"\n{result.pop('table')}\n")
        return result

    @staticmethod
    def _number(given: Any) -> float:
        """The timeout, also as text of a variable; what is no number is left for the module to refuse."""
        try:
            return float(given)
        except (TypeError, ValueError):
            return 0.0
