# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Showing what a module does while it runs: it adds lines to a file, and ends when the file disappears."""

from __future__ import annotations

import os
import tempfile
import threading
from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()


class TellingAction(ActionBase):
    """An action whose work is a module's: it shows the module's lines as they come. module: its full name."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    module: ClassVar[str]

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        path, follower, ended = None, None, threading.Event()
        # Only a module on this machine can write to a file of ours.
        if getattr(self._connection, "transport", "") == "local" and not self._task.check_mode:
            handle, path = tempfile.mkstemp(prefix="kubewin-progress-")
            os.close(handle)
            arguments["progress_file"] = path
            follower = threading.Thread(target=_follow, args=(path, ended), daemon=True)
            follower.start()
        try:
            result.update(self._execute_module(module_name=self.module, module_args=arguments, task_vars=task_vars))
        finally:
            # Also when this task was interrupted or its time is over: the module sees it and ends in order.
            ended.set()
            if follower is not None and path is not None:
                follower.join()
                os.unlink(path)
        result.pop("invocation", None)
        return result


def _follow(path: str, ended: threading.Event) -> None:
    """Show each line that is added to the file."""
    with open(path, encoding="utf-8") as lines:
        while True:
            last = ended.wait(0.3)
            for line in lines:
                display.display(f"  {line.rstrip()}")
            if last:
                return
