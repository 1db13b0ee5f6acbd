# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one line on a host over WinRM, without the collection: what prepares the machine is no answer to compare."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        connection: Any = self._connection
        connection._connect()
        command = connection.protocol.run_command(connection.shell_id, self._task.args["line"], skip_cmd_shell=False)
        stdout, stderr, rc = connection.protocol.get_command_output(connection.shell_id, command)
        connection.protocol.cleanup_command(connection.shell_id, command)
        output = {"stdout": stdout.decode(errors="replace"), "stderr": stderr.decode(errors="replace")}
        return {**result, "changed": True, "failed": rc != 0, "rc": rc, **output}
