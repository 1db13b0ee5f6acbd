# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what a run did as JSON lines, so that tests read results and never the text of the screen."""

from __future__ import annotations

DOCUMENTATION = r"""
name: record
type: notification
short_description: JSON lines of every task result
description: For the tests of this collection.
requirements: [an environment variable KUBEWIN_RECORD with the file to write]
"""

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"

    def __init__(self) -> None:
        super().__init__()
        self._play = ""
        self._file = open(os.environ["KUBEWIN_RECORD"], "a", encoding="utf-8")  # noqa: SIM115 - open as long as the run

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play.get_name()
        self._write({"event": "play", "play": self._play})

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._write({"event": "start", "play": self._play, "task": task.get_name(), "host": host.get_name()})

    def v2_runner_on_ok(self, result: Any) -> None:
        self._result("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._result("ignored" if ignore_errors else "failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._result("skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._result("unreachable", result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        hosts = {host: stats.summarize(host) for host in sorted(stats.processed)}
        self._write({"event": "stats", "hosts": hosts, "custom": stats.custom})

    def _result(self, event: str, result: Any) -> None:
        # 2.21 renames the attributes; both spellings are the same objects.
        host, task = getattr(result, "host", None) or result._host, getattr(result, "task", None) or result._task
        body = getattr(result, "result", None) or result._result
        self._write(
            {
                "event": event,
                "play": self._play,
                "task": task.get_name(),
                "action": task.action,
                "host": host.get_name(),
                "changed": bool(body.get("changed")),
                "result": body,
            }
        )

    def _write(self, event: dict[str, Any]) -> None:
        self._file.write(json.dumps(event, default=str) + "\n")
        self._file.flush()
