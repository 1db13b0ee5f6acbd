# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the lines of the case table on a host over WinRM and keeps the answers in the transcript."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from lab.windows import conformance
from real_windows import transcript


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._connection._connect()
        for case in conformance.load():
            if conformance.REAL in case.hosts and case.lang == "en":
                for line in case.setup:
                    self._keep(line, case=case.name, setup=True)
                self._keep(case.line, case=case.name)
        return {**result, "changed": True}

    def _keep(self, line: str, **more: Any) -> None:
        """Run a line, which the outer cmd.exe gets as it is, and write down its answer."""
        connection: Any = self._connection
        command = connection.protocol.run_command(connection.shell_id, line, skip_cmd_shell=False)
        stdout, stderr, rc = connection.protocol.get_command_output(connection.shell_id, command)
        connection.protocol.cleanup_command(connection.shell_id, command)
        transcript.keep(line, rc, stdout, stderr, **more)
