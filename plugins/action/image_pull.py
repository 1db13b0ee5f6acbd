# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pulling images with progress: calls the module of the same name window by window, and clears up however that ends."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.kubewin.csi.plugins.modules import image_pull
from ansible_collections.kubewin.csi.plugins.plugin_utils.pulling import ended, progress
from ansible_collections.kubewin.csi.plugins.plugin_utils.windowed import WindowedAction


class ActionModule(WindowedAction):
    """Goes on until every node has its images, one cannot get them, or the time is over."""

    module = image_pull

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Return where images were pulled; failed with a reason otherwise."""
        result = self._window(task_vars, progress={})
        following: dict[str, Any] | None = result.pop("progress", None)
        if following is None:
            return result
        started = time.monotonic()
        try:
            while not result.get("failed"):
                observed = self._window(task_vars, progress=following)
                if observed.get("failed"):
                    result.update(observed)
                    break
                following = observed.pop("progress")
                result["pulled"] = observed["pulled"]
                self._say(*progress(observed, time.monotonic() - started, float(self._task.args.get("timeout", 1800))))
                result.update(ended(observed, following["left"]))
                if not observed["waiting"]:
                    break
        finally:
            # Also when this task is ended from outside: a keyword timeout raises here.
            cleared = self._window(task_vars, progress={"over": True})
        if cleared.get("failed") and not result.get("failed"):
            result.update(cleared)
        return result
